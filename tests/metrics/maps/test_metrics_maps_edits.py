"""Edited weights and windows of maps, and whether words depend on what their maps mark and follow what was changed."""

import math

import pytest
import torch
from torch import Tensor

from saccade import geometry
from saccade.metrics.maps.edits import (
    EditScores,
    anywhere_scores,
    beside,
    cells_among,
    cells_on,
    centred,
    chosen_cells,
    crop_boxes,
    crop_scores,
    edited_weights,
    grown,
    mask_boxes,
    over,
    ratio_of_means,
    round_about,
)
from saccade.metrics.maps.words import (
    map_distances,
    marked,
    own_and_other,
    same_caption,
    word_follow,
    word_log_probabilities,
)
from saccade.trace import Look

FIRST = torch.tensor([[True, False], [False, False]])


def test_cells_on_a_mask():
    """Cells of 10 × 10 pixels, told apart by how much of them a mask covers."""
    frame = torch.tensor([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]], dtype=torch.float64)
    mask = torch.zeros(3, 20, 20, dtype=torch.bool)
    mask[0, :10, :10] = True  # one whole cell
    mask[1, 3:6, 14:17] = True  # 9 % of the upper right cell: below a tenth, but no cell sees it better
    found = cells_on(mask, frame, (2, 2))
    assert bool(found[0, 0, 0])
    assert found[1].tolist() == [[False, True], [False, False]]
    assert not found[2].any()


def test_the_highest_cells_among_those_allowed():
    rank = torch.tensor([[[4.0, 3.0], [2.0, 1.0]]]).expand(2, 2, 2)
    chosen = chosen_cells(rank, ~FIRST.expand(2, 2, 2), torch.tensor([2, 9]))
    assert chosen[0].tolist() == [[False, True], [True, False]]
    assert chosen[1].tolist() == [[False, True], [True, True]]  # there are no more


def test_even_and_permuted_weights_by_hand():
    """Three sentences, an empty slot and an end fact, which keep their weight."""
    weights = torch.tensor([[0.5, 0.25, 0.0, 0.125, 0.125]])
    present = torch.tensor([[True, True, True, False, False]])
    chance = torch.tensor([[0.9, 0.1, 0.5, 0.0, 0.0]])  # so the second comes first, then the third, then the first
    cells = cells_among(torch.zeros_like(present), present, weights, chance)
    found = edited_weights(Look("hop", "soft", "multiplier", weights), cells)
    assert found["even"].tolist() == [[0.25, 0.25, 0.25, 0.125, 0.125]]
    assert found["permuted"].tolist() == [[0.25, 0.0, 0.5, 0.125, 0.125]]


def test_a_ratio_of_means():
    found = ratio_of_means(
        torch.tensor([1.0, 0.0, 1.0, torch.nan]), torch.tensor([1.0, 1.0, 0.0, 1.0]), torch.tensor([0, 1, 2, 3])
    )
    assert (found.mean, found.n, found.images, found.undefined) == (1.0, 3, 3, 1)
    assert found.low < 1 < found.high
    nothing = ratio_of_means(torch.ones(2), torch.zeros(2), torch.arange(2))
    assert nothing.mean != nothing.mean
    single = ratio_of_means(torch.ones(2), torch.ones(2), torch.zeros(2, dtype=torch.int64))
    assert single.mean == 1
    assert single.low != single.low


def test_a_ratio_near_its_ends_is_held_by_its_interval():
    """20 pictures in which nothing went wrong do not prove a ratio of exactly 1, nor of exactly 0."""
    twenty, none = torch.ones(20), torch.zeros(20)
    perfect, never = (ratio_of_means(top, twenty, torch.arange(20)) for top in (twenty, none))
    assert perfect.low < 0.95 < 1 < perfect.high
    assert never.low == 0
    assert never.high > 0.05
    generator, held = torch.Generator().manual_seed(0), 0
    for _ in range(200):
        draw = torch.rand(20, generator=generator)
        found = ratio_of_means((draw < 0.95).double(), (draw < 0.97).double(), torch.arange(20))
        held += found.low <= 0.95 / 0.97 <= found.high
    assert held >= 190


