"""How a family opens a split of its data for a person to look at, and writes generated data to disk.

A family's ``splits`` module has ``open_split`` and, where it has generators, ``write_split``, with the signatures of
:class:`OpenSplit` and :class:`WriteSplit`. Training and scoring read batches through the task instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from saccade.config import from_dict
from saccade.data.examples import Example
from saccade.data.tables.splits import Split
from saccade.errors import ConfigError
from saccade.models.facts import ModelFacts

Progress = Callable[[int, int], None]
"""Called with what is done and what there is in all."""
C = TypeVar("C")


@dataclass(frozen=True)
class OpenedSplit:
    """One split of a family's data."""

    examples: Callable[[int], list[Example]]
    """The first so many examples, fewer where there are fewer."""
    summary: str = ""
    """What the data holds in all, in one line, where it is read from files; below it, what looks wrong with it."""


class OpenSplit(Protocol):
    """Opens a split."""

    def __call__(
        self,
        settings: Mapping[str, object],
        split: Split,
        *,
        facts: ModelFacts | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> OpenedSplit:
        """The split of the data that ``settings`` describe; ``settings["name"]`` is a generator or READER:PATH.

        Args:
            settings: of the family's data, as a recipe has them.
            split: train, val or test.
            facts: of a model whose words the examples should be in.
            count: read at most so many examples from files.
            progress: called while files are read.
        """


class WriteSplit(Protocol):
    """Writes generated data to disk."""

    def __call__(
        self,
        settings: Mapping[str, object],
        split: Split,
        count: int,
        out: Path,
        *,
        start: int = 0,
        progress: Progress | None = None,
    ) -> Path:
        """Write examples ``start`` … ``start + count − 1``, all or nothing, and return the folder."""


def config_of(cls: type[C], settings: Mapping[str, object]) -> C:
    """The data configuration of ``settings``; one that this data does not have is named with what to do."""
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]  # cls is a dataclass
    for key in settings:
        if key not in known:
            raise ConfigError(f"{key}: '{settings.get('name')}' has no such setting; leave it out")
    return from_dict(cls, settings, where="data")
