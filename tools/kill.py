"""``make kill COUNT=200``: SIGKILL in the middle of commands that write, run them again, and compare what they leave.

Each target (see ``kill_targets.py``) first runs undisturbed. Then it is killed: before and after calls of fsync and
rename, spread over all of them, and at random times. After every kill the same command runs again; of training,
alternately with and without --resume first. Sometimes the second run is killed too. A trial is

* equal, if all files are there, no other is, and all are bit-equal to the undisturbed ones but for measured times;
* said, if the command ended with one line that says why it could not;
* wrong, otherwise: the tool then exits with 1, and names what differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kill_targets import TARGETS, Target, serve

from saccade.errors import SaccadeError

CALLS = ("fsync", "replace", "rename")
"""Functions of os at which a process is killed: what they do decides what is on the disk."""
DEADLINE = 180.0
"""Seconds after which a process that should end by itself counts as hanging."""

_TIMES = {"seconds", "minutes", "images_per_second"}
_NOT_COMPARED = {"log.txt"}  # times of day
_MAY_BE_MISSING = {"contents.index"}  # digests of files that were not changed within the last second


AGAIN = 0.25
"""Share of trials in which the second run is killed too."""
TRIES = 4
"""Runs after a kill that end in a refusal which names another way."""


@dataclass(frozen=True)
class Point:
    """When a process is killed."""

    call: int = 0
    """Just before (negative: just after) this call of :data:`CALLS`, counted from 1; 0: not at a call."""
    seconds: float | None = None
    """After this time; None: not by time."""

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"after {self.seconds:.3f} s"
        return f"{'before' if self.call > 0 else 'after'} call {abs(self.call)}"


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    how: str
    """whole, killed, said (an error of saccade: one line), broken (anything else), hung."""
    text: str = ""
    calls: int = 0
    """Calls of :data:`CALLS` that it made, where it ended by itself."""
    seconds: float = 0.0


def in_child(work: Callable[[], None], note: Path, point: Point | None = None) -> Ended:
    """Run ``work`` in a forked process that is killed at ``point``; ``note`` is a file for what it has to say."""
    note.unlink(missing_ok=True)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(work, note, point)
    deadline = started + (DEADLINE if point is None or point.seconds is None else point.seconds)
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            is_meant = point is not None and point.seconds is not None
            return Ended("killed" if is_meant else "hung", seconds=time.monotonic() - started)
        time.sleep(0.002)
    seconds = time.monotonic() - started
    if os.WIFSIGNALED(status):
        is_kill = os.WTERMSIG(status) == signal.SIGKILL
        return Ended("killed" if is_kill else "broken", f"signal {os.WTERMSIG(status)}", seconds=seconds)
    if not note.is_file():
        return Ended("broken", "it left no word", seconds=seconds)
    return Ended(**json.loads(note.read_text(encoding="utf-8")), seconds=seconds)


def _child(work: Callable[[], None], note: Path, point: Point | None) -> None:
    """What the forked process does; it does not return."""
    how, text, calls = "broken", "", [0]
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if "torch" in sys.modules:  # its pool of threads does not live through a fork; it is made anew here, once
            sys.modules["torch"].set_num_threads(1)
        _kill_at_calls(calls, point.call if point is not None else 0)
        try:
            work()
            how = "whole"
        except SaccadeError as error:
            how, text = "said", " ".join(str(error).split())
        except BaseException:
            text = traceback.format_exc()
        note.write_text(json.dumps({"how": how, "text": text, "calls": calls[0]}), encoding="utf-8")
    finally:
        os._exit(0)


def _kill_at_calls(calls: list[int], wanted: int) -> None:
    """Count the calls of :data:`CALLS`, and let this process kill itself at the one that is wanted."""

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            calls[0] += 1
            number = calls[0]
            if number == wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*given, **named)
            if number == -wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def state_of(folder: Path) -> dict[str, str]:
    """Every file below ``folder`` with a digest of what must not depend on when and where it was made."""
    return {path.relative_to(folder).as_posix(): _digest(path, str(folder).encode()) for path in _files(folder)}


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """In words, which files of ``second`` are not as in ``first``."""
    missing = [f"{name} is missing" for name in first if name not in second]
    more = [f"{name} is left over" for name in second if name not in first]
    return [*missing, *more, *(f"{name} differs" for name in first if second.get(name, first[name]) != first[name])]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            if path.name not in _MAY_BE_MISSING:
                yield path
        elif not any(path.iterdir()):
            yield path  # an empty folder is something too


def _digest(path: Path, place: bytes) -> str:
    if path.is_dir():
        return "folder"
    if path.name in _NOT_COMPARED:
        return "not compared"
    content = path.read_bytes().replace(place, b"PLACE")
    with contextlib.suppress(ValueError):
        if path.suffix == ".json":
            content = json.dumps(_timeless(json.loads(content))).encode()
        elif path.suffix == ".jsonl":
            content = json.dumps([_timeless(json.loads(line)) for line in content.splitlines()]).encode()
        elif path.suffix == ".md":
            content = re.sub(rb"(minutes|seconds): `[\d.]+`", rb"\1", content)
    return hashlib.sha256(content).hexdigest()


def _timeless(value: Any) -> Any:
    """Plain values without what was measured by a clock, and without the digest of facts that hold such."""
    if isinstance(value, dict):
        kept = {key: _timeless(each) for key, each in value.items() if key not in _TIMES}
        if isinstance(kept.get("sha256"), dict):
            kept["sha256"].pop("facts", None)
        return kept
    return [_timeless(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Outcome:
    """What came of one trial."""

    target: str
    kills: int
    how: str
    """equal, said or wrong."""
    text: str
    calls: int
    """Points at which the target can be killed by a call."""


@dataclass(frozen=True)
class Undisturbed:
    """What a target leaves when nobody disturbs it."""

    state: dict[str, str]
    calls: int
    seconds: float


def main(words: Sequence[str] | None = None) -> int:
    """Run all trials and print the table; 1 if one went wrong."""
    parser = argparse.ArgumentParser(description="Kill commands that write, run them again, compare.")
    parser.add_argument("--count", type=int, default=200, help="kills in all")
    parser.add_argument("--targets", default=",".join(TARGETS), help="which commands")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    options = parser.parse_args(words)
    targets = [TARGETS[name] for name in options.targets.split(",")]
    scratch = Path(tempfile.mkdtemp(prefix="saccade-kill-"))
    for target in targets:
        target.warm()
    (scratch / "shared").mkdir()
    server = serve(scratch / "shared")
    outcomes: list[Outcome] = []
    try:
        for number, target in enumerate(targets):
            undisturbed = _undisturbed(target, scratch)
            share = (options.count - len(outcomes)) // (len(targets) - number)
            for point in _points(undisturbed, share, random.Random(f"{options.seed} {target.name}")):
                chance = random.Random(f"{options.seed} {len(outcomes)}")
                outcomes.append(_trial(len(outcomes), target, point, undisturbed, scratch, chance))
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    _print(targets, outcomes)
    if any(outcome.how == "wrong" for outcome in outcomes):
        print(f"what was left is in {scratch}")
        return 1
    shutil.rmtree(scratch)
    return 0


def _undisturbed(target: Target, scratch: Path) -> Undisturbed:
    """Prepare what the target needs and run it twice: it must leave the same both times."""
    shared = scratch / "shared"
    prepared = shared / f"prepared-{target.prepare.__name__}"
    if not prepared.exists():
        _must_be_whole(in_child(partial(_at_home, partial(target.prepare, shared), shared), scratch / "note"), target)
        prepared.touch()
    states = []
    for number in range(2):
        place = scratch / "undisturbed" / f"{target.name}-{number}" / "place"
        place.mkdir(parents=True)
        ended = in_child(partial(_command, target, shared, place, False), scratch / "note")
        _must_be_whole(ended, target)
        states.append(state_of(place))
    if differing := differences(*states):
        sys.exit(f"{target.name} is not the same twice: {'; '.join(differing)}")
    return Undisturbed(states[0], ended.calls, ended.seconds)


def _must_be_whole(ended: Ended, target: Target) -> None:
    if ended.how != "whole":
        sys.exit(f"{target.name} does not run at all: {ended.how} {ended.text}")


def _points(undisturbed: Undisturbed, count: int, chance: random.Random) -> list[Point]:
    """Two thirds at calls, spread evenly over all of them, before and after in turn; the others at random times."""
    at_calls = [Point(sign * call) for call in range(1, undisturbed.calls + 1) for sign in (1, -1)]
    wanted = min(len(at_calls), -(-2 * count // 3))
    chosen = [at_calls[place * len(at_calls) // wanted] for place in range(wanted)] if wanted else []
    timed = [Point(seconds=chance.uniform(0, undisturbed.seconds)) for _ in range(count - wanted)]
    return chosen + timed


def _trial(
    number: int, target: Target, point: Point, undisturbed: Undisturbed, scratch: Path, chance: random.Random
) -> Outcome:
    """Kill, run again until it ends, compare."""
    shared, place = scratch / "shared", scratch / f"trial-{number}" / "place"
    place.mkdir(parents=True)
    note = place.parent / "note"
    ended = in_child(partial(_command, target, shared, place, False), note, point)
    kills = int(ended.how == "killed")
    resume = target.resumes and bool(number % 2)
    story = [f"killed {point}" if kills else f"{ended.how} {point}"]
    if chance.random() < AGAIN and undisturbed.calls:
        second = Point(chance.choice((1, -1)) * chance.randint(1, undisturbed.calls))
        ended = in_child(partial(_command, target, shared, place, resume), note, second)
        kills += int(ended.how == "killed")
        story.append(f"{ended.how} {second} {ended.text}")
    for _ in range(TRIES):
        ended = in_child(partial(_command, target, shared, place, resume), note)
        story.append(f"{'--resume' if resume else 'again'}: {ended.how} {ended.text}")
        other = _other_way(target, ended, resume)
        if other is None:
            break
        resume = other
    how = {"whole": "equal", "said": "said"}.get(ended.how, "wrong")
    if how == "equal" and (differing := differences(undisturbed.state, state_of(place))):
        how = "wrong"
        story += differing
    if how == "equal":
        shutil.rmtree(place.parent)
    return Outcome(target.name, kills, how, f"trial {number}: {'; '.join(story)}", undisturbed.calls)


def _other_way(target: Target, ended: Ended, resume: bool) -> bool | None:
    """Whether a refusal asks to go on with, or to start without --resume; None: it asks for neither."""
    if not target.resumes or ended.how != "said":
        return None
    if not resume and "continue it with --resume" in ended.text:
        return True
    return False if resume and "without --resume" in ended.text else None


def _command(target: Target, shared: Path, place: Path, resume: bool) -> None:
    _at_home(partial(target.run, shared, place, resume), place)


def _at_home(work: partial[None], place: Path) -> None:
    os.environ["SACCADE_HOME"] = str(place / "home")
    work()


def _print(targets: Sequence[Target], outcomes: Sequence[Outcome]) -> None:
    print(f"{'target':<12}" + "".join(f"{name:>8}" for name in ("calls", "trials", "kills", "equal", "said", "wrong")))
    for name in (*(target.name for target in targets), "all"):
        own = [outcome for outcome in outcomes if name in (outcome.target, "all")]
        how = Counter(outcome.how for outcome in own)
        calls = max((outcome.calls for outcome in own), default=0)
        numbers = (calls, len(own), sum(outcome.kills for outcome in own), how["equal"], how["said"], how["wrong"])
        print(f"{name:<12}" + "".join(f"{number:>8}" for number in numbers))
    for outcome in outcomes:
        if outcome.how != "equal":
            print(f"{outcome.how}: {outcome.target} {outcome.text}")


if __name__ == "__main__":
    sys.exit(main())