def test_necessity_and_sufficiency_by_hand():
    before, truth = torch.tensor([1, 1, 1, 1]), torch.tensor([1, 1, 1, 2])
    after = {
        "zero_target": torch.tensor([0, 0, 1, -1]),  # 2 of 3 change; the last was not possible
        "zero_random": torch.tensor([1, 1, 1, -1]),
        "zero_heaviest": torch.tensor([0, 1, 1, -1]),
        "keep_target": torch.tensor([1, 1, 0, -1]),  # 2 of 3 stay
        "keep_random": torch.tensor([0, 0, 0, -1]),
        "target_removed": torch.tensor([0, 0, 0, -1]),
        "target_alone": torch.tensor([1, 1, 1, -1]),
        "move": torch.tensor([3, 3, 0, -1]),
    }
    parts = [EditScores(), EditScores()]
    groups, moved = torch.arange(4), torch.tensor([3, 3, 3, 3])
    for part, rows in zip(parts, (slice(0, 2), slice(2, 4))):
        told = {name: ids[rows] for name, ids in after.items()}
        part.add(before[rows], truth[rows], groups[rows], {"all": told}, truths={"move": moved[rows]})
    scores = parts[0]
    scores.join(parts[1])
    found = scores.scores()
    necessity = {who: each.mean for who, each in found["edit_necessity"].items()}
    assert necessity == pytest.approx({"model": 2 / 3, "random_cells": 0, "heaviest_cells": 1 / 3})
    sufficiency = {who: each.mean for who, each in found["edit_sufficiency"].items()}
    assert sufficiency == pytest.approx({"model": 2 / 3, "random_cells": 0})
    summary = scores.interventions()["model"]["edits"]
    assert summary["n"] == 4
    assert summary["changed"]["all"]["move"] == 1
    assert summary["right"]["all"]["move"] == pytest.approx(2 / 3)
    assert EditScores().scores() == {}


def _mask(box: tuple[int, int, int, int], size: tuple[int, int] = (8, 10)) -> torch.Tensor:
    x0, y0, x1, y1 = box
    mask = torch.zeros(1, *size, dtype=torch.bool)
    mask[0, y0:y1, x0:x1] = True
    return mask


def test_scores_by_hand() -> None:
    """Evidence (2,2)–(6,4), crop (4,1)–(8,5): half of the 8 pixels; 4 / (16 + 8 − 4); 4 of 16 pixels of the crop."""
    mask, crop = _mask((2, 2, 6, 4)), torch.tensor([[4.0, 1.0, 8.0, 5.0]])
    found = crop_scores(crop, mask)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {"covers_evidence": 0.5, "overlap": 0.2, "inside_evidence": 0.25}
    )


def test_a_crop_may_cut_through_pixels() -> None:
    """Half a pixel of one column of two rows: 1 of 8 pixels less."""
    found = crop_scores(torch.tensor([[0.0, 0.0, 5.5, 8.0]]), _mask((2, 2, 6, 4)))
    assert float(found["covers_evidence"]) == pytest.approx(7 / 8)


def test_boxes_of_masks_and_crops() -> None:
    """The tight box; nothing for an empty mask; a crop's box from its frame, on an odd grid."""
    boxes = mask_boxes(torch.cat([_mask((2, 3, 6, 8)), torch.zeros(1, 8, 10, dtype=torch.bool)]))
    assert boxes[0].tolist() == [2, 3, 6, 8]
    assert boxes[1].isnan().all()
    assert crop_scores(torch.tensor([[0.0, 0, 1, 1]]), torch.zeros(1, 8, 10).bool())["covers_evidence"].isnan()
    box = torch.tensor([[1.5, 2.0, 7.25, 6.0]], dtype=torch.float64)
    assert torch.allclose(crop_boxes(geometry.crop_frame(box, (5, 7)), (5, 7)), box)


