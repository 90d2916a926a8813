"""Training: a recipe and a task go in, a run folder comes out.

Of a task the engine asks the methods of :class:`saccade.tasks.task.Task` and nothing else. Several devices are driven
by Lightning Fabric, one by `SingleDevice`, which has the same interface. Names are loaded on first use, because torch
takes seconds to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.engine.checkpoint import CheckpointStore as CheckpointStore
    from saccade.engine.loop import RunResult as RunResult
    from saccade.engine.loop import fit as fit
    from saccade.engine.recipe import Phase as Phase
    from saccade.engine.recipe import Recipe as Recipe
    from saccade.engine.recipe import load_recipe as load_recipe
    from saccade.engine.recipe import packaged_recipes as packaged_recipes
    from saccade.errors import TrainingStopped as TrainingStopped
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
