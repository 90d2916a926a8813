"""``saccade train``: prints how :func:`saccade.train` ended."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.named_data import named_data
from saccade.cli.options import Json
from saccade.cli.terminal import print_json, print_table, remark

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult


@command_of(
    "saccade.commands.train:train",
    {
        "recipe": Typed("RECIPE"),
        "out": Typed("-o"),
        "phases": Typed("--phase", shows="NAME", rare=True),
        "overrides": Typed("--set", shows="KEY=VALUE"),
        "protocol": RARE,
        "accept_changed_data": RARE,
        "devices": RARE,
        "nodes": RARE,
        "strategy": RARE,
        "precision": RARE,
        "offline": RARE,
        "quiet": Typed("-q"),
    },
    example="""
        saccade train soft-mref --out runs/soft
        saccade train ran-56-photos --data photos/ --epochs 5 --out runs/photos
    """,
)
def train(given: Given, json: Json = False) -> None:
    """Train, and print how it ended."""
    import saccade
    from saccade.commands.train import plain, scored_by

    out, quiet, recipe = given["out"], given["quiet"], given.pop("recipe")
    if given["data"] is not None:
        given["data"] = named_data(given["data"], quiet=quiet)
    done = saccade.train(recipe, **given)
    results: list[RunResult] = done if isinstance(done, list) else [done]
    last = results[-1]
    if json:
        print_json([plain(result) for result in results] if isinstance(done, list) else plain(last))
    elif isinstance(done, list):
        _print_seeds(out, results)
    if not quiet:
        score = f"; score it with: {scored_by(last.out, given['data'])}" if last.model else ""
        remark(f"run folder: {last.out}{score}")
        if isinstance(done, list) and last.stopped in ("time", "signal"):
            again = ["saccade", "train", recipe, "--seeds", str(given["seeds"]), "--resume", "--out", str(out)]
            remark(f"go on with the same command and --resume: {shlex.join(again)}")
    if last.stopped == "signal":
        raise typer.Exit(130)  # so that `train && evaluate` does not go on with half a run


def _print_seeds(out: Path, results: list[RunResult]) -> None:
    """A row for each seed, and one for each score over those that are finished."""
    from saccade.commands.train import over_seeds

    rows = []
    for result in results:
        scores = result.best.metrics if result.best is not None else result.validation
        told = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        rows.append((result.out.name, result.stopped, result.step, told, f"{result.seconds / 60:.1f}"))
    print_table(str(out), ("run", "state", "step", "validation", "minutes"), rows)
    means = [
        (name, f"{mean:.4f}" + ("" if std is None else f" ± {std:.4f}"))
        for name, (mean, std) in over_seeds(results).items()
    ]
    if means:
        print_table("over seeds", ("validation", "mean ± std"), means)
