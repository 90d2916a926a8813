"""Train a recipe into a run folder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from saccade.backbones.hub import work_offline
from saccade.checks import check_numbers, check_reals
from saccade.config import from_dict
from saccade.devices import wake_cuda
from saccade.engine.recipe import Recipe, load_recipe
from saccade.engine.start_up import StartUp
from saccade.errors import ConfigError, nearest
from saccade.families import data_entries, family
from saccade.families.contract import load_target
from saccade.verbs.training.length import Length

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.engine.progress import ProgressMode
    from saccade.engine.protocol import Trainable
    from saccade.tasks.task import Task
    from saccade.verbs.train import TrainOptions
    from saccade.verbs.training.several import SeveralRuns

RUNS = "runs.json"
"""In a folder of several runs: which they are and how they ended."""


def train_any(
    recipe: str | Path | Sequence[str | Path] | None,
    *,
    out: Path | str,
    seeds: int | None,
    **given: Unpack[TrainOptions],
) -> RunResult | SeveralRuns:
    """Train one run, or several of them; see :func:`saccade.train`, whose arguments are all given.

    ``seeds`` and a list of recipes ask for several. An empty list, with ``resume``, means those in ``out``.
    """
    device, devices, nodes, at_once = given["device"], given["devices"], given["nodes"], given["at_once"]
    counts = {name: given[name] for name in ("epochs", "steps", "batch_size")}
    check_numbers(least=1, **counts, devices=devices, nodes=nodes)
    check_numbers(least=0, seed=given["seed"])
    check_reals(lr=given["lr"], max_minutes=given["max_minutes"])
    if given["offline"]:
        work_offline()
    settings = _settings(recipe, given)
    progress: ProgressMode = "quiet" if given["quiet"] else "auto"
    if seeds is not None or not (recipe is None or isinstance(recipe, (str, Path))):
        from saccade.verbs.training.several import train_several

        return train_several(
            _named(recipe) or None,
            out=out,
            settings=settings,
            seeds=seeds,
            at_once=at_once,
            resume=given["resume"],
            accept_changed_data=given["accept_changed_data"],
            max_minutes=given["max_minutes"],
            device=device,
            one_device=devices == nodes == 1 and given["strategy"] == "auto",
            progress=progress,
        )
    if at_once is not None:
        raise ConfigError("`at_once` is for several runs: it goes with `seeds` or several recipes")
    if given["resume"] and os.path.isfile(Path(out) / RUNS):
        raise ConfigError(f"{out} holds several runs: resume them with the same recipes and seeds as before")
    start_up = StartUp()
    if devices == nodes == 1:
        wake_cuda(device)
    import torch._dynamo  # optimisers import it, compiled or not  # noqa: F401

    from saccade.engine.loop import fit

    start_up.lap("imports")
    task, resolved = prepare(recipe, settings, out=Path(out), resume=given["resume"])
    start_up.lap("model")
    result = fit(
        task,
        resolved,
        out,
        resume=given["resume"],
        accept_changed_data=given["accept_changed_data"],
        max_minutes=given["max_minutes"],
        device=device,
        devices=devices,
        nodes=nodes,
        strategy=given["strategy"],
        progress=progress,
        start_up=start_up,
    )
    if devices == nodes == 1:
        describe(task, result)
    return result


def _named(recipe: str | Path | Sequence[str | Path] | None) -> list[str | Path]:
    return [] if recipe is None else [recipe] if isinstance(recipe, (str, Path)) else list(recipe)


def _settings(recipe: str | Path | Sequence[str | Path] | None, given: TrainOptions) -> Settings:
    """What is to be changed in the recipe."""
    phases, protocol = tuple(given["phases"]), given["protocol"]
    length = Length(given["epochs"], given["steps"], given["batch_size"], given["lr"])
    changes = given["overrides"]
    texts = (
        [f"{key}={json.dumps(value)}" for key, value in changes.items()] if isinstance(changes, Mapping) else changes
    )
    overrides = length.after(texts, _named(recipe), protocol=protocol, phases=phases)
    start = None if given["start"] is None else str(given["start"])
    data, backbone = _anywhere(given["data"]), given["backbone"]
    return Settings(data, backbone, protocol, start, phases, tuple(overrides), given["seed"], given["precision"])


def describe(task: Trainable, result: RunResult) -> None:
    """Once a run is over, let its model know what its inputs look like, and say so in the log of the run."""
    from saccade.engine.run_folder import RunFolder
    from saccade.tasks.describing import describe_trained

    if result.model is not None and result.stopped in ("finished", "early"):
        RunFolder(result.out).log(describe_trained(task, result.model))


@dataclass(frozen=True)
class Settings:
    """What a user changes in a recipe; see :func:`saccade.train`."""

    data: str | None = None
    backbone: str | None = None
    protocol: str | None = None
    start: str | None = None
    phases: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    seed: int | None = None
    precision: str | None = None

    def anywhere(self) -> Settings:
        """The same with paths spelt out, so that they hold in any folder; a bare name may be one of the zoo."""
        is_path = self.start is not None and "/" in self.start
        start = str(Path(self.start or "").expanduser().absolute()) if is_path else self.start
        return replace(self, data=_anywhere(self.data), start=start)

    def resolve(self, recipe: str | Path) -> Recipe:
        """``recipe`` with these settings in it."""
        chosen = list(self.overrides)
        given = {"data.name": self.data, "model.config.backbone": self.backbone, "seed": self.seed}
        given["start"] = self.start
        for path, value in given.items():
            chosen += [] if value is None else [f"{path}={json.dumps(value)}"]  # a path may hold what YAML reads
        chosen += [] if self.precision is None else [f"precision={self.precision}"]
        return _only(load_recipe(recipe, protocol=self.protocol, overrides=chosen), self.phases)


def prepare(
    recipe: str | Path | None, settings: Settings, *, out: Path, resume: bool = False
) -> tuple[Trainable, Recipe]:
    """The task and the resolved recipe of a run into ``out``; nothing is written yet."""
    from saccade.engine.run_folder import RunFolder

    if recipe is None and resume:
        resolved = _recorded(out)
        if settings != Settings():
            raise ConfigError("a resumed run keeps its recipe: leave out `overrides`, `data` and the like")
    elif recipe is None:
        raise ConfigError("no recipe: name one (see 'saccade list recipes'), or continue a run with `resume=True`")
    else:
        resolved = settings.resolve(recipe)
    task = build_task(resolved)
    if resolved.start is not None and (not resume or RunFolder(out).has_no_state):
        _begin(task, resolved.start, resolved.start_parts)
    return task, resolved


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
    left = cast("Task", task).start_from(wanted, start)
    unasked = [name for name in left if fits(name, parts)]
    if unasked:
        warnings.warn(f"start: {start} has nothing for {', '.join(unasked)}; this part starts untrained", stacklevel=4)


def _anywhere(data: str | None) -> str | None:
    """READER:PATH with the path spelt out, so that the run can be resumed from any folder; a name as it is.

    A path alone gets the reader that it is known by (:mod:`saccade.data.tables.references`).
    """
    if data is None:
        return None
    from saccade.data.tables.references import with_reader

    data = with_reader(data, data_entries())
    reader, sign, path = data.partition(":")
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
