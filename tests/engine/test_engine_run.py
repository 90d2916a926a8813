"""The run folder, options of `fit`, what is shown, how it is asked to stop; killed runs, shared folders, new data."""

import json
import signal
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from engine_fakes import TinyTask, read_metrics, tiny_recipe, weights

from saccade.engine import journal as journals
from saccade.engine.journal import Journal, StopRequest
from saccade.engine.loop import fit
from saccade.engine.run_folder import LOCK, RunFolder
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError

QUIET = {"device": "cpu", "progress": "quiet"}


def test_logged_loss_is_the_mean_of_the_interval(tmp_path):
    one = fit(TinyTask(), tiny_recipe(log_every=1), tmp_path / "one", **QUIET)
    four = fit(TinyTask(), tiny_recipe(log_every=4), tmp_path / "four", **QUIET)
    single = [entry["values"]["loss"] for entry in read_metrics(one.out) if entry["kind"] == "train"]
    means = [entry["values"]["loss"] for entry in read_metrics(four.out) if entry["kind"] == "train"]
    assert means == pytest.approx([sum(single[i : i + 4]) / 4 for i in (0, 4, 8)], rel=1e-5)


def test_moving_average_is_what_is_validated_and_saved(tmp_path):
    """With decay min(d, (1+n)/(10+n)) the first update takes 9/10 of the new weights."""
    from safetensors.torch import load_file

    task = TinyTask()
    before = weights(task)
    phase = {"steps": 1, "optimizer": {"name": "sgd", "lr": 0.1}}
    result = fit(task, tiny_recipe(phase, ema=0.99), tmp_path / "run", **QUIET)
    after, saved = weights(task), load_file(result.model / "model.safetensors")
    for name in ("head.weight", "stem.1.running_mean"):  # present statistics would not fit averaged weights
        assert torch.allclose(saved[name], before[name] + 0.9 * (after[name] - before[name]), atol=1e-7)
        assert not torch.equal(saved[name], after[name])


def test_accumulation_equals_one_large_batch(tmp_path):
    final = []
    for parts in (1, 2, 4):
        task = TinyTask(norm=False)
        fit(task, tiny_recipe(accumulate=parts), tmp_path / str(parts), **QUIET)
        final.append(weights(task))
    for other in final[1:]:
        assert all(torch.allclose(final[0][name], other[name], atol=1e-6) for name in other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "cupu"}, "'cupu'"),
        ({"devices": 0}, "devices"),
        ({"strategy": "dpp"}, "`strategy=dpp`"),
        ({"accumulate": 3}, "accumulate"),
    ],
)
def test_bad_options(tmp_path, options, words):
    recipe = tiny_recipe(accumulate=options.pop("accumulate", 1))
    with pytest.raises(ConfigError, match=words):
        fit(TinyTask(), recipe, tmp_path / "run", **{**QUIET, **options})
    assert not (tmp_path / "run").exists()


def test_a_run_that_has_begun_is_never_removed(tmp_path):
    class Ends(TinyTask):
        def validate(self, model):
            raise DataError("the data is gone")

    with pytest.raises(DataError, match="is gone"):
        fit(Ends(), tiny_recipe({"steps": 4, "validate_every": 2}, log_every=1), tmp_path / "run", **QUIET)
    assert (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize("hook", ["data_parts", "steps_per_epoch", "train_batches"])
def test_a_run_that_is_refused_before_its_first_step_leaves_nothing(tmp_path, monkeypatch, hook):
    def refuse(*arguments, **options):
        raise DataError("no picture can be read")

    task = TinyTask()
    monkeypatch.setattr(task, hook, refuse)
    with pytest.raises(DataError, match="no picture"):
        fit(task, tiny_recipe({"steps": 2}), tmp_path / "run", **QUIET)
    assert not (tmp_path / "run").exists()  # though its first state may have been saved by then


def test_a_second_signal_does_not_wait_and_handlers_are_put_back():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs in the background ignores it
    term = signal.getsignal(signal.SIGTERM)
    try:
        with StopRequest() as request:
            assert request.reason() is None
            assert signal.getsignal(signal.SIGTERM) != term
            signal.raise_signal(signal.SIGINT)
            assert request.reason() == "signal"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGTERM) == term
    finally:
        signal.signal(signal.SIGINT, before)


def journal(folder: Path, mode: str) -> Journal:
    return Journal(RunFolder(folder), mode, writes=True)


def record(written: Journal, kind: str, **values: float) -> None:
    written.record(kind, 1, "main", values, 0.0, replicas=None)


