"""Checkpoints of a run: safetensors for numbers, JSON for facts, a digest for each; pickle is never touched.

``checkpoints/step-00001200/`` holds ``state.safetensors`` (weights, optimiser state by parameter name, random state)
and ``state.json`` (step, phase, data cursor, best so far, versions, digests). A checkpoint is written beside its
final name and moved there in one step, so a folder with that name is always complete; the loader still verifies the
digests and falls back to the one before when the disk has damaged it. A second checkpoint of the same step is
``step-00001200.1``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from saccade.atomic import folder_in_place, make_folder, writing
from saccade.config import check_schema
from saccade.errors import CheckpointError, ConfigError
from saccade.untrusted import read_json, read_tensors

FORMAT = "saccade-checkpoint"
SCHEMA_VERSION = 1
TENSORS, FACTS = "state.safetensors", "state.json"
_LARGEST = 16 * 2**30  # bytes of the tensors: weights, and what the optimiser keeps of each
_NAME = re.compile(r"step-(\d{8,})(?:\.(\d+))?")


@dataclass(frozen=True)
class Checkpoint:
    """What one checkpoint folder held."""

    path: Path
    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class CheckpointStore:
    """The checkpoints of one run: saves atomically, keeps the newest few, loads the newest that is whole."""

    def __init__(self, folder: Path, *, keep: int = 3) -> None:
        self.folder, self.keep = folder, keep

    def save(
        self, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, object], *, protect: Collection[int] = ()
    ) -> Path:
        """Write a checkpoint and remove old ones, save those whose step is in ``protect``."""
        content = safetensors.torch.save(_storable(tensors))
        header = json.dumps(
            {
                "format": FORMAT,
                "schema_version": SCHEMA_VERSION,
                "step": step,
                "sha256": {TENSORS: _digest(content), "facts": _digest(_canonical(step, facts))},
                "facts": dict(facts),
            },
            indent=1,
        )
        make_folder(self.folder)
        with writing(self.folder):
            self._sweep()
        final = self._free_name(step)
        with folder_in_place(final) as draft:
            (draft / TENSORS).write_bytes(content)
            (draft / FACTS).write_text(header)
        with writing(self.folder):
            self._prune(protect)
        return final

    def paths(self) -> list[Path]:
        """All checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), key=_order)

    def steps(self) -> list[int]:
        """After how many steps each was made, oldest first."""
        return [_order(path)[0] for path in self.paths()]

    def load_newest(self) -> tuple[Checkpoint, list[str]]:
        """The newest checkpoint that is whole, and a warning for each newer one that was not."""
        problems: list[str] = []
        for path in reversed(self.paths()):
            try:
                return read_checkpoint(path), problems
            except CheckpointError as error:
                problems.append(str(error))
        told = "; ".join(problems) or "nothing to resume; start without `resume`"
        raise CheckpointError(f"no usable checkpoint in {self.folder}: {told}")

    def load_step(self, step: int) -> Checkpoint:
        """The (newest) checkpoint of ``step``."""
        found = [path for path in self.paths() if _order(path)[0] == step]
        if not found:
            raise CheckpointError(f"no checkpoint of step {step} in {self.folder}")
        return read_checkpoint(found[-1])

    def _free_name(self, step: int) -> Path:
        taken = [_order(path)[1] for path in self.paths() if _order(path)[0] == step]
        return self.folder / (f"step-{step:08d}.{max(taken) + 1}" if taken else f"step-{step:08d}")

    def _prune(self, protect: Collection[int]) -> None:
        paths = self.paths()
        newest_of_step = {_order(path)[0]: path for path in paths}
        kept = {*paths[-self.keep :], *(path for step, path in newest_of_step.items() if step in protect)}
        for path in paths:
            if path not in kept:
                trash = path.with_name(f".trash-{path.name}")
                os.replace(path, trash)  # a half-removed folder must not look like a checkpoint
                shutil.rmtree(trash, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what an earlier, killed process left half-way."""
        for path in self.folder.iterdir():
            if path.name.endswith(".part") or path.name.startswith(".trash-"):
                shutil.rmtree(path, ignore_errors=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and verify one checkpoint folder, or say in a CheckpointError what is wrong with it."""
    header = read_json(path / FACTS)
    try:
        check_schema((header["format"], header["schema_version"]), (FORMAT, SCHEMA_VERSION), what=str(path))
        digests, step, facts = header["sha256"], header["step"], header["facts"]
        if digests["facts"] != _digest(_canonical(step, facts)):
            raise ValueError("its facts are not what was written")
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {FACTS} is damaged, or not of saccade ({error})") from error
    return Checkpoint(path, step, read_tensors(path / TENSORS, str(digests.get(TENSORS)), _LARGEST), facts)


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors, each with memory of its own (tied weights would otherwise share it)."""
    ready: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        flat = tensor.detach().cpu().contiguous()
        pointer = flat.untyped_storage().data_ptr()
        ready[name] = flat.clone() if pointer in seen else flat
        seen.add(pointer)
    return ready


def _canonical(step: int, facts: Mapping[str, object]) -> bytes:
    return json.dumps([step, dict(facts)], sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _order(path: Path) -> tuple[int, int]:
    match = _NAME.fullmatch(path.name)
    return (int(match[1]), int(match[2] or 0)) if match else (-1, 0)
