"""The scenes that a model learned from, as its facts name them: where it is at home among what can be composed.

The numbers are those of the generators themselves, at the size of a composed scene. Nothing here needs the extra
``web``: a page without a server tells them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from saccade.data.scenes.layout import SceneSpec
from saccade.data.scenes.palette import COLOURS
from saccade.data.scenes.placement import FRACTION_BITS
from saccade.families.caption.scenes import SIDES, scene_spec
from saccade.families.multiset.scenes import MultisetSpec
from saccade.families.question.scene_data import SPECS
from saccade.models.io.facts import ModelFacts

CANVAS = 100
"""Side of a composed scene in pixels, as the models of digits were trained."""
_EMPTY = ("scenes", "mnist-multiset", "mnist-set")  # some of them may have no digit, as the setting ``empty`` says
Behind = Literal["black", "distractors", "clutter", "photo"]


@dataclass(frozen=True)
class TrainedScenes:
    """What the scenes of a model's training have in common."""

    digits: tuple[int, int]
    """Fewest and most."""
    sizes: tuple[tuple[int, int], ...]
    """Ranges of the sides of their boxes in pixels."""
    background: Behind
    colours: tuple[str, ...] = COLOURS
    repeats: bool = False
    """Whether a digit may be there twice."""


def trained_scenes(facts: ModelFacts) -> TrainedScenes | None:
    """The scenes of the model's training; None for one that learned from other pictures, or does not say."""
    name = str(facts.data.get("name"))
    if (made := _KINDS.get(name)) is None:
        return None
    trained = made()
    return replace(trained, digits=(0, trained.digits[1])) if name in _EMPTY and facts.data.get("empty") else trained


def _attributes(spec: SceneSpec, background: Behind) -> TrainedScenes:
    return TrainedScenes(spec.count, ((spec.extents[0] >> FRACTION_BITS, spec.largest),), background)


def _captions() -> TrainedScenes:
    return TrainedScenes(scene_spec(CANVAS).count, SIDES, "black")  # sides are told in hundredths of the picture's


def _multisets(spec: MultisetSpec) -> TrainedScenes:
    sizes = ((spec.smallest, spec.largest),)
    return TrainedScenes((1, spec.slots), sizes, "clutter", colours=("white",), repeats=spec.repeats)


_KINDS: Mapping[str, Callable[[], TrainedScenes]] = {
    "mref": lambda: _attributes(SPECS["mref"], "black"),
    "mdist": lambda: _attributes(SPECS["mdist"], "distractors"),
    "mbg": lambda: _attributes(SPECS["mbg"], "photo"),
    "scenes": _captions,
    "mnist-multiset": lambda: _multisets(MultisetSpec(CANVAS)),
    "mnist-set": lambda: _multisets(MultisetSpec(CANVAS, repeats=False)),
    "mnist-single": lambda: _multisets(MultisetSpec(CANVAS, repeats=False, alone=True)),
}