def test_plain_lines_come_every_few_seconds_and_at_the_end(tmp_path, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(journals, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with journal(tmp_path, "plain") as written:
        written.begin("main", 0, 100, 32)
        for step in range(1, 101):
            now[0] += 0.2
            if step == 20:
                record(written, "train", loss=0.5, lr=1e-3)
                record(written, "validation", accuracy=0.75, loss=0.625)
            written.advance(step)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0] == "main 25/100  160 examples/s  0:00:15 left  train: loss 0.5  val: accuracy 0.75, loss 0.625"
    assert lines[-1].startswith("main 100/100  160 examples/s  0:00:00 left")


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _left_by_a_kill(out: Path, state: str) -> None:
    """What a SIGKILL leaves at moments between the making of the folder and the first checkpoint."""
    out.mkdir()
    (out / LOCK).write_text("")
    if state == "draft of the recipe":
        (out / ".config.yaml.abcd.saccade-part").write_text("recip")
        return
    with ExitStack() as stack:
        RunFolder(out).open(stack, tiny_recipe(), {}, resume=False)
    (out / LOCK).write_text("")
    if state == "draft of the first checkpoint":
        (out / "data.json").write_text(
            json.dumps({"schema_version": 1, "accepted": [], "parts": {"settings": [["seed", "0"]]}})
        )
        (out / "log.txt").write_text("begun\n")
        draft = out / "checkpoints" / ".step-00000000.abcd.saccade-part"
        draft.mkdir(parents=True)
        (draft / "state.json").write_text("{")


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("state", ["draft of the recipe", "recipe alone", "draft of the first checkpoint"])
def test_a_kill_while_the_folder_is_made_is_no_dead_end(tmp_path, state, resume):
    out, alone = tmp_path / "run", tmp_path / "alone"
    _left_by_a_kill(out, state)
    task, undisturbed = TinyTask(), TinyTask()
    fit(undisturbed, tiny_recipe(), alone, **QUIET)
    assert fit(task, tiny_recipe(), out, resume=resume, **QUIET).stopped == "finished"
    assert all(bool((value == weights(undisturbed)[name]).all()) for name, value in weights(task).items())
    assert [(each["step"], each["values"]) for each in read_metrics(out)] == [
        (each["step"], each["values"]) for each in read_metrics(alone)
    ]
    assert _names(out) == _names(alone)
    assert _names(out / "checkpoints") == _names(alone / "checkpoints")
    assert ("nothing to resume" in (out / "log.txt").read_text()) == resume


def test_a_folder_of_somebody_else_gets_no_lock_and_keeps_what_it_has(tmp_path):
    (tmp_path / "log.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        fit(TinyTask(), tiny_recipe(), tmp_path, **QUIET)
    with pytest.raises(CheckpointError, match="not a run folder"):
        fit(TinyTask(), tiny_recipe(), tmp_path, resume=True, **QUIET)
    assert _names(tmp_path) == {"log.txt"}


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_into_the_folder_is_refused(tmp_path, resume):
    out, task = tmp_path / "run", TinyTask()
    task.signal_at = 5
    fit(task, tiny_recipe(), out, **QUIET)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with RunFolder(out).locked(), pytest.raises(OutputError, match="trains into"):
        fit(TinyTask(), tiny_recipe(), out, resume=resume, **QUIET)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


RECIPE = tiny_recipe({"steps": 8, "validate_every": 4, "select": {"metric": "accuracy"}})
ROWS = [(f"{number}.png", f"#{number}") for number in range(6)]


def task(**changes: list[tuple[str, str]]) -> TinyTask:
    made = TinyTask()
    made.parts = {"settings": [("seed", "0")], "rows": ROWS, **changes}
    made.scripted = [0.1 * number for number in range(1, 9)]  # better each time, so that each is kept
    return made


def begun(out: Path) -> Path:
    """A run that stopped after two steps."""
    stopping = task()
    stopping.signal_at = 1
    assert fit(stopping, RECIPE, out, device="cpu", progress="quiet").step == 2
    return out


def go_on(out: Path, again: TinyTask, **options: bool) -> TinyTask:
    assert fit(again, RECIPE, out, resume=True, device="cpu", progress="quiet", **options).stopped == "finished"
    return again


def log(out: Path) -> str:
    return (out / "log.txt").read_text(encoding="utf-8")


def accepted(out: Path) -> list[str]:
    return json.loads((out / "data.json").read_text(encoding="utf-8"))["accepted"]


def test_an_accepted_change_is_said_noted_and_kept_with_the_model(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    go_on(out, task(rows=ROWS[2:]), accept_changed_data=True)
    assert "the data changed, which was accepted: rows" in log(out)
    (first,) = accepted(out)
    assert first.startswith("from step 2 on: rows")
    assert json.loads((out / "model" / "facts.json").read_text())["data_changes"] == [first]
    with pytest.raises(DataError, match="rows"):  # the new data is what it learns from now
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert accepted(out)[0] == first
    assert accepted(out)[1].startswith("from step 8 on: rows")


@pytest.mark.parametrize("content", [None, "{", '{"schema_version": 9, "parts": {}, "accepted": []}', "[" * 99999])
def test_a_note_that_cannot_be_read_is_an_error_unless_changes_are_accepted(tmp_path: Path, content: str) -> None:
    out = begun(tmp_path / "r")
    (out / "data.json").unlink() if content is None else (out / "data.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"data\.json.*`accept_changed_data=True`"):
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert len(accepted(out)) == 1
