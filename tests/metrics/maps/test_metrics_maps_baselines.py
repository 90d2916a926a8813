"""Maps to compare with on the grids of a model, and the exact bound of these grids."""

import dataclasses
import itertools
import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saccade import geometry
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import Grid, Grids, can_exchange, derangement, grids_of, seen_by_cells
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.trace import AttentionTrace, Look

VALID_STACK = geometry.scale_shift((16.0, 16.0), (15.0, 15.0))  # 4×4 cells, centres at 23, 39, 55, 71 of 100
TURNED = torch.tensor([[6.0, -3.0, 30.0], [3.0, 6.0, 5.0]], dtype=torch.float64)


def blobs(pictures, size=(100, 100), seed=0, radius=8.0):
    generator = torch.Generator().manual_seed(seed)
    centre = torch.rand(pictures, 2, 1, 1, generator=generator) * torch.tensor(size).view(2, 1, 1)
    ys, xs = torch.meshgrid(*(torch.arange(n) + 0.5 for n in size), indexing="ij")
    return (ys - centre[:, 0]).square() + (xs - centre[:, 1]).square() < radius**2


def test_centre_gaussian_by_hand():
    """A 3×1 grid tiling 30×10 pixels: centres at x = 5, 15, 25, that is −⅓, 0, ⅓ of the width from the middle.

    With sigma ¼ the outer cells weigh exp(−½·(4/3)²) = exp(−8/9).
    """
    frame = geometry.scale_shift((10.0, 10.0), (0.0, 0.0))
    maps = baselines.centre_gaussian(frame, (1, 3), (10, 30))
    outer = math.exp(-8 / 9)
    assert maps[0, 5, 0].item() == pytest.approx(outer)
    assert maps[0, 5, 29].item() == pytest.approx(outer)
    assert maps[0, 5, 14].item() == pytest.approx(1 - 0.05 * (1 - outer))  # half a pixel off the middle cell's centre


@given(images=st.lists(st.integers(0, 6), min_size=0, max_size=40), seed=st.integers(0, 50))
@settings(max_examples=200, deadline=None)
def test_a_derangement_never_stays_with_its_image(images, seed):
    ids = torch.tensor(images, dtype=torch.long)
    assume(not images or can_exchange(ids))
    source = derangement(ids, seed=seed)
    assert sorted(source.tolist()) == list(range(len(images)))
    assert not bool((ids[source] == ids).any())


@pytest.mark.parametrize("frame", [VALID_STACK, TURNED], ids=["straight", "turned"])
def test_seen_by_cells_is_the_basis_projected_and_summed(frame):
    mask = blobs(3, (40, 50), radius=12)
    basis = geometry.project(torch.eye(20).view(1, 20, 4, 5), frame, (40, 50))[0]  # (20,40,50)
    expected = torch.einsum("nhw,bhw->bn", basis, mask.float()).view(3, 4, 5)
    torch.testing.assert_close(seen_by_cells(mask, frame, (4, 5)), expected, rtol=1e-4, atol=1e-4)


def test_oracle_by_hand():
    """Two cells over four pixels in a row, centres at 1 and 3: pixel shares of cell 0 are 1, ¾, ¼, 0.

    Evidence on pixel 0: cell 0 scores 1 / 2, cell 1 scores 0.
    """
    frame = geometry.scale_shift((2.0, 1.0), (0.0, 0.0))
    evidence = torch.tensor([[[True, False, False, False]]])
    oracle = baselines.grid_oracle(evidence, frame, (1, 2))
    assert oracle.flatten().tolist() == pytest.approx([1, 0.75, 0.25, 0])
    assert true_positive_strength(oracle, evidence).item() == pytest.approx(0.5)


SIZE, B = (12, 10), 3
CELLS = ((6, 5), (3, 2), (2, 2))


def frame_over(cells):
    return geometry.scale_shift((SIZE[1] / cells[1], SIZE[0] / cells[0]), (0.0, 0.0))


def grids(total, cells=CELLS):
    return Grids(tuple(Grid(frame_over(each), each) for each in cells), total)


def traced(weights, total, **more):
    """A trace of one look for each of the weights (B,h,w)."""
    looks = tuple(
        Look(f"look{n}", "gate", "multiplier", each, frame=frame_over(tuple(each.shape[-2:])))
        for n, each in enumerate(weights)
    )
    return AttentionTrace(looks, image_size=torch.tensor(SIZE).expand(B, 2), total=total, **more)


@pytest.mark.parametrize("total", ["product", "mean", "last"])
def test_what_is_made_on_each_grid_is_combined_as_the_looks_of_a_trace(total):
    weights = {cells: torch.rand(B, *cells) for cells in CELLS}
    laid = grids(total).through(lambda frame, cells: geometry.project(weights[cells], frame, SIZE))
    torch.testing.assert_close(laid, traced(weights.values(), total).image_map("total"))


