"""Checkpoints of a run: the state of model, optimiser, average, position and random generators, and how it is stored.

``checkpoints/step-00001200/`` holds ``state.safetensors`` (weights, optimiser state by parameter name, random state)
and ``state.json`` (step, phase, data cursor, best so far, versions, digests). A checkpoint is written beside its final
name and moved there in one step. The loader verifies the digests and falls back to the one before a damaged one.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from saccade.config import Within, check_schema, from_dict
from saccade.engine.recipe import Select
from saccade.engine.step import Learner, WeightAverage
from saccade.errors import CheckpointError, ConfigError
from saccade.files import folder_in_place, make_folder, read_json, read_tensors, sweep

FORMAT = "saccade-checkpoint"
SCHEMA_VERSION = 1
TENSORS, FACTS = "state.safetensors", "state.json"
_LARGEST = 16 * 2**30  # bytes of the tensors: weights, and what the optimiser keeps of each
_NAME = re.compile(r"step-(\d{8,})")
RngState = dict[str, Tensor]


@dataclass
class Best:
    """The best validation of a phase."""

    value: float
    step: int
    replica: int
    metrics: dict[str, float]


@dataclass
class Position:
    """Where a run stands: everything but tensors."""

    step: Annotated[int, Within(0)] = 0  # optimiser steps done
    phase: Annotated[int, Within(0)] = 0
    phase_step: Annotated[int, Within(0)] = 0  # steps done within the phase
    phase_ended: str | None = None  # 'finished' or 'early' once the phase is over
    batches: Annotated[int, Within(0)] = 0  # the data cursor: number of the next micro-batch
    best: Best | None = None  # of the present phase
    stale: Annotated[int, Within(0)] = 0  # validations since the best one
    seconds: Annotated[float, Within(0)] = 0.0  # spent training, over all sittings
    validation: dict[str, float] = field(default_factory=dict)  # the last one
    # the best value so far, in the present phase, of the metric that stands beside the one that decides
    beside: float | None = None

    def next_phase(self) -> Position:
        """The start of the following phase."""
        start = Position(phase=self.phase + 1)
        return replace(start, step=self.step, batches=self.batches, seconds=self.seconds, validation=self.validation)

    def note_beside(self, select: Select, metrics: Mapping[str, float]) -> bool:
        """Whether the second metric is better than ever in this phase; remembers it if so."""
        value = metrics.get(select.beside or "", math.nan)
        if not select.better(value, self.beside):
            return False
        self.beside = value
        return True


def pack(
    position: Position,
    learner: Learner,
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    ema: WeightAverage | None,
    rng: list[RngState],
) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Tensors and facts of a checkpoint; ``rng`` has one entry per rank."""
    tensors = {f"model/{name}": value for name, value in learner.model.state_dict().items()}
    scalars: dict[str, dict[str, object]] = {}
    for name, parameter in parameters.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{name}/{key}"] = value
            else:
                scalars.setdefault(name, {})[key] = value
    if ema is not None:
        tensors |= {f"ema/{name}": value for name, value in ema.shadow.items()}
        tensors["ema_updates"] = ema.updates
    for rank, state in enumerate(rng):
        tensors |= {f"rng/{rank}/{name}": value for name, value in state.items()}
    return tensors, {"position": asdict(position), "optimizer_scalars": scalars}


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint folder; a CheckpointError says what of it does not fit the run."""

    path: Path
    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def position(self, phases: int) -> Position:
        """Where the run stood, which has so many ``phases``."""
        with self._fitting("its position"):
            position = from_dict(Position, self.facts["position"], where="position")
            range(phases)[position.phase]  # an IndexError where there is no such phase
        return position

    def restore_model(self, learner: Learner, ema: WeightAverage | None) -> None:
        """Load weights, buffers and the moving average in place."""
        with self._fitting("its model"):
            learner.model.load_state_dict(self._under("model/"))
            if ema is not None:
                for name, value in ema.shadow.items():
                    value.copy_(_shaped(self.tensors[f"ema/{name}"], value))
                ema.updates.copy_(self.tensors["ema_updates"].reshape(ema.updates.shape))

    def restore_optimizer(self, optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> None:
        """Load the optimiser's state by parameter name; ``parameters`` in the order the optimiser was given them."""
        scalars = self.facts.get("optimizer_scalars", {})
        state = {}
        with self._fitting("its optimiser"):
            for number, (name, parameter) in enumerate(parameters.items()):
                saved = self._under(f"optimizer/{name}/")
                entries = {key: item if item.numel() == 1 else _shaped(item, parameter) for key, item in saved.items()}
                entries |= scalars.get(name, {})
                if entries:
                    state[number] = entries
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        # Files know no memory layout, and fused kernels want that of the parameter.
        for parameter in parameters.values():
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor) and value.shape == parameter.shape:
                    optimizer.state[parameter][key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)

    def restore_rng(self, rank: int, device: torch.device) -> bool:
        """Set all generators to the state of ``rank``; False when the run had fewer ranks then."""
        state = self._under(f"rng/{rank}/")
        if state:
            with self._fitting("its random state"):
                restore_rng(state, device)
        return bool(state)

    def _under(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}

    @contextmanager
    def _fitting(self, what: str) -> Iterator[None]:
        """What is wrong inside becomes a CheckpointError that names the checkpoint and ``what`` of it."""
        wrong = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, ConfigError)
        try:
            yield
        except wrong as error:
            raise CheckpointError(f"{self.path}: {what} does not fit ({' '.join(str(error).split())})") from error


