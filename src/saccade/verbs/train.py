"""Train a recipe into a run folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.config import from_dict
from saccade.engine.recipe import Recipe, load_recipe
from saccade.errors import ConfigError
from saccade.tasks import task_class

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.engine.protocol import Trainable


def train(
    recipe: str | Path | None = None,
    *,
    out: Path | str,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    resume: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    strategy: str = "auto",
    precision: str | None = None,
    quiet: bool = False,
) -> RunResult:
    """Train ``recipe`` (a packaged name or a YAML file) into the run folder ``out``.

    Args:
        recipe: see ``saccade list recipes``; with ``resume`` it may be left out: the run knows its own.
        out: a new folder; with ``resume`` the folder of the run to continue.
        data: another data set than the recipe's, by name, or READER:PATH.
        backbone: another backbone than the recipe's, for models that can have one.
        protocol: ``authors`` or ``unlimited``.
        overrides: ``key=value`` texts, e.g. ``phases.0.steps=100``; values are read as YAML.
        seed: another seed than the recipe's.
        resume: go on where the run stopped, exactly.
        max_minutes: stop cleanly after this long.
        device: auto, cpu, cuda, cuda:N or mps.
        devices: how many of them on each of ``nodes`` machines.
        nodes: machines.
        strategy: a Fabric strategy, e.g. ddp.
        precision: auto, 32-true or bf16-mixed, instead of what the recipe says.
        quiet: no progress.
    """
    from saccade.engine.loop import fit  # brings Fabric, which takes seconds

    resolved = _recorded(Path(out)) if recipe is None and resume else None
    if resolved is None:
        if recipe is None:
            raise ConfigError("no recipe: name one (see 'saccade list recipes'), or go on with a run by --resume")
        chosen = list(overrides)
        for path, value in (("data.name", _anywhere(data)), ("model.config.backbone", backbone), ("seed", seed)):
            chosen += [] if value is None else [f"{path}={json.dumps(value)}"]  # a path may hold what YAML reads
        chosen += [] if precision is None else [f"precision={precision}"]
        resolved = load_recipe(recipe, protocol=protocol, overrides=chosen)
    elif overrides or any(value is not None for value in (data, backbone, protocol, seed, precision)):
        raise ConfigError("a run that goes on keeps its recipe: leave out --set, --data, --protocol and the like")
    return fit(
        build_task(resolved),
        resolved,
        out,
        resume=resume,
        max_minutes=max_minutes,
        device=device,
        devices=devices,
        nodes=nodes,
        strategy=strategy,
        progress="quiet" if quiet else "auto",
    )


def _anywhere(data: str | None) -> str | None:
    """READER:PATH with the path spelt out, so that the run can be resumed from any folder; a name as it is."""
    reader, sign, path = (data or "").partition(":")
    return f"{reader}:{Path(path).expanduser().absolute()}" if sign and path and len(reader) > 1 else data


def _recorded(run: Path) -> Recipe:
    """The recipe that a run began with."""
    from saccade.engine.run_folder import RunFolder

    return from_dict(Recipe, RunFolder(run).recorded(), where=str(run / "config.yaml"))


def build_task(recipe: Recipe) -> Trainable:
    """The task that a resolved recipe describes."""
    task: Trainable = task_class(recipe.task)(
        model=recipe.model.name,
        model_config=recipe.model.config,
        data=recipe.data,
        protocol=recipe.protocol,
        seed=recipe.seed,
    )
    return task
