"""``saccade train``: a recipe in, a run folder out; several recipes or seeds in, a folder of runs out."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saccade.cli.named_data import named_data
from saccade.cli.options import Device, Json, Offline, Quiet, Seed
from saccade.cli.terminal import print_json, print_table, remark

if TYPE_CHECKING:
    from saccade.verbs.train_several import SeveralRuns, TrainedRun

_OF_RECIPE = "the recipe's"
_INTERVAL = (
    "95 % interval of the mean by Student's t over the seeds. Weights are chosen by this score: 'saccade evaluate' "
    "scores them on test data."
)


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; of several runs, the folder for them.")],
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of 'saccade list recipes', or YAML files; not needed to --resume.", metavar="[RECIPE]…"
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="A name, READER:PATH as in csv:my.csv, or a path.", show_default=_OF_RECIPE),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option("--backbone", help="What sees, by name.", show_default=_OF_RECIPE)
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="One of the recipe's protocols.", show_default=_OF_RECIPE)
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            help="Begin with this model's weights where they fit: a name or a folder.",
            show_default=_OF_RECIPE,
        ),
    ] = None,
    phases: Annotated[
        list[str] | None,
        typer.Option("--phase", help="Train this phase of the recipe alone; may be repeated.", show_default="all"),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="key=value, as in phases.0.steps=100.", metavar="KEY=VALUE", show_default="as the recipe says"
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", help="How often to see all data.", min=1, show_default=_OF_RECIPE)
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Or how many batches to learn from.", min=1, show_default=_OF_RECIPE)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Samples of one step.", min=1, show_default=_OF_RECIPE)
    ] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate.", show_default=_OF_RECIPE)] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", help="Train this many seeds of each recipe, side by side.", min=1, show_default="one run"
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once", help="Of several runs, how many at a time.", min=1, show_default="by cores and memory"
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.", show_default="off")] = False,
    accept_changed_data: Annotated[
        bool,
        typer.Option(
            "--accept-changed-data", help="With --resume: go on although the data changed.", show_default="off"
        ),
    ] = False,
    max_minutes: Annotated[
        float | None, typer.Option("--max-minutes", help="Stop cleanly after this long.", show_default="no limit")
    ] = None,
    devices: Annotated[int, typer.Option("--devices", help="Processes on each machine.", min=1)] = 1,
    nodes: Annotated[int, typer.Option("--nodes", help="Machines.", min=1)] = 1,
    strategy: Annotated[str, typer.Option("--strategy", help="auto or ddp.")] = "auto",
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, 32-true or bf16-mixed.", show_default=_OF_RECIPE)
    ] = None,
    offline: Offline = False,
    json: Json = False,
    device: Device = "auto",
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """Train a model, or several; Ctrl-C stops cleanly, and --resume goes on exactly from there."""
    import saccade

    recipes = recipe or []
    data = None if data is None else named_data(data, quiet=quiet)
    if len(recipes) > 1 or seeds is not None or _holds_several(out, resume):
        from saccade.backbones.hub import work_offline
        from saccade.verbs.train import Settings
        from saccade.verbs.train_length import Length
        from saccade.verbs.train_several import train_several

        if offline:
            work_offline()
        length = Length(epochs, steps, batch_size, lr)
        changed = tuple(length.after(overrides or (), recipes, protocol=protocol, phases=phases or ()))
        chosen = (data, backbone, protocol, start, tuple(phases or ()), changed, seed, precision)
        several = train_several(
            recipes or None,
            out=out,
            settings=Settings(*chosen),
            seeds=seeds,
            at_once=at_once,
            resume=resume,
            accept_changed_data=accept_changed_data,
            max_minutes=max_minutes,
            device=device,
            one_device=devices == nodes == 1 and strategy == "auto",
            progress="quiet" if quiet else "auto",
        )
        _show(several, json=json, quiet=quiet)
        return
    result = saccade.train(
        recipes[0] if recipes else None,
        data=data,
        backbone=backbone,
        protocol=protocol,
        start=start,
        phases=phases or [],
        overrides=overrides or [],
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        lr=lr,
        out=out,
        at_once=at_once,
        resume=resume,
        accept_changed_data=accept_changed_data,
        max_minutes=max_minutes,
        devices=devices,
        nodes=nodes,
        strategy=strategy,
        precision=precision,
        offline=offline,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    if json:
        print_json(_plain(result))
    if not quiet:
        remark(f"run folder: {out}" + (f"; score it with: {scored_by(out, data)}" if result.model else ""))
    if result.stopped == "signal":
        raise typer.Exit(130)  # so that `train && evaluate` does not go on with half a run


def scored_by(out: Path, data: str | None = None) -> str:
    """The command that scores the run in ``out``; it names files, because a model does not remember where they were."""
    from saccade.verbs.train import data_of

    named = data or data_of(out)
    return shlex.join(["saccade", "evaluate", str(out), *(["--data", named] if ":" in named else [])])


def _holds_several(out: Path, resume: bool) -> bool:
    """Whether --resume means several runs."""
    from saccade.verbs.train import RUNS

    return resume and os.path.isfile(out / RUNS)  # False, not an error, where nobody may look


def _show(several: SeveralRuns, *, json: bool, quiet: bool) -> None:
    """Print how several runs ended, and exit as that asks for."""
    if json:
        print_json(_plain(several))
    else:
        rows = [_row(run) for run in several.runs]
        print_table(str(several.out), ("run", "state", "step", "validation", "minutes"), rows)
        if several.failed:
            failed = [(run.name, run.error, run.log) for run in several.failed]
            print_table("failed", ("run", "the last it said", "log"), failed)
        if any(len(found.seeds) > 1 for _, found in several.over_seeds.values()):
            over = [
                (
                    recipe,
                    metric,
                    len(found.seeds),
                    f"{found.mean:.4f}" + ("" if found.std is None else f" ± {found.std:.4f}"),
                    None if found.low is None or found.high is None else f"{found.low:.4f}–{found.high:.4f}",
                )
                for recipe, (metric, found) in several.over_seeds.items()
            ]
            print_table("over seeds", ("recipe", "validation", "seeds", "mean ± std", "interval"), over, note=_INTERVAL)
    if not quiet:
        if any(run.state in ("waiting", "stopped") for run in several.runs):
            remark(f"continue with: {shlex.join(['saccade', 'train', '--resume', '--out', str(several.out)])}")
        elif several.runs[0].state == "finished":
            remark(f"score a run with: {scored_by(several.runs[0].out)}")
    if several.stopped == "signal":
        raise typer.Exit(130)
    if several.failed:
        raise typer.Exit(1)


def _row(run: TrainedRun) -> tuple[object, ...]:
    result = run.result
    score = None if run.score is None else f"{run.metric} {run.score:.4f}"
    state = f"{run.state}, run {run.attempts} times" if run.attempts > 1 else run.state
    told = (None, None) if result is None else (result.step, f"{result.seconds / 60:.1f}")
    return run.name, state, told[0], score, told[1]


def _plain(value: object) -> object:
    """Dataclasses and paths as JSON has them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value
