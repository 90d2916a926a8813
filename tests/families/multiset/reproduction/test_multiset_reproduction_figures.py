"""How scenes are read, drawn: cells that objects share, objects that hide, and the figures of a tiny run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

from multiset_stubs import SMALL, short_splits
from saccade import geometry
from saccade.config import to_dict
from saccade.families.multiset.data import DIGITS
from saccade.families.multiset.reproduction.figures import INK, around_peaks, crowding, hiding, reading_figures
from saccade.families.multiset.reproduction.table1 import DATA
from saccade.models.hsal import HsalConfig, HsalModel
from saccade.models.io.facts import Preprocessing
from saccade.models.io.folder import save_model
from saccade.verbs.reproduce import reproduce
from tiny_models import tiny_facts

FRAME = geometry.scale_shift((10.0, 10.0), (0.0, 0.0)).expand(1, 2, 3)  # cells of ten pixels


def salient(*cells: tuple[int, int, float]) -> torch.Tensor:
    """A map of 3 × 4 cells, 0 but at (row, column, value)."""
    saliency = torch.zeros(1, 3, 4)
    for row, column, value in cells:
        saliency[0, row, column] = value
    return saliency


def test_the_square_around_a_peak_is_twice_as_wide_as_its_cell() -> None:
    found = around_peaks(salient((1, 2, 1.0), (0, 0, 0.5)), FRAME)
    assert found.tolist() == [[15.0, 5.0, 35.0, 25.0]]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), 0),
        ((INK - 1,), 0),  # too little of it
        ((INK,), INK),
        ((INK + 3, INK), INK + 3),  # the second of three
    ],
)
def test_a_crowd_is_two_objects_with_enough_pixels(others: tuple[int, ...], expected: int) -> None:
    masks = torch.zeros(1, 4, 30, 40, dtype=torch.bool)
    masks[0, 0, 5:25, 15:35] = True  # the whole square
    for number, pixels in enumerate(others, 1):
        masks[0, number, 10, 15 : 15 + pixels] = True
        masks[0, number, 10, :15] = True  # what lies outside does not count
    assert crowding(torch.tensor([[15.0, 5.0, 35.0, 25.0]]), masks).tolist() == [expected]


def test_an_object_hides_where_something_else_stands_out_more() -> None:
    saliency = salient((0, 0, 0.3), (0, 1, 0.2), (2, 3, 1.0), (2, 0, 0.5))
    boxes = torch.tensor([[[0, 0, 20, 10], [30, 20, 40, 30], [12, 12, 13, 13], [float("nan")] * 4]])
    found = hiding(saliency, FRAME, boxes)[0]
    assert found[:2].tolist() == pytest.approx([0.5 - 0.3, 0.5 - 1.0])
    assert found[2:].isnan().all()  # one between the centres of cells, one that is not there


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A place with one run of HSAL-RL on a multiset: an untaught model, and measurements made up."""
    folder = tmp_path_factory.mktemp("reproduction")
    run = folder / "runs" / "hsal-mnist-multiset-unlimited-seed0"
    torch.manual_seed(0)
    model = HsalModel(HsalConfig(**{**SMALL, "input_size": (100, 100)}))
    facts = tiny_facts(
        architecture="hsal", model=to_dict(model.config), family="multiset", queries=(), answers=DIGITS,
        preprocessing=Preprocessing((100, 100)), data={"name": "mnist-multiset"},
    )  # fmt: skip
    save_model(model, run / "model", facts)
    rows = [
        {
            "step": step,
            "kind": "validation",
            "phase": "controllers",
            "values": {"macro_f1": step / 9, "attn_saliency": 0.5},
        }
        for step in (2, 4)
    ]
    (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with short_splits():
        yield folder


@pytest.fixture
def nothing_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.families.multiset.reproduction.figures.shipped", dict)


@pytest.mark.usefixtures("nothing_ships")
def test_every_figure_that_a_run_has_something_for_is_written(out: Path) -> None:
    found = reproduce("hsal-table1", out=out, device="cpu")
    names = {path.stem for path in found.figures}
    assert {"hsal-figure5", "hsal-figure6", "hsal-figure4-mnist-multiset", "hsal-figure12-mnist-multiset"} <= names
    assert not any("mnist-set" in name or "svhn" in name for name in names)  # no run of them is here
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Figure 12, MNIST Multiset" in page
    assert "stands out less than what is around it" in page


def test_captions_count_what_they_show(out: Path) -> None:
    drawings = {each.name: each for each in reading_figures(out / "runs", ("mnist-multiset", "svhn"), DATA, "cpu")}
    told = drawings["hsal-figure12-mnist-multiset"]
    assert "of 20 rightly" in told.caption
    assert "first 20 test scenes" in told.source
    assert isinstance(told.draw, Image.Image)
    hidden = drawings["hsal-figure4-mnist-multiset"]
    assert isinstance(hidden.draw, Image.Image)
    assert hidden.draw.width > 1000  # two scenes, each beside its saliency


@pytest.mark.usefixtures("nothing_ships")
def test_without_a_reader_there_is_nothing_to_draw(tmp_path: Path) -> None:
    (tmp_path / "hsal-mnist-set-unlimited-seed0").mkdir()  # begun, and no model yet
    assert reading_figures(tmp_path, ("mnist-set", "svhn"), DATA, "cpu") == []


def test_without_a_run_the_shipped_reader_is_shown(tmp_path: Path) -> None:
    drawn = reading_figures(tmp_path, ("mnist-set",), DATA, "cpu")
    assert "hsal-figure12-mnist-set" in {each.name for each in drawn}
