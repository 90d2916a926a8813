import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics import true_positive_strength
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import derangement, seen_by_cells

VALID_STACK = geometry.scale_shift((16.0, 16.0), (15.0, 15.0))  # 4×4 cells, centres at 23, 39, 55, 71 of 100
TURNED = torch.tensor([[6.0, -3.0, 30.0], [3.0, 6.0, 5.0]], dtype=torch.float64)


def blobs(pictures, size=(100, 100), seed=0, radius=8.0):
    generator = torch.Generator().manual_seed(seed)
    centre = torch.rand(pictures, 2, 1, 1, generator=generator) * torch.tensor(size).view(2, 1, 1)
    ys, xs = torch.meshgrid(*(torch.arange(n) + 0.5 for n in size), indexing="ij")
    return (ys - centre[:, 0]).square() + (xs - centre[:, 1]).square() < radius**2


def test_uniform_is_uniform_and_scores_the_area():
    maps = baselines.uniform(VALID_STACK, (4, 4), (100, 100), pictures=5)
    assert maps.shape == (5, 100, 100)
    torch.testing.assert_close(maps, torch.ones(5, 100, 100))
    evidence = blobs(5)
    torch.testing.assert_close(true_positive_strength(maps, evidence), evidence.float().mean(dim=(1, 2)))


def test_centre_gaussian_by_hand():
    """A 3×1 grid tiling 30×10 pixels: centres at x = 5, 15, 25, that is −⅓, 0, ⅓ of the width from the middle.

    With sigma ¼ the outer cells weigh exp(−½·(4/3)²) = exp(−8/9).
    """
    frame = geometry.scale_shift((10.0, 10.0), (0.0, 0.0))
    maps = baselines.centre_gaussian(frame, (1, 3), (10, 30), sigma=0.25)
    outer = math.exp(-8 / 9)
    assert maps[0, 5, 0].item() == pytest.approx(outer)
    assert maps[0, 5, 29].item() == pytest.approx(outer)
    assert maps[0, 5, 14].item() == pytest.approx(1 - 0.05 * (1 - outer))  # half a pixel off the middle cell's centre


@given(images=st.lists(st.integers(0, 6), min_size=0, max_size=40), seed=st.integers(0, 50))
@settings(max_examples=200, deadline=None)
def test_a_derangement_never_stays_with_its_image(images, seed):
    ids = torch.tensor(images, dtype=torch.long)
    if images and 2 * max(images.count(i) for i in images) > len(images):
        with pytest.raises(DataError, match="share one image"):
            derangement(ids, seed=seed)
        return
    source = derangement(ids, seed=seed)
    assert sorted(source.tolist()) == list(range(len(images)))
    assert not bool((ids[source] == ids).any())


def test_shuffled_exchanges_maps_between_pictures():
    maps = torch.arange(6.0).view(6, 1, 1).expand(6, 2, 2)
    pictures = torch.tensor([0, 0, 1, 1, 2, 2])
    mixed = baselines.shuffled(maps, pictures)[:, 0, 0].long()
    assert sorted(mixed.tolist()) == list(range(6))
    assert not bool((pictures[mixed] == pictures).any())
    assert not bool((baselines.shuffled(maps)[:, 0, 0] == maps[:, 0, 0]).any())
    with pytest.raises(DataError, match="larger batch"):
        baselines.shuffled(maps[:1])


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


@given(
    seed=st.integers(0, 1000),
    grid=st.sampled_from([(4, 4), (1, 5), (9, 6)]),
    frame=st.sampled_from([VALID_STACK, TURNED, geometry.scale_shift((11.0, 7.0), (-4.0, 20.0))]),
    sharpness=st.sampled_from([0.0, 1.0, 8.0]),
)
@settings(max_examples=40, deadline=None)
def test_no_mixture_of_cells_beats_the_oracle(seed, grid, frame, sharpness):
    evidence = blobs(6, (64, 48), seed=seed, radius=6)
    evidence[:, 0, 0] = True
    bound = true_positive_strength(baselines.grid_oracle(evidence, frame, grid), evidence)
    noise = torch.randn(6, grid[0] * grid[1], generator=torch.Generator().manual_seed(seed))
    mixture = torch.softmax(sharpness * noise, dim=1).unflatten(1, grid)
    rivals = [
        geometry.project(mixture, frame, (64, 48)),
        geometry.project(seen_by_cells(evidence, frame, grid), frame, (64, 48)),  # the best-informed soft map
        baselines.uniform(frame, grid, (64, 48), pictures=6),
        baselines.centre_gaussian(frame, grid, (64, 48), pictures=6),
    ]
    for maps in rivals:
        assert bool((true_positive_strength(maps, evidence) <= bound + 1e-5).all())
