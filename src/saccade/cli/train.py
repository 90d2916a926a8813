"""``saccade train``: a recipe in, a run folder out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Device, Quiet, Seed
from saccade.cli.terminal import remark

_OF_RECIPE = "the recipe's"


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    recipe: Annotated[
        str | None,
        typer.Argument(help="A name of 'saccade list recipes', or a YAML file; not needed to --resume."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="A name, or READER:PATH as in csv:my.csv.", show_default=_OF_RECIPE),
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
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.", show_default="off")] = False,
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
    device: Device = "auto",
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """Train a model; Ctrl-C stops cleanly, and --resume goes on exactly from there."""
    import saccade

    result = saccade.train(
        recipe,
        data=data,
        backbone=backbone,
        protocol=protocol,
        start=start,
        phases=phases or [],
        overrides=overrides or [],
        out=out,
        resume=resume,
        accept_changed_data=accept_changed_data,
        max_minutes=max_minutes,
        devices=devices,
        nodes=nodes,
        strategy=strategy,
        precision=precision,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    if not quiet:
        remark(f"run folder: {out}" + (f"; score it with: {scored_by(out, data)}" if result.model else ""))
    if result.stopped == "signal":
        raise typer.Exit(130)  # so that `train && evaluate` does not go on with half a run


def scored_by(out: Path, data: str | None = None) -> str:
    """The command that scores the run in ``out``; it names files, because a model does not remember where they were."""
    from saccade.verbs.train import data_of

    named = data or data_of(out)
    return shlex.join(["saccade", "evaluate", str(out), *(["--data", named] if ":" in named else [])])
