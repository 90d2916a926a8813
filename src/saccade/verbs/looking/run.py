"""Where the model of a run looks: a few examples of its validation split, for the report of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade.data.examples import Example
from saccade.engine.run_folder import RunFolder
from saccade.errors import SaccadeError
from saccade.families.splits import OpenedSplit
from saccade.models.io.facts import CONFIG
from saccade.predict import Predictor, load
from saccade.show.answer_sections import caption, mistakes_section
from saccade.show.marks import Mask
from saccade.show.report import Block, Gallery, Picture, Section, SlotHeat
from saccade.sighting import Sighting

TITLE = "Where it looks"
SPLIT = "val"
MISTAKES = 20
"""Mistakes that are shown."""
_PANEL = 320  # pixels of a mistake's longer side


def run_looks(run: Path, count: int, device: str = "auto") -> Section | None:
    """Answers to the first ``count`` validation examples of ``run``, look by look.

    A report is worth having without them: where the files are not there any more, the section says so; a run that has
    not kept a model yet has none.
    """
    if not count or not (run / "model" / CONFIG).is_file():
        return None
    try:
        predictor = load(run, device)
        opened = _opened(predictor, RunFolder(run).recorded()["data"], count)
        seen = [(predictor.look(each.source, ask=each.question), each) for each in opened.examples(count)]
        remark = f", {opened.summary}" if opened.summary and ":" not in opened.summary else ""
        blocks = look_blocks(seen, f"The first of the validation split{remark}")
    except SaccadeError as error:
        return Section(TITLE, f"The examples of the validation split cannot be shown: {error}")
    return Section(TITLE, blocks=blocks)


def mistake_looks(run: Path, mistakes: Sequence[Mapping[str, Any]], split: str, device: str = "auto") -> Section:
    """The surest wrong answers of an evaluation, each with where the model looked.

    Args:
        run: whose model answered.
        mistakes: picture, question, true answer and what was said, of each.
        split: that was scored.
        device: on which it answers.
    """
    pictures: list[Picture] = []
    missing = ""
    try:
        predictor = load(run, device)
        for each in mistakes[:MISTAKES]:
            seen = predictor.look(each["picture"], ask=each.get("asked"))
            told = f"{caption(each)}. {Path(each['picture']).name}"
            shown = seen.overlay()
            shown.thumbnail((_PANEL, _PANEL))
            pictures.append(Picture(shown, told, f"{Path(each['picture']).name} with the map over it"))
    except SaccadeError as error:
        missing = f"Not all can be shown: {error}"
    return mistakes_section(pictures, f"{split} pictures", missing)


def look_blocks(seen: Sequence[tuple[Sighting, Example]], title: str) -> list[Block]:
    """A gallery of pictures; or, of what was no picture, a table for each."""
    pictures = [_shown(sighting, example) for sighting, example in seen if sighting.is_spatial]
    caption = f"{title}; the evidence is outlined where it is known"
    tables = [SlotHeat(each.slot_grid, _told(each, example)) for each, example in seen if not each.is_spatial]
    return [*([Gallery(pictures, caption, wide=True)] if pictures else []), *tables]


def _shown(seen: Sighting, example: Example) -> Picture:
    outline: dict[str, Any] = {} if seen.is_caption else {"outline": [Mask(mask.numpy()) for mask in example.masks]}
    panel = 150 if example.question is None else 200  # many steps, small panels
    told = _told(seen, example)
    return Picture(seen.filmstrip(panel=panel, **outline), told, alt=f"Every look; {told}")


def _told(seen: Sighting, example: Example) -> str:
    asked = "" if example.question is None else f"{example.question}: "
    true = f"; true: {example.truth}" if example.truth else ""
    return f"{asked}{seen.answer}, {seen.confidence:.0%} sure{true}"


def _opened(predictor: Predictor, data: dict[str, Any], count: int) -> OpenedSplit:
    """The validation split of a run; a model forgets where its files were, the recipe of the run does not."""
    settings = {**predictor.facts.data, "name": data.get("name", predictor.facts.data["name"])}
    opened: OpenedSplit = predictor.family.load_splits().open_split(settings, SPLIT, facts=predictor.facts, count=count)
    return opened
