"""Checks that a model can read its input: a story is not a picture, and a picture is not a story."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from saccade.data.files import plural
from saccade.errors import CheckpointError, DataError
from saccade.families import families
from saccade.families.contract import load_target
from saccade.families.reading import InputReader
from saccade.models.io.facts import read_facts
from saccade.predict import Predictor
from saccade.zoo import shipped

_NAMED = 3
"""Models that a message names."""


def check_kind(predictor: Predictor, files: Sequence[object]) -> None:
    """Refuse files that are all of one kind which other models read, by their endings; a mixed list goes on.

    Raises:
        DataError: it names the first file and shipped models that read its kind.
    """
    endings = {Path(file).suffix.lower() if isinstance(file, (str, Path)) else "" for file in files}
    if not endings or not endings.isdisjoint(predictor.reads.suffixes):
        return
    readers: list[InputReader] = [load_target(each.reads) for each in families().values()]
    kind = next((reads.thing for reads in readers if endings <= reads.suffixes), None)
    if kind is not None:
        models = " or ".join(_models_that_read(kind)) or f"a model of {plural(kind)}"
        raise DataError(
            f"{files[0]}: a {kind}, but the model '{predictor.name}' reads {plural(predictor.reads.thing)}; "
            f"{plural(kind)} are for `model={models}`"
        )


def _models_that_read(thing: str) -> list[str]:
    """Some shipped models that read it, those first that their families feature."""
    held = {name: each for name, each in families().items() if load_target(each.reads).thing == thing}
    featured = [name for each in held.values() for name in each.featured if name in shipped()]
    named = dict.fromkeys(featured)
    for name, folder in shipped().items():
        try:
            if read_facts(folder).family in held:
                named[name] = None
        except CheckpointError:
            continue  # a damaged one is no advice
    return list(named)[:_NAMED]
