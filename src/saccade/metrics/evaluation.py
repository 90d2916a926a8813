"""What an evaluation returns: plain values under known keys, as ``saccade evaluate --json`` prints them.

:class:`Summary` has the scores, see :mod:`saccade.metrics.summary`; :class:`Evaluation` adds what was scored, and how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypeAlias, TypedDict, Unpack

ScoreValue: TypeAlias = "float | Mapping[str, ScoreValue] | None"
"""A score, None where it is undefined; or several by the name of a query, a look, a scale or a kind of word."""
Scores: TypeAlias = dict[str, ScoreValue]
CountValue: TypeAlias = "int | dict[str, int] | dict[str, list[str]]"
"""A number; several by name; or names of what lacks a score."""
Ends: TypeAlias = "list[float | None]"
"""[low, high] of an interval, None where there is none."""


class Edits(TypedDict):
    """What became of the answers when attention was edited: looks → edit → share."""

    n: int
    changed: dict[str, dict[str, float]]
    right: NotRequired[dict[str, dict[str, float]]]


class ScoreGroup(TypedDict):
    """Scores about one thing, beside those of the baselines."""

    scores: dict[str, float]
    baselines: dict[str, dict[str, float]]
    intervals: dict[str, list[float]]
    counts: dict[str, int]
    edits: NotRequired[Edits]


class Interventions(TypedDict):
    """Scores of maps of scenes that were rendered again, and of answers whose attention was edited."""

    n: int
    scene: NotRequired[ScoreGroup]
    model: NotRequired[ScoreGroup]


class Against(TypedDict, total=False):
    """A model beside the best of those who do not look, and the difference with its interval."""

    says: str
    accuracy: float
    guess: str
    guess_accuracy: float
    score: str
    value: float
    chance: str
    chance_value: float
    difference: float
    interval: list[float]
    blind_maps: dict[str, Against]
    """Of a probe: every blind map, and how much more the maps of the model have."""
    n: int
    """How many examples were compared, where that is not said elsewhere."""
    by_query: dict[str, Against]
    """Of maps: the same comparison for each query, with the best blind map of that query."""


class RestsOn(TypedDict, total=False):
    """Answers with the evidence, without it, and without the rest of the picture; empty where none is known."""

    n: int
    pictures: int
    accuracy: dict[str, float]
    intervals: dict[str, list[float]]
    says: str


class DetailEntries(TypedDict):
    """Labels one by one: what was taken for what, each class, and the surest wrong answers."""

    confusion: Confusions
    per_class: dict[str, ClassEntry]
    mistakes: list[MistakeEntry]


class Verdict(TypedDict, total=False):
    """One line on what the model is worth, and the comparisons behind it."""

    verdict: str
    against: dict[str, Against]
    rests_on: RestsOn


class Confusion(TypedDict):
    """One pair of classes, and how often one was taken for the other."""

    true: str
    said: str
    n: int


class Confusions(TypedDict, total=False):
    """What was taken for what; the whole matrix where the classes are few."""

    classes: list[str]
    matrix: list[list[int]]
    mistakes: list[Confusion]


class ClassEntry(TypedDict):
    """One class: how many pictures have it, and how well it was found."""

    pictures: int
    recall: float | None
    precision: float | None


class ExamplePlace(TypedDict, total=False):
    """What tells an example: the file of its picture, and what was asked."""

    picture: str
    asked: str


class MistakeEntry(ExamplePlace):
    """A sure wrong answer."""

    true: str
    said: str
    confidence: float
    of_true: float


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
    interventions: NotRequired[Interventions]
    verdict: NotRequired[str]
    against: NotRequired[dict[str, Against]]
    rests_on: NotRequired[RestsOn]
    confusion: NotRequired[Confusions]
    per_class: NotRequired[dict[str, ClassEntry]]
    mistakes: NotRequired[list[MistakeEntry]]


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
