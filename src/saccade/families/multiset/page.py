"""Facts for the live page about multiset models: the scenes that they were trained on."""

from __future__ import annotations

from saccade.families.multiset.data import SCENES
from saccade.families.multiset.scenes import MultisetSpec
from saccade.models.facts import ModelFacts
from saccade.web.page import CANVAS, TrainedScenes


def trained_scenes(facts: ModelFacts) -> TrainedScenes | None:
    """The scenes of the model's training; None for one that learned from other pictures, or does not say."""
    if (kind := SCENES.get(str(facts.data.get("name")))) is None:
        return None
    spec = MultisetSpec(CANVAS, **kind)
    fewest = 0 if facts.data.get("empty") and not spec.alone else 1
    sizes = ((spec.smallest, spec.largest),)
    return TrainedScenes((fewest, spec.slots), sizes, "clutter", colours=("white",), repeats=spec.repeats)
