"""The whole state of a run as named tensors and plain facts, and back: what a checkpoint holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated

import torch
from torch import Tensor, nn

from saccade.config import Within, from_dict
from saccade.engine.checkpoint import Checkpoint
from saccade.engine.ema import WeightAverage
from saccade.engine.recipe import Select
from saccade.engine.replicas import Learner
from saccade.engine.seeding import RngState, capture_rng, restore_rng
from saccade.errors import CheckpointError, ConfigError


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

    step: Annotated[int, Within(0)] = 0
    """optimiser steps done"""
    phase: Annotated[int, Within(0)] = 0
    phase_step: Annotated[int, Within(0)] = 0
    """steps done within the phase"""
    phase_ended: str | None = None
    """'finished' or 'early' once the phase is over"""
    batches: Annotated[int, Within(0)] = 0
    """the data cursor: number of the next micro-batch"""
    best: Best | None = None
    """of the present phase"""
    stale: Annotated[int, Within(0)] = 0
    """validations since the best one"""
    seconds: Annotated[float, Within(0)] = 0.0
    """spent training, over all sittings"""
    validation: dict[str, float] = field(default_factory=dict)
    """the last one"""
    beside: float | None = None
    """the best value so far, in the present phase, of the metric that stands beside the one that decides"""

    def next_phase(self) -> Position:
        """The start of the following phase."""
        return Position(self.step, self.phase + 1, 0, None, self.batches, None, 0, self.seconds, self.validation)

    def note_beside(self, select: Select, found: Mapping[str, float]) -> bool:
        """Whether the metric beside the one that decides is better than ever in this phase; remembers it if so."""
        value = found.get(select.beside or "", math.nan)
        if not select.better(value, self.beside):
            return False
        self.beside = value
        return True


def pack(
    position: Position,
    learner: Learner,
    *,
    optimizer: torch.optim.Optimizer | None,
    parameters: Mapping[str, nn.Parameter],
    ema: WeightAverage | None,
    rng: list[RngState],
) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Tensors and facts of a checkpoint; ``rng`` has one entry per rank."""
    tensors = {f"model/{name}": value for name, value in learner.model.state_dict().items()}
    scalars: dict[str, dict[str, object]] = {}
    for name, parameter in parameters.items():
        for key, value in (optimizer.state.get(parameter, {}) if optimizer else {}).items():
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


@contextmanager
def _fitting(checkpoint: Checkpoint, what: str) -> Iterator[None]:
    """What is wrong inside becomes a CheckpointError that names the checkpoint and ``what`` of it."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, ConfigError) as error:
        raise CheckpointError(f"{checkpoint.path}: {what} does not fit ({' '.join(str(error).split())})") from error


def unpack_position(checkpoint: Checkpoint, phases: int) -> Position:
    """The position that a checkpoint recorded, in a run of so many ``phases``."""
    with _fitting(checkpoint, "its position"):
        position = from_dict(Position, checkpoint.facts["position"], where="position")
        range(phases)[position.phase]  # an IndexError where there is no such phase
    return position


def unpack_model(checkpoint: Checkpoint, learner: Learner, ema: WeightAverage | None) -> None:
    """Load weights, buffers and the moving average in place."""
    with _fitting(checkpoint, "its model"):
        learner.model.load_state_dict(_under(checkpoint, "model/"))
        if ema is not None:
            for name, value in ema.shadow.items():
                value.copy_(_shaped(checkpoint.tensors[f"ema/{name}"], value))
            ema.updates.copy_(checkpoint.tensors["ema_updates"].reshape(ema.updates.shape))


def unpack_optimizer(
    checkpoint: Checkpoint, optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]
) -> None:
    """Load the optimiser's state by parameter name; ``parameters`` in the order the optimiser was given them."""
    scalars = checkpoint.facts.get("optimizer_scalars", {})
    state = {}
    with _fitting(checkpoint, "its optimiser"):
        for number, (name, parameter) in enumerate(parameters.items()):
            held = _under(checkpoint, f"optimizer/{name}/")
            own = {key: value if value.numel() == 1 else _shaped(value, parameter) for key, value in held.items()}
            own |= scalars.get(name, {})
            if own:
                state[number] = own
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for parameter in parameters.values():  # files know no memory layout, and fused kernels want that of the parameter
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                optimizer.state[parameter][key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def unpack_rng(checkpoint: Checkpoint, rank: int) -> RngState | None:
    """The random state of ``rank``, tried on; None when the run had fewer ranks then."""
    state = _under(checkpoint, f"rng/{rank}/")
    if not state:
        return None
    main = torch.device("cpu")
    before = capture_rng(main)
    try:
        with _fitting(checkpoint, "its random state"):
            restore_rng(state, main)
    finally:
        restore_rng(before, main)
    return state


def _shaped(found: Tensor, like: Tensor) -> Tensor:
    """``found``, which must have the shape of ``like``: torch would stretch another one."""
    if found.shape != like.shape:
        raise ValueError(f"shape {tuple(found.shape)} in place of {tuple(like.shape)}")
    return found


def _under(checkpoint: Checkpoint, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in checkpoint.tensors.items() if name.startswith(prefix)}
