"""The tour of models with other looks than one map: crops, which have no oracle, and gates."""

from __future__ import annotations

from pathlib import Path

import pytest

from saccade.config import to_dict
from saccade.families import model_spec
from saccade.families.question import scene_tour as tour_attributes
from saccade.models.io.facts import ModelFacts, Preprocessing
from saccade.models.io.folder import save_model
from saccade.show.report import Bars
from saccade.verbs.touring.page import Stop


@pytest.fixture(params=["stn", "hattnet-ctx"])
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stop(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stop:
    """The stop of an untrained model, on few scenes."""
    monkeypatch.setattr(tour_attributes, "QUICK", 20)
    monkeypatch.setattr(tour_attributes, "SWEEPS", {True: 2})
    model = model_spec(architecture).build({"channels": 4, "hidden": 4})
    facts = ModelFacts(
        architecture=architecture,
        model=to_dict(model.config),
        family="question",
        queries=tuple("0123456789"),
        answers=("green", "yellow", "white", "red", "blue"),
        preprocessing=Preprocessing((100, 100)),
    )
    save_model(model, tmp_path / "model", facts)
    return tour_attributes.scene_stop(str(tmp_path / "model"), quick=True, device="cpu", progress=lambda *told: None)


def test_the_tour_says_how_it_looks_and_leaves_out_what_there_is_not(architecture: str, stop: Stop) -> None:
    words = {
        "stn": "It looks by a window that it cuts out of the picture.",
        "hattnet-ctx": "It looks by a gate on each of 49×49 cells, then a gate on each of 23×23 cells, then a gate on "
        "each of 10×10 cells, then attention over 4×4 cells.",
    }
    assert words[architecture] in stop.section.text
    bars = [bar.label for part in stop.section.blocks if isinstance(part, Bars) for bar in part.bars]
    assert ("best map of its grids" in bars) == (architecture != "stn")
    assert "attention spread evenly" in bars
