"""Where the model of a run looks: a few pictures of its validation split, for the report of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.examples import Data, Example, examples_of
from saccade.data.tables.splits import Split
from saccade.engine.run_folder import RunFolder
from saccade.errors import DataError, SaccadeError
from saccade.families.caption.data import CaptionData, CaptionDataConfig
from saccade.families.caption.readers import read_captions
from saccade.families.caption.vocabulary import Vocabulary
from saccade.families.multiset.data import MultisetData, MultisetDataConfig
from saccade.families.multiset.readers import read_multisets
from saccade.families.question.readers import read_questions
from saccade.families.question.scene_data import SceneData, SceneDataConfig
from saccade.families.question.table_data import TableData, TableDataConfig
from saccade.models.io.facts import CONFIG, ModelFacts
from saccade.predict import Predictor, load
from saccade.show.marks import Mask
from saccade.show.report import Gallery, Picture, Section

TITLE = "Where it looks"
SPLIT: Split = "val"


def run_looks(run: Path, count: int, device: str = "auto") -> Section | None:
    """Answers to the first ``count`` validation pictures of ``run``, look by look.

    A report is worth having without them: where the pictures are not there any more, the section says so; of a run that
    has not kept a model yet there is none.
    """
    if not count or not (run / "model" / CONFIG).is_file():
        return None
    try:
        predictor = load(run, device)
        data, what = _opened(predictor.facts, RunFolder(run).recorded(), count)
        shown = [_shown(predictor, example) for example in examples_of(data, count)]
    except SaccadeError as error:
        return Section(TITLE, f"The pictures of the validation split cannot be shown: {error}")
    caption = f"The first {what}; outlined, where the truth is to be seen, if that is known"
    return Section(TITLE, blocks=[Gallery(shown, caption, wide=True)])


def _shown(predictor: Predictor, example: Example) -> Picture:
    seen = predictor.look(example.image.cpu(), ask=example.question)
    outline = {} if seen.is_caption else {"outline": [Mask(mask.numpy()) for mask in example.masks]}
    asked = "" if example.question is None else f"{example.question}: "
    told = f"{asked}{seen.answer}, {seen.confidence:.0%} sure; true: {example.truth}"
    panel = 150 if example.question is None else 200  # what is read step by step has many panels
    return Picture(seen.filmstrip(panel=panel, **outline), told, alt=f"Every look; {told}")


def _opened(facts: ModelFacts, recipe: Mapping[str, Any], count: int) -> tuple[Data, str]:
    """The validation split of a run, of files only its first ``count`` pictures; and what these are.

    A model forgets where its files were, the recipe of the run does not. Scenes are made of shipped digits where those
    that it was trained with are not on this machine.
    """
    settings = {**facts.data, "name": recipe["data"].get("name", facts.data["name"])}
    opener = _OPENERS[facts.family]
    if ":" in settings["name"]:
        return opener(facts, settings, count), "pictures of the validation split"
    try:
        return opener(facts, settings, count), "scenes of the validation split"
    except DataError:
        shipped = opener(facts, {**settings, "glyphs": "pack"}, count)
        return shipped, "scenes of the validation split, made of shipped digits as MNIST is not here"


def _attributes(facts: ModelFacts, settings: Mapping[str, Any], count: int) -> Data:
    return SceneData(from_dict(SceneDataConfig, settings, where="data"), SPLIT)


def _questions(facts: ModelFacts, settings: Mapping[str, Any], count: int) -> Data:
    config = from_dict(TableDataConfig, settings, where="data")
    table = read_questions(config.name, config.options).some(SPLIT, count)
    return TableData(config, SPLIT, table=table, queries=facts.queries, answers=facts.answers)


def _multisets(facts: ModelFacts, settings: Mapping[str, Any], count: int) -> Data:
    config = from_dict(MultisetDataConfig, settings, where="data")
    table = None if config.is_generated else read_multisets(config.name, config.options).some(SPLIT, count)
    return MultisetData(config, SPLIT, table=table, classes=facts.answers)


def _captions(facts: ModelFacts, settings: Mapping[str, Any], count: int) -> Data:
    config = from_dict(CaptionDataConfig, settings, where="data")
    table = None if config.is_generated else read_captions(config.name, config.options).some(SPLIT, count)
    vocabulary = Vocabulary.of_model(facts.answers)
    return CaptionData(config, SPLIT, vocabulary=vocabulary, table=table)


_OPENERS: dict[str, Callable[[ModelFacts, Mapping[str, Any], int], Data]] = {
    "attribute": _attributes,
    "caption": _captions,
    "multiset": _multisets,
    "question": _questions,
}
