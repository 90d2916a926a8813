"""From a story and a question in words to the ids that models read, and from their logits to an answer.

A memory holds the last sentences with a known word; notes list what was dropped. A sentence without a known word must
not become an empty slot: models would take it for the end of the story.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families import answering
from saccade.families.answering import InputReader, Prepared, ReadItem, Response, ranked
from saccade.families.story.stories import facts_and_questions, memory_places, words_of
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.facts import ModelFacts
from saccade.trace import Answer, Output

SENTENCES = 1000  # Most sentences of a story sent to the server
CHARACTERS = 400  # Most characters of one sentence
NOTHING = "(no word)"  # The empty word, which a badly trained model may answer
_OTHERS = 9  # alternatives that are told: the answer may be any word of the vocabulary
_TABLES = (".jsonl", ".json", ".csv")
_NAMED = 20  # unknown words that a note names


@dataclass(frozen=True)
class StoryItem:
    """Sentences in order."""

    sentences: tuple[str, ...]
    name: str = "story"
    notes: tuple[str, ...] = ()
    supporting: tuple[int, ...] = ()  # Numbers, from 0, of the sentences that the answer needs, if known
    questions: tuple[str, ...] = ()  # Questions in its file
    image: None = None

    @property
    def stem(self) -> str:
        """What files about it are called."""
        return Path(self.name).stem

    def __str__(self) -> str:
        return " ".join(self.sentences)


class Memory(NamedTuple):
    """The part of a story in a model's memory."""

    places: tuple[int, ...]  # The sentence number of each slot
    ids: tuple[tuple[int, ...], ...]  # Word ids of each slot
    notes: tuple[str, ...]  # What was left out


