"""From files and Python values to answers: what a predictor needs of a family.

Most families read pictures, look a question up among those that the model knows, run the model once, and put its output
into words. A family that reads something else, or needs a search or a question in free text, declares a subclass.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from PIL import Image
from torch import Tensor

from saccade.data.pictures.files import SUFFIXES, find_files
from saccade.data.pictures.reading import Picture, Source, prepare, read_picture, stream_pictures
from saccade.errors import CheckpointError, DataError, SaccadeError, listed, nearest
from saccade.families.registry import Family
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.trace import Answer, AttentionTrace, Output


class Item(Protocol):
    """One thing that was read: a picture, a story."""

    @property
    def name(self) -> str:
        """Its path or kind."""

    @property
    def stem(self) -> str:
        """The stem of names of files about it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes made while reading it."""

    @property
    def image(self) -> Image.Image | None:
        """The picture to draw on, if any."""


@dataclass(frozen=True, eq=False)
class ReadItem:
    """An item as a model reads it."""

    item: Item
    canvas: Tensor | None = None  # (2,3): network input → original picture; None for other inputs
    image_size: Tensor | None = None  # (2,) height and width of the original
    # The texts under a look over slots, such as the sentences of a story, from the first slot.
    slots: tuple[str, ...] = ()
    supporting: tuple[int, ...] = ()  # Numbers of the slots that the answer needs, if known
    notes: tuple[str, ...] = ()  # What the model cannot use, such as unknown words


class Prepared(NamedTuple):
    """Items as the inputs of a model."""

    inputs: tuple[Tensor, ...]  # Arguments of ``encode``, example axis first
    items: tuple[ReadItem, ...]


class InputReader(ABC):
    """How one kind of input is read."""

    #: The word for one item, as in "picture".
    thing: ClassVar[str]
    #: File suffixes to search folders for, as in ".txt".
    suffixes: ClassVar[frozenset[str]]
    #: Whether requests may send items as JSON.
    takes_json: ClassVar[bool] = False

    @abstractmethod
    def read(self, source: Any) -> Item:
        """The item in a path or a Python value; a DataError says what is wrong with it."""

    @abstractmethod
    def prepare(self, items: Sequence[Any], facts: ModelFacts) -> Prepared:
        """The inputs of a model for these items."""

    def from_json(self, value: Any) -> Item:
        """The item in JSON values of a request; a DataError if it is invalid or too large."""
        raise DataError(f"a {self.thing} cannot be sent as JSON, found {type(value).__name__}")

    def check(self, item: Any, facts: ModelFacts) -> None:  # noqa: B027 - most models take every item
        """Raises a DataError if a model with these facts cannot use the item."""

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Example inputs (B,…) by name, for exports."""
        raise CheckpointError(f"'{facts.architecture}' cannot be exported: there are no examples of a {self.thing}")

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """Axes of :meth:`examples` of variable size: name → axis → word."""
        return {}

    def input_spec(self, facts: ModelFacts) -> dict[str, Any]:
        """How to make the inputs of an exported model, as plain values."""
        return {}

    def item(self, source: Any) -> Item:
        """:meth:`read`, with any other error turned into a DataError, as readers may come from anywhere."""
        try:
            return self.read(source)
        except SaccadeError:
            raise
        except Exception as error:
            named = source if isinstance(source, (str, os.PathLike)) else type(source).__name__
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f"{named}: cannot be read as a {self.thing} ({reason}); check the source") from error

    def find(self, paths: Iterable[str]) -> list[Path]:
        """The files that ``paths`` mean, with folders and globs expanded."""
        return find_files(paths, self.suffixes, self.thing)

    def stream(
        self, sources: Iterable[Any], batch: int, on_bad: Callable[[Any, DataError], None] | None = None
    ) -> Iterator[Sequence[Item]]:
        """Items in lists of at most ``batch``; unreadable ones go to ``on_bad``."""
        items: list[Item] = []
        for source in sources:
            try:
                items.append(self.item(source))
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(source, error)
            if len(items) == batch:
                yield items
                items = []
        if items:
            yield items


class Pictures(InputReader):
    """Pictures."""

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
        """The pictures fitted into the network input: one tensor (B,3,H,W)."""
        to = preprocessing_of(facts)
        inputs, canvas, sizes = zip(*(prepare(picture, to.size, to.fill) for picture in items))
        # With the channels together a CPU's convolutions are twice as fast.
        stacked = torch.stack(inputs).to(memory_format=torch.channels_last)  # (B,3,H,W)
        return Prepared((stacked,), tuple(map(ReadItem, items, canvas, sizes)))

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Noise of random brightness (B,3,H,W)."""
        generator = torch.Generator().manual_seed(seed)
        images = torch.rand(count, 3, *preprocessing_of(facts).size, generator=generator)
        return {"images": images * torch.rand(count, 3, 1, 1, generator=generator)}

    def input_spec(self, facts: ModelFacts) -> dict[str, object]:
        """Size, border and colours of the network input."""
        wanted = preprocessing_of(facts)
        return {
            "size": list(wanted.size),
            "fill": wanted.fill,
            "colours": "RGB",
            "range": [0.0, 1.0],
            "fit": "resized undistorted to fit inside (bilinear, antialiased), centred, the border filled",
        }


def preprocessing_of(facts: ModelFacts) -> Preprocessing:
    """A model's preprocessing; a CheckpointError if its folder has none."""
    if facts.preprocessing is None:
        raise CheckpointError(f"'{facts.architecture}' has no preprocessing, so its input size is unknown")
    return facts.preprocessing


