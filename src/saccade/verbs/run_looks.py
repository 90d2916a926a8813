"""Where the model of a run looks: a few examples of its validation split, for the report of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from saccade.data.examples import Example
from saccade.engine.run_folder import RunFolder
from saccade.errors import SaccadeError
from saccade.families.splits import Opened
from saccade.models.io.facts import CONFIG
from saccade.predict import Predictor, load
from saccade.show.marks import Mask
from saccade.show.report import Gallery, Picture, Section

TITLE = "Where it looks"
SPLIT = "val"


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
        shown = [_shown(predictor, example) for example in opened.examples(count)]
    except SaccadeError as error:
        return Section(TITLE, f"The examples of the validation split cannot be shown: {error}")
    remark = f", {opened.summary}" if opened.summary and ":" not in opened.summary else ""
    caption = f"The first of the validation split{remark}; outlined, where the truth is to be seen, if that is known"
    return Section(TITLE, blocks=[Gallery(shown, caption, wide=True)])


def _shown(predictor: Predictor, example: Example) -> Picture:
    seen = predictor.look(example.source, ask=example.question)
    is_word_by_word = seen.is_caption or not seen.is_spatial
    outline: dict[str, Any] = {} if is_word_by_word else {"outline": [Mask(mask.numpy()) for mask in example.masks]}
    panel = {"panel": 150 if example.question is None else 200} if seen.is_spatial else {}  # many steps, small panels
    asked = "" if example.question is None else f"{example.question}: "
    told = f"{asked}{seen.answer}, {seen.confidence:.0%} sure; true: {example.truth}"
    return Picture(seen.filmstrip(**panel, **outline), told, alt=f"Every look; {told}")


def _opened(predictor: Predictor, data: dict[str, Any], count: int) -> Opened:
    """The validation split of a run; a model forgets where its files were, the recipe of the run does not."""
    settings = {**predictor.facts.data, "name": data.get("name", predictor.facts.data["name"])}
    opened: Opened = predictor.family.load_splits().open_split(settings, SPLIT, facts=predictor.facts, count=count)
    return opened
