"""Stories: tensors, batches, random noise, taught gates, restarts; asked, watched and exported."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner, Result

import saccade
from saccade.adapters.onnx import example_inputs
from saccade.commands.door import app
from saccade.commands.export import export
from saccade.config import from_dict
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.loop import fit
from saccade.engine.recipe import Recipe
from saccade.errors import ConfigError, DataError
from saccade.families.story.reading import StoryItem, memory_of
from saccade.families.story.stories import StoryExample
from saccade.families.story.task import GatedLoss, LinearStart, StoryTask, gate_loss
from saccade.families.story.tensors import NOT_KNOWN, Sizes, StoryTensors, needed_and_some, noisy_times, sizes_of
from saccade.models.folder import load_model
from saccade.predict import Predictor
from story_stubs import TOLD, WORDS, save_story_model

DATA = {"name": "stories", "tasks": [1], "questions": 60, "noise": 0.4}
SMALL = {"memn2n": {"dim": 6, "hops": 2}, "dmn": {"size": 8, "embedding": 6}, "story-lstm": {"size": 8, "embedding": 6}}


def new_task(model: str = "memn2n", kind: type[StoryTask] = StoryTask, **data: Any) -> Any:
    settings = data.pop("config", {})
    task = kind(model=model, model_config={**SMALL[model], **settings}, data={**DATA, **data})
    task.to(torch.device("cpu"))
    return task


def batches(task: StoryTask, start: int, count: int, **options: Any) -> list[dict[str, Any]]:
    return list(itertools.islice(task.train_batches(start, batch_size=8, **options), count))


def test_a_model_gets_what_it_is_taught_by() -> None:
    times = {"times", "bags", "query_bags"}
    assert times <= new_task().inputs(batches(new_task(), 0, 1)[0]).keys()
    assert "times" not in batches(new_task(noise=0.0), 0, 1)[0]
    dmn = new_task("dmn", config={"gate": "softmax", "stops": True})
    assert dmn.inputs(batches(dmn, 0, 1)[0]).keys() == {"story", "query", "rows", "query_row", "said", "passes"}
    assert new_task("story-lstm").inputs(batches(new_task("story-lstm"), 0, 1)[0]).keys() == {"story", "query"}


def test_noisy_times_are_drawn_as_enumerated() -> None:
    """n = 3, share ½: b = 0, 1 or 2, a third each; then each of the C(3 + b, 3) choices of times alike."""
    expected: dict[tuple[int, ...], float] = {}
    for blanks in range(3):
        choices = list(itertools.combinations(range(1, 4 + blanks), 3))
        for chosen in choices:
            place = tuple(reversed(chosen))  # the first sentence is the furthest back
            expected[place] = expected.get(place, 0) + 1 / 3 / len(choices)
    count = 20_000
    times = noisy_times(torch.full((count,), 3), 3, 0.5, seed=5, rows=torch.arange(count))
    found = {tuple(row.tolist()): int(many) for row, many in zip(*times.unique(dim=0, return_counts=True))}
    assert found.keys() == expected.keys()
    for place, share in expected.items():
        spread = math.sqrt(count * share * (1 - share))
        assert abs(found[place] - count * share) < 4 * spread, place


def test_needed_sentences_stay_and_a_share_of_the_others_goes() -> None:
    """Slots 1 and 3 of five are needed; each of the other three stays with probability 0.7. A sixth slot is empty."""
    count = 20_000
    supporting = torch.tensor([[3, 1, NOT_KNOWN]]).expand(count, 3)
    kept = needed_and_some(supporting, torch.full((count,), 5), 6, 0.3, seed=5, rows=torch.arange(count)).double()
    assert kept[:, [1, 3]].all()
    assert not kept[:, 5].any()
    assert kept[:, [0, 2, 4]].mean(0).tolist() == pytest.approx([0.7] * 3, abs=0.015)
    together = (kept[:, 0] * kept[:, 2]).mean().item()
    assert together == pytest.approx(0.49, abs=0.015), "each is drawn by itself"
    whole = needed_and_some(torch.full((4, 2), NOT_KNOWN), torch.full((4,), 5), 5, 0.9, seed=5, rows=torch.arange(4))
    assert whole.all(), "nobody says what these need"


@pytest.mark.parametrize("model", ["memn2n", "dmn"])
def test_a_shortened_story_tells_the_rest_in_order_and_knows_its_facts(model: str) -> None:
    task = new_task(model, leave_out=0.5, tasks=[2], noise=0.0)
    data, indices = task.split("train"), torch.arange(8)
    whole, less = data.take(indices), task.batch(data, indices, 3)
    assert (less["count"] < whole["count"]).any()
    for at in range(8):
        told = whole["story"][at, : whole["count"][at]].tolist()
        rest = less["story"][at, : less["count"][at]].tolist()
        places = iter(told)
        assert all(sentence in places for sentence in rest), "a subsequence"
        assert not less["story"][at, less["count"][at] :].any()
        facts = [
            [each["story"][at, slot].tolist() for slot in each["supporting"][at] if slot >= 0] for each in (whole, less)
        ]
        assert facts[0] == facts[1]
    if model == "memn2n":
        assert torch.equal(less["bags"], task.model.bags(less["story"]))
    again = task.batch(data, indices, 4)
    assert not torch.equal(again["count"], less["count"]) or not torch.equal(again["rows"], less["rows"])


def test_slots_that_a_whole_batch_leaves_empty_are_cut_on_a_cpu() -> None:
    """The loss is the same; a memory network, whose softmax runs over empty slots, keeps them."""
    task = new_task("dmn", noise=0.0, tasks=[2])
    data = task.split("train")
    indices = data.count.argsort()[:4]
    cut, whole = task.batch(data, indices, 0), data.take(indices)
    assert cut["story"].shape[1] == int(whole["count"].max()) < whole["story"].shape[1]
    with torch.no_grad():
        one, other = (task.model.forward_raw(each["story"], each["query"]).logits for each in (cut, whole))
    torch.testing.assert_close(one, other)
    kept = new_task("memn2n", tasks=[2])
    assert kept.batch(kept.split("train"), indices, 0)["story"].shape == whole["story"].shape


def test_the_loss_of_gates_by_hand() -> None:
    """Story 1 needs facts 1 and 0 of three sentences: passes choose 1, 0 and the end, 3. Story 2 needs fact 0 of one.

    Its second pass ends, its third is not taught: five choices in all.
    """
    scores = torch.tensor([
        [[1.0, 3.0, 1.0, 1.0], [5.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 7.0]],
        [[1.0, 1.0, 0.0, 0.0], [1.0, 4.0, 0.0, 0.0], [9.0, 1.0, 0.0, 0.0]],
    ]).log()  # fmt: skip
    supporting, count = torch.tensor([[1, 0], [0, NOT_KNOWN]]), torch.tensor([3, 1])
    shares = [3 / 6, 5 / 8, 7 / 10, 1 / 2, 4 / 5]
    expected = -sum(math.log(share) for share in shares) / 5
    assert gate_loss(scores, supporting, count).item() == pytest.approx(expected, rel=1e-6)


def test_a_fact_that_the_memory_dropped_teaches_nothing() -> None:
    """Neither its pass nor NaN: with no other fact there is only the end to choose, in the first pass."""
    scores = torch.tensor([[[0.0, math.log(3.0)], [5.0, 0.0]]], requires_grad=True)
    loss = gate_loss(scores, torch.tensor([[NOT_KNOWN]]), torch.tensor([1]))
    assert loss.item() == pytest.approx(-math.log(3 / 4))
    loss.backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 1].abs().sum() == 0


SGD = {"optimizer": {"name": "sgd", "lr": 0.16}, "clip_each": 1.25}
BEST = {"metric": "train_accuracy", "mode": "max", "beside": "accuracy"}
PHASES = [
    {"name": "linear", "steps": 5, "loss": {"name": "linear_start"}, **SGD},
    {"name": "softmax", "steps": 7, "select": BEST, **SGD},
]


def recipe(**changes: Any) -> Recipe:
    values = {"name": "memn2n", "family": "story", "model": {"name": "memn2n"}, "batch_size": 8, "phases": PHASES}
    return from_dict(Recipe, {**values, **changes})


def final(out: Path) -> dict[str, Tensor]:
    return CheckpointStore(out / "checkpoints").load_newest()[0].tensors


def test_a_restart_of_a_stack_is_the_run_alone_and_a_model_folder(tmp_path: Path) -> None:
    fit(new_task(), recipe(replicas=2), tmp_path / "stack", device="cpu", progress="quiet")
    stack = final(tmp_path / "stack")
    for number in range(2):
        task = new_task()
        task.model = task.new_model(number)
        fit(task, recipe(), tmp_path / str(number), device="cpu", progress="quiet")
        kept, facts = load_model(tmp_path / "stack" / "replicas" / str(number))
        assert facts.training["replica"] == number
        for name, parameter in task.model.named_parameters():
            torch.testing.assert_close(stack[f"model/{name}"][number], parameter.detach(), rtol=1e-5, atol=1e-6)
            assert torch.equal(dict(kept.named_parameters())[name].detach(), stack[f"model/{name}"][number])
    assert not torch.allclose(stack["model/embed.0"][0], stack["model/embed.0"][1])


@pytest.mark.parametrize(
    ("model", "config", "loss", "why"),
    [
        ("dmn", {}, LinearStart(), "loss 'linear_start': 'dmn' has no softmax over a memory to leave out"),
        ("dmn", {}, GatedLoss(), "gates of 'dmn' cannot be trained; set gate: softmax"),
        ("memn2n", {}, GatedLoss(), "gates of 'memn2n' cannot be trained"),
    ],
)
def test_a_loss_that_a_model_cannot_be_taught_by(model: str, config: dict[str, Any], loss: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        new_task(model, config=config).checked_loss(loss, "default")


def test_gates_are_not_taught_without_supporting_facts(tmp_path: Path) -> None:
    task = new_task("dmn", config={"gate": "softmax"}, name=f"jsonl:{table(tmp_path)}", tasks=[])
    with pytest.raises(ConfigError, match="names no supporting facts; use the recipe dmn-weak"):
        task.checked_loss(GatedLoss(), "default")


CPU = torch.device("cpu")


NAMES = ("", "garden", "in", "is", "john", "kitchen", "living", "mary", "room", "where")


def tensors(*asked: StoryExample, memory: int = 3) -> StoryTensors:
    sizes = sizes_of(asked, memory)
    return StoryTensors(asked, NAMES, Sizes(memory, 8, sizes.answer_words), CPU, by_word=False)


@pytest.mark.parametrize("memory", [2, 5])
def test_a_story_takes_the_same_slots_in_a_batch_and_alone(memory: int) -> None:
    told = ("Mary in garden.", "Nobody knows.", "John in kitchen.", "Strange sounds.", "Mary in living room.")
    held = tensors(StoryExample(told, "Where is Mary?", "garden", (0, 4)), memory=memory).take(torch.tensor([0]))
    alone = memory_of(StoryItem(told), {word: at for at, word in enumerate(NAMES) if word}, memory)
    found = [tuple(word for word in slot if word) for slot in held["story"][0].tolist()]
    assert [slot for slot in found if slot] == list(alone.ids)
    assert held["count"].tolist() == [len(alone.ids)]
    needed = [slot for slot, place in enumerate(alone.places) if place in (0, 4)]
    assert [slot for slot in held["supporting"][0].tolist() if slot >= 0] == needed


def table(folder: Path, answer: str = "garden") -> Path:
    rows = [
        {"story": [f"Mary in {place}.", f"John in {s}{n}."], "question": "Where is Mary?", "answer": place, "split": s}
        for n in range(6)
        for s, place in (("train", answer if n == 0 else "garden"), ("val", "kitchen"))
    ]
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"story": 3}\n', encoding="utf-8")
    return path


def task(path: Path) -> StoryTask:
    return StoryTask(model="memn2n", model_config={}, data={"name": f"jsonl:{path}"})


def test_a_run_notes_every_question_that_it_learns_from(tmp_path: Path) -> None:
    before = task(table(tmp_path)).data_parts()["questions"]
    after = task(table(tmp_path, answer="kitchen")).data_parts()["questions"]
    assert [name for name, _ in before] == ["train questions, 6 in all", "val questions, 6 in all"]
    assert before[0] != after[0]
    assert before[1] == after[1]


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
