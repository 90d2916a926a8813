"""Questions about the pictures of a probe: which one is asked about which picture.

A probe of labels has no questions: every picture is one example. A probe of questions has N examples about P pictures,
and several of them may be about one picture. Features are of pictures, everything else is of examples.

Axes: N examples, P pictures, B pictures of a batch, R examples about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.models.probe_products import ExampleQueries


class Part(NamedTuple):
    """Some examples, with their pictures."""

    pictures: Tensor
    """(B,) numbers of pictures, each once."""
    places: Tensor
    """(R,) which of the examples that were asked for these are."""
    asked: ExampleQueries


@dataclass(frozen=True)
class Questions:
    """What is asked, by the number of the example."""

    words: tuple[str, ...]
    """The questions that are known; its place here is a question's number."""
    query: Tensor
    """(N,) number of each question."""
    picture: Tensor
    """(N,) number of the picture it is about."""
    _order: Tensor = field(init=False, repr=False)
    _starts: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = torch.bincount(self.picture)  # (P,)
        object.__setattr__(self, "_order", self.picture.argsort(stable=True))  # examples, picture by picture
        object.__setattr__(self, "_starts", torch.cat([counts.new_zeros(1), counts.cumsum(0)]))  # (P+1,)

    def about(self, pictures: Tensor) -> tuple[Tensor, ExampleQueries]:
        """All examples about the pictures (B,): their numbers (R,), and what they ask."""
        first, behind = self._starts[pictures], self._starts[pictures + 1]  # (B,) each
        counts = behind - first
        place = torch.arange(len(pictures)).repeat_interleave(counts)  # (R,)
        within = torch.arange(int(counts.sum())) - (counts.cumsum(0) - counts)[place]  # (R,) 0, 1, … of each picture
        examples = self._order[first[place] + within]
        return examples, ExampleQueries(self.query[examples], place)

    def parts(self, examples: Tensor, size: int) -> Iterator[Part]:
        """The ``examples`` (n,) in parts about ``size`` pictures each."""
        pictures, own = torch.unique(self.picture[examples], return_inverse=True)  # (P',), (n,)
        for first in range(0, len(pictures), size):
            places = ((own >= first) & (own < first + size)).nonzero()[:, 0]  # (R,)
            asked = ExampleQueries(self.query[examples[places]], own[places] - first)
            yield Part(pictures[first : first + size], places, asked)


def pictures_of(examples: Tensor, questions: Questions | None) -> Tensor:
    """The pictures that the ``examples`` (n,) are about, each once; without questions an example is a picture."""
    return examples if questions is None else torch.unique(questions.picture[examples])


def picture_of(examples: Tensor, questions: Questions | None) -> Tensor:
    """The picture of each example: (n,)."""
    return examples if questions is None else questions.picture[examples]
