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
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from kill_targets import TARGETS, Target, serve
from kill_trial import Ended, Point, differences, in_child, state_of

AGAIN = 0.25
"""Share of trials in which the second run is killed too."""
TRIES = 4
"""Runs after a kill that end in a refusal which names another way."""


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
    """Run the trials and print the table; 1 if one went wrong."""
    parser = argparse.ArgumentParser(description="Kill commands that write, run them again, compare.")
    parser.add_argument("--count", type=int, default=200, help="kills in all")
    parser.add_argument("--targets", default=",".join(TARGETS), help="which commands")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    options = parser.parse_args(words)
    targets = [TARGETS[name] for name in options.targets.split(",")]
    started = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="saccade-kill-"))
    for target in targets:
        target.warm()
    (scratch / "shared").mkdir()
    server = serve(scratch / "shared")
    try:
        outcomes = _trials(targets, options.count, options.jobs, options.seed, scratch)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    wrong = [outcome for outcome in outcomes if outcome.how == "wrong"]
    _print(targets, outcomes, time.monotonic() - started)
    if wrong:
        print(f"what was left is in {scratch}")
        return 1
    shutil.rmtree(scratch)
    return 0


def _trials(targets: Sequence[Target], count: int, jobs: int, seed: int, scratch: Path) -> list[Outcome]:
    plan: list[tuple[int, Target, Point, Undisturbed]] = []
    left = count
    for number, target in enumerate(targets):
        undisturbed = _undisturbed(target, scratch)
        share = left // (len(targets) - number)
        left -= share
        points = _points(undisturbed, share, random.Random(f"{seed} {target.name}"))
        plan += [(len(plan) + place, target, point, undisturbed) for place, point in enumerate(points)]
    lanes = []
    for lane in range(jobs):
        note = scratch / f"lane-{lane}.jsonl"
        lanes.append((os.fork(), note))
        if lanes[-1][0] == 0:
            try:
                for number, target, point, undisturbed in plan[lane::jobs]:
                    found = _trial(number, target, point, undisturbed, scratch, random.Random(f"{seed} {number}"))
                    with note.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(found)) + "\n")
            finally:
                os._exit(0)
    outcomes: list[Outcome] = []
    for pid, note in lanes:
        os.waitpid(pid, 0)
        lines = note.read_text(encoding="utf-8").splitlines() if note.is_file() else []
        outcomes += [Outcome(**json.loads(line)) for line in lines]
    if len(outcomes) != len(plan):
        outcomes.append(Outcome(targets[0].name, 0, "wrong", f"{len(plan) - len(outcomes)} trials did not end", 0))
    return outcomes


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
    is_done = target.name == "average" and ended.how == "said" and "is not empty" in ended.text
    if how == "equal" or is_done:  # a mean that is there already is not written again; it must be the right one
        differing = differences(undisturbed.state, state_of(place))
        how = "wrong" if differing else "equal"
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


def _print(targets: Sequence[Target], outcomes: Sequence[Outcome], seconds: float) -> None:
    rows: list[tuple[str, list[int]]] = []
    for target in targets:
        own = [outcome for outcome in outcomes if outcome.target == target.name]
        how = Counter(outcome.how for outcome in own)
        kills = sum(outcome.kills for outcome in own)
        calls = max((outcome.calls for outcome in own), default=0)
        rows.append((target.name, [calls, len(own), kills, how["equal"], how["said"], how["wrong"]]))
    rows.append(("all", [sum(column) for column in zip(*(numbers for _, numbers in rows))]))
    print(f"{'target':<12}" + "".join(f"{name:>8}" for name in ("calls", "trials", "kills", "equal", "said", "wrong")))
    for name, numbers in rows:
        print(f"{name:<12}" + "".join(f"{number:>8}" for number in numbers))
    for outcome in outcomes:
        if outcome.how != "equal":
            print(f"{outcome.how}: {outcome.target} {outcome.text}")
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
