"""What one sentence says: someone went, took, dropped or gave something, or is somewhere."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from saccade.families.story.stories import words_of
from saccade.families.story.world.lexicon import (
    DROP,
    GIVE,
    GO,
    LINKS,
    TAKE,
    TIMES,
    WIDE_DROP,
    WIDE_GIVE,
    WIDE_GO,
    WIDE_GO_TOGETHER,
    WIDE_TAKE,
)

Kind = Literal["go", "in", "not", "either", "take", "drop", "give"]


class Event(NamedTuple):
    """One sentence, understood. Words are in lower case."""

    kind: Kind
    who: tuple[str, ...]
    """One or two names; or a pronoun: he, she, they."""
    what: str
    """The room of go, in, not and either; the thing of take, drop and give."""
    other: str = ""
    """The second room of either; who is given something."""
    time: int | None = None
    """Index into TIMES."""


def _any(*phrases: str) -> str:
    return "|".join(sorted(phrases, key=len, reverse=True))


_THE = r"(?:the|an|a) "
_TIME = _any(*TIMES)
_SENTENCE = re.compile(rf"(?:(?P<early>{_TIME}) )?(?:(?:{_any(*LINKS)}) )?(?P<rest>.+?)(?: (?P<late>{_TIME}))?")
_WHO = r"(?P<who>\S+)(?: and (?P<also>\S+))? "
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("go", re.compile(rf"{_WHO}(?:{_any(*GO, *WIDE_GO, *WIDE_GO_TOGETHER)}) {_THE}(?P<what>\S+)")),
    ("in", re.compile(rf"{_WHO}(?:is|are) in {_THE}(?P<what>\S+)")),
    ("not", re.compile(rf"{_WHO}(?:is|are) (?:not|no longer) in {_THE}(?P<what>\S+)")),
    ("either", re.compile(rf"{_WHO}(?:is|are) either in {_THE}(?P<what>\S+) or (?:in )?{_THE}(?P<other>\S+)")),
    ("take", re.compile(rf"{_WHO}(?:{_any(*TAKE, *WIDE_TAKE)}) {_THE}(?P<what>\S+)(?: there)?")),
    ("drop", re.compile(rf"{_WHO}(?:{_any(*DROP, *WIDE_DROP)}) {_THE}(?P<what>\S+)(?: there)?")),
    ("give", re.compile(rf"{_WHO}(?:{_any(*GIVE, *WIDE_GIVE)}) {_THE}(?P<what>\S+) to (?P<other>\S+)")),
)


@lru_cache(maxsize=1 << 14)
def event_of(sentence: str) -> Event | None:
    """What ``sentence`` says, or None if this world has no such sentence.

    >>> event_of("Afterwards they moved to the hallway.")
    Event(kind='go', who=('they',), what='hallway', other='', time=None)
    >>> event_of("Julie went to the school this morning.").time
    1
    >>> event_of("Lily is green.") is None
    True
    """
    whole = _SENTENCE.fullmatch(" ".join(words_of(sentence)))
    if not whole:
        return None
    for kind, form in _FORMS:
        if match := form.fullmatch(whole["rest"]):
            found = match.groupdict()
            who = tuple(name for name in (found["who"], found["also"]) if name)
            when = whole["early"] or whole["late"]
            return Event(kind, who, found["what"], found.get("other") or "", TIMES.index(when) if when else None)
    return None
