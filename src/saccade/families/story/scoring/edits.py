"""Stories with one thing changed, for causal tests: a sentence taken out, reworded or replaced; two names exchanged.

The rules of :mod:`saccade.families.story.world.reader` compute the answer of a changed story from its sentences. They
are trusted for a question only if they also find its answer before the change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.lexicon import DROP, GIVE, GO, LINKS, TAKE, TIMES
from saccade.families.story.world.reader import derive

SAME_MEANING = (GO, TAKE, DROP, GIVE)
"""Ways to say the same; one is put for another."""
OPENERS = frozenset({"the", "a", "an", "he", "she", "they", "it", "in", "if"}) | {
    word for phrase in (*LINKS, *TIMES) for word in phrase.split()
}
"""Words that open a sentence and are no names."""
SMALL = frozenset({"to", "is", "of", "there", "back", "and"})
"""Further words that are about nothing."""
TRIES = 8
"""Sentences, or pairs of names, that are tried until one changes the story as wanted."""


@dataclass(frozen=True)
class Edit:
    """A changed story."""

    asked: StoryExample
    kept: tuple[int, ...]
    """For each sentence, its index in the story as it was; −1 for a new one."""
    truth: str | None = None
    """The answer, by the rules; None where they give none."""
    facts: tuple[int, ...] = ()
    """Indices of the sentences that this follows from."""
    names: tuple[str, str] | None = None
    """Two names that were exchanged."""


def rules_know(asked: StoryExample) -> bool:
    """Whether the rules find the answer of ``asked``."""
    known = derive(asked.sentences, asked.question)
    return known is not None and known.answer == asked.answer.lower()


def removed(asked: StoryExample, place: int) -> Edit:
    """The story without sentence ``place``."""
    kept = tuple(number for number in range(len(asked.sentences)) if number != place)
    return _edit(asked, tuple(asked.sentences[number] for number in kept), kept)


def reworded(asked: StoryExample, place: int, words: Collection[str], draw: random.Random) -> Edit | None:
    """The story with sentence ``place`` said in another way; None where there is no other way in these ``words``."""
    sentence = asked.sentences[place]
    for phrases in SAME_MEANING:
        for phrase in sorted(phrases, key=len, reverse=True):
            found = re.search(rf"\b{phrase}\b", sentence, re.IGNORECASE)
            others = [other for other in phrases if other != phrase and words_in(other, words)]
            if found and others:
                new = sentence[: found.start()] + draw.choice(others) + sentence[found.end() :]
                return _with_sentence(asked, place, new, kept=True)
    return None


def replaced(asked: StoryExample, place: int, others: Sequence[str], draw: random.Random) -> Edit | None:
    """The story with another sentence in ``place``, one of ``others`` that is about nothing the answer involves.

    It shares no name, thing or place with the question, the answer and the supporting facts: no word but verbs and
    small words. Nor is it a sentence that the story has. None where no such sentence was drawn.
    """
    involved = {word for text in (asked.question, asked.answer) for word in words_of(text)}
    involved |= {word for number in asked.supporting for word in words_of(asked.sentences[number])}
    verbs = {word for phrases in SAME_MEANING for phrase in phrases for word in phrase.split()}
    for _ in range(TRIES if others else 0):
        new = draw.choice(others)
        if new not in asked.sentences and not (set(words_of(new)) & involved) - verbs - OPENERS - SMALL:
            return _with_sentence(asked, place, new, kept=False)
    return None


def names_in(asked: Collection[StoryExample], words: Collection[str]) -> frozenset[str]:
    """Names among ``words``: what opens a sentence with a capital letter and is never written small in one."""
    first, small = set(), set()
    for sentence in {text for each in asked for text in each.sentences}:
        raw = [word.strip(".,?!") for word in sentence.split()]
        first |= {word.lower() for word in raw[:1] if word[:1].isupper()}
        small |= {word for word in raw if word[:1].islower()}
    return frozenset((first - small - OPENERS) & set(words))


def exchanged(asked: StoryExample, one: str, two: str) -> Edit:
    """The story, question and answer with two names exchanged."""
    pair = {one: two, two: one}
    either = re.compile(rf"\b({re.escape(one)}|{re.escape(two)})\b", re.IGNORECASE)

    def other(found: re.Match[str]) -> str:
        name = pair[found[0].lower()]
        return name.capitalize() if found[0][0].isupper() else name

    def changed(text: str) -> str:
        return either.sub(other, text)

    new = replace(asked, question=changed(asked.question), answer=changed(asked.answer))
    sentences = tuple(changed(sentence) for sentence in asked.sentences)
    edit = _edit(new, sentences, tuple(range(len(sentences))))
    return replace(edit, names=(one, two))


def pairs_of_names(asked: StoryExample, names: Collection[str], draw: random.Random) -> list[tuple[str, str]]:
    """Pairs to exchange, in a drawn order: a name that the question or a supporting fact has, and another.

    The other one is in the story if any is. Pairs with the name that is the answer come first.
    """
    told = {word for sentence in asked.sentences for word in words_of(sentence)} & set(names)
    texts = (asked.question, *(asked.sentences[number] for number in asked.supporting))
    central = sorted({word for text in texts for word in words_of(text)} & set(names))
    pairs = [(one, two) for one in central for two in sorted(told or names) if one != two]
    pairs = pairs or [(one, two) for one in central for two in sorted(names) if one != two]
    draw.shuffle(pairs)
    pairs.sort(key=lambda pair: not set(pair) & set(words_of(asked.answer)))
    return pairs[:TRIES]


def words_in(text: str, words: Collection[str]) -> bool:
    """Whether all words of ``text`` are among ``words``."""
    return all(word in words for word in words_of(text))


def _with_sentence(asked: StoryExample, place: int, sentence: str, *, kept: bool) -> Edit:
    sentences = (*asked.sentences[:place], sentence, *asked.sentences[place + 1 :])
    return _edit(asked, sentences, tuple(n if kept or n != place else -1 for n in range(len(sentences))))


def _edit(asked: StoryExample, sentences: tuple[str, ...], kept: tuple[int, ...]) -> Edit:
    known = derive(sentences, asked.question)
    supporting = tuple(kept.index(number) for number in asked.supporting if number in kept)
    new = replace(asked, sentences=sentences, supporting=supporting)
    return Edit(new, kept, None, ()) if known is None else Edit(new, kept, known.answer, known.supporting)