def _shaped(tensor: Tensor, like: Tensor) -> Tensor:
    """``tensor``, which must have the shape of ``like``: torch would stretch another one."""
    if tensor.shape != like.shape:
        raise ValueError(f"shape {tuple(tensor.shape)} in place of {tuple(like.shape)}")
    return tensor


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
                "sha256": {TENSORS: hashlib.sha256(content).hexdigest(), "facts": _digest(step, facts)},
                "facts": dict(facts),
            },
            indent=1,
        )
        sweep(make_folder(self.folder), everything=True)
        final = self.folder / f"step-{step:08d}"
        with folder_in_place(final) as draft:
            (draft / TENSORS).write_bytes(content)
            (draft / FACTS).write_text(header)
        for path in self.paths()[: -self.keep]:
            if step_of(path) not in protect:
                shutil.rmtree(path, ignore_errors=True)  # half a folder fails its digests
        return final

    def paths(self) -> list[Path]:
        """All checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), key=step_of)

    def load_newest(self) -> tuple[Checkpoint, list[str]]:
        """The newest checkpoint that is whole, and a warning for each newer one that was not."""
        problems: list[str] = []
        for path in reversed(self.paths()):
            try:
                return read_checkpoint(path), problems
            except CheckpointError as error:
                problems.append(str(error))
        reason = "; ".join(problems) or "nothing to resume; start without `resume`"
        raise CheckpointError(f"no usable checkpoint in {self.folder}: {reason}")

    def load_step(self, step: int) -> Checkpoint:
        """That of ``step``."""
        return read_checkpoint(self.folder / f"step-{step:08d}")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and verify one checkpoint folder, or say in a CheckpointError what is wrong with it."""
    header = read_json(path / FACTS)
    try:
        check_schema((header["format"], header["schema_version"]), (FORMAT, SCHEMA_VERSION), what=str(path))
        digests, step, facts = header["sha256"], header["step"], header["facts"]
        if digests["facts"] != _digest(step, facts):
            raise ValueError("its facts are not what was written")
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {FACTS} is damaged, or not of saccade ({error})") from error
    return Checkpoint(path, step, read_tensors(path / TENSORS, str(digests.get(TENSORS)), _LARGEST), facts)


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors, each with memory of its own (tied weights would otherwise share it)."""
    ready: dict[str, Tensor] = {}
    pointers: set[int] = set()
    for name, tensor in tensors.items():
        flat = tensor.detach().cpu().contiguous()
        pointer = flat.untyped_storage().data_ptr()
        ready[name] = flat.clone() if pointer in pointers else flat
        pointers.add(pointer)
    return ready


def _digest(step: int, facts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps([step, dict(facts)], sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def step_of(path: Path) -> int:
    """After how many steps the checkpoint at ``path`` was made."""
    return int(path.name.removeprefix("step-"))


def seed_all(seed: int, *, rank: int = 0) -> None:
    """Seed python, numpy and torch (all devices); each rank draws its own stream."""
    mixed = (seed * 1_000_003 + rank) % 2**32  # numpy takes 32 bits
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)


def capture_rng(device: torch.device) -> RngState:
    """The state of all generators as tensors, fit for safetensors."""
    _, python, python_gauss = random.getstate()
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    state = {
        "python": torch.tensor(python, dtype=torch.int64),
        "python_gauss": torch.tensor([] if python_gauss is None else [python_gauss], dtype=torch.float64),
        "numpy": torch.tensor([*np.asarray(keys).tolist(), position, has_gauss], dtype=torch.int64),
        "numpy_gauss": torch.tensor([gauss], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_rng(state: RngState, device: torch.device) -> None:
    """Set all generators to a captured ``state``; a CUDA state is skipped on other devices."""
    gauss = state["python_gauss"].tolist()
    random.setstate((3, tuple(state["python"].tolist()), gauss[0] if gauss else None))
    *keys, position, has_gauss = state["numpy"].tolist()
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, state["numpy_gauss"].item()))
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def isolated_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block on its own random stream, so that validating more often does not change training."""
    before = capture_rng(device)
    seed_all(seed)
    try:
        yield
    finally:
        restore_rng(before, device)
