"""The words of stories by number: 0 is padding, then all words of sentences, questions and answers by the alphabet.

An answer of several words ("apple,milk") takes one of two forms. ``joined`` makes it one token, as in the MemN2N
paper: every answer is then one token. ``split`` keeps its words apart, for models that say one word after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from saccade.errors import DataError
from saccade.families.story.stories import Asked, words_of

PADDING = 0
"""The number that fills a sentence up; it stands for the empty word."""

AnswerForm = Literal["joined", "split"]


@dataclass(frozen=True)
class StoryWords:
    """Words by number."""

    words: tuple[str, ...]
    """The first is "", padding."""
    form: AnswerForm = "joined"
    """How answers of several words are numbered."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if not self.words or self.words[0] != "" or not all(self.words[1:]):
            raise DataError("words of stories: word 0 must be empty (padding), and no other word may be")
        if len(self._number_of) < len(self.words):
            twice = next(word for number, word in enumerate(self.words) if self._number_of[word] != number)
            raise DataError(f"words of stories: '{twice}' is there more than once; every word has one number")

    @classmethod
    def build(cls, asked: Iterable[Asked], form: AnswerForm = "joined") -> StoryWords:
        """The words of all sentences, questions and answers, by the alphabet.

        Raises:
            DataError: there is no word.
        """
        texts: set[str] = set()
        answers: set[str] = set()
        for one in asked:
            texts.update(one.sentences)
            texts.add(one.question)
            answers.add(one.answer)
        words = {word for text in texts for word in words_of(text)}
        words |= {token for answer in answers for token in answer_tokens(answer, form)}
        if not words:
            raise DataError("no stories to take words from; give stories with questions and answers")
        return cls(("", *sorted(words)), form)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, text: str) -> tuple[list[int], list[str]]:
        """The numbers of the words of ``text`` that are known, in order; and the unknown words, each once."""
        return self._numbered(words_of(text))

    def answer_ids(self, answer: str) -> tuple[list[int], list[str]]:
        """The numbers of an answer's tokens (one, if they are joined), and the unknown tokens."""
        return self._numbered(answer_tokens(answer, self.form))

    def answer(self, ids: Iterable[int]) -> str:
        """The answer that has these numbers, its words joined by commas; padding says nothing."""
        return ",".join(self.words[number] for number in ids if number != PADDING)

    def _numbered(self, words: Sequence[str]) -> tuple[list[int], list[str]]:
        number_of = self._number_of
        unknown = dict.fromkeys(word for word in words if word not in number_of)
        return [number_of[word] for word in words if word in number_of], list(unknown)


def answer_tokens(answer: str, form: AnswerForm) -> tuple[str, ...]:
    """What an answer is numbered by.

    >>> answer_tokens("Apple,milk", "joined"), answer_tokens("Apple,milk", "split")
    (('apple,milk',), ('apple', 'milk'))
    >>> answer_tokens("living room", "joined")
    ('living room',)
    """
    if form == "split":
        return words_of(answer)
    parts = [" ".join(words_of(part)) for part in answer.split(",")]
    token = ",".join(part for part in parts if part)
    return (token,) if token else ()
