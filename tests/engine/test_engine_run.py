"""The run folder, its measurements, options of `fit`, what is shown of a run, and how it is asked to stop."""

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from engine_fakes import TinyTask, read_metrics, tiny_recipe, weights

from saccade.engine import progress
from saccade.engine.loop import fit
from saccade.engine.progress import Journal, StopRequest
from saccade.engine.run_folder import RunFolder
from saccade.errors import ConfigError, DataError

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
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
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
