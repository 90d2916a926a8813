"""Learning-rate schedules as pure functions of the step, so that resuming needs no scheduler state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from saccade.config import Count, Share, Within


@dataclass(frozen=True)
class Schedule:
    """How the learning rate moves within a phase, as a multiple of the optimiser's ``lr``.

    ``start``, ``every``, ``at`` and ``warmup`` count in ``unit``: optimiser steps or whole epochs.
    """

    name: Literal["constant", "cosine", "linear", "step", "milestones"] = "constant"
    unit: Literal["step", "epoch"] = "step"
    warmup: Annotated[int, Within(0)] = 0
    """rise linearly to the full rate over this long"""
    floor: Share = 0.0
    """``cosine`` and ``linear`` fall from 1 to this share of the rate at the end of the phase"""
    start: Annotated[int, Within(0)] = 0
    """``step``: the first division happens here"""
    every: Count = 1
    """``step``: … and another one each time this much has passed"""
    factor: Annotated[float, Within(0, above=True)] = 10.0
    """``step`` and ``milestones``: what the rate is divided by"""
    at: tuple[int, ...] = ()
    """``milestones``: one division at each"""

    def __post_init__(self) -> None:
        if self.name == "milestones" and not self.at:
            raise ValueError("a milestones schedule needs 'at', the list of moments")

    def needs_epochs(self) -> bool:
        """Whether the schedule can only be read where an epoch has a length."""
        return self.unit == "epoch" and (self.name in ("step", "milestones") or self.warmup > 0)

    def scale(self, step: int, *, total: int, steps_per_epoch: int | None) -> float:
        """The multiple of the base rate at ``step`` (from 0) of a phase ``total`` steps long.

        >>> authors = Schedule("step", unit="epoch", start=30, every=12, factor=1.5)
        >>> [round(authors.scale(epoch * 10, total=3000, steps_per_epoch=10), 4) for epoch in (29, 30, 41, 42)]
        [1.0, 0.6667, 0.6667, 0.4444]
        """
        length = (steps_per_epoch or 1) if self.unit == "epoch" else 1
        warmup = self.warmup * length
        if step < warmup:
            return (step + 1) / warmup
        moment = step // length
        if self.name == "step" and moment >= self.start:
            return self.factor ** -(1 + (moment - self.start) // self.every)
        if self.name == "milestones":
            return self.factor ** -sum(moment >= milestone for milestone in self.at)
        if self.name in ("cosine", "linear"):
            passed = min(1.0, (step - warmup) / max(1, total - warmup))
            left = 0.5 * (1 + math.cos(math.pi * passed)) if self.name == "cosine" else 1 - passed
            return self.floor + (1 - self.floor) * left
        return 1.0
