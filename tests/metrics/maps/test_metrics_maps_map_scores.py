"""Scores added up batch by batch: hand-worked numbers, no dependence on the batches, undefined pictures."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import iou, pointing, pr_auc, selectivity, true_positive_strength
from saccade.metrics.maps.map_scores import MapScores

MAP_SCORES = ["true_positive_strength", "pointing", "iou", "selectivity", "pr_auc"]


def scored(maps, evidence, objects=None, sizes=()):
    """One MapScores, filled in batches of the given sizes (the rest in one)."""
    scores = MapScores()
    sizes = [*sizes, len(maps) - sum(sizes)]
    parts = zip(
        maps.split(sizes), evidence.split(sizes), [None] * len(sizes) if objects is None else objects.split(sizes)
    )
    for part in parts:
        scores.add(*part)
    return scores


@pytest.fixture
def pictures():
    maps = torch.rand(7, 6, 5)
    objects = torch.rand(7, 6, 5) < 0.5
    evidence = objects & (torch.rand(7, 6, 5) < 0.5)
    evidence[:, 0, 0] = True
    return maps, evidence, objects


def test_hand_worked():
    """A map of 3, 1, 0, 0 on 2×2 cells; the target is the cell of 3, the objects are the first two cells.

    3/4 of the weight is on the target, and on the objects too; the maximum is inside; at half the maximum only the
    target is left (IoU 1); as a detector the target's cell ranks first (average precision 1).
    """
    maps = torch.tensor([[[3.0, 1.0], [0.0, 0.0]]])
    target = torch.tensor([[[True, False], [False, False]]])
    objects = torch.tensor([[[True, True], [False, False]]])
    expected = {"true_positive_strength": 0.75, "pointing": 1.0, "iou": 1.0, "selectivity": 0.75, "pr_auc": 1.0}
    assert scored(maps, target, objects).means() == pytest.approx(expected)


def test_the_mean_is_over_pictures_and_the_area_over_pixels():
    """Two pictures: one perfect, one that looks at the wrong of two pixels. Pooled, the two pixels of value 1 hold one
    of two positives (precision 1/2, recall 1/2), then everything (precision 1/2, recall 1): area 1/2."""
    maps = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    evidence = torch.tensor([[[True, False]], [[True, False]]])
    means = scored(maps, evidence).means()
    assert means["true_positive_strength"] == 0.5
    assert means["pr_auc"] == pytest.approx(0.5)


@given(st.lists(st.integers(1, 3), max_size=3))
def test_batches_do_not_matter(sizes):
    generator = torch.Generator().manual_seed(len(sizes))
    maps = torch.rand(10, 4, 4, generator=generator)
    evidence = torch.rand(10, 4, 4, generator=generator) < 0.3
    whole, parts = scored(maps, evidence), scored(maps, evidence, sizes=sizes)
    assert whole.means() == parts.means()
    assert all(torch.equal(whole.values()[name], parts.values()[name]) for name in whole.values())


def test_values_are_those_of_the_plain_functions(pictures):
    maps, evidence, objects = pictures
    scores = scored(maps, evidence, objects, sizes=(3,))
    plain = {
        "true_positive_strength": true_positive_strength(maps, evidence),
        "pointing": pointing(maps, evidence),
        "iou": iou(maps, evidence),
        "selectivity": selectivity(maps, evidence, objects),
    }
    assert scores.values().keys() == plain.keys()
    for name, values in plain.items():
        torch.testing.assert_close(scores.values()[name], values.double())
    assert scores.curve().pictures == 7
    assert scores.means()["pr_auc"] == pytest.approx(pr_auc(maps, evidence), abs=2e-3)  # counted on a fixed grid


def test_without_objects_there_is_no_selectivity(pictures):
    maps, evidence, _ = pictures
    assert list(scored(maps, evidence).means()) == ["true_positive_strength", "pointing", "iou", "pr_auc"]


def test_pictures_without_evidence_do_not_count():
    maps = torch.ones(2, 2, 2)
    evidence = torch.zeros(2, 2, 2, dtype=torch.bool)
    evidence[0, 0] = True
    scores = scored(maps, evidence, torch.ones_like(evidence))
    assert scores.means()["true_positive_strength"] == 0.5
    assert scores.values()["true_positive_strength"].isnan().tolist() == [False, True]
    assert scores.curve().undefined == 1


def test_when_no_picture_has_evidence_every_score_is_undefined():
    nothing = torch.zeros(2, 2, 2, dtype=torch.bool)
    means = scored(torch.ones(2, 2, 2), nothing, nothing).means()
    assert sorted(means) == sorted(MAP_SCORES)
    assert all(math.isnan(value) for value in means.values())


def test_further_values_are_kept_beside_the_maps_or_alone(pictures):
    maps, evidence, objects = pictures
    scores = scored(maps, evidence, objects)
    scores.add_values({"deletion": torch.tensor([0.25, 0.75], requires_grad=True)})
    scores.add_values({"deletion": torch.tensor([float("nan")])})
    assert scores.means()["deletion"] == 0.5
    assert len(scores.values()["deletion"]) == 3
    alone = MapScores()
    assert alone.means() == {}
    alone.add_values({"causal_hold": torch.tensor([1.0, 0.0])})
    assert alone.means() == {"causal_hold": 0.5}
