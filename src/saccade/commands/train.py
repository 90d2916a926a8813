"""``train``: a recipe in, a run folder out; with ``seeds`` a folder of runs, trained in turn."""

from __future__ import annotations

import json
import shlex
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from saccade.commands.verb import Command, Remark, checked, print_table, wake_cuda
from saccade.config import Within
from saccade.engine.recipe import Recipe, load_recipe
from saccade.errors import ConfigError, nearest
from saccade.families.registry import data_entries, family, recipes

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.tasks.task import Task


# Settings of a recipe that arguments of :func:`train` change …
_SETTINGS = {
    **{name: name for name in ("start", "batch_size", "seed", "precision")},
    **{"data": "data.name", "backbone": "model.config.backbone"},
}
_OF_ONE_PHASE = ("epochs", "steps", "lr")  # … those of one phase, and all that change the recipe.
CHANGES = ("protocol", "phases", "overrides", *_SETTINGS, *_OF_ONE_PHASE)


@overload
def train(recipe: str | Path | None = None, *, out: Path | str, seeds: None = None, **options: Any) -> RunResult: ...


@overload
def train(recipe: str | Path, *, out: Path | str, seeds: int, **options: Any) -> list[RunResult]: ...


@checked  # type: ignore[misc]  # the options are typed here alone
def train(
    recipe: str | Path | None = None,
    *,
    out: Path | str,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    start: str | Path | None = None,
    phases: Sequence[str] = (),
    overrides: Sequence[str] | Mapping[str, Any] = (),
    epochs: Annotated[int | None, Within(1)] = None,
    steps: Annotated[int | None, Within(1)] = None,
    batch_size: Annotated[int | None, Within(1)] = None,
    lr: float | None = None,
    seed: Annotated[int | None, Within(0)] = None,
    seeds: Annotated[int | None, Within(1)] = None,
    resume: bool = False,
    accept_changed_data: bool = False,
    max_minutes: Annotated[float | None, Within(0, above=True)] = None,
    device: str = "auto",
    devices: Annotated[int, Within(1)] = 1,
    nodes: Annotated[int, Within(1)] = 1,
    strategy: str = "auto",
    precision: Literal["auto", "32-true", "bf16-mixed"] | None = None,
    loggers: Sequence[str | Any] = (),
    offline: bool = False,
    quiet: bool = False,
) -> RunResult | list[RunResult]:
    """Train a model by a recipe.

    Ctrl-C stops cleanly, and ``resume=True`` goes on exactly from there.

    With ``seeds``, one run is trained after the other, each into a folder ``seed-N`` below ``out``. Each is what it
    would be alone. With ``resume``, runs that are finished stay as they are.

    Args:
        recipe: name of 'saccade list recipes', or a YAML file. ``saccade.families.recipes()`` has the names; for
            labelled pictures of your own begin with attributes-head. To go on with a run, leave it out: the run knows
            its own.
        out: the run folder, or with ``seeds`` the folder for all of them. It must be new, but to ``resume``.
        data: name, path, or READER:PATH. As in csv:my.csv; 'saccade data list' has names and readers. None: the
            recipe's.
        backbone: backbone, e.g. mobilenetv2 or timm:NAME. 'saccade list backbones' has all names. None: the recipe's.
        protocol: one of the recipe's protocols, e.g. authors or unlimited. None: the recipe's.
        start: model to begin with. Its weights are taken where they match. A zoo name, a run or a model folder. None:
            the recipe's.
        phases: train this phase of the recipe alone. By name; several may be named. None: all.
        overrides: change a setting, as in phases.0.steps=100. Values are read as YAML. In Python also a mapping, as in
            {'phases.0.steps': 100}.
        epochs: passes over all data. For the one phase of the recipe, or the one in ``phases``. None: the recipe's.
        steps: or batches to train on. None: the recipe's.
        batch_size: examples in a batch. None: the recipe's.
        lr: learning rate. For the same phase as ``epochs``. None: the recipe's.
        seed: seed of everything random. With ``seeds``, the first of them. None: the recipe's.
        seeds: train this many seeds, one after the other. None: one run.
        resume: go on with the run in ``out``. It is refused if the data changed.
        accept_changed_data: with ``resume``, go on although the data changed. The model's card says so.
        max_minutes: stop cleanly after this long. None: no limit.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        devices: processes on each machine, one for each device.
        nodes: machines.
        strategy: auto or ddp. Any strategy of Lightning Fabric by its name.
        precision: auto, 32-true or bf16-mixed. None: the recipe's.
        loggers: send curves to tensorboard, wandb or mlflow. Several may be named; each needs the extra of its name. In
            Python also an object with the methods of ``saccade.engine.loggers.Logger``.
        offline: fetch no weights from the hubs of timm and transformers.
        quiet: no progress and no remarks.

    Returns:
        How the run ended; with ``seeds`` a list, which is shorter when training was stopped.

    Example:
        >>> saccade.train("ran-56-photos", data="photos/", out="runs/photos", epochs=5)  # doctest: +SKIP
    """
    arguments = dict(locals())
    if devices == nodes == 1:
        wake_cuda(device)
    changes = {name: arguments[name] for name in CHANGES}
    if accept_changed_data and not resume:
        raise ConfigError("accept_changed_data: it goes with `resume=True`; a new run has no data that it began with")
    if recipe is not None:
        resolved = resolve(recipe, **changes)
    elif not resume or seeds is not None:
        raise ConfigError("no recipe: name one (see 'saccade list recipes'), or go on with one run by `resume=True`")
    elif changed := [name for name, value in changes.items() if value not in (None, (), [], {})]:
        raise ConfigError(f"a resumed run keeps its recipe: leave out {', '.join(changed)}")
    else:
        from saccade.engine.run_folder import RunFolder

        resolved = RunFolder(Path(out)).recorded()

    from saccade.engine.loop import fit
    from saccade.engine.run_folder import RunFolder
    from saccade.models.facts import read_facts
    from saccade.tasks.describing import describe_trained

    runs = {Path(out): resolved}
    if seeds is not None:
        numbers = range(resolved.seed, resolved.seed + seeds * resolved.replicas, resolved.replicas)
        runs = {Path(out) / f"seed-{number}": replace(resolved, seed=number) for number in numbers}
        if not resume:
            for folder in runs:
                RunFolder(folder).check_free()
    until = None if max_minutes is None else time.monotonic() + 60 * max_minutes
    results: list[RunResult] = []
    for folder, own in runs.items():
        if results and until is not None and time.monotonic() >= until:
            break  # no time is left for the seeds that have not begun
        goes_on = resume and (seeds is None or any(folder.glob("*")))
        task = build_task(own)
        if own.start is not None and (not goes_on or RunFolder(folder).has_no_state):
            _start_from(task, own.start, own.start_parts)
        results.append(
            fit(
                task,
                own,
                folder,
                resume=goes_on,
                accept_changed_data=accept_changed_data and goes_on,
                max_minutes=max_minutes if until is None or not results else (until - time.monotonic()) / 60,
                device=device,
                devices=devices,
                nodes=nodes,
                strategy=strategy,
                progress="quiet" if quiet else "auto",
                loggers=loggers,
            )
        )
        if results[-1].stopped in ("time", "signal"):
            break
        kept = results[-1].model
        if devices == nodes == 1 and kept is not None and read_facts(kept).inputs is None:
            compared = task.compared() if own.replicas == 1 else ""
            results[-1] = replace(results[-1], compared=compared, described=describe_trained(task, kept))
            for line in filter(None, [results[-1].described, compared]):
                RunFolder(folder).log(line)
    return results if seeds is not None else results[0]


