"""``saccade train``: a recipe in, a run folder out; several recipes or seeds in, a folder of runs out."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.options import Json
from saccade.cli.terminal import print_json, print_table, remark

if TYPE_CHECKING:
    from saccade.verbs.training.several import SeveralRuns, TrainedRun

_INTERVAL = (
    "95 % interval of the mean by Student's t over the seeds. Weights are chosen by this score: 'saccade evaluate' "
    "scores them on test data."
)


@command_of(
    "saccade.verbs.train:train",
    {
        "recipe": Typed("RECIPE", many=True),
        "out": Typed("-o"),
        "phases": Typed("--phase", shows="NAME", rare=True),
        "overrides": Typed("--set", shows="KEY=VALUE"),
        "protocol": RARE,
        "at_once": RARE,
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

    out, quiet, recipes = given["out"], given["quiet"], given.pop("recipe") or []
    if len(recipes) > 1 or given["seeds"] is not None or _holds_several(out, given["resume"]):
        from saccade.verbs.training.run import train_any

        _show(cast("SeveralRuns", train_any(recipes, **given)), json=json, quiet=quiet)
        return
    result = saccade.train(recipes[0] if recipes else None, **given)
    if json:
        print_json(_plain(result))
    if not quiet:
        remark(f"run folder: {out}" + (f"; score it with: {scored_by(out, given['data'])}" if result.model else ""))
    if result.stopped == "signal":
        raise typer.Exit(130)  # so that `train && evaluate` does not go on with half a run


def scored_by(out: Path, data: str | None = None) -> str:
    """The command that scores the run in ``out``; it names files, because a model does not remember where they were."""
    from saccade.verbs.training.run import data_of

    named = data or data_of(out)
    return shlex.join(["saccade", "evaluate", str(out), *(["--data", named] if ":" in named else [])])


def _holds_several(out: Path, resume: bool) -> bool:
    """Whether --resume means several runs."""
    from saccade.verbs.training.run import RUNS

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
