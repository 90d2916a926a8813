"""The run folder: resolved configuration, metrics line by line, a log, checkpoints, and the model itself.

``docs/reference/formats.md`` lists its files. ``data.json`` has the settings of the data in plain words, and for every
other part (rows, pictures, vocabulary, glyphs, …) its size and a digest. A run that goes on with other data is refused,
unless the change is accepted; every model that is saved from there on says so.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from saccade.config import by_path, check_schema, from_dict, to_dict
from saccade.engine.checkpoint import CheckpointStore, step_of
from saccade.engine.loggers import IDS
from saccade.engine.recipe import SCHEMA_VERSION, Recipe, parse_yaml
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError
from saccade.files import is_draft, locked, make_folder, sweep, write_bytes, write_json, writing

CONFIG, DATA, METRICS, LOG, LOCK = "config.yaml", "data.json", "metrics.jsonl", "log.txt", "saccade.lock"
DATA_VERSION = 2
IN_WORDS = "settings"  # The part of the data whose values are kept in plain words.
Parts = Mapping[str, Sequence[tuple[str, str]]]  # What a task learns from: names and values in order, part by part.
# What a run may have written before its first step.
_BEFORE_FIRST_STEP = frozenset({CONFIG, DATA, LOG, IDS, "checkpoints", LOCK})


class RunFolder:
    """One run on disk; everything that is not a checkpoint or the model is written here."""

    def __init__(self, path: Path, *, keep_checkpoints: int = 3) -> None:
        self.path = path
        self.checkpoints = CheckpointStore(path / "checkpoints", keep=keep_checkpoints)

    @property
    def model(self) -> Path:
        """Where the task writes the model folder."""
        return self.path / "model"

    def open(self, stack: ExitStack, recipe: Recipe, facts: Mapping[str, object], *, resume: bool) -> bool:
        """Lock the folder until ``stack`` closes, and make it ready; says whether there is a run to go on with."""
        with writing(self.path):  # it may not even be allowed to look into it
            if resume and (not self.has_no_state or (self.path / CONFIG).is_file()):
                self.check_same(recipe)
            elif not (self.path / LOCK).is_file():
                self.check_free()  # before a lock is put into somebody's folder
        stack.enter_context(self.locked())
        if resume and not self.has_no_state:
            return True
        self.check_free()
        self.discard_if_unstarted()
        make_folder(self.path)
        content = {"recipe": to_dict(recipe), "run": {**facts, "versions": versions()}}
        write_bytes(self.path / CONFIG, yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from training into the folder, which is made if it is not there."""
        make_folder(self.path)
        try:
            with locked(self.path / LOCK, f"trains into {self.path}"):
                sweep(self.path, names=(CONFIG, DATA, METRICS, self.model.name))  # others may write there meanwhile
                sweep(self.checkpoints.folder, everything=True)
                yield
        finally:
            if not (self.path / CONFIG).exists():
                with suppress(OSError):
                    self.path.rmdir()  # nothing came of it; a folder with something in it stays

    def check_free(self) -> None:
        """Refuse a place that holds something other than a run that never began."""
        if self.path.is_dir() and any(self.path.iterdir()) and not self._never_began():
            raise OutputError(f"{self.path} is not empty; continue it with `resume=True`, or choose another `out`")

    def discard_if_unstarted(self) -> None:
        """Remove what a run left that was refused before its first step: a mistake leaves nothing behind."""
        if self.path.is_dir() and self._never_began():
            shutil.rmtree(self.checkpoints.folder, ignore_errors=True)
            with writing(self.path):
                for name in (CONFIG, DATA, LOG, IDS):
                    (self.path / name).unlink(missing_ok=True)
            with suppress(OSError):
                self.path.rmdir()  # while it is locked, the lock stays in it

    @property
    def has_no_state(self) -> bool:
        """Whether a run was killed in this folder before its first checkpoint, so that there is nothing to lose.

        An empty folder does not count, because it may not belong to a run.
        """
        return self.path.is_dir() and self._never_began() and not self.checkpoints.paths()

    def _never_began(self) -> bool:
        """Whether all there is was left by a run that ended before its first step: it may start anew."""
        names = {entry.name for entry in self.path.iterdir()}
        whole = {name for name in names if not is_draft(name)}
        is_ours = CONFIG in names or LOCK in names or (bool(names) and not whole)
        return is_ours and whole <= _BEFORE_FIRST_STEP and not any(map(step_of, self.checkpoints.paths()))

    def recorded(self) -> Recipe:
        """The resolved recipe that the run began with."""
        place = self.path / CONFIG
        try:
            content: Any = parse_yaml(place.read_text(encoding="utf-8"), str(place))
            values = dict(content["recipe"])
            check_schema(values.get("schema_version"), SCHEMA_VERSION, what=str(place))
        except (OSError, ValueError, TypeError, LookupError, ConfigError) as error:
            reason = f"{place.name} cannot be read ({error}); start without `resume`"
            raise CheckpointError(f"{self.path} is not a run folder: {reason}") from error
        return from_dict(Recipe, values, where=str(place))

    def check_same(self, recipe: Recipe) -> None:
        """Refuse to resume with a recipe other than the one that the run began with."""
        if changes := differences(to_dict(self.recorded()), to_dict(recipe)):
            raise ConfigError(
                f"{self.path} was trained with another recipe: {changes[0]}; resume with the same, or start a new run "
                "in another `out`"
            )

    def compare_data(
        self, parts: Parts, *, resume: bool, accept: bool
    ) -> tuple[dict[str, Any], Sequence[str], Sequence[str]]:
        """What is to be noted of the data, changes that were accepted before, and those since then, in words.

        Changes that are not accepted are an error.
        """
        now = {part: dict(entries) if part == IN_WORDS else _digest(entries) for part, entries in parts.items()}
        if not resume:
            return now, (), ()
        cure = "continue with `resume=True` and `accept_changed_data=True`"
        place = self.path / DATA
        try:
            note = json.loads(place.read_text(encoding="utf-8"))
            check_schema(note["schema_version"], DATA_VERSION, what=DATA)
            accepted, changes = [str(text) for text in note["accepted"]], differences(note["parts"], now)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
            if not accept:
                raise CheckpointError(f"{place}: cannot be read ({error}); put the file back, or {cure}") from error
            return now, (), (f"it is not known how: {DATA} could not be read",)
        if changes and not accept:
            raise DataError(
                f"{self.path}: the data is not what the run began with: {'; '.join(changes)}. Put it back, start a new "
                f"run in another `out`, or {cure}"
            )
        return now, accepted, changes

    def note_data(self, parts: Mapping[str, Any], accepted: Sequence[str]) -> None:
        """Note what `compare_data` found, and the changes that were accepted so far."""
        write_json(self.path / DATA, {"schema_version": DATA_VERSION, "accepted": list(accepted), "parts": parts})

    def rewind(self, step: int) -> None:
        """Forget metrics after ``step``: they will be measured again."""
        path = self.path / METRICS
        if not path.exists():
            return
        lines = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the line that a kill cut short
            if isinstance(entry, dict) and entry.get("step", 0) <= step:
                lines.append(line + "\n")
        write_bytes(path, "".join(lines).encode())

    def measure(self, entry: Mapping[str, object]) -> None:
        """Append one line to metrics.jsonl."""
        self._append(METRICS, json.dumps(entry))

    def log(self, text: str) -> None:
        """Append one line with the time to log.txt."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._append(LOG, f"{now} {text}")

    def _append(self, name: str, line: str) -> None:
        with writing(self.path / name), open(self.path / name, "a", encoding="utf-8") as file:
            file.write(line + "\n")


@cache
def versions() -> dict[str, str | None]:
    """What the run depends on: versions, and the source revision if the package lies in a git checkout."""
    software = {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__}
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):  # no git among others
        return {**software, "revision": None}
    return {**software, "revision": done.stdout.strip() or None}


def made_with(device: torch.device) -> dict[str, Any]:
    """What computed, in words (the GPU's name, or the processor and its threads), and by which software."""
    on_cpu = f"{platform.machine()} {device.type}, {torch.get_num_threads()} threads"
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else on_cpu
    return {"machine": machine, "versions": versions(), "revision": versions()["revision"]}


def _digest(entries: Sequence[tuple[str, str]]) -> str:
    """How many entries there are, and what they are: in order, with their names.

    >>> _digest([("a.png", "#1"), ("b.png", "#2")])
    '2 (a2f7e5735adad70b)'
    """
    content = json.dumps([list(entry) for entry in entries], ensure_ascii=False).encode()
    return f"{len(entries)} ({hashlib.sha256(content).hexdigest()[:16]})"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What is not as it was, in words.

    >>> differences({"settings": {"seed": "0"}, "rows": "6 (ab)"}, {"settings": {"seed": "1"}, "rows": "4 (cd)"})
    ['settings.seed was 0, now 1', 'rows was 6 (ab), now 4 (cd)']
    """
    before, now = by_path(old), by_path(new)
    changed = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
    return [f"{key} was {before.get(key, 'not there')}, now {now.get(key, 'gone')}" for key in changed]
