"""People against people: what a caption of one person scores by the captions of the others.

A reference point for caption scores. Each person in turn replaces the model and is left out of the references; the
score is the mean over the turns. So there is one reference fewer than a model has, which lowers every score a little,
BLEU most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from saccade.errors import DataError
from saccade.metrics.text.bleu import bleu
from saccade.metrics.text.cider import cider
from saccade.metrics.text.meteor_jar import meteor_jar, meteor_missing
from saccade.metrics.text.rouge import rouge_l


class PeopleScores(NamedTuple):
    """What people score by one another."""

    metrics: dict[str, float]
    """The names of :func:`saccade.metrics.bleu`, ``rouge_l``, ``cider``, and ``meteor`` where METEOR 1.5 can run."""
    pictures: int
    """Pictures with two captions or more; others are left out."""
    turns: int
    """How often another person stood in for the model: the fewest captions that such a picture has."""


def people_scores(
    captions: Sequence[Sequence[str]], progress: Callable[[int, int], None] = lambda done, total: None
) -> PeopleScores:
    """The scores of people by one another, by leaving out one at a time.

    Args:
        captions: what people said of each picture.
        progress: called with turns done and turns in all.

    Raises:
        DataError: no picture has two captions.

    >>> found = people_scores([("a red dog runs", "a dog runs"), ("two birds", "two birds"), ("alone",)])
    >>> found.pictures, found.turns, round(found.metrics["bleu_1_nobp"], 4)
    (2, 2, 0.9167)
    """
    shared = [tuple(said) for said in captions if len(said) > 1]
    if not shared:
        raise DataError("people against people: no picture has two captions; name a set with several for each picture")
    turns = min(map(len, shared))
    found = []
    for turn in range(turns):
        found.append(_scores([s[turn] for s in shared], [(*s[:turn], *s[turn + 1 :]) for s in shared]))
        progress(turn + 1, turns)
    metrics = {name: sum(each[name] for each in found) / turns for name in found[0]}
    return PeopleScores(metrics, len(shared), turns)


def _scores(said: list[str], known: list[tuple[str, ...]]) -> dict[str, float]:
    scores = {**bleu(said, known), "rouge_l": rouge_l(said, known), "cider": cider(said, known)}
    return scores | ({"meteor": meteor_jar(said, known)} if meteor_missing() is None else {})
