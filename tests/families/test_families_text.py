"""A family without pictures goes through every verb: no preprocessing, no canvas, looks over sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from PIL import Image
from text_toy import NAMES, Stories
from typer.testing import CliRunner, Result

import saccade
from saccade import families
from saccade.commands.door import app
from saccade.commands.export import export
from saccade.errors import CheckpointError, DataError, ShapeError
from saccade.record import read_record

RECIPE = """
schema_version: 2
name: tale
family: tale
model: {name: tale}
data: {name: tales}
batch_size: 32
phases:
  - optimizer: {name: adamw, lr: 3e-2}
    steps: 60
    validate_every: 30
    select: {metric: accuracy, mode: max}
    restore_best: true
"""
TOLD = ("John is in the office.", "Mary is in the garden.", "Sandra is in the kitchen.")


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The toy beside the families of the package."""
    with pytest.MonkeyPatch.context() as patch:
        point = EntryPoint("tale", "text_toy:FAMILY", families.GROUP)
        patch.setattr(families, "entry_points", lambda group: [point])
        families.families.cache_clear()
        yield
    families.families.cache_clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped and went on."""
    folder = tmp_path_factory.mktemp("story")
    (folder / "story.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "texts").mkdir()
    (folder / "texts" / "told.txt").write_text("\n".join(TOLD), encoding="utf-8")
    verb("train", folder / "story.yaml", "--out", folder / "run", "--device", "cpu", "--max-minutes", 1e-9, "-q")
    assert not (folder / "run" / "model").exists()
    verb("train", "--resume", "--out", folder / "run", "--device", "cpu", "-q")
    return folder / "run"


def verb(*words: object) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_it_learns_and_is_scored(run: Path) -> None:
    scores = json.loads(verb("evaluate", run, "--json").stdout)
    assert scores["metrics"]["accuracy"] > 0.9
    assert (scores["data"], scores["n"], scores["attention"]) == ("tales", 40, {})


def test_a_look_is_a_row_and_an_object_and_a_table_of_sentences(run: Path, tmp_path: Path) -> None:
    told = run.parent / "texts" / "told.txt"
    row = verb("look", told, "-m", run, "--ask", "Mary").stdout
    assert "text" in row.splitlines()[2]
    assert "garden" in row
    assert TOLD[1] in row  # what it looked at
    found = json.loads(verb("look", told.parent, "-m", run, "--ask", "mary", "--json", "-o", tmp_path).stdout)
    assert (found["source"], found["answer"], found["slots"]) == (str(told), "garden", list(TOLD))
    (look,) = found["looks"]
    assert (look["name"], look["kind"], look["role"]) == ("sentence", "slots", "multiplier")
    assert sum(look["weights"]) == pytest.approx(1, abs=1e-5)
    assert (len(look["weights"]), look["on_empty_slots"]) == (3, 0)
    assert not {"picture", "peak", "size"} & found.keys()
    with Image.open(tmp_path / "told-ask-mary.png") as table:
        assert table.height > 100


def test_a_record_reads_back_and_becomes_a_page(run: Path, tmp_path: Path) -> None:
    seen = saccade.load(run, "cpu").look(TOLD, ask="john")
    seen.save(tmp_path)
    record = read_record(tmp_path / "story-ask-john.json")
    assert record.picture is None
    assert torch.equal(record.trace.look("sentence").weights, seen.trace.look("sentence").weights)
    assert record.trace.meta["slots"] == list(TOLD)
    verb("report", tmp_path / "story-ask-john.json", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Weights of sentence over the sentences" in page
    assert "john → office" in page


def test_given_weights_answer_from_another_sentence(run: Path) -> None:
    model = saccade.load(run, "cpu")
    encoded = model.encode(TOLD)
    assert model.ask(encoded, "mary").top_slot == TOLD[1]
    seen = model.ask(encoded, "mary", attention={"sentence": torch.tensor([[1.0, 0.0, 0.0]])})
    assert (seen.answer, seen.top_slot) == ("office", TOLD[0])
    assert seen.trace.meta["given"] == ["sentence"]
    with pytest.raises(ShapeError, match="attention for look 'sentence'"):
        model.ask(encoded, "mary", attention={"sentence": torch.ones(1, 2)})


def test_stories_of_different_lengths_are_read_together(run: Path) -> None:
    model = saccade.load(run, "cpu")
    long, short = model.look_many([TOLD, TOLD[1:2]], ask="mary")
    alone = model.look(TOLD[1:2], ask="mary")
    assert (long.answer, short.answer, len(short.slots)) == ("garden", "garden", 1)
    assert short.trace.look("sentence").weights[0, :1].tolist() == pytest.approx([1.0])
    assert short.confidence == pytest.approx(alone.confidence, abs=1e-6)
    assert short.filmstrip().size == alone.filmstrip().size


def test_what_it_cannot_do_is_said(run: Path, tmp_path: Path) -> None:
    model = saccade.load(run, "cpu")
    seen = model.look(TOLD, ask="mary")
    with pytest.raises(DataError, match="no picture"):
        seen.overlay()
    with pytest.raises(DataError, match=f"ask one of: {', '.join(NAMES)}"):
        model.look(TOLD)
    pytest.importorskip("onnx")
    with pytest.raises(CheckpointError, match="its family 'tale' has no examples of a text"):
        export(run, tmp_path / "onnx")


def test_bad_stories_are_named_and_the_rest_goes_on(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text(TOLD[0], encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"")
    done = verb("look", tmp_path, "-m", run, "--ask", "john", "--json")
    bad, good = (json.loads(line) for line in done.stdout.splitlines())
    assert bad == {"source": str(tmp_path / "a.txt"), "error": f"{tmp_path / 'a.txt'}: no sentences; write one a line"}
    assert good["answer"] == "office"
    with pytest.raises(DataError, match="no texts in"):
        Stories().find([str(tmp_path / "*.md")])