def test_controls_have_the_same_side() -> None:
    """Centred in 8 × 10; anywhere is the mean over places, here by loops over the lattice."""
    crop, mask = torch.tensor([[0.0, 0.0, 4.0, 4.0]]), _mask((6, 1, 9, 3))
    assert centred(crop, (8, 10)).tolist() == [[3.0, 2.0, 7.0, 6.0]]
    places = [((10 - 4) * (i + 0.5) / 16, (8 - 4) * (j + 0.5) / 16) for i in range(16) for j in range(16)]
    each = [crop_scores(torch.tensor([[x, y, x + 4, y + 4]], dtype=torch.float64), mask) for x, y in places]
    found = anywhere_scores(crop, mask)
    for name in found:
        expected = sum(float(scores[name]) for scores in each) / len(each)
        assert float(found[name]) == pytest.approx(expected)


CROP = torch.tensor([[10.0, 10.0, 40.0, 30.0]])  # 30 × 20
SIZE = (100, 100)


def test_a_window_beside_holds_nothing_of_the_target_and_one_over_holds_it_all():
    target = torch.tensor([[15.0, 12.0, 25.0, 22.0]])
    box, found = beside(CROP, target, SIZE)
    x0, y0, x1, y1 = box[0].tolist()
    assert bool(found[0])
    assert x1 <= 15 or x0 >= 25 or y1 <= 12 or y0 >= 22
    box, found = over(CROP, target, SIZE)
    x0, y0, x1, y1 = box[0].tolist()
    assert bool(found[0])
    assert x0 <= 15 <= 25 <= x1
    assert y0 <= 12 <= 22 <= y1
    assert (x1 - x0, y1 - y0) == (pytest.approx(30), pytest.approx(20))


def test_a_window_round_the_target_is_moved_inside_the_picture():
    target = torch.tensor([[0.0, 40.0, 10.0, 60.0]])
    assert grown(target, 1.5, 20.0).tolist() == [[20, 30]]
    assert round_about(target, torch.tensor([[20.0, 30.0]]), SIZE).tolist() == [[0, 35, 20, 65]]


def test_the_top_tenth_is_a_tenth_and_holds_the_highest_pixels() -> None:
    maps = torch.arange(200.0).reshape(2, 10, 10)
    found = marked(maps)
    assert found.sum((1, 2)).tolist() == [10, 10]
    assert bool(found[0, 9].all())
    assert not bool(found[0, :9].any())


def test_log_probabilities_of_words_by_hand() -> None:
    logits = torch.tensor([[[0.0, math.log(3.0)], [0.0, 0.0], [5.0, 5.0]]])
    found = word_log_probabilities(logits, torch.tensor([[1, 0, -1]]))
    assert found[0].tolist() == pytest.approx([math.log(0.75), math.log(0.5), 0.0])


def test_own_and_other_by_hand_and_a_word_that_comes_twice() -> None:
    drops = torch.tensor([[4.0, 1.0, 1.0], [2.0, 3.0, 0.5], [6.0, 2.0, 2.5]])
    own, other = own_and_other(drops, torch.tensor([7, 8, 9]))
    assert own.tolist() == [4.0, 3.0, 2.5]
    assert other.tolist() == [4.0, 1.5, 0.75]
    _, other = own_and_other(drops, torch.tensor([7, 8, 7]))  # of words 0 and 2 the only other word is 1
    assert other.tolist() == [2.0, 1.5, 0.5]
    _, other = own_and_other(torch.tensor([[1.0]]), torch.tensor([7]))
    assert bool(other.isnan().all())