def resolve(recipe: str | Path, **changes: Any) -> Recipe:
    """``recipe`` with the changes that arguments of :func:`train` make."""
    changes = {name: value for name, value in changes.items() if value is not None}
    data, phases, overrides = changes.get("data"), changes.get("phases", ()), changes.get("overrides", ())
    if f"{recipe}-{data}" in recipes():
        recipe = f"{recipe}-{data}"  # `soft` on `mbg` is its variant soft-mbg
    if isinstance(overrides, Mapping):
        overrides = [f"{key}={json.dumps(value)}" for key, value in overrides.items()]
    protocol, chosen = changes.get("protocol"), [*overrides]
    if any(name in changes for name in _OF_ONE_PHASE):
        chosen += _length(load_recipe(recipe, protocol=protocol, overrides=chosen), phases, changes)
    if data is not None:
        changes["data"] = spelt_out(data)
    settings = {setting: changes[name] for name, setting in _SETTINGS.items() if name in changes}
    chosen += [f"{key}={json.dumps(value, default=str)}" for key, value in settings.items()]  # YAML reads JSON
    resolved = load_recipe(recipe, protocol=protocol, overrides=chosen)
    known = [phase.name for phase in resolved.phases]
    for name in phases:
        if name not in known:
            raise ConfigError(f"no phase '{name}' in the recipe '{resolved.name}': {nearest(name, known)}")
    return replace(resolved, phases=tuple(phase for phase in resolved.phases if not phases or phase.name in phases))


