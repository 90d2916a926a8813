"""Four ways to lay a map on a picture, on grids that can be checked by eye."""

import pytest
import torch

from saccade import geometry
from saccade.errors import DataError
from saccade.families.question.reproduction.projections import (
    PROJECTIONS,
    nearest_centre,
    projection_table,
    stretched,
    study_projections,
    zero_outside,
)
from saccade.predict import load

# Two cells whose centres lie at 1.5 and 3.5 of a picture 6 pixels wide: it is not tiled.
FRAME = geometry.scale_shift((2.0, 2.0), (0.5, 0.5))
MAP = torch.tensor([[[1.0, 3.0], [1.0, 3.0]]])


def along_x(project):
    laid = project(MAP, FRAME, (6, 6))
    assert laid.shape == (1, 6, 6)
    return laid[0, 2].tolist()


def test_each_by_hand():
    """Pixel centres 0.5 … 5.5."""
    assert along_x(geometry.project) == pytest.approx([1, 1, 2, 3, 3, 3])
    assert along_x(nearest_centre) == [1, 1, 3, 3, 3, 3]
    assert along_x(stretched) == pytest.approx([1, 1, 5 / 3, 7 / 3, 3, 3])
    assert along_x(zero_outside) == pytest.approx([0.5, 1, 2, 3, 1.5, 0])


@pytest.mark.parametrize("name", [name for name in PROJECTIONS if "zero" not in name])
def test_an_even_map_stays_even(name):
    laid = PROJECTIONS[name](torch.full((1, 4, 4), 0.25), geometry.scale_shift((16.0, 16.0), (15.0, 15.0)), (100, 100))
    assert laid.flatten().tolist() == pytest.approx([0.25] * 10_000)


def test_the_variants_of_the_shipped_model():
    study = study_projections(load("soft-mref", "cpu"), 60)
    found = {each.name: each for each in study.rows}
    assert list(found) == list(PROJECTIONS)
    for each in found.values():
        assert 0 < each.even < each.last < each.best_cell < 1
        assert each.last == pytest.approx(each.product), "one look: its product is itself"
    ours, zero = found["receptive-field centres, bilinear, edge extended (ours)"], list(found.values())[-1]
    assert zero.even > 1.3 * ours.even, "zero outside flatters even a map that knows nothing"
    table = projection_table(study)
    assert "n = 60" in table.title
    assert study.glyphs in table.note
    assert [len(line) for line in table.rows] == [len(table.columns)] * 4


def test_a_model_that_takes_no_question_is_refused():
    with pytest.raises(DataError, match="'hsal-mnist-set' takes no question"):
        study_projections(load("hsal-mnist-set", "cpu"), 1)
