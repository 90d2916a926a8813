"""No map of a shipped model exceeds the bound of its own grids, in any picture."""

import pytest
import torch

from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.models.folder import load_model
from saccade.zoo import resolve

SCENES = 40


@pytest.fixture(scope="module")
def batch():
    data = SceneData(SceneDataConfig("mref", glyphs="pack"), "test")
    return data.take(data.one_per_scene(SCENES))


def looked(name, batch):
    """The trace of the shipped model ``name`` on the scenes."""
    model, _ = load_model(resolve(name), "cpu")
    size = (batch.images.shape[-2], batch.images.shape[-1])
    with torch.no_grad():
        return model.wrap(model.forward_raw(batch.images, batch.query), size).trace, size


def strengths(name, batch):
    """True-positive strength (B,) of the model's maps, and of the bound of their grids."""
    trace, size = looked(name, batch)
    bound = grids_of(trace, size).oracle(batch.evidence())
    return tuple(true_positive_strength(maps, batch.evidence()) for maps in (trace.image_map("total"), bound))


@pytest.mark.parametrize("name", ["soft-mref", "hard-mref", "hattnet-mref", "hattnet-ctx-sparse-mref"])
def test_no_map_exceeds_the_bound_of_its_grids(name, batch):
    found, bound = strengths(name, batch)
    assert bool((found <= bound + 1e-6).all())
    assert float(bound.mean()) < 1.001


def test_a_product_of_gates_is_measured_against_all_of_its_grids(batch):
    """The sparse model is far above the best cell of its last grid alone, which is no bound for it."""
    trace, size = looked("hattnet-ctx-sparse-mref", batch)
    grids = grids_of(trace, size)
    assert [cells for _, cells in grids.grids] == [(49, 49), (23, 23), (10, 10), (4, 4)]
    found, bound = strengths("hattnet-ctx-sparse-mref", batch)
    (_, one_grid) = strengths("soft-mref", batch)
    assert float((found > one_grid).double().mean()) > 0.9
    assert float(bound.mean()) > 0.99
