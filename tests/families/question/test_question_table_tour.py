"""A model of photographs on the tour: its recorded scores beside their baselines, without its pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

import saccade
from saccade import zoo
from saccade.errors import CheckpointError
from saccade.models.io.facts import Score
from tiny_models import save_tiny

RECORD = Score(
    data="cub",
    split="test",
    n=1234,
    protocol="species",
    metrics={"accuracy": 0.625, "swapped_query": 0.3, "accuracy_by_query": {"north": 0.5}},
    attention={"attention_near": 0.25, "by_look": {}},
    baselines={"training_prior": {"accuracy": 0.4}, "uniform": {"attention_near": 0.05, "deletion": 0.2}},
)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    return tmp_path / "zoo" / "crown-x"


def test_the_record_stands_beside_its_baselines(model: Path, tmp_path: Path) -> None:
    save_tiny(model, family="question", scores=(RECORD,))
    result = saccade.tour(tmp_path / "tour", quick=True, device="cpu")
    page = result.report.read_text(encoding="utf-8")
    headline, table = result.tables
    assert headline.rows == [["crown-x", "accuracy", "–", "–", "62.50 (1,234)", "–"]]
    assert table.columns == ("", "right answers", "same answer when asked for another part", "attention near the click")
    assert table.rows == [
        ["this model", "62.5", "30.0", "25.0"],
        ["training prior", "40.0", "–", "–"],
        ["uniform", "–", "–", "5.0"],
    ]
    for words in ("attention near the click", "training prior", "saccade look bird.jpg --model crown-x", "species"):
        assert words in page, words
    assert "published" not in page.split("crown-x", 1)[1].split("Next steps")[0]


def test_a_model_without_a_record_says_so(model: Path, tmp_path: Path) -> None:
    save_tiny(model, family="question")
    with pytest.raises(CheckpointError, match="crown-x: shipped without a recorded score"):
        saccade.tour(tmp_path / "tour", quick=True, device="cpu")
