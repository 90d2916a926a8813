"""Puts an event into a sentence."""

from __future__ import annotations

from saccade.families.story.world.draws import Draws
from saccade.families.story.world.events import Event
from saccade.families.story.world.lexicon import LINKS, TIMES, VERBS, Words

_PRONOUNS = frozenset({"he", "she", "they"})
_THERE_AFTER_DROP = 0.2  # how often, as in the official files
_ARTICLES = {"apple": "an", "football": "a"}


class Phrases:
    """Sentences of one story; verbs and forms are drawn.

    Args:
        draws: those of the story.
        words: which words it may use.
        there: how often "there" ends a sentence in which something is taken.
    """

    __slots__ = ("_chance", "_draws", "_there", "_verbs", "_wide")

    def __init__(self, draws: Draws, words: Words, there: float) -> None:
        self._draws, self._chance, self._verbs = draws, draws.chance, VERBS[words]
        self._wide = words == "wide"
        self._there = min(there, 0.5) if self._wide else there

    def say(self, event: Event) -> str:
        """The sentence that tells ``event``."""
        kind, who, what = event.kind, event.who, event.what
        if kind == "go":
            return self._going(event)
        name = who[0].capitalize()
        if kind == "in":
            return f"{name} is in the {what}."
        if kind == "not":
            return f"{name} is {'not' if self._chance() < 0.5 else 'no longer'} in the {what}."
        if kind == "either":
            return f"{name} is either in the {what} or the {event.other}."
        pick = self._draws.pick
        if kind == "take":
            article = _ARTICLES.get(what, "the") if self._wide and self._chance() < 0.5 else "the"
            there = " there" if self._chance() < self._there else ""
            return f"{name} {pick(self._verbs.take)} {article} {what}{there}."
        if kind == "drop":
            there = " there" if self._chance() < _THERE_AFTER_DROP else ""
            return f"{name} {pick(self._verbs.drop)} the {what}{there}."
        return f"{name} {pick(self._verbs.give)} the {what} to {event.other.capitalize()}."

    def _going(self, event: Event) -> str:
        who = event.who
        is_one = len(who) == 1 and who[0] != "they"
        went = f"{self._draws.pick(self._verbs.go if is_one else self._verbs.go_together)} the {event.what}"
        if who[0] in _PRONOUNS:
            return f"{self._draws.pick(LINKS).capitalize()} {who[0]} {went}."
        name = who[0].capitalize() if len(who) == 1 else f"{who[0].capitalize()} and {who[1].capitalize()}"
        if event.time is None:
            return f"{name} {went}."
        time = TIMES[event.time]
        return f"{time.capitalize()} {name} {went}." if self._chance() < 0.5 else f"{name} {went} {time}."
