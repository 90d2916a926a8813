"""Edited weights: which cells, what is left of them, and the scores that follow, by hand."""

from __future__ import annotations

import pytest
import torch

from saccade.metrics.maps.edits import EditScores, cells_on, chosen_cells, permuted, ratio_of_means, uniform_like
from saccade.trace import Look

FIRST = torch.tensor([[True, False], [False, False]])


def look(norm: str = "softmax", **more) -> Look:
    return Look("l", "soft", "multiplier", torch.tensor([[[0.5, 0.25], [0.125, 0.125]]]), norm=norm, **more)


def test_a_softmax_keeps_its_sum_and_a_gate_is_not_scaled():
    assert look().edit(FIRST).weights.tolist() == [[[0, 0.5], [0.25, 0.25]]]
    assert look("sigmoid").edit(FIRST).weights.tolist() == [[[0, 0.25], [0.125, 0.125]]]
    assert look().edit(torch.ones(2, 2, dtype=torch.bool)).weights.tolist() == [[[0, 0], [0, 0]]]  # nothing is left
    assert look().edit(FIRST).norm == "none"
    assert look().edit(FIRST).validate().weights is not None


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


def test_even_and_permuted_weights():
    weights = torch.rand(4, 5, 5)
    assert torch.allclose(uniform_like(weights).sum(dim=(1, 2)), weights.sum(dim=(1, 2)))
    assert (uniform_like(weights).flatten(1).std(1) < 1e-6).all()
    mixed = permuted(weights)
    assert torch.equal(mixed.flatten(1).sort(1).values, weights.flatten(1).sort(1).values)
    assert not torch.equal(mixed, weights)
    assert torch.equal(mixed, permuted(weights))


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
    summary = scores.summary()
    assert summary["n"] == 4
    assert summary["changed"]["all"]["move"] == 1
    assert summary["right"]["all"]["move"] == pytest.approx(2 / 3)
    assert EditScores().scores() == {}


def test_a_question_that_does_not_count_is_left_out():
    scores = EditScores()
    nan = float("nan")
    scores.add_changes(
        torch.arange(3),
        {"all": {"zero_target": torch.tensor([1.0, nan, 1.0]), "target_removed": torch.tensor([1.0, 1.0, 1.0])}},
    )
    assert scores.scores()["edit_necessity"]["model"].n == 2
