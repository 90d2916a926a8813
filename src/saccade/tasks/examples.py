"""What a task draws from: one split of its data, by number, and what else is asked of it.

A split of files is an :class:`~saccade.data.pictures.image_split.ImageSplit`; a generated one a
:class:`~saccade.data.pictures.labelled.DrawnSplit` or a stream of scenes. All have the face of :class:`Examples`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from saccade.config import from_dict
from saccade.data.examples import Example
from saccade.data.tables.table import Table
from saccade.errors import ConfigError
from saccade.models.facts import ModelFacts

Progress = Callable[[int, int], None]
"""Called with what is done and what there is in all."""
Settings = TypeVar("Settings")


class Examples(Protocol):
    """One split of the data, on the device."""

    split: Any
    """train, val or test."""
    device: torch.device

    @property
    def size(self) -> int | None:
        """Number of examples; None: generated without end."""

    def take(self, indices: Tensor) -> Any:
        """The examples ``indices`` (B,) as a batch: a function of these numbers alone."""

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of at most ``limit`` examples: of files a sample, else the first."""

    def described(self) -> Mapping[str, object]:
        """What an evaluation says of this data: its name as ``data``, and perhaps glyphs, protocol, a note."""

    def shown(self, count: int) -> list[Example]:
        """The first ``count`` examples as a person sees them."""


class WritableExamples(Examples, Protocol):
    """A generated split."""

    def write(self, numbers: range, out: Path, progress: Progress | None) -> Path:
        """Write these examples to disk, all or nothing: PNGs, and a JSON line of truth for each."""


@dataclass(frozen=True)
class OpenedSplit:
    """One split of a family's data, for a person to look at."""

    examples: Callable[[int], list[Example]]
    """The first so many examples, fewer where there are fewer."""
    summary: str = ""
    """What the data holds in all, in one line, where it is read from files; below it, what looks wrong with it."""


class Opening(NamedTuple):
    """How a split is opened, where it matters."""

    table: Table | None = None
    """The rows, where they are read already."""
    facts: ModelFacts | None = None
    """Of a trained model: its words count."""
    allow_pack: bool = False
    """Let the test split of generated scenes use the shipped glyphs when MNIST is not there."""
    progress: Progress | None = None
    """Called while files are read."""


AS_IS = Opening()


class HeldOut(NamedTuple):
    """Some held-out examples of a trained model: pictures, and the answer where there is one."""

    images: Tensor
    """(B,3,H,W) float in 0..1."""
    query: Tensor | None = None
    """(B,) what is asked, where something is."""
    label: Tensor | None = None
    """(B,) the right answer, or (B,K) those that hold; None where the answer is not one label."""


def check_settings(kind: type, settings: Mapping[str, object]) -> None:
    """Refuse an option of the command line that this data does not have."""
    for key in settings:
        if key not in field_names(kind):
            raise ConfigError(f"{key}: '{settings.get('name')}' has no such setting; leave it out")


def config_of(kind: type[Settings], settings: Mapping[str, object]) -> Settings:
    """The dataclass of ``settings``; a setting that this data does not have is named with what to do."""
    check_settings(kind, settings)
    return from_dict(kind, settings, where="data")


def requested_settings(
    kind: type, facts: ModelFacts, changes: Mapping[str, object], readers: Iterable[str]
) -> dict[str, object]:
    """Settings of the data that a model is scored on: its own, with ``changes`` in their place.

    Raises:
        ConfigError: the model was trained on files, which it does not remember, or its data has no such setting.
    """
    own = str(facts.data.get("name", ""))
    if "name" not in changes and own in readers:
        raise ConfigError(f"a model does not store where its data is; give `data={own}:PATH`")
    if unknown := [name for name in changes if name not in field_names(kind) and name != "seed"]:
        raise ConfigError(f"{' and '.join(unknown)}: a {facts.family} model has no choice of these; leave it out")
    settings = {**facts.data, **{name: value for name, value in changes.items() if name in field_names(kind)}}
    if str(settings.get("name", "")).partition(":")[0] != own.partition(":")[0]:
        settings.pop("options", None)  # other pictures have other options
    return settings


def field_names(kind: type) -> set[str]:
    """The settings that a dataclass has."""
    return {field.name for field in dataclasses.fields(kind)}


def evenly_spaced(size: int, count: int) -> Tensor:
    """``count`` numbers, or as many as there are, evenly over 0 … size − 1.

    >>> evenly_spaced(10, 5).tolist(), evenly_spaced(3, 5).tolist()
    ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    few = min(size, count)
    return torch.arange(few) * size // max(few, 1)
