"""The tour, one page about the shipped models; and soft-mref, as good as its record says."""

from __future__ import annotations

import hashlib
import importlib
import re
from pathlib import Path

import pytest

import saccade
from saccade.commands.tour import TourResult
from saccade.errors import OutputError
from saccade.models.facts import Score, model_card, read_facts
from saccade.papers.results import recorded_runs
from saccade.zoo import shipped

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
