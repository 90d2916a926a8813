"""The words of stories by number: 0 is padding, then all words of sentences, questions and answers by the alphabet.

An answer of several words ("apple,milk") takes one of two forms. ``joined`` makes it one token, as in the MemN2N
paper: every answer is then one token. ``split`` keeps its words apart, for models that say one word after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from saccade.families.story.stories import StoryExample, words_of

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
