"""A row of a paper's table, so that every measured number can stand beside the printed one.

All values are fractions. The numbers themselves lie with their family, in the dictionary that
:attr:`saccade.families.contract.Family.published` names. Most papers do not state the projection, the seeds or the size
of the test set; ``note`` says what is known, and ``not_comparable`` why a number measured here measures something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saccade.families import families
from saccade.families.contract import load_target
from saccade.models.io.facts import ModelFacts


@dataclass(frozen=True)
class Published:
    """One row of a paper's table for one data set."""

    metrics: dict[str, float]
    source: str
    note: str = ""
    not_comparable: str = ""
    """Why what is measured here cannot be compared with it; empty where it can."""


def published_rows(family_name: str) -> Mapping[tuple[str, str], Published]:
    """The published rows of a family by (system, data set); none if it has no table or is not installed."""
    family = families().get(family_name)
    if family is None or family.published is None:
        return {}
    rows: Mapping[tuple[str, str], Published] = load_target(family.published)
    return rows


def published_for(facts: ModelFacts) -> Published | None:
    """The published row of the model that ``facts`` describe; None if it was trained or built differently.

    The recipe decides: ``hsal-mnist-set`` and ``sat-soft`` are systems of the papers, ``hsal-ordered-mnist-set`` and
    ``sat-soft-tuned`` are not.
    """
    system, data = facts.architecture, str(facts.data.get("name"))
    recipe = facts.recipe.get("name", system)
    is_of_the_paper = recipe == system or recipe.startswith(f"{system}-{data}")
    return published_rows(facts.family).get((system, data)) if is_of_the_paper else None
