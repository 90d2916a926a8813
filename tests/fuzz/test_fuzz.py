"""The corpus of every fuzz target and a few drawn inputs: each is accepted, or refused in one line.

``make fuzz`` does the same for minutes, with deadlines and a bound on memory. Here are none: a machine may be busy.
"""

from __future__ import annotations

import asyncio
import random
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from fuzz_requests import Sent
from fuzzing import Inputs, Outcome, Target
from mutate import spoilt_bytes, spoilt_text, spoilt_values
from targets import TARGETS

from fuzz import Tally, fuzz
from saccade.web.guard import Guard, Limits

SEED = 17
DRAWN = {
    "pictures": 75, "model folders": 80, "tables": 150, "recipes": 60, "records": 10, "checkpoints": 80,
    "requests": 300,
    "archives": 75, "maps": 120,
}  # fmt: skip
MAX_OF_CORPUS = 90
"""Inputs of a long corpus are taken evenly; ``make fuzz`` takes all."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    inputs = Inputs(TARGETS[name](tmp_path), SEED, slow=False)
    corpus = len(inputs.corpus)
    step = -(-corpus // MAX_OF_CORPUS)
    outcomes = [inputs.outcome(number) for number in (*range(0, corpus, step), *range(corpus, corpus + DRAWN[name]))]
    bad = [outcome for outcome in outcomes if outcome.result == "traceback"]
    assert not bad, f"{len(bad)} of {len(outcomes)}, the first is '{bad[0].name}':\n{bad[0].told}"
    results = {outcome.result for outcome in outcomes}
    assert results == {"accepted", "refused"}, "inputs of one kind only try nothing"


@pytest.mark.parametrize("name", TARGETS)
def test_a_good_input_is_accepted(name: str, tmp_path: Path) -> None:
    inputs = Inputs(TARGETS[name](tmp_path), SEED, slow=False)
    good = [number for number, (title, _) in enumerate(inputs.corpus) if title.startswith(("good", "given own"))]
    assert good or name == "recipes"
    for number in good[:3]:
        assert inputs.outcome(number).result == "accepted", inputs.corpus[number][0]


def test_an_input_depends_on_seed_and_number_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    target = TARGETS["tables"]
    once, again = Inputs(target(tmp_path / "a"), 3), Inputs(target(tmp_path / "b"), 3)
    number = len(once.corpus) + 5
    for earlier in range(len(once.corpus), number):
        once.case(earlier)
    assert once.case(number) == again.case(number)
    assert once.case(number) != Inputs(target(tmp_path / "b"), 4).case(number)


@pytest.mark.parametrize(
    ("spoil", "given", "more"),
    [
        (spoilt_bytes, bytes(range(200)), [b"other"]),
        (spoilt_values, {"a": [1, {"b": "c"}], "d": None}, None),
        (spoilt_text, "a: 1\nb: 2", ["word"]),
    ],
)
def test_mutators_change_what_they_are_given(spoil: Any, given: Any, more: Any) -> None:
    made = [str(spoil(random.Random(number), given, more)) for number in range(60)]
    assert sum(text != str(given) for text in made) > 50
    assert len(set(made)) > 30


def test_a_request_is_waited_for_and_no_reply_is_told_from_a_bad_one(tmp_path: Path) -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(100):  # turns of the loop: others could hang up meanwhile
            await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"broken"})

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        return

    requests = TARGETS["requests"](tmp_path)
    requests.app = Guard(late, Limits())
    requests.run(Sent("GET", "/"))
    for app, said in ((broken, "500: b'broken'"), (silent, "no reply")):
        requests.app = Guard(app, Limits())
        with pytest.raises(AssertionError, match=said):
            requests.run(Sent("GET", "/"))


TARGET = """
import os, time
from fuzzing import RefusedError, Target

class Bad(Target):
    name, deadline, memory = "bad", {deadline}, 200

    def corpus(self):
        return {{name: lambda name=name: name for name in ({names})}}

    def drawn(self, rng):
        return "good"

    def run(self, case):
        if case == "refuse": raise RefusedError("no")
        if case == "raise": raise IndexError("a defect")
        if case == "sleep": time.sleep(1000)
        if case == "die": os.kill(os.getpid(), 9)
        if case == "grow": self.held = b"x" * (600 * 2**20)
        if case == "compute":
            end = time.process_time() + 0.4
            while time.process_time() < end: pass
        if case == "end": raise SystemExit(3)
"""


def watched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], deadline: float = 30, seconds: float = 0
) -> Tally:
    """What the watcher says of a target that does what its inputs are called."""
    text = TARGET.format(names="".join(f"{name!r}, " for name in names), deadline=deadline)
    (folder / "bad_target.py").write_text(textwrap.dedent(text))
    monkeypatch.chdir(folder)
    return fuzz("bad", "bad_target:Bad", seconds)


def test_the_watcher_names_what_goes_wrong_and_goes_on_behind_it(tmp_path: Path, monkeypatch) -> None:
    tally = watched(tmp_path, monkeypatch, ["good", "refuse", "die", "grow", "raise", "end"], seconds=6)
    assert not tally.is_good
    assert [tally.counts[kind] for kind in ("refused", "traceback", "large")] == [1, 3, 1]
    told = "\n".join(text for texts in tally.findings.values() for text in texts)
    assert "die (--target 'bad' --only 2) ended its process with -9" in told
    assert "raise (--target 'bad' --only 4)" in told
    assert "IndexError: a defect" in told


@pytest.mark.parametrize("name", ["sleep", "compute"])
def test_the_watcher_tells_what_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    tally = watched(tmp_path, monkeypatch, [name], deadline=0.2)
    assert tally.counts["late"] == 1
    assert not tally.is_good


def test_a_message_of_thousands_of_characters_is_a_defect(tmp_path: Path) -> None:
    class Long(Target):
        name = "long"

        def corpus(self):
            return {"long": lambda: "x" * 30_000, "none": lambda: " "}

        def drawn(self, rng):
            return "x"

        def run(self, case):
            from saccade.errors import DataError

            raise DataError(case)

    inputs = Inputs(Long(tmp_path), 0)
    assert [inputs.outcome(number).result for number in range(3)] == ["traceback", "traceback", "refused"]
    assert isinstance(inputs.outcome(0), Outcome)
