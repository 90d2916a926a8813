"""What a family reads: how files and Python values become the inputs of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from PIL import Image
from torch import Tensor

from saccade.data.files import find_files
from saccade.errors import DataError
from saccade.models.io.facts import ModelFacts


class Item(Protocol):
    """One thing that was read: a picture, a story."""

    @property
    def name(self) -> str:
        """Its path, or what kind of thing it was."""

    @property
    def stem(self) -> str:
        """What files about it are called."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to it on the way in."""

    @property
    def image(self) -> Image.Image | None:
        """The picture to draw on; None where there is none."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Items as the inputs of a model."""

    inputs: tuple[Tensor, ...]
    """Arguments of the model's ``encode``, example axis first."""
    canvas: Tensor | None = None
    """(B,2,3): network input → original picture; None for other inputs."""
    image_size: Tensor | None = None
    """(B,2) height and width of the originals."""
    slots: tuple[tuple[str, ...], ...] | None = None
    """For each item the texts that a look over slots lies on, such as the sentences of a story."""


class Reads(ABC):
    """How one kind of input is read: a subclass says :meth:`read` and :meth:`prepare`."""

    thing: ClassVar[str]
    """What one item is called, as in "picture"."""
    suffixes: ClassVar[frozenset[str]]
    """Of the files that are looked for in folders, as in ".txt"."""
    takes_json: ClassVar[bool] = False
    """Whether an item can be sent to the server as JSON, which :meth:`from_json` then reads."""

    @abstractmethod
    def read(self, source: Any) -> Item:
        """The item in a path or a Python value, or a DataError that says what is wrong with it."""

    @abstractmethod
    def prepare(self, items: Sequence[Any], facts: ModelFacts) -> Prepared:
        """The inputs of a model for these items."""

    def from_json(self, value: Any) -> Item:
        """The item that a request tells as plain JSON values; a DataError where it is none, or too large."""
        raise DataError(f"a {self.thing} cannot be sent as JSON, found {type(value).__name__}")

    def find(self, paths: Iterable[str]) -> list[Path]:
        """The files meant by ``paths``; folders and globs are spelt out."""
        return find_files(paths, self.suffixes, self.thing)

    def stream(
        self, sources: Iterable[Any], batch: int, on_bad: Callable[[Any, DataError], None] | None = None
    ) -> Iterator[Sequence[Item]]:
        """Items in lists of at most ``batch``; one that cannot be read goes to ``on_bad`` and the rest goes on."""
        if batch < 1:
            raise DataError(f"a batch holds 1 {self.thing} or more, found {batch}")
        gathered: list[Item] = []
        for source in sources:
            try:
                gathered.append(self.read(source))
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(source, error)
            if len(gathered) == batch:
                yield gathered
                gathered = []
        if gathered:
            yield gathered
