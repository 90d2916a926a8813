"""Baselines through the grids that a map went through: combined as a trace combines its looks."""

import pytest
import torch

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics import Grid, Grids, baselines, grids_of, true_positive_strength
from saccade.trace import AttentionTrace, Look

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


@pytest.mark.parametrize("total", ["product", "mean", "last"])
def test_one_grid_is_left_as_it_is(total):
    evidence = torch.rand(B, *SIZE) < 0.3
    one = grids(total, CELLS[:1])
    assert torch.equal(one.oracle(evidence), baselines.grid_oracle(evidence, *one.grids[0]))
    assert torch.equal(one.through(lambda frame, cells: torch.ones(B, *SIZE)), torch.ones(B, *SIZE))


def test_of_the_last_alone_only_the_last_is_made():
    made = []
    grids("last").through(lambda frame, cells: made.append(cells) or torch.ones(B, *SIZE))
    assert made == [CELLS[-1]]


@pytest.mark.parametrize("cells", [CELLS, CELLS[::-1]])
def test_in_a_product_every_further_grid_can_only_help(cells):
    evidence = torch.zeros(B, *SIZE, dtype=torch.bool)
    for row in range(B):
        evidence[row, 2 * row : 2 * row + 3, 3 : 5 + row] = True
    strengths = [
        true_positive_strength(grids("product", cells[:many]).oracle(evidence), evidence) for many in (1, 2, 3)
    ]
    assert bool((strengths[1] >= strengths[0] - 1e-6).all())
    assert bool((strengths[2] >= strengths[1] - 1e-6).all())
    assert bool((strengths[2] > strengths[0] + 0.01).any())


def test_in_a_product_a_grid_chooses_among_what_is_let_through():
    """Evidence at both ends: alone, either end is best; behind a grid that shows the right half, the right end is."""
    evidence = torch.zeros(1, 1, 8, dtype=torch.bool)
    evidence[..., 0] = evidence[..., 7] = True
    frame, right = geometry.scale_shift((1.0, 1.0), (0.0, 0.0)), torch.zeros(1, 1, 8)
    right[..., 4:] = 1.0
    assert int(baselines.grid_oracle(evidence, frame, (1, 8)).argmax()) == 0
    assert int(baselines.grid_oracle(evidence, frame, (1, 8), within=right).argmax()) == 7


def test_the_grid_of_a_trace_is_that_of_its_last_look_with_weights():
    crop = Look("crop", "crop", "crop", frame=geometry.identity(), grid=(4, 4))
    trace = traced([torch.rand(B, *cells) for cells in CELLS[:2]], "product")
    found = grids_of(AttentionTrace((*trace.looks, crop), image_size=trace.image_size, total="product"), SIZE)
    assert found.total == "product"
    ((frame, cells),) = found.grids
    assert cells == CELLS[1]
    assert torch.equal(frame, frame_over(CELLS[1]))  # one frame for all pictures, as all are equal
    assert grids_of(AttentionTrace((crop,), image_size=trace.image_size), SIZE) is None


def test_pictures_that_are_placed_differently_keep_their_frames():
    canvas = torch.stack([geometry.scale_shift((1.0, 1.0), (float(shift), 0.0)) for shift in range(B)])
    trace = traced([torch.rand(B, 2, 2)], "last", canvas=canvas)
    (grid,) = grids_of(trace, SIZE).grids
    assert torch.equal(grid.frame, trace.frame_on(trace.looks[0], SIZE))
    rows = torch.tensor([2, 2, 0])
    assert torch.equal(grids_of(trace, SIZE).at(rows).grids[0].frame, grid.frame[rows])
    shared = grids("last").at(rows).grids
    assert [tuple(frame.shape) for frame, _ in shared] == [(2, 3)] * 3


def test_what_is_no_grid_is_refused():
    slots = AttentionTrace((Look("memory", "slots", "multiplier", torch.rand(B, 4)),))
    with pytest.raises(DataError, match="no look on a picture"):
        grids_of(slots, SIZE)
    with pytest.raises(DataError, match="at least one"):
        Grids(())
    with pytest.raises(DataError, match="unknown total 'prodct': did you mean 'product'"):
        Grids((Grid(geometry.identity(), SIZE),), "prodct")
