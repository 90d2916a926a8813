"""Edited weights, crops on the evidence, and windows in other places."""

import pytest
import torch

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
