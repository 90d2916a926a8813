"""A question about a story, and how texts become sentences and words.

A vocabulary is the empty word, then all words of sentences, questions and answers by the alphabet. An answer of several
words ("apple,milk") is one token, as in the MemN2N paper. For models that answer ``by_word`` its words are apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_AROUND_WORDS = ".?!\"'“”‘’„«»`"


@dataclass(frozen=True, slots=True)
class StoryExample:
    """One question with its story."""

    sentences: tuple[str, ...]  # In order, as written, without line numbers
    question: str
    answer: str  # One word, or several joined by commas: ``apple,milk``
    supporting: tuple[int, ...] = ()  # Indices into ``sentences``, in the order that the answer needs
    task: str = ""  # For example ``qa1``
    where: str = ""  # ``FILE, line N``, for messages

    def goes_on(self, before: StoryExample) -> bool:
        """Whether its story continues that of ``before``."""
        return self.task == before.task and self.sentences[: len(before.sentences)] == before.sentences


@lru_cache(maxsize=1 << 16)  # stories repeat their sentences: a bAbI file has a few hundred different ones
def words_of(text: str) -> tuple[str, ...]:
    """The words of ``text`` in lower case, without surrounding stops, question marks, "!" and quotes.

    A comma ends a word. Apostrophes and points inside a word stay.

    >>> words_of("Where is Mary's milk? ")
    ('where', 'is', "mary's", 'milk')
    >>> words_of("apple,milk")
    ('apple', 'milk')
    """
    cut = (word.strip(_AROUND_WORDS) for word in text.lower().replace(",", " ").split())
    return tuple(word for word in cut if word)


def story_words(examples: Sequence[StoryExample], *, by_word: bool = False) -> tuple[str, ...]:
    """The vocabulary of these questions."""
    texts = {text for one in examples for text in (*one.sentences, one.question)}
    words = {word for text in texts for word in words_of(text)}
    words |= {token for answer in {one.answer for one in examples} for token in answer_tokens(answer, by_word=by_word)}
    return ("", *sorted(words))


def answer_tokens(answer: str, *, by_word: bool) -> tuple[str, ...]:
    """The tokens of an answer.

    >>> answer_tokens("Apple,milk", by_word=False), answer_tokens("Apple,milk", by_word=True)
    (('apple,milk',), ('apple', 'milk'))
    """
    if by_word:
        return words_of(answer)
    parts = [" ".join(words_of(part)) for part in answer.split(",")]
    token = ",".join(part for part in parts if part)
    return (token,) if token else ()


def memory_places(ids: Sequence[Sequence[int]], memory: int) -> list[int]:
    """Numbers of the last ``memory`` sentences with a known word (``ids``), which get a slot.

    >>> memory_places([[3], [], [4, 5], [6]], 2)
    [2, 3]
    """
    return [place for place, word_ids in enumerate(ids) if word_ids][-memory:]


_CLOSING = "\"'”’»)"
_ENDS = re.compile(rf"[.!?…][{_CLOSING}]*$")
_CUT = re.compile(
    rf"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bMrs\.)(?:(?<=[.!?…])|(?<=[.!?…][{_CLOSING}]))\s+"
)
_NUMBERED = re.compile(r"[0-9]+ +(?=\S)")


def facts_and_questions(text: str) -> tuple[list[str], list[str]]:
    """The statements and the questions of ``text``.

    A line with a tab is a bAbI question with its answer.

    >>> facts_and_questions("Mary got the milk. She left. Where is the milk?")
    (['Mary got the milk.', 'She left.'], ['Where is the milk?'])
    """
    lines = text.splitlines()
    with_answer = [" ".join(_NUMBERED.sub("", line.strip(), count=1).split()) for line in lines if "\t" in line.strip()]
    sentences = cut_sentences("\n".join(line for line in lines if "\t" not in line.strip()))
    questions = [sentence for sentence in sentences if sentence.rstrip(_CLOSING).endswith("?")]
    return [sentence for sentence in sentences if sentence not in questions], with_answer + questions


def cut_sentences(text: str) -> list[str]:
    """The sentences of ``text`` that hold a word.

    Each line is a sentence if all lines have numbers. Otherwise lines are cut where sentences end, and a line without a
    full stop continues in a next line in lower case, unless none has a full stop.
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    filled = [line for line in lines if line]
    if filled and all(_NUMBERED.match(line) for line in filled):
        cut = [_NUMBERED.sub("", line, count=1) for line in filled]
    else:
        cut = [sentence for paragraph in _joined(lines) for sentence in _CUT.split(paragraph)]
    return [sentence for sentence in cut if words_of(sentence)]


def _joined(lines: list[str]) -> list[str]:
    """Lines, with those joined that share a sentence."""
    if not any(_ENDS.search(line) for line in lines):
        return lines
    joined: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on and line[:1].islower():
            joined[-1] += f" {line}"
        else:
            joined.append(line)
        goes_on = bool(line) and not _ENDS.search(line)
    return joined