def test_distances_between_maps_by_hand() -> None:
    weights = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]])
    assert map_distances(weights, torch.tensor([1, 2, 3])).tolist() == pytest.approx([0.75, 0.75, 0.5])
    assert map_distances(weights[[0, 0]], torch.tensor([1, 2])).tolist() == [0.0, 0.0]


PLACES = 20
SIDE = 20  # a place is one of 20 columns: a tenth of the picture is two of them


def evidence(maps: Tensor, needs: Tensor) -> Tensor:
    """Eq. (2) of words that lose as many nats as the share of their columns ``needs`` (N,2) that is altered."""
    regions = marked(maps)  # (N,H,W)
    gone = regions.float().mean(1)  # (N,W): which share of each column was altered
    after = -torch.stack([gone[:, columns].mean(1) for columns in needs], 1)  # (N,N): log p of t without R_u
    own, other = own_and_other(-after, torch.arange(len(needs)))
    return own - other


@pytest.fixture
def needs() -> Tensor:
    return torch.arange(PLACES).reshape(10, 2)


def test_maps_that_mark_what_each_word_needs_have_all_of_it(needs: Tensor) -> None:
    maps = torch.zeros(len(needs), SIDE, SIDE)
    for word, columns in enumerate(needs):
        maps[word, :, columns] = 1
    assert evidence(maps, needs).tolist() == pytest.approx([1.0] * len(needs))


def test_maps_that_are_the_same_for_every_word_have_none(needs: Tensor) -> None:
    same = torch.rand(1, SIDE, SIDE, generator=torch.Generator().manual_seed(0)).expand(len(needs), -1, -1)
    for maps in (torch.ones(len(needs), SIDE, SIDE), same):
        assert evidence(maps, needs).tolist() == pytest.approx([0.0] * len(needs), abs=1e-6)


def test_maps_of_noise_have_none_on_average(needs: Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    found = torch.cat([evidence(torch.rand(10, SIDE, SIDE, generator=generator), needs) for _ in range(200)])
    error = float(found.std()) / len(found) ** 0.5
    assert abs(float(found.mean())) < 3 * error < 0.01


A, RED, BLUE, SEVEN, TWO = 2, 3, 4, 5, 6  # ids; 0 is the end, −1 is padding


def captions(*rows):
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows])


@pytest.mark.parametrize(
    ("before", "after", "place", "followed", "held"),
    [
        ([A, RED, SEVEN, 0], [A, BLUE, SEVEN, 0], 1, 1, 1),
        ([A, RED, SEVEN, 0], [A, RED, SEVEN, 0], 1, 0, 1),  # did not notice
        ([A, RED, SEVEN, 0], [A, BLUE, TWO, 0], 1, 1, 0),  # the digit changed as well
        ([A, RED, SEVEN, 0], [A, BLUE, SEVEN, A, RED, TWO, 0], 1, 1, 0),  # goes on talking
        ([A, RED, SEVEN, A, RED, TWO, 0], [A, BLUE, SEVEN, A, RED, TWO, 0], 4, 0, 0),  # the other object of one colour
        ([A, RED, TWO, 0], [A, BLUE, TWO, 0], 1, 1, 1),  # wrong at first, and followed
        ([A, RED, 0, 9, 9], [A, BLUE, 0], 1, 1, 1),  # what comes after the end does not count
    ],
)
def test_what_can_become_of_a_caption(before, after, place, followed, held):
    at, new = torch.tensor([place]), torch.tensor([BLUE])
    found = word_follow(captions(before), captions(after), place=at, new_word=new)
    assert [each.item() for each in found] == [followed * held, followed, held]


def test_same_caption():
    truth = captions([A, RED, SEVEN, 0], [A, RED, 0], [A, RED, SEVEN, 0])
    said = torch.tensor([[A, RED, SEVEN, 0, 7, 7], [A, RED, SEVEN, 0, -1, -1], [A, RED, SEVEN, A, 0, -1]])
    assert same_caption(said, truth).tolist() == [1, 0, 0]
