"""Several trainings in processes of their own: who begins when, and what a failure, a signal or the clock does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_children
from saccade.engine import parallel_runs
from saccade.engine.concurrency import CONTEXT, Concurrency, cores, threads_each
from saccade.engine.parallel_runs import ParallelRuns, Run

GIB = 2**30


class Trained:
    """Runs of the given kinds, the events they told, and what was said to all."""

    def __init__(self, folder: Path, *kinds: str, **more: Any) -> None:
        self.folder, self.more = folder, more
        self.runs = [
            Run(
                f"{number}-{kind}",
                more.get("recipes", ["r"] * 9)[number],
                folder / str(number),
                folder / f"{number}.txt",
            )
            for number, kind in enumerate(kinds)
        ]
        self.events: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self.on: Callable[[str, str], None] = lambda run, event: None
        self.writes = 0
        self.children = ParallelRuns(
            self.runs,
            command=fake_children.COMMAND,
            job=self.job,
            environment={"OMP_NUM_THREADS": "7"},
            on_event=self.on_event,
            changed=self.changed,
        )

    def job(self, run: Run) -> dict[str, Any]:
        kind = run.name.partition("-")[2]
        known = {name: self.more[name] for name in ("until", "memory") if name in self.more}
        return {"kind": kind, "out": str(run.folder), "attempts": run.attempts, **known}

    def on_event(self, run: Run | None, event: dict[str, Any]) -> None:
        name = "" if run is None else run.name
        self.events.append((name, event["event"]))
        if event["event"] == "told":
            self.facts[name] = event
        if run is None:
            self.said.append(event["text"])
        self.on(name, event["event"])

    def changed(self) -> None:
        self.writes += 1

    def train(self, at_once: int | None = None, *, measured_first: bool = False, **options: Any) -> str | None:
        count = Concurrency(len(self.runs), chosen=at_once, measured_first=measured_first, available=8)
        try:
            return self.children.train(count, "cpu", **options)
        finally:
            self.children.end()

    @property
    def states(self) -> list[str]:
        return [run.state for run in self.runs]

    def place(self, name: str, event: str) -> int:
        return self.events.index((name, event))


def test_a_run_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "ok", "crash", "refuse", "early", "ok")
    trained.children.start_children(2)
    assert trained.train() is None
    assert trained.states == ["finished", "failed", "failed", "failed", "finished"]
    assert [run.error for run in trained.runs] == [
        None, "RuntimeError: it broke", "the gradient of 'w' is not finite", "no such data", None,
    ]  # fmt: skip
    assert [run.attempts for run in trained.runs] == [1, 1, 1, 1, 1]
    assert (tmp_path / "1.txt").read_text().endswith("RuntimeError: it broke\n")
    assert (tmp_path / "3.txt").read_text() == "error: no such data\n"
    assert sorted((tmp_path / "0.txt").read_text().splitlines()) == ["a library that prints", "some warning"]
    assert trained.runs[0].result["best"]["value"] == 0.5  # type: ignore[index]
    assert trained.writes == 10  # each began and ended


def test_a_run_that_is_refused_while_it_waits_never_begins(tmp_path: Path) -> None:
    refused = tmp_path / "refused"
    trained = Trained(tmp_path, "until", "early", until=str(refused))
    trained.on = lambda run, event: refused.touch() if event == "refused" else None
    trained.children.start_children(2)
    assert trained.train(1) is None
    assert trained.states == ["finished", "failed"]
    assert (trained.runs[1].attempts, trained.runs[1].error) == (0, "no such data")
    assert (tmp_path / "1.txt").read_text() == "error: no such data\n"


def test_a_run_that_was_refused_does_not_begin_before_its_process_has_ended(tmp_path: Path) -> None:
    """What a child tells last and its end come apart, and another run may end in between."""
    trained = Trained(tmp_path, "late")
    trained.children.start_children(1)
    trained.on = lambda run, event: (tmp_path / "refused").touch() if event == "refused" else None
    while not (tmp_path / "refused").exists():  # the child waits for an order that it does not take
        trained.children._handle_events()
    assert trained.train() is None
    assert (trained.states, trained.runs[0].attempts, trained.runs[0].error) == (["failed"], 0, "no such data")


def test_a_child_is_told_its_device_its_time_and_its_threads(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "ok")
    trained.train(max_minutes=5.0)
    told = trained.facts["0-ok"]
    assert (told["device"], told["threads"]) == ("cpu", "7")
    assert 0 < told["minutes"] <= 5
    endless = Trained(tmp_path / "endless", "ok")
    endless.train()
    assert endless.facts["0-ok"]["minutes"] is None


def test_nothing_is_written_before_training_may_begin(tmp_path: Path) -> None:
    trained = Trained(tmp_path / "runs", "ok", "crash")
    trained.children.start_children(2)
    processes = [child.process for child in trained.children._children.values()]
    assert len(processes) == 2
    trained.children.end()
    assert not (tmp_path / "runs").exists()
    assert all(process.returncode is not None for process in processes)


def test_a_process_that_a_child_leaves_behind_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_runs, "_LAST_WORDS", 0.2)
    trained = Trained(tmp_path, "orphan")
    try:
        assert trained.train() is None
        left = int((tmp_path / "0" / "left").read_text())
        os.kill(left, 0)  # it still lives
    finally:
        os.kill(int((tmp_path / "0" / "left").read_text()), signal.SIGKILL)
    assert trained.states == ["finished"]


@pytest.mark.parametrize("kind", ["memory", "killed"])
def test_a_run_out_of_memory_is_run_again_alone_once_the_others_are_done(tmp_path: Path, kind: str) -> None:
    others_may_end = tmp_path / "now"
    trained = Trained(tmp_path, kind, "until", "ok", until=str(others_may_end))
    again = f"0-{kind}"
    trained.on = lambda run, event: others_may_end.touch() if (run, event) == ("", "note") else None
    assert trained.train(2) is None
    assert trained.states == ["finished"] * 3
    assert [run.attempts for run in trained.runs] == [2, 1, 1]
    assert trained.said == [f"{again} ran out of memory beside 1 other; it is run again alone"]
    second = trained.events.index((again, "begin"), trained.place(again, "begin") + 1)
    assert second > trained.place("1-until", "result")
    assert second > trained.place("2-ok", "result")
    assert trained.children.at_once.limit == 1


def test_a_run_that_lacks_memory_alone_has_failed(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "memory", "ok")
    trained.train(1)
    assert trained.states == ["failed", "finished"]
    assert trained.runs[0].error == "MemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert trained.runs[0].attempts == 1


def test_on_a_gpu_the_others_wait_for_the_memory_of_the_first(tmp_path: Path) -> None:
    """Two fit: the first two overlap, or neither would end; the third begins after one of them."""
    both = tmp_path / "both"
    memory = {"device": {"used": 10 * GIB - CONTEXT, "free": 20 * GIB}}
    trained = Trained(tmp_path, "until", "until", "ok", until=str(both), memory=memory)
    begun: list[str] = []

    def on(run: str, event: str) -> None:
        if event == "begin":
            begun.append(run)
            if len(begun) == 2:
                assert "result" not in dict(trained.events).values()
                both.touch()

    trained.on = on
    trained.children.start_children(3)
    assert trained.train(measured_first=True) is None
    assert trained.states == ["finished"] * 3
    assert trained.said[0] == "2 at once: 30.0 GiB of the device's memory, 10.0 GiB for a run so far"
    assert trained.place("1-until", "begin") > trained.place("0-until", "memory")
    ends = [trained.place(run, "result") for run in ("0-until", "1-until")]
    assert trained.place("2-ok", "begin") > min(ends)
    assert trained.runs[0].used == {"device": 10 * GIB - CONTEXT}


def test_a_signal_stops_all_and_begins_no_more(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "wait", "wait", "ok")
    begun: list[str] = []

    def on(run: str, event: str) -> None:
        if event == "begin":
            begun.append(run)
            if len(begun) == 2:
                signal.raise_signal(signal.SIGTERM)

    trained.on = on
    trained.children.start_children(3)
    assert trained.train(2) == "signal"
    assert trained.states == ["stopped", "stopped", "waiting"]
    assert not (tmp_path / "2").exists()
    assert [run.result["stopped"] for run in trained.runs[:2]] == ["signal", "signal"]  # type: ignore[index]


def test_a_child_that_is_stopped_by_itself_is_not_finished(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "wait", "ok")

    def on(run: str, event: str) -> None:
        if (run, event) == ("0-wait", "begin"):
            trained.children._children[run].process.terminate()

    trained.on = on
    assert trained.train(2) == "signal"
    assert trained.states == ["stopped", "finished"]


def test_the_clock_holds_for_all_together(tmp_path: Path) -> None:
    trained = Trained(tmp_path, "time", "ok")
    assert trained.train(1, max_minutes=5.0) == "time"
    assert trained.states == ["stopped", "waiting"]


def memory(used: float, free: float, kind: str = "device") -> dict[str, dict[str, int]]:
    context = CONTEXT if kind == "device" else 0
    return {kind: {"used": int(used * GIB) - context, "free": int(free * GIB)}}


@pytest.mark.parametrize(
    ("used", "free", "expected"),
    [
        (10, 129, 5),  # 139 GiB × 0.9 ÷ 12.5 = 10, but there are five
        (40, 99, 2),  # 125.1 ÷ 50
        (60, 79, 1),  # 125.1 ÷ 75
        (130, 2, 1),  # the first runs already
    ],
)
def test_the_first_says_how_many_fit(used: float, free: float, expected: int) -> None:
    count = Concurrency(5, chosen=None, measured_first=True, available=16)
    assert (count.limit, count.may_begin("r", [])) == (1, True)
    assert not count.may_begin("r", ["r"])
    assert count.measured("r", memory(used, free))
    assert count.limit == expected
    assert f"{used:.1f} GiB for a run" in count.why or expected == 5
    assert not count.measured("r", memory(used - 1, free))


def test_a_run_that_grows_leaves_room_for_fewer() -> None:
    count = Concurrency(5, chosen=None, measured_first=True, available=16)
    count.measured("r", memory(10, 90))
    assert count.limit == 5
    assert count.measured("r", memory(40, 0))  # its validation: of the 100 GiB that there were, 90 ÷ 50 is 1
    assert count.limit == 1


def test_cores_and_the_memory_of_the_machine_count_too() -> None:
    on_cpu = Concurrency(5, chosen=None, measured_first=False, available=2)
    assert (on_cpu.limit, on_cpu.why) == (2, "5 runs, 2 cores")
    assert not on_cpu.measured("r", memory(1, 100, "machine"))
    assert on_cpu.measured("r", memory(80, 21, "machine"))
    assert (on_cpu.limit, on_cpu.why) == (1, "101.0 GiB of the machine's memory, 80.0 GiB for a run so far")


def test_what_was_asked_for_is_done() -> None:
    count = Concurrency(5, chosen=3, measured_first=True, available=1)
    assert (count.limit, count.why) == (3, "as asked")
    assert count.may_begin("other", ["r", "r"])  # nothing is waited for
    assert not count.measured("r", memory(100, 1))
    assert count.limit == 3
    count.too_many(3)
    assert count.limit == 2


def test_recipes_that_nobody_measured_do_not_begin_together() -> None:
    count = Concurrency(3, chosen=None, measured_first=True, available=8)
    count.measured("a", memory(10, 90))
    assert count.limit == 3
    assert count.may_begin("b", ["a"])
    assert not count.may_begin("c", ["a", "b"])
    count.measured("b", memory(5, 80))
    assert count.may_begin("c", ["a", "b"])


def test_runs_share_the_cores() -> None:
    assert cores() >= 1
    assert [threads_each(*each) for each in ((5, None, 16), (2, None, 16), (5, 2, 16), (5, None, 4), (0, None, 4))] == [
        3, 8, 8, 1, 4,
    ]  # fmt: skip
