from functools import reduce
from operator import add

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.metrics import no_counts, pr_counts
from saccade.metrics.maps.localisation import dequantise, quantise, scale_to_peak


def batch(seed, pictures=8, size=(12, 12), sharpness=1.0):
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.rand(pictures, *size, generator=generator) < 0.2
    evidence[:, 0, 0] = True
    noise = torch.rand(pictures, *size, generator=generator)
    maps = torch.exp(sharpness * (noise + 0.4 * evidence)) * (1 + torch.arange(pictures))[:, None, None]
    return maps, evidence


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
    curve = pr_counts(maps, evidence).curve()
    assert curve.thresholds.tolist() == [1, 0.5, 0.25]
    assert curve.precision.tolist() == pytest.approx([1, 2 / 3, 1 / 2])
    assert curve.recall.tolist() == [0.5, 1, 1]
    assert curve.auc == exact(maps, evidence) == pytest.approx(5 / 6)


def test_perfect_inverted_constant_and_zero_maps():
    """A perfect map has area 1, a constant or zero one the share of evidence; an inverted one too, all at the end."""

    def area(maps, evidence):
        return pr_counts(maps, evidence).auc

    _, evidence = batch(0)
    share = evidence.double().mean().item()
    assert area(evidence.float(), evidence) == 1
    assert area((~evidence).float(), evidence) == pytest.approx(share)
    assert area(torch.full(evidence.shape, 3.0), evidence) == pytest.approx(share)
    assert area(torch.zeros(evidence.shape), evidence) == pytest.approx(share)


def test_each_picture_is_scaled_by_its_own_peak():
    maps, evidence = batch(1)
    louder = maps * torch.tensor([2.0**k for k in range(len(maps))])[:, None, None]
    assert pr_counts(louder, evidence).auc == pr_counts(maps, evidence).auc


@pytest.mark.reference
@given(seed=st.integers(0, 1000), digits=st.sampled_from([1, 2, 7]), sharpness=st.sampled_from([0.5, 3.0, 12.0]))
@settings(max_examples=30, deadline=None)
def test_exact_equals_scikit_learn(seed, digits, sharpness):
    """Few digits make many ties."""
    metrics = pytest.importorskip("sklearn.metrics")
    maps, evidence = batch(seed, sharpness=sharpness)
    maps = scale_to_peak(maps).mul(10**digits).round() / 10**digits
    expected = metrics.average_precision_score(evidence.flatten().numpy(), scale_to_peak(maps).flatten().numpy())
    assert exact(maps, evidence) == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 1000), sharpness=st.sampled_from([0.5, 3.0, 12.0]))
@settings(max_examples=30, deadline=None)
def test_streaming_is_the_exact_area_of_rounded_maps_and_close_to_that_of_the_maps(seed, sharpness):
    maps, evidence = batch(seed, sharpness=sharpness)
    scaled = scale_to_peak(maps)
    rounded = dequantise(quantise(scaled, 10), 10)
    assert ((rounded - scaled).abs() <= scaled * 2.0**-11 + 1e-12).all()
    streamed = pr_counts(maps, evidence).auc
    assert streamed == pytest.approx(exact(rounded, evidence), abs=1e-12)
    assert streamed == pytest.approx(exact(maps, evidence), abs=2e-3)


def test_batches_add_up_in_any_order():
    maps, evidence = batch(2, pictures=9)
    evidence[[1, 6]] = False
    whole = pr_counts(maps, evidence)
    parts = [pr_counts(maps[i : i + 2], evidence[i : i + 2]) for i in range(0, 9, 2)]
    for total in (reduce(add, parts, no_counts()), reduce(add, reversed(parts))):
        assert torch.equal(total.positives, whole.positives)
        assert torch.equal(total.negatives, whole.negatives)
        assert (total.pictures, total.undefined) == (7, 2)
        assert total.auc == whole.auc


def test_pictures_without_evidence_are_left_out_and_counted():
    maps, evidence = batch(4)
    with_empty = evidence.clone()
    with_empty[5] = False
    kept = torch.arange(8) != 5
    found = pr_counts(maps, with_empty)
    assert (found.pictures, found.undefined) == (7, 1)
    assert found.auc == pytest.approx(exact(maps[kept], evidence[kept]), abs=2e-3)
