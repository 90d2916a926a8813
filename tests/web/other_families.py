"""Families of somebody else, as small as they can be: one with free questions and a panel, one that reads stories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.errors import DataError
from saccade.families.contract import Family, ModelSpec
from saccade.families.reading import InputReader, Item, Prepared
from saccade.models.facts import ModelFacts

PANEL = """// One line of text, the questions as buttons, and the last answer.
export function panel(place, { model, element, ask }) {
  const said = element("p", { text: `<i>Lines</i> of ${model.name}`, class: "line" }); // text, not markup
  const buttons = model.queries.map((word) => element("button", { text: `ask ${word}`, onclick: () => ask(word) }));
  place.append(said, ...buttons);
  return {
    answered: (view) => said.setAttribute("data-answer", `${view.question}: ${view.answer}`),
    closed: () => document.body.setAttribute("data-closed", model.name),
  };
}
"""


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


def lines(folder: Path, panel: str | None = "panel.js", **changes: Any) -> Family:
    """Like questions about pictures, with a panel that lies in ``folder``."""
    if panel == "panel.js":
        (folder / panel).write_text(PANEL, encoding="utf-8")
    values = {
        "name": "lines",
        "title": "a picture in, a line out",
        "folder": folder,
        "reads": "saccade.families.pictures:PICTURES",
        "models": {"line-soft": ModelSpec("saccade.models.soft:SoftModel", "draws lines", "nobody")},
        "data": {},
        "task": "saccade.families.question.task:QuestionTask",
        "splits": "saccade.families.question.splits",
        "decode": "saccade.families.labels:decode",
        "headline": ("accuracy",),
        "page": "saccade.families.question.page",
        "panel": panel,
    }
    return Family(**{**values, **changes})
