"""Train a recipe into a run folder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, cast, overload

from saccade.backbones.hub import work_offline
from saccade.config import from_dict
from saccade.devices import wake_cuda
from saccade.engine.recipe import Recipe, load_recipe
from saccade.engine.start_up import StartUp
from saccade.errors import ConfigError, nearest
from saccade.families import data_entries, family
from saccade.families.contract import load_target
from saccade.quick_imports import quick_imports
from saccade.verbs.train_length import Length

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.engine.protocol import Trainable
    from saccade.tasks.task import Task

RUNS = "runs.json"
"""In a folder of several runs: which they are and how they ended."""


Several = list[str] | list[Path] | tuple[str | Path, ...]
"""Recipes, by name or file."""


class Options(TypedDict, total=False):
    """What may be said of a training besides its recipe, place and seeds; see `train`."""

    data: str | None
    backbone: str | None
    protocol: str | None
    start: str | Path | None
    phases: Sequence[str]
    overrides: Sequence[str]
    epochs: int | None
    steps: int | None
    batch_size: int | None
    lr: float | None
    seed: int | None
    at_once: int | None
    resume: bool
    accept_changed_data: bool
    max_minutes: float | None
    device: str
    devices: int
    nodes: int
    strategy: str
    precision: str | None
    offline: bool
    quiet: bool


@overload
def train(
    recipe: str | Path | None = None, *, out: Path | str, seeds: None = None, **options: Unpack[Options]
) -> RunResult: ...


@overload
def train(
    recipe: str | Path | Several, *, out: Path | str, seeds: int, **options: Unpack[Options]
) -> list[RunResult]: ...


@overload
def train(recipe: Several, *, out: Path | str, seeds: None = None, **options: Unpack[Options]) -> list[RunResult]: ...


def train(
    recipe: str | Path | Several | None = None,
    *,
    out: Path | str,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    start: str | Path | None = None,
    phases: Sequence[str] = (),
    overrides: Sequence[str] = (),
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    at_once: int | None = None,
    resume: bool = False,
    accept_changed_data: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    strategy: str = "auto",
    precision: str | None = None,
    offline: bool = False,
    quiet: bool = False,
) -> RunResult | list[RunResult]:
    """Train ``recipe`` (a packaged name or a YAML file) into the run folder ``out``.

    With ``seeds``, or with a list of recipes, several runs are trained side by side, each in a process of its own and
    into a folder of its own below ``out``; see :mod:`saccade.verbs.train_several`. Then a list of results is returned.

    Args:
        recipe: see ``saccade list recipes``; with ``resume`` it may be left out: the run knows its own.
        out: a new folder; with ``resume`` the folder of the run to continue.
        data: another data set than the recipe's, by name, or READER:PATH.
        backbone: another backbone than the recipe's, for models that can have one.
        protocol: ``authors`` or ``unlimited``.
        start: begin with the weights of this model where they fit: a name of the zoo, a run, or a model folder.
        phases: train these phases of the recipe alone, by name; none: all of them.
        overrides: ``key=value`` texts, e.g. ``phases.0.steps=100``; values are read as YAML.
        epochs: how often to see all data, in place of what the recipe says; of its one phase, or of that in ``phases``.
        steps: the same in batches.
        batch_size: samples of one step.
        lr: learning rate, of the same phase.
        seed: another seed than the recipe's; with ``seeds`` the first of them.
        seeds: how many seeds of each recipe to train.
        at_once: of several runs, how many at the same time; None: as many as cores and memory allow.
        resume: go on where the run stopped, exactly; refused when the data is not what the run began with.
        accept_changed_data: with ``resume``, go on although the data changed; the model's card says so.
        max_minutes: stop cleanly after this long.
        device: auto, cpu, cuda, cuda:N or mps.
        devices: how many of them on each of ``nodes`` machines.
        nodes: machines.
        strategy: a Fabric strategy, e.g. ddp.
        precision: auto, 32-true or bf16-mixed, instead of what the recipe says.
        offline: fetch no weights of timm and the like.
        quiet: no progress.

    Raises:
        RunsFailed: of several runs, some failed; the others are done.
    """
    if offline:
        work_offline()
    started = None if start is None else str(start)
    names = [] if recipe is None else [recipe] if isinstance(recipe, (str, Path)) else recipe
    overrides = Length(epochs, steps, batch_size, lr).after(overrides, names, protocol=protocol, phases=phases)
    settings = Settings(_anywhere(data), backbone, protocol, started, tuple(phases), tuple(overrides), seed, precision)
    if seeds is not None or not (recipe is None or isinstance(recipe, (str, Path))):
        from saccade.verbs.train_several import train_several

        several = train_several(
            [recipe] if isinstance(recipe, (str, Path)) else recipe,
            out=out,
            settings=settings,
            seeds=seeds,
            at_once=at_once,
            resume=resume,
            accept_changed_data=accept_changed_data,
            max_minutes=max_minutes,
            device=device,
            one_device=devices == nodes == 1,
            progress="quiet" if quiet else "auto",
        )
        return several.results()
    if at_once is not None:
        raise ConfigError("--at-once is for several runs: it goes with --seeds or several recipes")
    if resume and os.path.isfile(Path(out) / RUNS):
        raise ConfigError(f"{out} holds several runs: resume them with the same recipes and seeds as before")
    start_up = StartUp()
    if devices == nodes == 1:
        wake_cuda(device)
    with quick_imports():
        import torch._dynamo  # optimisers import it, compiled or not  # noqa: F401

        from saccade.engine.loop import fit

    start_up.lap("imports")
    task, resolved = prepare(recipe, settings, out=Path(out), resume=resume)
    start_up.lap("model")
    result = fit(
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
        start_up=start_up,
    )
    if devices == nodes == 1:
        describe(task, result)
    return result


def describe(task: Trainable, result: RunResult) -> None:
    """Once a run is over, let its model know what its inputs look like, and say so in the log of the run."""
    from saccade.engine.run_folder import RunFolder
    from saccade.tasks.describing import describe_trained

    if result.model is not None and result.stopped in ("finished", "early"):
        RunFolder(result.out).log(describe_trained(task, result.model))


@dataclass(frozen=True)
class Settings:
    """What a user changes in a recipe; see `train`."""

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
            raise ConfigError("a resumed run keeps its recipe: leave out --set, --data, --protocol and the like")
    elif recipe is None:
        raise ConfigError("no recipe: name one (see 'saccade list recipes'), or continue a run with --resume")
    else:
        resolved = settings.resolve(recipe)
    with quick_imports():
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

    A path alone gets the reader that it is known by (:mod:`saccade.data.tables.reader_for_path`).
    """
    if data is None:
        return None
    from saccade.data.tables.reader_for_path import with_reader

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
