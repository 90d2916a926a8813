"""The run folder: resolved configuration, metrics line by line, a log, checkpoints, and the model itself.

::

    config.yaml     the resolved recipe and what it ran with
    data.json       what it learns from, see `saccade.engine.data_note`
    metrics.jsonl   one JSON object a line: step, phase, kind, values, images_per_second, seconds
    log.txt         what happened, with times
    checkpoints/    see `saccade.engine.checkpoint`
    model/          written by the task at every new best, and at the end
    saccade.lock    which process trains into it now; see `saccade.lock`
    replicas/N/     the same for each of several restarts that were trained as one stack, at the end
"""

from __future__ import annotations

import datetime
import json
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from saccade.atomic import is_draft, locked, make_folder, sweep, write_bytes, writing
from saccade.config import check_schema, from_dict, to_dict
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.recipe import SCHEMA_VERSION, Recipe, parse_yaml
from saccade.errors import CheckpointError, ConfigError, OutputError

CONFIG, METRICS, LOCK = "config.yaml", "metrics.jsonl", "saccade.lock"
_BEFORE_FIRST_STEP = frozenset({CONFIG, "data.json", "log.txt", "checkpoints", LOCK})
"""What a run may have written before its first step."""


class RunFolder:
    """One run on disk; everything that is not a checkpoint or the model is written here."""

    def __init__(self, path: Path, *, keep_checkpoints: int = 3) -> None:
        self.path = path
        self.checkpoints = CheckpointStore(path / "checkpoints", keep=keep_checkpoints)

    @property
    def model(self) -> Path:
        """Where the task writes the model folder."""
        return self.path / "model"

    def replica(self, number: int) -> Path:
        """Where the model folder of restart ``number`` goes, at the end of a run with several."""
        return self.path / "replicas" / str(number)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from training into the folder, which is made if it is not there.

        What a killed process left half-written is removed.

        Raises:
            OutputError: another process trains into the folder, or it cannot be written.
        """
        make_folder(self.path)
        try:
            with locked(self.path / LOCK, f"trains into {self.path}"):
                sweep(self.path, own=(CONFIG, "data.json", METRICS, self.model.name))
                yield
        finally:
            if not (self.path / CONFIG).exists():
                with suppress(OSError):
                    self.path.rmdir()  # nothing came of it; a folder with something in it stays

    def check_free(self) -> None:
        """Refuse a place that holds something other than a run that never began."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is a file; `out` needs a folder")
        if self.path.is_dir() and any(self.path.iterdir()) and not self._never_began():
            raise OutputError(f"{self.path} is not empty; continue it with `resume=True`, or choose another `out`")

    def create(self, recipe: Recipe, facts: Mapping[str, object]) -> None:
        """Start a new run; a folder that already holds something is refused."""
        self.check_free()
        self.discard_if_unstarted()
        make_folder(self.path)
        content = yaml.safe_dump({"recipe": to_dict(recipe), "run": dict(facts)}, sort_keys=False, allow_unicode=True)
        write_bytes(self.path / CONFIG, content.encode())

    def discard_if_unstarted(self) -> None:
        """Remove what a run left that was refused before its first step: a mistake leaves nothing behind."""
        if not self.path.is_dir() or not self._never_began():
            return
        shutil.rmtree(self.checkpoints.folder, ignore_errors=True)
        with writing(self.path):
            for name in _BEFORE_FIRST_STEP - {LOCK, self.checkpoints.folder.name}:
                (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()  # while it is locked, the lock stays in it

    @property
    def has_no_state(self) -> bool:
        """Whether a run began to make the folder and was killed before its first checkpoint: there is nothing to lose.

        An empty folder does not count, because it may not belong to a run.
        """
        try:
            return self.path.is_dir() and self._never_began() and not self.checkpoints.paths()
        except OSError:  # Not readable; the later read reports it.
            return False

    def _never_began(self) -> bool:
        """Whether all there is was left by a run that ended before its first step: it may start anew."""
        found = {entry.name for entry in self.path.iterdir()}
        whole = {name for name in found if not is_draft(name)}
        is_ours = CONFIG in found or LOCK in found or (bool(found) and not whole)
        return is_ours and whole <= _BEFORE_FIRST_STEP and not any(self.checkpoints.steps())

    def recorded(self) -> dict[str, Any]:
        """The resolved recipe that the run began with, as plain values."""
        try:
            text = (self.path / CONFIG).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointError(
                f"{self.path} is not a run folder: config.yaml cannot be read ({error}); start without `resume`"
            ) from error
        found = parse_yaml(text, str(self.path / CONFIG))
        if not isinstance(found, dict) or not isinstance(found.get("recipe"), dict):
            raise CheckpointError(f"{self.path / 'config.yaml'} holds no recipe; it is not a run of saccade")
        try:
            check_schema(found["recipe"].get("schema_version"), SCHEMA_VERSION, what=str(self.path / CONFIG))
        except ConfigError as error:
            raise CheckpointError(str(error)) from error
        recipe: dict[str, Any] = found["recipe"]
        return recipe

    def check_same(self, recipe: Recipe) -> None:
        """Refuse to resume with a recipe other than the one that the run began with."""
        began_with = from_dict(Recipe, self.recorded(), where=str(self.path / CONFIG))
        difference = _first_difference(to_dict(began_with), to_dict(recipe))
        if difference is not None:
            key, old, new = difference
            raise ConfigError(
                f"{self.path} was trained with {key} = {old!r}, now it is {new!r}: resume with the same recipe, "
                f"or start a new run in another `out`"
            )

    def rewind(self, step: int) -> None:
        """Forget metrics after ``step``: they will be measured again."""
        path = self.path / METRICS
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the line that a kill cut short
            if isinstance(entry, dict) and entry.get("step", 0) <= step:
                kept.append(line + "\n")
        write_bytes(path, "".join(kept).encode())

    def measure(self, entry: Mapping[str, object]) -> None:
        """Append one line to metrics.jsonl."""
        self._append(METRICS, json.dumps(entry))

    def log(self, text: str) -> None:
        """Append one line with the time to log.txt."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._append("log.txt", f"{now} {text}")

    def _append(self, name: str, line: str) -> None:
        with writing(self.path / name), open(self.path / name, "a", encoding="utf-8") as file:
            file.write(line + "\n")


@cache
def versions() -> dict[str, str | None]:
    """What the run depends on: versions, and the source revision if the package lies in a git checkout."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "revision": _revision(),
    }


def machine(device: torch.device) -> str:
    """What computed, in words: the GPU's name, or the processor and its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {device.type}, {torch.get_num_threads()} threads"


def _revision() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None


def _first_difference(old: object, new: object, where: str = "") -> tuple[str, object, object] | None:
    """Dotted key, old value and new value of the first place where two plain structures differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            at = f"{where}.{key}" if where else str(key)
            difference = _first_difference(old.get(key), new.get(key), at)
            if difference is not None:
                return difference
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (left, right) in enumerate(zip(old, new)):
            difference = _first_difference(left, right, f"{where}.{number}")
            if difference is not None:
                return difference
        return None
    return None if old == new else (where, old, new)
