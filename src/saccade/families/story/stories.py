"""A question about a story, how a text is cut into words, and the words that a model knows.

The words of stories by number: 0 is padding, then all words of sentences, questions and answers by the alphabet.

An answer of several words ("apple,milk") takes one of two forms. ``joined`` makes it one token, as in the MemN2N
paper: every answer is then one token. ``split`` keeps its words apart, for models that say one word after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_AROUND_WORDS = ".?!\"'“”‘’„«»`"


@dataclass(frozen=True, slots=True)
class StoryExample:
    """One question, with the sentences that were told before it."""

    sentences: tuple[str, ...]
    """In the order of telling, as written, without line numbers."""
    question: str
    answer: str
    """One word, or several joined by commas: ``apple,milk``."""
    supporting: tuple[int, ...] = ()
    """Indices into ``sentences``, in the order in which the answer needs them."""
    task: str = ""
    """For example ``qa1``."""
    where: str = ""
    """``FILE, line N``, for messages."""


@lru_cache(maxsize=1 << 16)  # stories repeat their sentences: a bAbI file has a few hundred different ones
def words_of(text: str) -> tuple[str, ...]:
    """The words of ``text`` in lower case, without the full stops, question marks, "!" and quotes around them.

    A comma ends a word. Apostrophes and points inside a word stay.

    >>> words_of("Where is Mary's milk? ")
    ('where', 'is', "mary's", 'milk')
    >>> words_of("apple,milk")
    ('apple', 'milk')
    """
    cut = (word.strip(_AROUND_WORDS) for word in text.lower().replace(",", " ").split())
    return tuple(word for word in cut if word)


AnswerForm = Literal["joined", "split"]


def story_words(asked: Iterable[StoryExample], form: AnswerForm = "joined") -> tuple[str, ...]:
    """The words of all sentences, questions and answers by the alphabet, after the empty one.

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
    return ("", *sorted(words))


def kept_places(ids: Sequence[Sequence[int]], memory: int) -> list[int]:
    """Numbers of the sentences that get a slot: the last ``memory`` of those that have a known word.

    Args:
        ids: of the known words of each sentence.
        memory: slots that there are.

    >>> kept_places([[3], [], [4, 5], [6]], 2)
    [2, 3]
    """
    return [place for place, known in enumerate(ids) if known][-memory:]


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
