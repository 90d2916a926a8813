"""A story is asked, watched and exported: what gets into the memory, the table of all looks, and ONNX."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

import saccade
from saccade.adapters.onnx import example_inputs
from saccade.commands.door import app
from saccade.commands.export import export
from saccade.errors import DataError
from saccade.families.story.reading import StoryItem
from saccade.predict import Predictor
from story_stubs import TOLD, WORDS, save_story_model

ASK = "Where is Mary?"
END = "(end of passes)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_story_model(tmp_path_factory.mktemp("stories") / "memn2n")


@pytest.fixture(scope="module")
def memn2n(folder: Path) -> Predictor:
    return saccade.load(folder, "cpu")


@pytest.fixture(scope="module")
def dmn(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    config = {"size": 8, "embedding": 8, "passes": 3, "gate": "softmax", "stops": True}
    return saccade.load(save_story_model(tmp_path_factory.mktemp("stories") / "dmn", "dmn", **config), "cpu")


def verb(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})
    assert done.exit_code == code, done.output
    return done


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "story.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("architecture", ["memn2n", "dmn", "story-lstm"])
def test_a_sentence_of_unknown_words_takes_no_slot(architecture: str, tmp_path: Path) -> None:
    """As an empty slot in the middle it would end the story, and shift the times of all that follow."""
    model = saccade.load(save_story_model(tmp_path / "model", architecture), "cpu")
    seen = model.look([TOLD[0], "Unicorns slept!", *TOLD[1:]], ask=ASK)
    plain = model.look(TOLD, ask=ASK)
    assert seen.slots == plain.slots
    assert seen.slots[:3] == list(TOLD)
    assert seen.confidence == plain.confidence
    for look in plain.trace.looks:
        assert torch.equal(seen.trace.look(look.name).weights, look.weights)
    assert seen.notes[1] == "story: left out sentence 2, of which the model knows no word"


def test_what_a_memory_drops_is_said_and_slots_stay_with_their_texts(memn2n: Predictor) -> None:
    long = [f"John went to the {place}." for place in ("garden", "hallway", "kitchen")] * 3  # 9, and 6 fit
    seen = memn2n.look(["Unicorns slept!", *long], ask=ASK)
    assert seen.slots == long[3:]
    assert seen.notes[-1] == "story: 9 sentences, and the memory holds 6: sentences 1 to 4 were dropped"
    assert torch.equal(seen.trace.look("hop1").weights, memn2n.look(long[3:], ask=ASK).trace.look("hop1").weights)


def test_supporting_sentences_keep_to_their_slots(memn2n: Predictor) -> None:
    item = StoryItem((TOLD[0], "Unicorns slept!", *TOLD[1:]), supporting=(3, 1))
    seen = memn2n.look(item, ask=ASK)
    assert seen.supporting == (2,)  # sentence 3 is slot 2; sentence 1 is in no slot
    assert seen.to_json()["supporting"] == [2]
    assert "supporting" not in memn2n.look(TOLD, ask=ASK).to_json()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "story: no sentences; give at least one"),
        (["Unicorns slept!"], r"knows none of its words \(Unicorns slept!\)"),
        (5, "a path or a list of sentences, found 5"),
        ("Mary went to the garden.", "no text file; a story is a text file, or in Python a list of sentences"),
    ],
)
def test_what_is_no_story_says_what_to_do(memn2n: Predictor, source: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        memn2n.look(source, ask=ASK)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (None, 'needs a question in words, as in "Where is Mary\\?"'),
        (7, "needs a question in words"),
        ("Do unicorns sleep?", "knows none of the words of the question 'Do unicorns sleep\\?'"),
    ],
)
def test_what_is_no_question_says_what_to_do(memn2n: Predictor, ask: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        memn2n.look(TOLD, ask=ask)


def test_passes_have_an_end_and_those_after_it_are_not_shown(dmn: Predictor) -> None:
    assert dmn.look(TOLD, ask=ASK).slots == [*TOLD, END]
    gates = torch.zeros(1, 7)
    first, end = gates.clone(), gates.clone()
    first[0, 2], end[0, 3] = 1, 1
    seen = dmn.look(TOLD, ask=ASK, attention={"pass1": first, "pass2": end})
    grid = seen.slot_grid
    assert (grid.headings, grid.ended) == (("pass1", "pass2"), ("pass3",))
    assert grid.texts == (*TOLD, END)
    assert grid.weights.tolist() == [[0, 0], [0, 0], [1, 0], [0, 1]]
    assert "after the end, not shown: pass3" in grid.legend
    assert seen.top_slot == TOLD[2]  # the end is no sentence
    assert [look["active"] for look in seen.to_json()["looks"]] == [True, True, False]


def test_json_has_the_weight_of_each_sentence_in_each_hop(folder: Path, memn2n: Predictor, tmp_path: Path) -> None:
    done = verb("look", written(tmp_path, *TOLD), "--ask", ASK, "-m", folder, "--json")
    told, seen = json.loads(done.stdout), memn2n.look(TOLD, ask=ASK)
    assert told["slots"] == list(TOLD)
    for look in told["looks"]:
        weights = seen.trace.look(look["name"]).weights[0]
        assert look["weights"] == pytest.approx(weights[:3].tolist(), abs=1e-6)
        assert look["on_empty_slots"] == pytest.approx(float(weights[3:].sum()), abs=1e-6)
    assert len(told["alternatives"]) == 9  # of 13 other words


def exported(folder: Path, architecture: str, **config: Any) -> tuple[dict[str, Any], Any]:
    """The sidecar, and outputs by name as a function of story and question."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
    pytest.importorskip("onnxscript", reason="needs the extra 'export'")
    sidecar = export(save_story_model(folder / "model", architecture, **config), folder / "out")
    session = onnxruntime.InferenceSession(folder / "out" / "model.onnx", providers=["CPUExecutionProvider"])

    def run(**inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        found = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        return {output.name: torch.from_numpy(array) for output, array in zip(session.get_outputs(), found)}

    return sidecar, run


def assert_same_as_torch(folder: Path, run: Any) -> None:
    """For made-up inputs of sizes that the check did not try, and for a story that was read."""
    model = saccade.load(folder / "model", "cpu")
    (story,) = model.reads.prepare([model.reads.read(TOLD)], model.facts).inputs
    own = {"story": story, "query": model.responder.as_tensor([model.question("Where is Mary?")])}
    for inputs in (example_inputs(model, 5, 9), own):
        found, expected = run(**inputs), model.model(*inputs.values())
        assert torch.equal(found["answer"], expected.trace.answer)
        torch.testing.assert_close(found["logits"], expected.logits, atol=1e-4, rtol=0)
        for look in expected.trace.looks:
            torch.testing.assert_close(found[f"{look.name}.weights"], look.weights, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("one_onnx_registry")
def test_a_memory_network_runs_elsewhere(tmp_path: Path) -> None:
    sidecar, run = exported(tmp_path, "memn2n", hops=2)
    assert sidecar["inputs"]["story"] == {"type": "int64", "shape": ["batch", 6, "words"]}
    assert list(sidecar["outputs"]) == ["answer", "probabilities", "logits", "hop1.weights", "hop2.weights"]
    assert sidecar["answers"] == list(WORDS)
    assert_same_as_torch(tmp_path, run)
