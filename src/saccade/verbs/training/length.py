"""``--epochs``, ``--steps``, ``--lr`` and ``--batch-size`` of ``saccade train``, as overrides of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from saccade.engine.recipe import Recipe, load_recipe
from saccade.errors import ConfigError, prefix_errors


@dataclass(frozen=True)
class Length:
    """How long and how fast to train; None: as the recipe says."""

    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    lr: float | None = None

    def after(
        self,
        overrides: Sequence[str],
        recipes: Sequence[str | Path],
        *,
        protocol: str | None,
        phases: Sequence[str],
    ) -> list[str]:
        """``overrides``, and after them the ``key=value`` texts that make ``recipes`` so.

        Raises:
            ConfigError: a recipe has several phases and none is named, or recipes count their phases differently.
        """
        if self == Length():
            return list(overrides)
        if self.epochs is not None and self.steps is not None:
            raise ConfigError("give `epochs` or `steps`, not both")
        if not recipes:
            raise ConfigError("a resumed run keeps its recipe: leave out `epochs`, `steps`, `batch_size` and `lr`")
        each: list[list[str]] = []
        for name in recipes:
            with naming(name, recipes):
                each.append(self._of(load_recipe(name, protocol=protocol, overrides=overrides), phases))
        first = each[0]
        if any(found != first for found in each):
            raise ConfigError("the recipes count their phases differently: train them one by one")
        return [*overrides, *first]

    def _of(self, recipe: Recipe, phases: Sequence[str]) -> list[str]:
        chosen = [] if self.batch_size is None else [f"batch_size={self.batch_size}"]
        if self.epochs is None and self.steps is None and self.lr is None:
            return chosen
        meant = [(at, phase) for at, phase in enumerate(recipe.phases) if not phases or phase.name in phases]
        if len(meant) != 1:
            names = ", ".join(phase.name for phase in recipe.phases)
            raise ConfigError(
                f"'{recipe.name}' has the phases {names}: `epochs`, `steps` and `lr` are for one. Name it by `phases`, "
                "or write `overrides=['phases.0.epochs=10']` for each"
            )
        at, phase = meant[0]
        if self.lr is not None:
            chosen.append(f"phases.{at}.optimizer.lr={self.lr!r}")
        for unit, other, count in (("epochs", "steps", self.epochs), ("steps", "epochs", self.steps)):
            if count is not None:
                chosen += [f"phases.{at}.{unit}={count}", f"phases.{at}.{other}=null"]
                if getattr(phase, unit) is None:  # it counted otherwise, and so did its validations
                    chosen.append(f"phases.{at}.validate_every=null")
        return chosen


def naming(recipe: str | Path, recipes: Sequence[str | Path]) -> AbstractContextManager[None]:
    """Errors inside begin with the name of ``recipe``, where it is one of several."""
    return prefix_errors(str(recipe)) if len(recipes) > 1 else nullcontext()
