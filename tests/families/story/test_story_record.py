"""Records of restarts: from trained run folders to one file, and to the table."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import record_stories

from saccade.commands.evaluate import evaluate
from saccade.errors import CheckpointError, ConfigError
from saccade.families.story.data import StoryDataConfig, generated
from saccade.families.story.readers.babi import read_babi
from saccade.families.story.reproduction.record import record_runs, run_folders
from saccade.families.story.reproduction.training import official_tasks
from saccade.recorded import errors_by_restart, read_run, recorded_runs
from saccade.verbs.reproduce import reproduce

SHORT = ["batch_size=10", "graph=false"] + [
    f"phases.{phase}.{key}=1" for phase in (0, 1) for key in ("epochs", "validate_every")
]


def told(task, count, seed):
    return generated(StoryDataConfig(tasks=(task,), questions=count, seed=seed), "train")[:count]


def babi_text(asked):
    """Questions in the form of the official files: numbered lines, a question after what was told before it."""
    lines, told, places, number = [], (), [], 0  # places: line number of each sentence of the story
    for each in asked:
        if not told or each.sentences[: len(told)] != told:
            told, places, number = (), [], 0
        for sentence in each.sentences[len(told) :]:
            number += 1
            places.append(number)
            lines.append(f"{number} {sentence}")
        told = each.sentences
        number += 1
        facts = " ".join(str(places[place]) for place in each.supporting)
        lines.append(f"{number} {each.question}\t{each.answer}\t{facts}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack in the official layout: tasks 1 and 15 with 60 questions; task 15 lacks its 10k training file."""
    root = tmp_path_factory.mktemp("babi")
    for folder in ("en", "en-10k"):
        (root / folder).mkdir()
    for task in (1, 15):
        (root / "en" / f"qa{task}_x_train.txt").write_text(babi_text(told(task, 60, 0)))
        (root / "en" / f"qa{task}_x_test.txt").write_text(babi_text(told(task, 40, 1)))
    (root / "en-10k" / "qa1_x_train.txt").write_text(babi_text(told(1, 80, 2)))
    return root


@pytest.fixture(scope="module")
def made(pack, tmp_path_factory):
    """The table with one cell trained here: two restarts of each of two tasks."""
    out = tmp_path_factory.mktemp("out")
    only = ["memn2n"]
    found = train_one(pack, out, "task-1k", only)
    return out, found


def train_one(pack, out, setting, systems):
    import saccade.families.story.reproduction.memory_table as table

    rows = tuple(row for row in table.ROWS if row.system in systems)
    with pytest.MonkeyPatch.context() as patch:
        nothing = lambda folder=None: () if folder is None else recorded_runs(folder)  # noqa: E731 - no run of docs
        patch.setattr("saccade.families.story.reproduction.table.recorded_runs", nothing)
        patch.setattr(table, "ROWS", rows)
        return reproduce("memory-table", data=[f"babi:{pack}"], protocol=setting, train=True, seeds=2, out=out,
                         overrides=SHORT, device="cpu")  # fmt: skip


def test_a_pack_that_is_written_is_read_as_it_was(tmp_path):
    asked = [*told(1, 25, 0), *told(3, 10, 0)]
    path = tmp_path / "qa1_x_train.txt"
    path.write_text(babi_text(asked))
    found = read_babi(path, "qa1")
    assert [(each.sentences, each.question, each.answer, each.supporting) for each in found] == [
        (each.sentences, each.question, each.answer, each.supporting) for each in asked
    ]


def test_runs_of_two_tasks_become_one_record_with_every_restart(made, pack):
    out, found = made
    record = read_run(out / "results" / "memn2n-babi-task-1k-seed0.json")
    assert [list(each.errors) for each in record.restarts] == [["qa1"], ["qa15"]]
    assert all(each.count == 2 and len(each.train_accuracy) == 2 for each in record.restarts)
    assert record.evaluation.n == 80
    assert (record.protocol, record.data["size"], record.data["tasks"]) == ("task", "1k", [1, 15])
    for task, each in zip((1, 15), record.restarts):
        run = out / "runs" / "memn2n-babi-task-1k" / f"qa{task}"
        kept = evaluate(run, data=f"babi:{pack}", device="cpu", sweeps=0)["metrics"]["accuracy"]
        assert each.kept[f"qa{task}"] == pytest.approx(1 - kept, abs=1e-5)
        assert record.evaluation.metrics[f"accuracy_qa{task}"] == pytest.approx(kept)
        for number in range(2):
            own = evaluate(run / "replicas" / str(number), data=f"babi:{pack}", device="cpu", sweeps=0)
            assert each.errors[f"qa{task}"][number] == pytest.approx(1 - own["metrics"]["accuracy"], abs=1e-5)
        best = max(each.train_accuracy)
        assert each.train_accuracy[each.chosen] == best
    cell = next(cell for cell in found.cells if cell["system"] == "memn2n")
    assert cell["restarts"] == 2
    means = [sum(errors.values()) / 2 for errors in errors_by_restart(record.restarts)]
    assert cell["mean"] == pytest.approx(sum(means) / 2)
    assert "PATH" in record.command
    assert str(pack) not in json.dumps(record.recipe)


