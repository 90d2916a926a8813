"""The numbers that the papers print, as fractions: one row of ``published.csv`` each."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from saccade.models.io.facts import ModelFacts


@dataclass(frozen=True)
class Published:
    """One number of a paper's table."""

    value: float
    table: str
    """Name of the table for ``saccade reproduce``."""
    paper: str
    system: str
    data: str
    protocol: str
    """The label of our runs that were made as the paper's was; see :attr:`saccade.papers.results.Run.label`."""
    metric: str
    conditions: str
    """What is known of how it was measured, and why ours may not compare."""


@cache
def published() -> tuple[Published, ...]:
    """Every number, in the order of the tables."""
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        return tuple(Published(float(row.pop("value")), **row) for row in csv.DictReader(file))


def published_for(facts: ModelFacts) -> dict[str, float]:
    """By metric, what a paper says of the model that ``facts`` describe; empty if it was trained or built differently.

    The recipe decides: ``hsal-mnist-set`` and ``sat-soft`` are systems of the papers, ``hsal-ordered-mnist-set`` and
    ``sat-soft-tuned`` are not. Nor is a system that a paper trained in several ways, such as MemN2N.
    """
    system, data = facts.architecture, str(facts.data.get("name"))
    recipe = facts.recipe.get("name", system)
    rows = [row for row in published() if (row.system, row.data) == (system, data)]
    of_the_paper = recipe == system or recipe.startswith(f"{system}-{data}")
    one_way = len({row.protocol for row in rows}) == 1
    return {row.metric: row.value for row in rows} if of_the_paper and one_way else {}