def some_evidence():
    evidence = torch.zeros(B, *SIZE, dtype=torch.bool)
    for row in range(B):
        evidence[row, 2 * row : 2 * row + 3, 3 : 5 + row] = True
    return evidence


def strength_of_every_choice(evidence, cells):
    """The highest strength (B,) over every choice of one cell on each grid, each laid out and multiplied in full."""
    laid = [
        geometry.project(torch.eye(h * w).unflatten(1, (h, w)), frame_over((h, w)), SIZE) for h, w in cells
    ]  # (h·w,H,W) each
    best = torch.zeros(B)
    for choice in itertools.product(*laid):
        product = math.prod(choice[1:], start=choice[0])
        if float(product.sum()) > 0:
            found = true_positive_strength(product.expand(B, *SIZE), evidence)
            best = torch.maximum(best, found)
    return best


@pytest.mark.parametrize("cells", [CELLS, CELLS[::-1], ((3, 2), (3, 2))])
def test_the_bound_of_a_product_is_the_best_of_every_choice_of_cells(cells):
    evidence = some_evidence()
    found = true_positive_strength(grids("product", cells).oracle(evidence), evidence)
    torch.testing.assert_close(found, strength_of_every_choice(evidence, cells), atol=1e-6, rtol=0)


@pytest.mark.parametrize("total", ["product", "mean", "last"])
@pytest.mark.parametrize("peaky", [1.0, 8.0])
def test_no_weights_exceed_the_bound(total, peaky):
    """Noise, sharp noise, and the share of the evidence in each cell: all stay at or below the bound."""
    evidence = some_evidence()
    bound = true_positive_strength(grids(total).oracle(evidence), evidence)  # (B,)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        weights = [torch.rand(B, *cells, generator=generator) ** peaky for cells in CELLS]
        found = true_positive_strength(traced(weights, total).image_map("total"), evidence)
        assert bool((found <= bound + 1e-6).all())
    covered = [baselines.seen_by_cells(evidence, frame_over(cells), cells) for cells in CELLS]
    oracle_like = true_positive_strength(traced(covered, total).image_map("total"), evidence)
    assert bool((oracle_like <= bound + 1e-6).all())
    even = true_positive_strength(torch.ones(B, *SIZE), evidence)
    assert bool((even < oracle_like).all())
    assert bool((even + 0.01 < bound).all())


def test_there_is_no_bound_of_boxes_of_turned_products_or_of_too_many_overlaps(monkeypatch):
    evidence = some_evidence()
    with_crop = dataclasses.replace(grids("product"), has_crops=True)
    assert with_crop.oracle(evidence) is None
    turned = frame_over((3, 2)).clone()
    turned[0, 1] = 0.3
    assert Grids((Grid(turned, (3, 2)), *grids("product").grids), "product").oracle(evidence) is None
    assert Grids((Grid(turned, (3, 2)),)).oracle(evidence) is not None  # one grid may turn
    assert grids("product").oracle(evidence) is not None
    monkeypatch.setattr(baselines, "MAX_PROFILES", 10)
    assert grids("product").oracle(evidence) is None


def test_the_grids_of_a_trace_are_those_its_total_is_made_of():
    crop = Look("crop", "crop", "crop", frame=geometry.identity(), grid=(4, 4))
    fed = Look("fed", "soft", "input", torch.rand(B, 4, 4), frame=frame_over((4, 4)))
    trace = traced([torch.rand(B, *cells) for cells in CELLS[:2]], "product")
    found = grids_of(AttentionTrace((*trace.looks, fed, crop), image_size=trace.image_size, total="product"), SIZE)
    assert found.total == "product"
    assert [cells for _, cells in found.grids] == list(CELLS[:2])
    assert found.has_crops
    assert torch.equal(found.grids[0].frame, frame_over(CELLS[0]))  # one frame for all pictures, as all are equal
    last = grids_of(AttentionTrace(trace.looks, image_size=trace.image_size, total="last"), SIZE)
    assert [cells for _, cells in last.grids] == [CELLS[1]]
    assert grids_of(AttentionTrace((*trace.looks, crop), image_size=trace.image_size), SIZE) is None  # a box is last


@pytest.mark.parametrize(("total", "times"), [("product", 3), ("mean", 1), ("last", 1)])
def test_a_look_with_steps_counts_once_for_each_of_them(total, times):
    weights = torch.rand(B, 3, 3, 2)
    look = Look("step", "gate", "multiplier", weights, frame=frame_over((3, 2)))
    trace = AttentionTrace((look,), image_size=torch.tensor(SIZE).expand(B, 2), total=total)
    found = grids_of(trace, SIZE)
    assert [cells for _, cells in found.grids] == [(3, 2)] * times
    bound = true_positive_strength(found.oracle(some_evidence()), some_evidence())
    assert bool((true_positive_strength(trace.image_map("total"), some_evidence()) <= bound + 1e-6).all())
