"""The tour: one self-contained page about every shipped model, written whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import saccade
from saccade import zoo
from saccade.errors import CheckpointError, OutputError
from saccade.families import families
from saccade.families.contract import load_target
from saccade.families.question import scene_tour as tour_attributes
from saccade.models.io.facts import read_facts
from saccade.verbs.touring.page import HEADLINE, TourResult, featured

SCENES = 40


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> tuple[TourResult, list[tuple[str, int, int]]]:
    """A quick tour of few scenes into a folder that holds an old page; ``make run`` makes one of full length."""
    out = tmp_path_factory.mktemp("tour")
    (out / "report.html").write_text("an old page")
    (out / "mine.txt").write_text("not the tour's")
    told: list[tuple[str, int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tour_attributes, "QUICK", SCENES)
        patch.setattr(tour_attributes, "SWEEPS", {True: 2, False: 2})
        for family, few in (("caption", 20), ("classify", 8), ("multiset", 24), ("story", 10)):
            patch.setattr(f"saccade.families.{family}.tour.QUICK", few)
        result = saccade.tour(out, quick=True, device="cpu", progress=lambda *what: told.append(what))
    return result, told


@pytest.fixture(scope="module")
def page(toured: tuple[TourResult, list]) -> str:
    return toured[0].report.read_text(encoding="utf-8")


def test_it_replaces_the_old_page_and_nothing_else(toured: tuple[TourResult, list], page: str) -> None:
    folder = toured[0].report.parent
    assert {path.name for path in folder.iterdir()} == {"report.html", "mine.txt"}
    assert page.startswith("<!doctype html>")
    assert "an old page" not in page
    assert (folder / "mine.txt").read_text() == "not the tour's"


def test_the_page_is_self_contained(page: str) -> None:
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


def test_the_page_tells_of_every_model_beside_the_published_number(page: str) -> None:
    for name in zoo.shipped():
        assert (f"{name}:" if name in featured() else f">{name}<") in page
    assert f"n = {SCENES} questions about scenes of mnist-test" in page
    assert "n = 2 questions" in page  # deletion and insertion rest on fewer, and say so
    assert "82.9" in page
    for label in tour_attributes.LABELS.values():
        assert label in page
    assert not re.search(
        r"\bnan\b", re.sub(r"data:image/[^\"]*|<script.*?</script>", "", page, flags=re.DOTALL).lower()
    )


def test_the_tables_are_of_plain_text(toured: tuple[TourResult, list]) -> None:
    headline, *rest = toured[0].tables
    assert headline.columns == HEADLINE
    rows = {row[0]: dict(zip(headline.columns, row)) for row in headline.rows}
    assert rows.keys() == set(zoo.shipped())
    assert list(rows)[:2] == ["hattnet-ctx-sparse-mref", "soft-mref"]  # those that it stops at come first
    soft = rows["soft-mref"]
    assert (soft["n here"], soft["published %"]) == (str(SCENES), "82.94")
    recorded = read_facts(zoo.shipped()["soft-mref"]).scores[0]
    assert soft["full test % (n)"] == f"{100 * recorded.metrics['accuracy']:.2f} ({recorded.n:,})"
    other = rows["hattnet-ctx-mref"]  # not visited by a quick tour: its record is told
    recorded = read_facts(zoo.shipped()["hattnet-ctx-mref"]).scores[0]
    assert (other["here %"], other["n here"], other["published %"]) == ("–", "–", "98.51")
    assert other["full test % (n)"] == f"{100 * recorded.metrics['accuracy']:.2f} ({recorded.n:,})"
    for table in (headline, *rest):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert all(isinstance(cell, str) for row in table.rows for cell in row)
    assert toured[0].seconds > 0


def test_progress_reaches_the_end(toured: tuple[TourResult, list]) -> None:
    assert {what for what, _, _ in toured[1]} == set(zoo.shipped()) & set(featured())
    last = {what: (done, total) for what, done, total in toured[1]}
    assert last["soft-mref"] == last["hattnet-ctx-sparse-mref"] == (SCENES, SCENES)


def test_quick_is_shorter() -> None:
    assert tour_attributes.QUICK < tour_attributes.FULL
    assert tour_attributes.SWEEPS[True] < tour_attributes.SWEEPS[False]


def test_every_family_has_a_guide_and_features_what_ships() -> None:
    assert all(callable(load_target(each.tour)) for each in families().values() if each.tour)
    assert set(featured()) <= set(zoo.shipped())


def test_a_place_that_cannot_be_written_is_found_before_the_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tour_attributes, "score_scenes", lambda *_, **__: pytest.fail("scored in vain"))
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="cannot write"):
            saccade.tour(out, quick=True, device="cpu")
    assert (tmp_path / "file").read_text() == "mine"


def test_without_shipped_models_there_is_nothing_to_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "empty")
    with pytest.raises(CheckpointError, match="nothing to tour"):
        saccade.tour(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_model_ends_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    shutil.copytree(zoo.shipped()["soft-mref"], tmp_path / "zoo" / "soft-mref")
    weights = tmp_path / "zoo" / "soft-mref" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    with pytest.raises(CheckpointError, match="damaged"):
        saccade.tour(tmp_path / "out", device="cpu")
    assert not (tmp_path / "out" / "report.html").exists()
