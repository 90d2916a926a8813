"""Facts for the live page about caption models: the scenes that they were trained on."""

from __future__ import annotations

from saccade.families.caption.scenes import SIDES, scene_spec
from saccade.models.facts import ModelFacts
from saccade.web.page import CANVAS, TrainedScenes


def trained_scenes(facts: ModelFacts) -> TrainedScenes | None:
    """The scenes of the model's training; None for one that learned from other pictures, or does not say."""
    if str(facts.data.get("name")) != "scenes":
        return None
    fewest, most = scene_spec(CANVAS).count
    fewest = 0 if facts.data.get("empty") else fewest
    return TrainedScenes((fewest, most), SIDES, "black")  # sides are told in hundredths of the picture's
