"""The loss of a phase: from the mapping in a recipe to the dataclass that its family declares for that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from saccade.config import from_dict
from saccade.errors import ConfigError, nearest


class PhaseSettings(Protocol):
    """What a task is told of a phase. Its ``name`` is for messages: nothing that is learned depends on it."""

    @property
    def name(self) -> str:
        """What the phase is called."""

    @property
    def data(self) -> str:
        """Which material of the task it learns from."""

    @property
    def features(self) -> str:
        """auto, kept or fresh."""

    @property
    def loss(self) -> Mapping[str, object] | str:
        """The name of the loss and its numbers, or the name alone."""


def build_loss(settings: Mapping[str, object] | str, known: Mapping[str, type]) -> object:
    """The dataclass of the loss that ``settings`` name, with its numbers.

    Args:
        settings: ``{name: NAME, NUMBER: value, …}``, or NAME.
        known: the losses of a family by name.

    Raises:
        ConfigError: no such loss, no such number, or a number out of bounds; names the nearest.
    """
    numbers = {"name": settings} if isinstance(settings, str) else dict(settings)
    name = str(numbers.pop("name", ""))
    if name not in known:
        raise ConfigError(f"loss '{name}': {nearest(name, known)}")
    return from_dict(known[name], numbers, where="loss")


def loss_name(loss: object, known: Mapping[str, type]) -> str:
    """What a recipe calls the loss that :func:`build_loss` built."""
    return next(name for name, kind in known.items() if type(loss) is kind)
