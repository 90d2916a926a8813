"""What users do, as README, tutorials, how-tos and three scripted users have it: does each still work?

::

    python tools/user_actions.py                                # with the saccade beside this Python
    python tools/user_actions.py --saccade venv/bin/saccade     # with another, for example from a wheel
    python tools/user_actions.py train probe                    # those alone whose names hold a word, and the first

Each action is a command or a few lines of Python with a check of what came out. They run one after the other in one
empty folder, so that the next finds what the one before left.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Action:
    """A command, or lines of Python, and what must come of it; see ``user_actions.yaml``."""

    name: str
    command: str = ""
    python: str = ""
    says: Sequence[str] = ()
    makes: Sequence[str] = ()
    fails: bool = False


def actions() -> list[Action]:
    """All of them, in their order."""
    texts = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    found = [Action(**action) for action in texts["actions"]]
    for word, text in texts["words"].items():
        found = [replace(action, command=action.command.replace(f"{{{word}}}", text)) for action in found]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="actions alone whose names hold one of them")
    parser.add_argument("--saccade", type=Path, default=Path(sys.executable).parent / "saccade")
    parser.add_argument("--python", type=Path, help="the Python that imports it; default: beside it")
    parser.add_argument("--keep", type=Path, help="empty folder to work in, which stays; default: a temporary one")
    given = parser.parse_args()
    saccade = given.saccade.absolute()
    python = (given.python or saccade.parent / "python").absolute()
    first, *others = actions()
    chosen = [first, *(each for each in others if not given.words or any(word in each.name for word in given.words))]
    failed, started = [], time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep.absolute() if given.keep else Path(temporary)
        folder.mkdir(exist_ok=True)
        for action in chosen:
            began = time.monotonic()
            wrong = done_wrong(action, saccade, python, folder)
            print(f"{'FAILED' if wrong else 'ok':6} {time.monotonic() - began:5.1f} s  {action.name}", flush=True)
            if wrong:
                failed.append(action.name)
                print(textwrap.indent(wrong[-2000:], "       "), flush=True)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} actions work, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def done_wrong(action: Action, saccade: Path, python: Path, folder: Path) -> str:
    """Do it in ``folder``; empty where all is as it should be, else what is wrong."""
    words, _, target = action.command.partition(" > ")
    command = [str(python), "-c", action.python]
    if action.command:
        command = [str(saccade)]
        for word in shlex.split(words):
            command += sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else [word]
    environment = os.environ | {"SACCADE_HOME": str(folder / "cache"), "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if target:
        (folder / target).write_text(done.stdout, encoding="utf-8")
    printed = done.stdout + done.stderr
    plain = " ".join(printed.split())
    wrong = []
    if done.returncode != (2 if action.fails else 0):
        wrong.append(f"{printed}\nexit status {done.returncode}")
    if action.fails and "Traceback" in printed:
        wrong.append(printed)
    wrong += [f"does not say {each!r}: {plain}" for each in action.says if each not in plain]
    wrong += [f"does not make {each}" for each in action.makes if not any(folder.glob(each))]
    return "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(main())
