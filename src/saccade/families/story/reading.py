"""What models of stories read: a text file (see :mod:`saccade.families.story.text`), or a list of sentences.

A memory holds the last so many sentences that have a word which the model knows. The notes list every part that was
dropped:

- questions in a text file are left out;
- words that are not in the vocabulary are left out of their sentence;
- a sentence without any known word is left out. As an empty slot in the middle it would be taken for the end of the
  story, and every later sentence would get a wrong time;
- of a story that is longer than the memory the first sentences are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families.reading import InputReader, Prepared, ReadItem
from saccade.families.story.stories import kept_places, words_of
from saccade.families.story.text import read_story, sent_sentences
from saccade.models.facts import ModelFacts

MAX_WORDS = 200
"""Words of a sentence or question: a text without line ends is no sentence."""
NO_SENTENCES = "{name}: no sentences; give at least one, such as: Mary took the apple."
_TABLES = frozenset({".jsonl", ".json", ".csv"})
_NAMED = 20  # unknown words that a note names


@dataclass(frozen=True)
class StoryItem:
    """Sentences in order."""

    sentences: tuple[str, ...]
    name: str = "story"
    notes: tuple[str, ...] = ()
    supporting: tuple[int, ...] = ()
    """Numbers of the sentences, from 0, that the answer to the question needs, where they are known."""
    left_out: tuple[str, ...] = ()
    """What its file holds beside sentences, such as questions."""
    image: None = None

    @property
    def stem(self) -> str:
        """What files about it are called."""
        return Path(self.name).stem

    def __str__(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True)
class Memory:
    """What of a story gets into the memory of a model."""

    places: tuple[int, ...]
    """Numbers of the sentences, one for each slot."""
    ids: tuple[tuple[int, ...], ...]
    """Word ids of each slot."""
    notes: tuple[str, ...]
    """What did not get into it."""


class Stories(InputReader):
    """A text file with one sentence a line, or a list of sentences."""

    thing = "story"
    suffixes = frozenset({".txt"})
    takes_json = True

    def read(self, source: Any) -> StoryItem:
        """The story in a text file, a list of sentences, or a StoryItem."""
        if isinstance(source, StoryItem):
            return source
        if isinstance(source, (str, os.PathLike)):
            if not os.path.exists(source):  # also of a text that is no path at all
                raise DataError(f"{source}: no such file; a story is a text file, or in Python a list of sentences")
            if Path(source).suffix in _TABLES:
                raise DataError(f"{source}: a table, not a story; evaluate a model on it, with data jsonl:PATH")
            text, name = read_story(Path(source)), os.fspath(source)
            told, left_out = list(text.sentences), text.skipped
        elif isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, Tensor)):
            told, left_out, name = list(source), (), "story"
            questions = [text.strip() for text in told if isinstance(text, str) and text.rstrip().endswith("?")]
            told = [text for text in told if not isinstance(text, str) or text.strip() not in questions]
            left_out = tuple(f"a question: {text}" for text in questions)
        else:
            raise DataError(f"a story is a path or a list of sentences, found {type(source).__name__}")
        for number, sentence in enumerate(told, 1):
            if not isinstance(sentence, str):
                raise DataError(f"{name}: sentence {number} is no text, found {type(sentence).__name__}")
            if len(words_of(sentence)) > MAX_WORDS:
                raise DataError(
                    f"{name}: sentence {number} has {len(words_of(sentence)):,} words, and at most {MAX_WORDS} are "
                    "allowed; write one sentence per line"
                )
        sentences = tuple(sentence.strip() for sentence in told if words_of(sentence))
        if not sentences:
            raise DataError(NO_SENTENCES.format(name=name))
        return StoryItem(sentences, str(name), left_out=left_out)

    def check(self, item: StoryItem, facts: ModelFacts) -> None:
        """A story without sentences, or of which the model knows no word, is refused."""
        if not item.sentences:
            raise DataError(NO_SENTENCES.format(name=item.name))
        if not memory_of(item, numbers_of(facts), int(facts.model["memory"])).ids:
            some = "; ".join(item.sentences[:2])
            raise DataError(
                f"{item.name}: the model knows none of its words ({some}); its card lists the words that it knows"
            )

    def from_json(self, value: object) -> StoryItem:
        """The story in a list of sentences that a request sent."""
        return self.read(sent_sentences(value))

    def prepare(self, items: Sequence[StoryItem], facts: ModelFacts) -> Prepared:
        """Word ids (B,S,J) of the last sentences that the model's memory holds."""
        size, numbers = int(facts.model["memory"]), numbers_of(facts)
        held = [memory_of(item, numbers, size) for item in items]
        longest = max([1, *(len(words) for each in held for words in each.ids)])
        table = torch.zeros(len(items), size, longest, dtype=torch.long)  # (B,S,J)
        for row, each in enumerate(held):
            for slot, words in enumerate(each.ids):
                table[row, slot, : len(words)] = torch.tensor(words)
        read = []
        for item, each in zip(items, held):
            slots = tuple(item.sentences[place] for place in each.places)
            needed = tuple(slot for slot, place in enumerate(each.places) if place in item.supporting)
            read.append(ReadItem(item, slots=slots, supporting=needed, notes=each.notes))
        return Prepared((table,), tuple(read))

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Stories of random words (B,S,J): each has sentences of one to J words, and empty slots after the last."""
        generator = torch.Generator().manual_seed(seed)
        size, longest = int(facts.model["memory"]), 2 + seed % 5  # few at first: an export walks through S·J words
        words = torch.randint(1, len(facts.answers), (count, size, longest), generator=generator)  # (B,S,J)
        length = torch.randint(1, longest + 1, (count, size, 1), generator=generator)
        sentences = torch.randint(1, size + 1, (count, 1, 1), generator=generator)
        is_word = (torch.arange(longest) < length) & (torch.arange(size).unsqueeze(1) < sentences)
        return {"story": words * is_word}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """A sentence may have any number of words."""
        return {"story": {2: "words"}}

    def input_spec(self, facts: ModelFacts) -> dict[str, object]:
        """How sentences and questions become word ids."""
        return {
            "memory": int(facts.model["memory"]),
            "slots": "one sentence each, the first told first, from slot 0 on; of a longer story the last sentences; "
            "a sentence without a known word takes no slot; 0 in all slots after the last sentence",
            "words": "in lower case, cut at spaces and commas, without . ? ! and quotes around them; the id of a word "
            "is its place in 'answers'; 0 after the last word; an unknown word is left out",
        }


def numbers_of(facts: ModelFacts) -> dict[str, int]:
    """Word → id, for every word that a model knows."""
    return {word: number for number, word in enumerate(facts.answers) if word}


def memory_of(item: StoryItem, numbers: dict[str, int], size: int) -> Memory:
    """What of ``item`` gets into a memory of ``size`` slots, for a model whose words have these ``numbers``."""
    known, unknown = zip(*(known_and_unknown(text, numbers) for text in item.sentences)) if item.sentences else ((), ())
    empty = [place for place, ids in enumerate(known) if not ids]
    told = len(known) - len(empty)
    kept = tuple(kept_places(known, size))
    notes = tuple(f"story: left out {text}" for text in item.left_out[:_NAMED])
    notes += unknown_note("story", [word for words in unknown for word in words])
    if empty:
        which = ", ".join(str(place + 1) for place in empty[:_NAMED])
        more = f" and {len(empty) - _NAMED} more" if len(empty) > _NAMED else ""
        notes += (f"story: left out sentence {which}{more}, of which the model knows no word",)
    if told > size:
        last = kept[0]  # the number, from 1, of the last sentence before it
        notes += (f"story: {told} sentences, and the memory holds {size}: sentences 1 to {last} were dropped",)
    return Memory(kept, tuple(known[place] for place in kept), notes)


def known_and_unknown(text: str, numbers: dict[str, int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The ids of the known words of ``text``, in order, and its other words."""
    words = words_of(text)
    return (
        tuple(numbers[word] for word in words if word in numbers),
        tuple(word for word in words if word not in numbers),
    )


def unknown_note(where: str, words: Sequence[str]) -> tuple[str, ...]:
    """A note that names unknown words, each once; none where there are none."""
    named = list(dict.fromkeys(words))
    if not named:
        return ()
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (f"{where}: unknown words were left out: {', '.join(named[:_NAMED])}{more}",)


STORIES = Stories()
