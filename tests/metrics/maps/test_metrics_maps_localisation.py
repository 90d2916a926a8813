"""Maps against evidence, clicks, fixations and glimpses: by hand, and on the truth, a constant and noise."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import geometry
from saccade.metrics.maps.localisation import (
    iou,
    pointing,
    pr_counts,
    quantise,
    scale_to_peak,
    selectivity,
    true_positive_strength,
)
from saccade.metrics.maps.points import Clicks, at_glimpses, at_points, at_random, disc, exactly_at, most_salient

SCORES = [true_positive_strength, pointing, iou]


def batch(seed, pictures=6, size=(9, 7)):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.rand(pictures, *size, generator=generator)
    evidence = torch.rand(pictures, *size, generator=generator) < 0.3
    evidence[:, 0, 0] = True
    return maps, evidence


def test_a_map_worked_by_hand():
    """Mass on the mask: 4 + 2 of 4 + 2 + 3 + 1 = 0.6; peak 4 inside; at least half of 4: {4, 2, 3}, mask {4, 2}."""
    maps = torch.tensor([[[4.0, 2.0], [3.0, 1.0]]])
    mask = torch.tensor([[[True, True], [False, False]]])
    assert true_positive_strength(maps, mask).item() == pytest.approx(0.6)
    assert pointing(maps, mask).item() == 1
    assert iou(maps, mask).item() == pytest.approx(2 / 3)


def test_selectivity_by_hand():
    """Target holds 4, the other object 1, the background 15: 4 / (4 + 1), whatever the background holds."""
    maps = torch.tensor([[[4.0, 1.0], [10.0, 5.0]]])
    target = torch.tensor([[[True, False], [False, False]]])
    objects = torch.tensor([[[True, True], [False, False]]])
    assert selectivity(maps, target, objects).item() == pytest.approx(0.8)
    assert selectivity(maps, target, objects & ~target).item() == pytest.approx(0.8)  # the target is added


@pytest.mark.parametrize("score", SCORES)
def test_perfect_inverted_constant_and_zero_maps(score):
    evidence = torch.zeros(1, 5, 4, dtype=torch.bool)
    evidence[0, 1:3, 1:4] = True  # 6 of 20 pixels
    assert score(evidence.float(), evidence).item() == 1
    assert score((~evidence).float(), evidence).item() == 0
    assert score(torch.full((1, 5, 4), 0.37), evidence).item() == pytest.approx(0.3)
    assert score(torch.zeros(1, 5, 4), evidence).item() == 0


def test_empty_evidence_is_undefined_and_only_there():
    maps, evidence = batch(0)
    evidence[2] = False
    for scores in (*(score(maps, evidence) for score in SCORES), selectivity(maps, evidence, evidence)):
        assert scores.isnan().tolist() == [False, False, True, False, False, False]


def batch_of_recall(seed, pictures=8, size=(12, 12), sharpness=1.0):
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.rand(pictures, *size, generator=generator) < 0.2
    evidence[:, 0, 0] = True
    noise = torch.rand(pictures, *size, generator=generator)
    maps = torch.exp(sharpness * (noise + 0.4 * evidence)) * (1 + torch.arange(pictures))[:, None, None]
    return maps, evidence


def dequantise(codes, bits):
    """The float32 numbers that stand for the codes of ``quantise``."""
    return (codes << (23 - bits)).view(torch.float32)


def exact(maps, evidence):
    """Average precision of the pooled pixels, each map divided by its peak: sorted pixel by pixel, ties together."""
    scaled = scale_to_peak(maps).flatten()
    thresholds, level = scaled.unique(return_inverse=True)
    true = torch.bincount(level[evidence.flatten()], minlength=len(thresholds)).flip(0).cumsum(0).double()
    called = torch.bincount(level, minlength=len(thresholds)).flip(0).cumsum(0).double()
    return float((true.diff(prepend=true.new_zeros(1)) * true / called).sum() / true[-1])


def test_a_curve_worked_by_hand():
    """Scores 1, .5, .5, .25 with truth 1, 1, 0, 0.

    Thresholds 1, .5, .25: precision 1, 2/3, 2/4; recall 1/2, 1, 1; area 1/2·1 + 1/2·2/3 = 5/6.
    """
    maps = torch.tensor([[[4.0, 2.0], [2.0, 1.0]]])
    evidence = torch.tensor([[[True, True], [False, False]]])
    assert pr_counts(maps, evidence).auc == exact(maps, evidence) == pytest.approx(5 / 6)


def test_perfect_inverted_constant_and_zero_maps_of_recall():
    """A perfect map has area 1, a constant or zero one the share of evidence; an inverted one too, all at the end."""

    def area(maps, evidence):
        return pr_counts(maps, evidence).auc

    _, evidence = batch_of_recall(0)
    share = evidence.double().mean().item()
    assert area(evidence.float(), evidence) == 1
    assert area((~evidence).float(), evidence) == pytest.approx(share)
    assert area(torch.full(evidence.shape, 3.0), evidence) == pytest.approx(share)
    assert area(torch.zeros(evidence.shape), evidence) == pytest.approx(share)


def test_each_picture_is_scaled_by_its_own_peak():
    maps, evidence = batch_of_recall(1)
    louder = maps * torch.tensor([2.0**k for k in range(len(maps))])[:, None, None]
    assert pr_counts(louder, evidence).auc == pr_counts(maps, evidence).auc


@given(seed=st.integers(0, 1000), sharpness=st.sampled_from([0.5, 3.0, 12.0]))
@settings(max_examples=30, deadline=None)
def test_streaming_is_the_exact_area_of_rounded_maps_and_close_to_that_of_the_maps(seed, sharpness):
    maps, evidence = batch_of_recall(seed, sharpness=sharpness)
    scaled = scale_to_peak(maps)
    rounded = dequantise(quantise(scaled, 10), 10)
    assert ((rounded - scaled).abs() <= scaled * 2.0**-11 + 1e-12).all()
    streamed = pr_counts(maps, evidence).auc
    assert streamed == pytest.approx(exact(rounded, evidence), abs=1e-12)
    assert streamed == pytest.approx(exact(maps, evidence), abs=2e-3)


SIZE = (6, 8)
NOWHERE = [math.nan, math.nan]


def point(*xy):
    return torch.tensor([xy], dtype=torch.float32)


def one_pixel(row, column, size=SIZE):
    maps = torch.zeros(1, *size)
    maps[0, row, column] = 2.0
    return maps


def radius(value, pictures=1):
    return torch.full((pictures,), float(value))


def near(maps, points, radius):
    """Scores where near is within ``radius``: of an object ten times as wide."""
    boxes = torch.tensor([[0.0, 0.0, 10 * radius, 0.0]]).expand(len(maps), 4)
    return Clicks.at(points, boxes, tuple(maps.shape[1:])).scores(maps)


def test_a_disc_by_hand():
    """Within 1.0 of the centre of pixel (row 2, column 3): it and its four neighbours, not the diagonal ones."""
    found = disc(point(3.5, 2.5), radius(1.0), SIZE)[0].nonzero().tolist()
    assert found == [[1, 3], [2, 2], [2, 3], [2, 4], [3, 3]]
    assert disc(point(3.5, 2.5), radius(math.sqrt(2) + 1e-4), SIZE).sum() == 9


def test_scores_by_hand():
    """Three quarters of the weight two pixels right of the click, a quarter on it; the box is 10 pixels across."""
    maps = 3 * one_pixel(2, 5) + one_pixel(2, 3)
    click = point(3.5, 2.5)
    assert near(maps, click, 1.9)["attention_near"].tolist() == [0.25]
    assert near(maps, click, 2.0)["attention_near"].tolist() == [1.0]
    assert near(maps, click, 1.9)["pointing_at"].tolist() == [0.0]
    assert near(maps, click, 2.0)["pointing_at"].tolist() == [1.0]
    assert near(maps, click, 1.0)["distance"].tolist() == pytest.approx([0.2])


def test_a_constant_map_is_a_pixel_drawn_at_random():
    """Two pixels side by side, the click in the first: near half the time, half a pixel away on the mean."""
    maps, click = torch.full((1, 1, 2), 0.3), point(0.5, 0.5)
    found = near(maps, click, 0.5)
    assert [float(values) for values in found.values()] == [0.5, 0.5, pytest.approx(0.5 / 5)]  # of 5 pixels
    silent = near(0 * maps, click, 0.5)
    assert silent["distance"].item() == pytest.approx(0.5 / 5)
    assert silent["pointing_at"].item() == 0


def test_without_a_click_there_is_no_score():
    maps, points = torch.ones(2, *SIZE), torch.tensor([[3.0, 3.0], NOWHERE])
    for found in near(maps, points, 1.0).values():
        assert found.isnan().tolist() == [False, True]


def test_exactly_at_is_the_pixel_and_the_nearest_one_for_points_outside():
    maps = exactly_at(torch.tensor([[3.9, 2.0], [-5.0, 99.0], NOWHERE]), SIZE)
    assert maps.nonzero().tolist() == [[0, 2, 3], [1, 5, 0]]
    assert maps.sum((1, 2)).tolist() == [1, 1, 0]


def test_at_points_is_the_nearest_cell_through_the_projection():
    """A grid of 3×4 cells of two pixels each: the click at (5, 1) lies on the border of cells 2 and 3 of the first row;
    a bit to the left it is cell 2."""
    frame, grid = geometry.scale_shift((2.0, 2.0), (0.0, 0.0)), (3, 4)
    wanted = torch.zeros(1, *grid)
    wanted[0, 0, 2] = 1
    found = at_points(torch.tensor([[4.8, 1.2], NOWHERE, [99.0, -3.0]]), frame, grid, SIZE)
    torch.testing.assert_close(found[:1], geometry.project(wanted, frame, SIZE))
    assert not found[1].any()
    assert found[2, 0, -1] == found[2].max()
    batched = at_points(torch.tensor([[4.8, 1.2]]), frame[None], grid, SIZE)
    torch.testing.assert_close(batched, found[:1])


MAPS = torch.arange(12.0).reshape(1, 2, 2, 3)  # two steps on a grid of 2 × 3
CHOICE = torch.tensor([[[0, 5], [1, 1]]])


def test_the_mean_over_glimpses_of_each_steps_own_map() -> None:
    assert at_glimpses(MAPS, CHOICE).tolist() == [[2.5, 7.0]]  # (0 + 5)/2; cell 1 twice
    assert at_glimpses(MAPS[:, 0], CHOICE).tolist() == [[2.5, 1.0]]  # one map for all steps


def test_nobody_finds_more_saliency_than_who_follows_it() -> None:
    saliency = torch.rand(3, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    best = at_glimpses(saliency, most_salient(saliency))
    assert torch.equal(best, saliency.flatten(2).amax(-1).double())
    assert bool((best >= at_random(saliency, torch.ones(3, 4))).all())
