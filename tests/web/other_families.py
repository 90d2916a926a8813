"""Families of somebody else, as small as they can be: one with free questions and a panel, one that reads stories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.errors import DataError
from saccade.families import Family, ModelSpec
from saccade.families.answering import InputReader, Item, Prepared
from saccade.families.question.task import QuestionTask
from saccade.models.facts import ModelFacts
from saccade.models.soft import SoftModel

PANEL = "// Nothing to be seen.\nexport function panel(place) {}\n"


class Stories(InputReader):
    """How stories would be read; nobody sends any here."""

    thing = "story"
    suffixes = frozenset({".txt"})

    def read(self, source: Any) -> Item:
        """Nothing is read."""
        raise DataError(f"found {source}")

    def prepare(self, items: Sequence[Any], facts: ModelFacts) -> Prepared:
        """Nothing is prepared."""
        raise DataError(f"found {len(items)}")


STORIES = Stories()


class Lines(Family):
    """Asked as questions about pictures are."""

    def task(self) -> Any:
        return QuestionTask


class Tales(Lines):
    """Reads stories, and tells the page nothing."""

    def reads(self) -> Stories:
        return STORIES


def lines(folder: Path, panel: str | None = "panel.js", kind: type[Family] = Lines, **changes: Any) -> Family:
    """Like questions about pictures, with a panel that lies in ``folder``."""
    if panel == "panel.js":
        (folder / panel).write_text(PANEL, encoding="utf-8")
    values = {
        "name": "lines",
        "title": "a picture in, a line out",
        "folder": folder,
        "models": {"line-soft": ModelSpec(lambda: SoftModel, "draws lines", "nobody")},
        "data": {},
        "headline": ("accuracy",),
        "panel": panel,
    }
    return kind(**{**values, **changes})
