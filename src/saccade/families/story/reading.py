"""What models of stories read: a text file with one sentence a line, or a list of sentences."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from saccade.errors import DataError
from saccade.families.reading import Prepared, Reads
from saccade.families.story.sent import sent_sentences
from saccade.families.story.stories import words_of
from saccade.models.io.facts import ModelFacts


@dataclass(frozen=True)
class StoryItem:
    """Sentences in order."""

    sentences: tuple[str, ...]
    name: str = "story"
    notes: tuple[str, ...] = ()
    image: None = None

    @property
    def stem(self) -> str:
        """What files about it are called."""
        return Path(self.name).stem


class Stories(Reads):
    """A text file with one sentence a line, or a list of sentences."""

    thing = "story"
    suffixes = frozenset({".txt"})
    takes_json = True

    def read(self, source: Any) -> StoryItem:
        """The story in a text file, a list of sentences, or a StoryItem."""
        if isinstance(source, StoryItem):
            return source
        if isinstance(source, (str, os.PathLike)):
            from saccade.families.story.text_file import read_utf8

            lines = read_utf8(Path(source)).splitlines()
            return StoryItem(tuple(line.strip() for line in lines if line.strip()), str(source))
        if not isinstance(source, Iterable):
            raise DataError(f"a story is a path or a list of sentences, found {type(source).__name__}")
        return StoryItem(tuple(str(each) for each in source))

    def from_json(self, value: Any) -> StoryItem:
        """The story in a list of sentences that a request sent."""
        return StoryItem(sent_sentences(value))

    def prepare(self, items: Sequence[StoryItem], facts: ModelFacts) -> Prepared:
        """Word ids (B,S,J) of the last sentences that the model's memory holds."""
        memory = int(facts.model["memory"])
        numbers = {word: number for number, word in enumerate(facts.answers)}
        kept = [item.sentences[-memory:] for item in items]
        ids = [[[numbers[word] for word in words_of(text) if word in numbers] for text in story] for story in kept]
        longest = max([1, *(len(words) for story in ids for words in story)])
        table = torch.zeros(len(items), memory, longest, dtype=torch.long)  # (B,S,J)
        for row, story in enumerate(ids):
            for place, words in enumerate(story):
                table[row, place, : len(words)] = torch.tensor(words)
        return Prepared((table,), slots=tuple(kept))


STORIES = Stories()