def _length(recipe: Recipe, phases: Sequence[str], changes: Mapping[str, Any]) -> list[str]:
    """The overrides that give one phase of ``recipe`` the length and rate that ``changes`` say."""
    if "epochs" in changes and "steps" in changes:
        raise ConfigError("give epochs or steps, not both")
    meant = [(at, phase) for at, phase in enumerate(recipe.phases) if not phases or phase.name in phases]
    if len(meant) != 1:
        names = ", ".join(phase.name for phase in recipe.phases)
        raise ConfigError(
            f"'{recipe.name}' has the phases {names}: epochs, steps and lr are for one. Name it by phase, "
            "or change the settings phases.0.epochs=10 for each"
        )
    at, phase = meant[0]
    chosen = [f"phases.{at}.optimizer.lr={changes['lr']!r}"] if "lr" in changes else []
    for unit, other in (("epochs", "steps"), ("steps", "epochs")):
        if unit in changes:
            chosen += [f"phases.{at}.{unit}={changes[unit]}", f"phases.{at}.{other}=null"]
            if getattr(phase, unit) is None:  # it counted otherwise, and so did its validations
                chosen.append(f"phases.{at}.validate_every=null")
    return chosen


def spelt_out(data: str) -> str:
    """READER:PATH with the whole path, so that the run can be resumed from any folder."""
    from saccade.data.tables.readers import with_reader

    data = with_reader(data, data_entries())
    reader, sign, path = data.partition(":")
    return f"{reader}:{Path(path).expanduser().absolute()}" if sign and path and len(reader) > 1 else data


def build_task(recipe: Recipe) -> Task:
    """The task that a resolved recipe describes."""
    return family(recipe.family).task()(
        model=recipe.model.name,
        model_config=recipe.model.config,
        data=recipe.data,
        protocol=recipe.protocol,
        seed=recipe.seed,
    )


def _start_from(task: Task, start: str, parts: Sequence[str]) -> None:
    """Give the task's model the weights of another whose names match ``parts``; warn of what begins anew."""
    from saccade.engine.phases import check_patterns, fits
    from saccade.models.folder import load_model
    from saccade.zoo.folders import resolve

    weights = load_model(resolve(start))[0].state_dict()
    check_patterns(parts, list(weights), where="start_parts")
    wanted = {name: tensor for name, tensor in weights.items() if fits(name, parts)}
    left = task.start_from(wanted, start)
    unasked = [name for name in left if fits(name, parts)]
    if unasked:
        warnings.warn(f"start: {start} has nothing for {', '.join(unasked)}; this part starts untrained", stacklevel=3)


def show(done: RunResult | list[RunResult], arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print how it ended: of several seeds a row for each, and what to type next."""
    if isinstance(done, list):
        _show_seeds(arguments["out"], done)
    last = done[-1] if isinstance(done, list) else done
    if last.described:
        remark(last.described)
    if last.compared:
        remark(f"on validation, which chose the weights: {last.compared}")
    score = ""
    if last.model:  # a model does not remember where its files were, so the command names them
        from saccade.engine.run_folder import RunFolder

        data = arguments["data"] or str(RunFolder(last.out).recorded().data.get("name", ""))
        files = ["--data", data] if ":" in data or Path(data).exists() else []
        words = ["saccade", "evaluate", str(last.out), *files]
        score = f"; score it with: {shlex.join(words)}"
    remark(f"run folder: {last.out}{score}")
    if isinstance(done, list) and (last.stopped in ("time", "signal") or len(done) < arguments["seeds"]):
        begun = f"seeds that have begun: {len(done)} of {arguments['seeds']}"
        remark(f"{begun}; the same command with --resume goes on from here")


def _show_seeds(out: Path, results: list[RunResult]) -> None:
    """A row for each seed, and one for each score over those that are finished: of the best validation, or the last."""
    rows: list[tuple[object, ...]] = []
    values: dict[str, list[float]] = {}
    for result in results:
        scores = result.best.metrics if result.best is not None else result.validation
        text = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        rows.append((result.out.name, result.stopped, result.step, text, f"{result.seconds / 60:.1f}"))
        for name, value in scores.items() if result.stopped in ("finished", "early") else ():
            values.setdefault(name, []).append(value)
    print_table(str(out), ("run", "state", "step", "validation", "minutes"), rows)
    means = []
    for name, numbers in values.items():
        spread = f" ± {statistics.stdev(numbers):.4f}" if len(numbers) > 1 else ""
        means.append((name, f"{statistics.fmean(numbers):.4f}{spread}"))
    if means:
        print_table("over seeds", ("validation", "mean ± std"), means)


COMMAND = Command(
    train,
    show,
    place={"recipe": "RECIPE"},
    names={"out": "-o", "phases": "--phase", "overrides": "--set", "loggers": "--logger", "quiet": "-q"},
    words={"phases": "NAME", "loggers": "NAME", "overrides": "KEY=VALUE"},
    # 130 after Ctrl-C, so that ``train && evaluate`` does not go on with half a run.
    code=lambda done: 130 if (done[-1] if isinstance(done, list) else done).stopped == "signal" else 0,
    example="saccade train soft-mref --out runs/soft\nsaccade train ran-56-photos --data pets/ --epochs 5 -o runs/pets",
)
