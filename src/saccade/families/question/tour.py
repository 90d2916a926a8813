"""A stop of the tour at a model that answers questions: on generated scenes, or on photographs that do not ship."""

from __future__ import annotations

from collections.abc import Callable

from saccade.families.question.scene_data import SPECS
from saccade.families.question.scene_tour import scene_stop
from saccade.families.question.table_tour import table_stop
from saccade.models.io.facts import read_facts
from saccade.verbs.tour import Stop
from saccade.zoo import shipped


def stop(name: str, *, quick: bool, device: str, progress: Callable[[str, int, int], None]) -> Stop:
    """What the model called ``name`` adds to the tour."""
    guide = scene_stop if read_facts(shipped()[name]).data.get("name") in SPECS else table_stop
    return guide(name, quick=quick, device=device, progress=progress)
