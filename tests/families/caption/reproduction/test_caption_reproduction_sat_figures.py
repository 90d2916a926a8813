"""Figures of words and looks, drawn with the shipped captioners."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from saccade.errors import SaccadeError
from saccade.verbs.reproduce import reproduce


def test_the_shipped_models_draw_the_figures(tmp_path: Path) -> None:
    found = reproduce("sat-figures", quick=True, limit=7, out=tmp_path, device="cpu")
    names = {path.stem for path in found.figures}
    assert {"figure-02", "figure-03", "figure-06", "figure-07", "photograph-01"} <= names
    said = [cell for cell in found.cells if cell["figure"].startswith("6 ")]
    assert [cell["figure"] for cell in said] == ["6 a, hard", "6 b, soft"]
    assert said[0]["said"] == said[0]["truth"], "the shipped models say 98 % of the scenes word for word"
    with Image.open(tmp_path / "figure-02.png") as both, Image.open(tmp_path / "figure-06.png") as other:
        assert both.size == other.size, "the same scene, in the other order"
        assert both.tobytes() != other.tobytes()
    shares = {row[0]: [float(value) for value in row[1:3]] for row in found.tables[1].rows}
    assert set(shares) == {"soft", "hard"}
    for mean, even in shares.values():
        assert mean > 4 * even
    assert "not the paper" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("data", ["flickr8k", "flicker8k:here"])
def test_pictures_are_named_by_reader_and_path(data: str) -> None:
    with pytest.raises(SaccadeError, match="flickr8k"):
        reproduce("sat-figures", data=[data], device="cpu")
