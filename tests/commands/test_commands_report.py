"""The page of a run, and the tour: one page about the shipped models."""

import hashlib
import importlib
import json
import re
from pathlib import Path

import pytest

import saccade
from saccade.commands.report import TITLE, report
from saccade.commands.tour import TourResult
from saccade.errors import DataError, OutputError
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.models.facts import Score, model_card, read_facts
from saccade.papers.results import recorded_runs
from saccade.show.score_tables import TITLE as SCORES
from saccade.zoo.folders import shipped
from typed import typed


def test_a_run_shows_where_its_model_looks(run: Path) -> None:
    page = report([run], looks=2, device="cpu")
    section = next(section for section in page.sections if section.title == TITLE)
    (gallery,) = section.blocks
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


tour = importlib.import_module("saccade.commands.tour")


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> TourResult:
    """A quick tour of few scenes into a folder that holds an old page; ``make run`` makes one of full length."""
    out = tmp_path_factory.mktemp("tour")
    (out / "report.html").write_text("an old page")
    (out / "mine.txt").write_text("not the tour's")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tour, "QUICK", 24)
        return saccade.tour(out, quick=True, device="cpu")


def test_it_replaces_the_old_page_and_nothing_else_by_one_that_is_self_contained(toured: TourResult) -> None:
    assert {path.name for path in toured.report.parent.iterdir()} == {"report.html", "mine.txt"}
    page = toured.report.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "an old page" not in page
    assert not re.search(r"https?://", page)
    markup = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", page, flags=re.DOTALL)
    assert not re.search(r"<(link|iframe|object)\b", markup)
    assert re.findall(r"<script[^>]*>", markup) == [
        '<script type="application/json" id="saccade-data">', '<script id="saccade-script">'
    ]  # fmt: skip
    targets = re.findall(r"(?:src|href)=\"([^\"]*)\"", markup)
    assert targets
    assert all(target.startswith(("#", "data:image/")) for target in targets)
    assert "default-src 'none'" in page


def test_a_place_that_cannot_be_written_is_found_before_the_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tour, "_visit", lambda *_: pytest.fail("scored in vain"))
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError):
            saccade.tour(out, quick=True, device="cpu")


@pytest.fixture(scope="module")
def folder() -> Path:
    return shipped()["soft-mref"]


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Score:
    return read_facts(folder).scores[0]


def test_weights_config_card_and_recorded_result_are_of_one_model(folder: Path, recorded: Score) -> None:
    facts = read_facts(folder)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == facts.sha256 == facts.training["sha256"]
    assert (folder / "card.md").read_text(encoding="utf-8") == model_card(facts)
    (run,) = [
        run
        for run in recorded_runs().values()
        if run.sha256 and digest.startswith(run.sha256) and run.drawing.endswith(recorded.drawing or run.drawing)
    ]  # one that was scored on both drawings has a run of each
    assert run.command == facts.training["command"]
    assert run.seed == str(recorded.seed)
    for name, value in {**recorded.metrics, **recorded.attention}.items():
        if isinstance(value, float):
            assert run.scores[name].value == pytest.approx(value, rel=1e-6), name
    assert run.scores["accuracy"].n == recorded.n