PICTURES = Pictures()


Question = int | str


@dataclass(frozen=True, eq=False)
class Response:
    """One answer to each example of a batch."""

    answers: Sequence[Answer]
    trace: AttentionTrace
    # For each example: what the model cannot use of its question, and what is known about maps of that question.
    notes: Sequence[tuple[str, ...]] | None = None


class Responder:
    """Answers questions about encoded inputs with one model, in eval mode; messages call it ``name``."""

    def __init__(self, family: Family, model: AttentionModel, facts: ModelFacts, name: str) -> None:
        self.family, self.model, self.facts, self.name = family, model, facts, name
        self.decode = family.decode()
        self._ids = {word.casefold(): number for number, word in enumerate(facts.queries)}

    def query(self, ask: Question | None) -> Any:
        """``ask`` as the model's query; None if it takes no question."""
        if not self.facts.queries:
            if ask is not None:
                raise DataError(f"'{self.name}' takes no question: it says what it sees; leave out '{ask}'")
            return None
        if ask is None and len(self.facts.queries) == 1:
            return 0  # there is nothing else to ask
        if ask is None:
            raise DataError(f"'{self.name}' needs a question; ask one of: {listed(self.facts.queries)}")
        word = f"{ask}".strip().casefold()  # numbers of NumPy and torch read as 7 too
        if word not in self._ids:
            raise DataError(f"'{self.name}' cannot be asked '{ask}': {nearest(word, self.facts.queries)}")
        return self._ids[word]

    def query_text(self, query: Any) -> str | None:
        """A query in words, if any."""
        return None if query is None else self.facts.queries[query]

    def queries(self) -> list[Any]:
        """Every known question; none if the model takes any, or no question."""
        return list(range(len(self.facts.queries)))

    def options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a look that are not None, checked."""
        options = {name: value for name, value in values.items() if value is not None}
        if unknown := [name for name in options if name not in self.family.options]:
            raise DataError(f"'{self.name}' has no {', '.join(unknown)}; leave it out")
        return options

    def as_tensor(self, queries: Sequence[Any]) -> Tensor | None:
        """Ids (B,) of the queries on the model's device, or None."""
        return None if queries[0] is None else torch.tensor(queries, device=next(self.model.parameters()).device)

    def examples(self, count: int, seed: int) -> dict[str, Tensor]:
        """Example questions by name, for exports."""
        return {"query": torch.arange(count) % len(self.facts.queries)} if self.facts.queries else {}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """As for inputs."""
        return {}

    def respond(
        self, encoding: Encoding, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """Answers to ``queries``, one for each encoded input (B,…): the best first, then others.

        Queries come from :meth:`query`, options from :meth:`options`.
        """
        raw = self.model.respond(encoding, self.as_tensor(queries), attention=attention)
        size = None if self.facts.preprocessing is None else self.facts.preprocessing.size
        output = self.model.wrap(raw, size)
        trace = output.trace if attention is None else output.trace.mark_given(attention)
        # Weights that are given are not judged by how the model's own maps were scored.
        blind = {} if attention else blind_queries(self.facts)
        notes = [tuple(filter(None, [blind.get(self.facts.queries[query])])) for query in queries] if blind else None
        return [Response(self.decode(self.model, output, self.facts), trace, notes)]


def blind_queries(facts: ModelFacts) -> dict[str, str]:
    """Query → a warning, for each whose maps do not point better than the best blind map."""
    from saccade.metrics.verdict import BLIND  # many modules for one table

    notes = {}
    for query, score in facts.scores[0].by_query().items() if facts.scores else ():
        if not score.is_better:
            guess = BLIND.get(score.chance, "a map that never looks")
            notes[query] = (
                f"for '{query}' the map was not found to point better than {guess}: its peak was in the right "
                f"place for {100 * score.value:.0f} % of {score.n:,} test questions, that guess for "
                f"{100 * score.chance_value:.0f} %"
            )
    return notes


def decode_labels(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K)."""
    raw = model.probabilities(output.logits.float()).cpu()  # (B,K)
    if facts.calibration is None:
        return [ranked(shares, facts.answers) for shares in raw]
    calibrated_shares = model.probabilities(calibrated(output.logits, facts)).cpu()  # (B,K)
    return [ranked(shares, facts.answers, before) for shares, before in zip(calibrated_shares, raw)]


def calibrated(logits: Tensor, facts: ModelFacts) -> Tensor:
    """Logits (…,K) divided by the model's temperature, if it has one."""
    return logits.float() if facts.calibration is None else logits.float() / facts.calibration.temperature


def ranked(shares: Tensor, words: Sequence[str], raw: Tensor | None = None) -> Answer:
    """The likeliest answer and the others, from probabilities (K,), in the order before calibration, ``raw`` (K,).

    So calibration changes no answer, even if it makes two probabilities equal.
    """
    order = (shares if raw is None else raw).argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    before = () if raw is None else tuple(float(raw[number]) for number in order)
    return Answer(best, share, alternatives=tuple(others), raw=before)
