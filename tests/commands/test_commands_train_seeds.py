"""``--seeds N``: runs in turn, in one process, each of them what it would be alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_commands_train import assert_same_run, stop_before

from saccade.errors import OutputError
from tiny_runs import FRESH, TINY, train_tiny
from typed import typed

WORDS = [word for override in (*TINY, *FRESH) for word in ("--set", override)]


def test_seeds_of_restarts_do_not_overlap(tmp_path: Path) -> None:
    stack = ("replicas=2", "channels_last=false", "data.asks=1", "phases.0.steps=1", "phases.0.validate_every=1")
    results = train_tiny(tmp_path / "all", *stack, seeds=2)
    assert [result.out.name for result in results] == ["seed-0", "seed-2"]


def test_runs_go_on_where_they_stopped(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is finished, the second begun, the third not begun."""
    shutil.copytree(run, tmp_path / "all" / "seed-0")
    with pytest.raises(OutputError, match="seed-0"):
        train_tiny(tmp_path / "all", seeds=3)
    assert not (tmp_path / "all" / "seed-1").exists()
    model = tmp_path / "all" / "seed-0" / "model"
    kept = {path: path.read_bytes() for path in model.iterdir()}
    with monkeypatch.context() as patch:
        stop_before(patch, 3)
        stopped = train_tiny(tmp_path / "all", seeds=3, resume=True)
    assert [(result.out.name, result.stopped) for result in stopped] == [("seed-0", "finished"), ("seed-1", "signal")]
    results = train_tiny(tmp_path / "all", seeds=3, resume=True)
    assert [result.stopped for result in results] == ["finished"] * 3
    assert {path: path.read_bytes() for path in model.iterdir()} == kept
    for seed, result in enumerate(results):
        assert_same_run(result.out, train_tiny(tmp_path / "alone" / str(seed), seed=seed).out)


def test_the_clock_counts_over_all_runs(tmp_path: Path) -> None:
    results = train_tiny(tmp_path / "all", seeds=3, max_minutes=1e-9)
    assert [(result.out.name, result.stopped) for result in results] == [("seed-0", "time")]


def test_the_end_has_the_spread_of_each_score(tmp_path: Path) -> None:
    words = ["train", "soft-mref", "--seeds", "2", "--out", str(tmp_path / "all"), "--device", "cpu", "-q", *WORDS]
    done = typed(*words)
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.stdout
    assert " ± " in done.stdout
    told = json.loads(typed(*words, "--resume", "--json").stdout)
    assert [Path(one["out"]).name for one in told] == ["seed-0", "seed-1"]
    assert all(one["stopped"] == "finished" for one in told)