def test_what_is_recorded_is_not_trained_again(made, pack):
    out, _ = made
    before = (out / "results" / "memn2n-babi-task-1k-seed0.json").stat().st_mtime_ns
    train_one(pack, out, "task-1k", ["memn2n"])
    assert (out / "results" / "memn2n-babi-task-1k-seed0.json").stat().st_mtime_ns == before


def test_training_questions_that_the_pack_lacks_are_made_and_marked(pack, tmp_path, monkeypatch):
    """Task 15 has no 10k training file; no second pack is written, and the run says where its questions come from."""
    import saccade.families.story.data as data

    monkeypatch.setitem(data._MANY, "10k", 60)
    train_one(pack, tmp_path, "task-10k", ["memn2n"])
    assert official_tasks(f"babi:{pack}", "10k") == [1, 15]
    record = read_run(tmp_path / "results" / "memn2n-babi-task-10k-seed0.json")
    assert [each.generated for each in record.restarts] == [(), ("qa15",)]
    assert "data.fill=true" in record.command
    assert not (tmp_path / "data").exists()


def test_generated_tasks_are_told_in_the_record(made, pack, tmp_path):
    out, _ = made
    runs = run_folders([out / "runs" / "memn2n-babi-task-1k"])
    assert [run.name for run in runs] == ["qa1", "qa15"]
    record = record_runs(runs, data=f"babi:{pack}", command="c", folder=tmp_path, generated=[15], device="cpu")
    assert [each.generated for each in record.restarts] == [(), ("qa15",)]
    assert record.system == "memn2n", "by default the name of the recipe"


def test_runs_that_do_not_belong_together_are_refused(made, pack, tmp_path):
    out, _ = made
    one, two = run_folders([out / "runs" / "memn2n-babi-task-1k"])

    def recorded(*runs):
        return record_runs(runs, data=f"babi:{pack}", command="c", folder=tmp_path, device="cpu")

    with pytest.raises(ConfigError, match="both have qa1"):
        recorded(one, one)
    with pytest.raises(ConfigError, match="no run folder"):
        recorded()
    with pytest.raises(CheckpointError, match="no run folder"):
        run_folders([tmp_path])
    fewer = tmp_path / "fewer"
    shutil.copytree(two, fewer)
    shutil.rmtree(fewer / "replicas" / "1")
    with pytest.raises(CheckpointError, match="2 restarts, but 1"):
        recorded(one, fewer)
    (fewer / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match="not a finished run"):
        recorded(fewer)


def test_the_tool_writes_the_record_and_says_its_error(made, pack, tmp_path, monkeypatch, capsys):
    out, _ = made
    words = [str(out / "runs" / "memn2n-babi-task-1k"), "--data", f"babi:{pack}", "--command", "c", "--device", "cpu"]
    monkeypatch.setattr(
        sys, "argv", ["record_stories.py", *words, "--system", "mine", "--variant", "--out", str(tmp_path)]
    )
    assert record_stories.main() == 0
    assert read_run(tmp_path / "variants" / "mine-babi-task-1k-seed0.json").system == "mine"
    assert "mine-babi-task-1k-seed0: mean error " in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["record_stories.py", str(tmp_path), *words[1:]])
    assert record_stories.main() == 2
    assert "no run folder" in capsys.readouterr().err


def test_the_tool_needs_no_drawing_and_no_web_library():
    """Records are made where runs are trained, which may have neither."""
    without = ("PIL", "matplotlib", "pydantic", "fastapi", "nltk", "onnx")
    code = f"import sys; sys.modules.update(dict.fromkeys({without})); import record_stories"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(record_stories.__file__).parent)
