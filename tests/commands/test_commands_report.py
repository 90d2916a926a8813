"""The page of a run: results, curves, settings, and where its model looks on pictures it was not trained on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import saccade
from saccade.commands.report import TITLE, report
from saccade.errors import DataError
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.show.report import Gallery
from saccade.show.score_tables import TITLE as SCORES
from typed import typed


def test_a_run_shows_where_its_model_looks(run: Path) -> None:
    page = report([run], looks=2, device="cpu")
    section = next(section for section in page.sections if section.title == TITLE)
    (gallery,) = section.blocks
    assert isinstance(gallery, Gallery)
    truths = SceneData(SceneDataConfig(glyphs="pack"), "val").shown(2)
    told = [picture.caption for picture in gallery.pictures]
    assert len(told) == 2
    for caption, example in zip(told, truths):
        assert caption.startswith(f"{example.question}: ")
        assert caption.endswith(f"% sure; true: {example.truth}")
    assert TITLE in page.html()


def test_scores_of_a_run_stand_on_its_page(run: Path, tmp_path: Path) -> None:
    told = {"model": "m", "data": "csv", "split": "test", "n": 55, "metrics": {"accuracy": 0.582}}
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps(told), encoding="utf-8")
    titles = [section.title for section in report([run], looks=0, scores=scores).sections]
    assert titles.index("Curves") < titles.index(SCORES) < titles.index("Settings")
    page = tmp_path / "page.html"
    result = typed("report", str(run), "--looks", "0", "--scores", str(scores), "--out", str(page))
    assert result.exit_code == 0, result.output
    assert "m on csv test, n 55" in page.read_text(encoding="utf-8")
    assert SCORES not in [section.title for section in report([run], looks=0).sections]


GOOD = {"model": "m", "data": "d", "split": "test", "n": 5, "metrics": {"accuracy": 0.5}}


CHANGES = [
    {"metrics": {"accuracy": "x"}},
    {"baselines": {"uniform": 0.5}},
    {"intervals": {"accuracy": "ab"}},
    {"interventions": 5},
    {"rests_on": {"accuracy": {"guess": "x"}}},
    {"confusion": {"classes": ["a"], "matrix": [["x"]]}},
]
OTHERS = ["{", "[]", "[" * 100_000, '{"model": ' * 100 + "1" + "}" * 100, "9" * 5000, '{"n": "\\ud800"}', None]


@pytest.mark.parametrize("text", [*(json.dumps(GOOD | change) for change in CHANGES), *OTHERS])
def test_what_is_no_file_of_scores_is_refused_with_the_way_to_one(run: Path, tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "scores.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"scores\.json.*saccade evaluate RUN --json"):
        report([run], looks=0, scores=path)


def test_records_make_a_page_and_other_things_do_not(tmp_path: Path) -> None:
    saccade.look(saccade.example("digits"), 7, device="cpu").save(tmp_path / "records")
    done = typed("report", str(tmp_path / "records"), "--out", str(tmp_path / "r.html"))
    assert done.exit_code == 0, done.stderr
    assert "data:image/" in (tmp_path / "r.html").read_text()
    for source in (tmp_path / "gone.json", tmp_path, "soft-mref"):
        done = typed("report", str(source), "--out", str(tmp_path / "x.html"))
        assert (done.exit_code, "Traceback" in done.stderr) == (2, False)
    assert not (tmp_path / "x.html").exists()