class StoryReader(InputReader):
    """A text file with one sentence a line, or a list of sentences."""

    thing = "story"
    suffixes = frozenset({".txt"})
    takes_json = True

    def read(self, source: Any) -> StoryItem:
        """The story in a text file, a list of sentences, or a StoryItem."""
        if isinstance(source, StoryItem):
            return source
        name = "story"
        if isinstance(source, (str, os.PathLike)):
            name = os.fspath(source)
            if not os.path.exists(name) or name.endswith(_TABLES):
                wanted = "a story is a text file, or in Python a list of sentences"
                raise DataError(f"{name}: no text file; {wanted} (to evaluate on a table: data jsonl:PATH)")
            facts, questions = facts_and_questions(Path(name).read_text("utf-8-sig"))
        else:
            texts = list(source) if isinstance(source, Iterable) else [source]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(f"a story is a path or a list of sentences, found {source!r:.60}")
            stripped = [text.strip() for text in texts]
            questions = [text for text in stripped if text.endswith("?")]
            facts = [text for text in stripped if not text.endswith("?")]
        sentences = tuple(sentence for sentence in facts if words_of(sentence))
        if not sentences:
            raise DataError(f"{name}: no sentences; give at least one, such as: Mary took the apple.")
        return StoryItem(sentences, name, questions=tuple(questions))

    def check(self, item: StoryItem, facts: ModelFacts) -> None:
        """Refuses a story of which the model knows no word."""
        if not numbers_of(facts).keys() & {word for sentence in item.sentences for word in words_of(sentence)}:
            some = "; ".join(item.sentences[:2])
            raise DataError(f"{item.name}: the model knows none of its words ({some}); its card lists those it knows")

    def from_json(self, value: object) -> StoryItem:
        """The story in a list of sentences that a request sent."""
        if (
            not isinstance(value, list)
            or len(value) > SENTENCES
            or not all(isinstance(text, str) and len(text) <= CHARACTERS for text in value)
        ):
            raise DataError(f"a story is a list of at most {SENTENCES:,} texts of at most {CHARACTERS} characters")
        return self.read([" ".join(text.split()) for text in value])

    def prepare(self, items: Sequence[StoryItem], facts: ModelFacts) -> Prepared:
        """Word ids (B,S,J) of the last sentences that fit the memory."""
        size, numbers = int(facts.model["memory"]), numbers_of(facts)
        memories = [memory_of(item, numbers, size) for item in items]
        longest = max([1, *(len(words) for memory in memories for words in memory.ids)])
        table = torch.zeros(len(items), size, longest, dtype=torch.long)  # (B,S,J)
        prepared = []
        for row, (item, memory) in enumerate(zip(items, memories)):
            for slot, words in enumerate(memory.ids):
                table[row, slot, : len(words)] = torch.tensor(words)
            slots = tuple(item.sentences[place] for place in memory.places)
            needed = tuple(slot for slot, place in enumerate(memory.places) if place in item.supporting)
            prepared.append(ReadItem(item, slots=slots, supporting=needed, notes=memory.notes))
        return Prepared((table,), tuple(prepared))

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Stories of random words (B,S,J): sentences of one to J words, then empty slots."""
        generator = torch.Generator().manual_seed(seed)
        size, longest = int(facts.model["memory"]), 2 + seed % 5  # few at first: an export walks through S·J words
        words = _random_words((count, size, longest), facts, generator)  # (B,S,J)
        sentences = torch.randint(1, size + 1, (count, 1, 1), generator=generator)
        return {"story": words * (torch.arange(size).unsqueeze(1) < sentences)}

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


STORIES = StoryReader()


def _random_words(shape: tuple[int, ...], facts: ModelFacts, generator: torch.Generator) -> Tensor:
    """Word ids (…,J): one to J random words each, then 0."""
    words = torch.randint(1, len(facts.answers), shape, generator=generator)
    length = torch.randint(1, shape[-1] + 1, (*shape[:-1], 1), generator=generator)
    return words * (torch.arange(shape[-1]) < length)


def numbers_of(facts: ModelFacts) -> dict[str, int]:
    """Word → id, for every word that a model knows."""
    return {word: number for number, word in enumerate(facts.answers) if word}


def memory_of(item: StoryItem, numbers: dict[str, int], size: int) -> Memory:
    """The part of ``item`` in a memory of ``size`` slots, for words with these ``numbers``."""
    words = [words_of(sentence) for sentence in item.sentences]
    ids = [tuple(numbers[word] for word in sentence if word in numbers) for sentence in words]
    places = tuple(memory_places(ids, size))
    notes = [f"story: left out a question: {text}" for text in item.questions[:_NAMED]]
    notes += unknown_note("story", [word for sentence in words for word in sentence if word not in numbers])
    if empty := [str(place + 1) for place, word_ids in enumerate(ids) if not word_ids]:
        notes.append(f"story: left out sentence {_listed(empty)}, of which the model knows no word")
    if (total := len(ids) - len(empty)) > size:
        last = places[0]  # the number, from 1, of the last sentence before it
        notes.append(f"story: {total} sentences, and the memory holds {size}: sentences 1 to {last} were dropped")
    return Memory(places, tuple(ids[place] for place in places), tuple(notes))


def unknown_note(where: str, words: Iterable[str]) -> tuple[str, ...]:
    """A note about unknown words, if any."""
    named = list(dict.fromkeys(words))
    return (f"{where}: unknown words were left out: {_listed(named)}",) if named else ()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


@dataclass(frozen=True)
class StoryQuestion:
    """A question in words, and their ids."""

    text: str
    ids: tuple[int, ...]
    unknown: tuple[str, ...] = ()


class StoryResponder(answering.Responder):
    """Answers any question with a known word."""

    def query(self, ask: answering.Question | None) -> StoryQuestion:
        """The question as word ids."""
        if not isinstance(ask, str) or not ask.strip():
            problem = "none was given" if ask is None else f"found {ask!r}"
            raise DataError(f"'{self.name}' needs a question in words, as in \"Where is Mary?\"; {problem}")
        words, numbers = words_of(ask), numbers_of(self.facts)
        ids = tuple(numbers[word] for word in words if word in numbers)
        if not ids:
            what = f"'{self.name}' knows none of the words of the question '{ask.strip()}'"
            raise DataError(f"{what}; its card lists those it knows")
        return StoryQuestion(ask.strip(), ids, tuple(word for word in words if word not in numbers))

    def query_text(self, query: Any) -> str | None:
        """The question as it was put."""
        return str(query.text)

    def queries(self) -> list[Any]:
        """There is no list of questions."""
        return []

    def as_tensor(self, queries: Sequence[Any]) -> Tensor:
        """Word ids (B,Q), 0 after the last word."""
        longest = max(len(query.ids) for query in queries)
        padded = [[*query.ids, *[0] * (longest - len(query.ids))] for query in queries]
        return torch.tensor(padded, device=next(self.model.parameters()).device)

    def respond(
        self, encoding: Encoding, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """Answers, with notes about unknown words."""
        notes = [unknown_note("question", query.unknown) for query in queries]
        return [replace(response, notes=notes) for response in super().respond(encoding, queries, options, attention)]

    def examples(self, count: int, seed: int) -> dict[str, Tensor]:
        """Questions of random words (B,Q), one to Q words each."""
        generator = torch.Generator().manual_seed(seed)
        return {"query": _random_words((count, 2 + seed % 4), self.facts, generator)}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """A question may have any number of words."""
        return {"query": {1: "question_words"}}


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answers from logits (B,V) or, word by word, (B,A,V)."""
    named = replace(facts, answers=tuple(word or NOTHING for word in facts.answers))
    if output.logits.dim() == 2:
        return [_first(answer) for answer in answering.decode_labels(model, output, named)]
    return [_word_by_word(shares, named.answers) for shares in model.probabilities(output.logits.float()).cpu()]


def _first(answer: Answer) -> Answer:
    return replace(answer, alternatives=answer.alternatives[:_OTHERS], raw=answer.raw[: _OTHERS + 1])


def _word_by_word(shares: Tensor, words: tuple[str, ...]) -> Answer:
    """The words (A,V) before the empty one; the confidence is the product of their probabilities, end included.

    A single word has its own probability, and the other words as alternatives.
    """
    chosen = shares.argmax(-1).tolist()  # (A,)
    end = chosen.index(0) if 0 in chosen else len(chosen)
    if end < 2:
        return _first(ranked(shares[0], words))
    sure = float(shares[: end + 1].max(-1).values.prod())
    return Answer(",".join(words[number] for number in chosen[:end]), sure)
