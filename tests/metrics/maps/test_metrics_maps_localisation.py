"""How maps lie on masks, and how they rank pixels: by hand, against scikit-learn, and in batches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.metrics.maps.localisation import (
    iou,
    pointing,
    pr_counts,
    quantise,
    scale_to_peak,
    selectivity,
    true_positive_strength,
)

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
