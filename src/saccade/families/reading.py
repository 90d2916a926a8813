"""What a family reads: how files and Python values become the inputs of a model."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from PIL import Image
from torch import Tensor

from saccade.data.pictures.files import SUFFIXES, find_files
from saccade.data.pictures.reading import Picture, Source, prepare, read_picture, stream_pictures
from saccade.errors import CheckpointError, DataError, SaccadeError
from saccade.models.facts import ModelFacts, Preprocessing


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
class ReadItem:
    """An item as a model reads it: what its trace and its answer are told of it."""

    item: Item
    canvas: Tensor | None = None
    """(2,3): network input → original picture; None for other inputs."""
    image_size: Tensor | None = None
    """(2,) height and width of the original."""
    slots: tuple[str, ...] = ()
    """The texts that a look over slots lies on, such as the sentences of a story, from the first slot."""
    supporting: tuple[int, ...] = ()
    """Numbers of the slots that the answer needs, where that is known."""
    notes: tuple[str, ...] = ()
    """What of it the model cannot use, such as words that it does not know."""


class Prepared(NamedTuple):
    """Items as the inputs of a model."""

    inputs: tuple[Tensor, ...]
    """Arguments of the model's ``encode``, example axis first."""
    items: tuple[ReadItem, ...]


class InputReader(ABC):
    """How one kind of input is read: a subclass says :meth:`read` and :meth:`prepare`."""

    thing: ClassVar[str]
    """What one item is called, as in "picture"."""
    suffixes: ClassVar[frozenset[str]]
    """Suffixes of the files that are searched in folders, as in ".txt"."""
    takes_json: ClassVar[bool] = False
    """Whether an item can be sent to the server as JSON, which :meth:`from_json` then reads."""

    @abstractmethod
    def read(self, source: Any) -> Item:
        """The item in a path or a Python value, or a DataError that says what is wrong with it."""

    @abstractmethod
    def prepare(self, items: Sequence[Any], facts: ModelFacts) -> Prepared:
        """The inputs of a model for these items."""

    def from_json(self, value: Any) -> Item:
        """Reads an item from the plain JSON values of a request; a DataError if it is invalid or too large."""
        raise DataError(f"a {self.thing} cannot be sent as JSON, found {type(value).__name__}")

    def check(self, item: Any, facts: ModelFacts) -> None:  # noqa: B027 - most models take every item
        """Raises a DataError if a model with these facts cannot use the item."""

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Example inputs by name (B,…), all different, to make and check an export.

        A family whose models are exported has them.
        """
        raise CheckpointError(
            f"'{facts.architecture}' cannot be exported: its family '{facts.family}' has no examples of a {self.thing}"
        )

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """Axes of :meth:`examples`, beside the first, whose size may differ from input to input: name → axis → word."""
        return {}

    def input_spec(self, facts: ModelFacts) -> dict[str, Any]:
        """How a program that runs an exported model makes its inputs, as plain values."""
        return {}

    def item(self, source: Any) -> Item:
        """:meth:`read`, where an error of any other kind is a DataError too: a reader may come from anywhere."""
        try:
            return self.read(source)
        except SaccadeError:
            raise
        except Exception as error:
            named = source if isinstance(source, (str, os.PathLike)) else type(source).__name__
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f"{named}: cannot be read as a {self.thing} ({reason}); check the source") from error

    def find(self, paths: Iterable[str]) -> list[Path]:
        """The files meant by ``paths``; folders and globs are spelt out."""
        return find_files(paths, self.suffixes, self.thing)

    def stream(
        self, sources: Iterable[Any], batch: int, on_bad: Callable[[Any, DataError], None] | None = None
    ) -> Iterator[Sequence[Item]]:
        """Items in lists of at most ``batch``; an unreadable one goes to ``on_bad``, and the others continue."""
        if batch < 1:
            raise DataError(f"a batch holds 1 {self.thing} or more, found {batch}")
        gathered: list[Item] = []
        for source in sources:
            try:
                gathered.append(self.item(source))
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(source, error)
            if len(gathered) == batch:
                yield gathered
                gathered = []
        if gathered:
            yield gathered


class Pictures(InputReader):
    """How pictures are read."""

    thing = "picture"
    suffixes = SUFFIXES

    def read(self, source: Source) -> Picture:
        """One picture."""
        return read_picture(source)

    def stream(
        self, sources: Iterable[Source], batch: int, on_bad: Callable[[Source, DataError], None] | None = None
    ) -> Iterator[Sequence[Picture]]:
        """Pictures in lists of at most ``batch``, fewer when they are very large."""
        return stream_pictures(sources, batch, on_bad)

    def prepare(self, items: Sequence[Picture], facts: ModelFacts) -> Prepared:
        """The pictures laid into the network input: one tensor (B,3,H,W)."""
        wanted = _preprocessing_of(facts)
        inputs, canvas, sizes = zip(*(prepare(picture, wanted.size, wanted.fill) for picture in items))
        stacked = torch.stack(inputs)  # (B,3,H,W)
        # With the channels together a CPU's convolutions are twice as fast.
        stacked = stacked.to(memory_format=torch.channels_last)
        return Prepared((stacked,), tuple(map(ReadItem, items, canvas, sizes)))

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Noisy pictures (B,3,H,W), bright ones and dark ones."""
        generator = torch.Generator().manual_seed(seed)
        images = torch.rand(count, 3, *_preprocessing_of(facts).size, generator=generator)
        return {"images": images * torch.rand(count, 3, 1, 1, generator=generator)}

    def input_spec(self, facts: ModelFacts) -> dict[str, object]:
        """Size, border and colours of the network input."""
        wanted = _preprocessing_of(facts)
        return {
            "size": list(wanted.size),
            "fill": wanted.fill,
            "colours": "RGB",
            "range": [0.0, 1.0],
            "fit": "resized undistorted to fit inside (bilinear, antialiased), centred, the border filled",
        }


def _preprocessing_of(facts: ModelFacts) -> Preprocessing:
    """How pictures become the input of a model, where its folder says so."""
    if facts.preprocessing is None:
        raise CheckpointError(f"'{facts.architecture}' has no preprocessing, so its input size is unknown")
    return facts.preprocessing


PICTURES = Pictures()
