"""Training: a recipe and a `Trainable` go in, a run folder comes out.

The engine knows tasks by protocol only. Several devices are driven by Lightning Fabric, one by `SingleDevice`, which
has the same interface. Names are loaded on first use, because torch takes seconds to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.engine.checkpoint import CheckpointStore
    from saccade.engine.health import TrainingStopped
    from saccade.engine.loop import RunResult, fit
    from saccade.engine.protocol import Trainable
    from saccade.engine.recipe import Phase, Recipe, load_recipe, packaged_recipes

__all__ = [
    "CheckpointStore",
    "Phase",
    "Recipe",
    "RunResult",
    "Trainable",
    "TrainingStopped",
    "fit",
    "load_recipe",
    "packaged_recipes",
]

_HOMES = {
    "CheckpointStore": "checkpoint",
    "Phase": "recipe",
    "Recipe": "recipe",
    "RunResult": "loop",
    "Trainable": "protocol",
    "TrainingStopped": "health",
    "fit": "loop",
    "load_recipe": "recipe",
    "packaged_recipes": "recipe",
}


if not TYPE_CHECKING:  # type checkers know the names above

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'saccade.engine' has no attribute '{name}'")
        return getattr(import_module(f"saccade.engine.{_HOMES[name]}"), name)
