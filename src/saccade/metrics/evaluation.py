"""What an evaluation returns: plain values under known keys, as ``saccade evaluate --json`` prints them.

:class:`Summary` has the scores, see :mod:`saccade.metrics.summary`; :class:`Evaluation` adds what was scored, and how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypeAlias, TypedDict, Unpack

ScoreValue: TypeAlias = "float | Mapping[str, ScoreValue] | None"
"""A score, None where it is undefined; or several by the name of a query, a look, a scale or a kind of word."""
Scores: TypeAlias = dict[str, ScoreValue]
CountValue: TypeAlias = "int | dict[str, int] | dict[str, list[str]]"
"""A number; several by name; or names of what lacks a score."""
Ends: TypeAlias = "list[float | None]"
"""[low, high] of an interval, None where there is none."""


Part: TypeAlias = dict[str, Any]
"""Plain values under the keys that the function which makes them names."""


class Verdict(TypedDict, total=False):
    """One line on what the model is worth, and the comparisons behind it."""

    verdict: str
    against: dict[str, Part]
    rests_on: Part


class DetailEntries(TypedDict):
    """Labels one by one: what was taken for what, each class, and the surest wrong answers."""

    confusion: Part
    per_class: dict[str, Part]
    mistakes: list[Part]


class Summary(TypedDict):
    """The scores of a model, beside those of its baselines; families leave out what they do not know."""

    n: int
    """Examples that were scored."""
    definition: int
    """Version of the rules for baselines and intervals."""
    metrics: Scores
    """Of the answers."""
    attention: Scores
    """Of the maps; ``by_look`` those of single looks."""
    baselines: dict[str, Scores]
    intervals: dict[str, Ends]
    counts: dict[str, CountValue]
    """How many values a mean rests on."""
    units: NotRequired[dict[str, str]]
    """Of scores that are no fractions: what they count."""
    note: NotRequired[str]
    interventions: NotRequired[Part]
    verdict: NotRequired[str]
    against: NotRequired[dict[str, Part]]
    rests_on: NotRequired[Part]
    confusion: NotRequired[Part]
    per_class: NotRequired[dict[str, Part]]
    mistakes: NotRequired[list[Part]]


class Described(TypedDict, total=False):
    """How it was scored, and on what."""

    model: str
    protocol: str | None
    seed: int | None
    seconds: float
    glyphs: str
    backgrounds: str
    drawing: str
    beam: int
    length_penalty: float
    scored_part: str
    """What was scored, where that is not the split of this name that the data set itself has: ``dev pictures``."""
    caution: str
    """Said where the model may have learned from what it is scored on."""
    maps_supervised: str
    """How the maps were taught where to look, where they were."""


class Evaluation(Summary, Described):
    """All that :func:`saccade.evaluate` returns."""

    data: str
    split: str


def evaluation(summary: Summary, *, data: str, split: str, **described: Unpack[Described]) -> Evaluation:
    """The scores with what they are of, which comes first."""
    return {"data": data, "split": split, **described, **summary}
