"""The numbers in a section of the tour: a model beside its baselines, and its row of the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from saccade.errors import CheckpointError
from saccade.models.io.facts import ModelFacts, Score
from saccade.show.report import Cell, Table, percent
from saccade.tasks.published import published_for
from saccade.verbs.plain_table import PlainTable

MODEL = "this model"
"""Who comes first in every table."""


@dataclass(frozen=True)
class StopScores:
    """Scores by name, of the model and of those who look otherwise; and where they come from."""

    headings: Mapping[str, str]
    """The scores that the model has, in the order of the table, each in words."""
    rows: Mapping[str, Mapping[str, float | None]]
    """Who looks, in words → scores; the model first."""
    score: Score
    where: str
    """The examples behind the numbers, in words that go on after "n = 500"."""

    @classmethod
    def of(cls, score: Score, where: str, headings: Mapping[str, str], others: Mapping[str, str]) -> StopScores:
        """Takes from an evaluation the scores that have a heading, and the baselines in ``others`` (name → in words).

        Baselines of an old definition that are not on the model's footing are left out.
        """
        own = {**score.metrics, **score.attention}
        shown = {name: heading for name, heading in headings.items() if isinstance(own.get(name), (int, float))}
        rivals = score.comparable_baselines
        everyone = {MODEL: own} | {word: rivals[who] for who, word in others.items() if who in rivals}
        held = {who: {name: values.get(name) for name in shown} for who, values in everyone.items()}
        rows = {who: row for who, row in held.items() if any(value is not None for value in row.values())}
        return cls(shown, rows, score, where)

    def cell(self, name: str, value: float | None) -> Cell:
        """A value of the score ``name`` in percent, with what it rests on."""
        return percent(value, note=f"n = {self.score.counts.get(name, self.score.n)} {self.where}")

    def figures(self, names: Sequence[str]) -> list[tuple[str, Cell]]:
        """The model's own scores ``names``, those that it has, each under its heading."""
        return [
            (self.headings[name], self.cell(name, self.rows[MODEL][name])) for name in names if name in self.headings
        ]

    def table(self, caption: str) -> Table:
        """Everyone's scores, for the page."""
        rows: list[list[Cell | str]] = [
            [who, *(self.cell(name, value) for name, value in values.items())] for who, values in self.rows.items()
        ]
        return Table(["", *self.headings.values()], rows, caption=caption, source=self.where, best_row=0)

    def plain_table(self, title: str) -> PlainTable:
        """The same for the terminal."""
        rows = [
            [who, *("–" if value is None else f"{100 * value:.1f}" for value in values.values())]
            for who, values in self.rows.items()
        ]
        return PlainTable(title, ("", *self.headings.values()), rows)


def as_score(found: Mapping[str, Any]) -> Score:
    """What an evaluation returned, as a model folder would record it."""
    return Score(**{each.name: found[each.name] for each in fields(Score) if each.name in found})


def recorded_score(name: str, facts: ModelFacts) -> Score:
    """The evaluation that came with the shipped model ``name``; a CheckpointError where there is none."""
    if not facts.scores:
        raise CheckpointError(f"{name}: shipped without a recorded score; record one with tools/record.py")
    return facts.scores[0]


def headline(name: str, facts: ModelFacts, metric: str, here: Score | None) -> list[str]:
    """The row of the summary: ``metric`` measured ``here``, recorded when the model was trained, and published."""
    recorded = facts.scores[0] if facts.scores else None
    published = published_for(facts)
    measured = ["–", "–"] if here is None else [_with_interval(here, metric), f"{here.n}"]
    full = "–" if recorded is None else f"{_percent(recorded.metrics, metric)} ({recorded.n:,})"
    return [name, metric, *measured, full, "–" if published is None else _percent(published.metrics, metric)]


def _with_interval(score: Score, metric: str) -> str:
    low, high = score.intervals[metric]
    return f"{100 * score.metrics[metric]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _percent(metrics: Mapping[str, Any], metric: str) -> str:
    return "–" if metrics.get(metric) is None else f"{100 * metrics[metric]:.2f}"
