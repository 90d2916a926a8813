"""Train a recipe into a run folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from saccade.config import from_dict
from saccade.engine.recipe import Recipe, load_recipe
from saccade.errors import ConfigError, nearest
from saccade.families import family
from saccade.families.contract import load_target

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.engine.protocol import Trainable
    from saccade.tasks.task import Task


def train(
    recipe: str | Path | None = None,
    *,
    out: Path | str,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    start: str | Path | None = None,
    phases: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    resume: bool = False,
    accept_changed_data: bool = False,
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
        start: begin with the weights of this model where they fit: a name of the zoo, a run, or a model folder.
        phases: train these phases of the recipe alone, by name; none: all of them.
        overrides: ``key=value`` texts, e.g. ``phases.0.steps=100``; values are read as YAML.
        seed: another seed than the recipe's.
        resume: go on where the run stopped, exactly; refused when the data is not what the run began with.
        accept_changed_data: with ``resume``, go on although the data changed; the model's card says so.
        max_minutes: stop cleanly after this long.
        device: auto, cpu, cuda, cuda:N or mps.
        devices: how many of them on each of ``nodes`` machines.
        nodes: machines.
        strategy: a Fabric strategy, e.g. ddp.
        precision: auto, 32-true or bf16-mixed, instead of what the recipe says.
        quiet: no progress.
    """
    from saccade.engine.loop import fit  # brings Fabric, which takes seconds
    from saccade.engine.run_folder import RunFolder

    resolved = _recorded(Path(out)) if recipe is None and resume else None
    if resolved is None:
        if recipe is None:
            raise ConfigError("no recipe: name one (see 'saccade list recipes'), or go on with a run by --resume")
        resolved = choose_recipe(
            recipe,
            data=_anywhere(data),
            backbone=backbone,
            protocol=protocol,
            start=start,
            phases=phases,
            overrides=overrides,
            seed=seed,
            precision=precision,
        )
    elif overrides or phases or any(value is not None for value in (data, backbone, protocol, start, seed, precision)):
        raise ConfigError("a run that goes on keeps its recipe: leave out --set, --data, --protocol and the like")
    task = build_task(resolved)
    if resolved.start is not None and (not resume or RunFolder(Path(out)).has_no_state):
        _begin(task, resolved.start, resolved.start_parts)
    return fit(
        task,
        resolved,
        out,
        resume=resume,
        accept_changed_data=accept_changed_data,
        max_minutes=max_minutes,
        device=device,
        devices=devices,
        nodes=nodes,
        strategy=strategy,
        progress="quiet" if quiet else "auto",
    )


def choose_recipe(
    recipe: str | Path,
    *,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    start: str | Path | None = None,
    phases: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    precision: str | None = None,
) -> Recipe:
    """The resolved recipe of the options of :func:`train`; ``data`` is taken as it is."""
    chosen = list(overrides)
    given = {"data.name": data, "model.config.backbone": backbone, "seed": seed}
    given["start"] = None if start is None else str(start)
    for path, value in given.items():
        chosen += [] if value is None else [f"{path}={json.dumps(value)}"]  # a path may hold what YAML reads
    chosen += [] if precision is None else [f"precision={precision}"]
    return _only(load_recipe(recipe, protocol=protocol, overrides=chosen), phases)


def _only(recipe: Recipe, phases: Sequence[str]) -> Recipe:
    """The recipe with the phases of these names alone, in its own order; with all of them where none is named."""
    known = [phase.name for phase in recipe.phases]
    for name in phases:
        if name not in known:
            raise ConfigError(f"no phase '{name}' in the recipe '{recipe.name}': {nearest(name, known)}")
    return replace(recipe, phases=tuple(phase for phase in recipe.phases if phase.name in phases)) if phases else recipe


def _begin(task: Trainable, start: str, parts: Sequence[str]) -> None:
    """Give the task's model the weights of another whose names match ``parts``; say what begins anew unasked."""
    from saccade.engine.phases import check_patterns, fits
    from saccade.models.io.folder import load_model
    from saccade.zoo import resolve

    weights = load_model(resolve(start))[0].state_dict()
    check_patterns(parts, list(weights), where="start_parts")
    wanted = {name: tensor for name, tensor in weights.items() if fits(name, parts)}
    left = cast("Task", task).begin_with(wanted, start)
    unasked = [name for name in left if fits(name, parts)]
    if unasked:
        warnings.warn(f"start: {start} has nothing for {', '.join(unasked)}; this begins anew", stacklevel=3)


def _anywhere(data: str | None) -> str | None:
    """READER:PATH with the path spelt out, so that the run can be resumed from any folder; a name as it is."""
    reader, sign, path = (data or "").partition(":")
    return f"{reader}:{Path(path).expanduser().absolute()}" if sign and path and len(reader) > 1 else data


def _recorded(run: Path) -> Recipe:
    """The recipe that a run began with."""
    from saccade.engine.run_folder import RunFolder

    return from_dict(Recipe, RunFolder(run).recorded(), where=str(run / "config.yaml"))


def data_of(run: Path | str) -> str:
    """What a run learns from, as ``--data`` names it; of files READER:PATH, which its model does not remember."""
    return str(_recorded(Path(run)).data.get("name", ""))


def build_task(recipe: Recipe) -> Trainable:
    """The task that a resolved recipe describes."""
    task: Trainable = load_target(family(recipe.family).task).for_data(str(recipe.data.get("name", "")))(
        model=recipe.model.name,
        model_config=recipe.model.config,
        data=recipe.data,
        protocol=recipe.protocol,
        seed=recipe.seed,
    )
    return task
