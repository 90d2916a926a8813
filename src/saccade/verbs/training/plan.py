"""The list of requested runs, and what ``runs.json`` stores so that they can be resumed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.config import check_schema, from_dict, to_dict
from saccade.engine.parallel_runs import Run
from saccade.engine.recipe import Recipe
from saccade.errors import CheckpointError, ConfigError
from saccade.untrusted import parse_json, read_regular
from saccade.verbs.training.length import naming
from saccade.verbs.training.run import RUNS, Settings

if TYPE_CHECKING:
    from saccade.engine.trainer import RunResult

LOGS = "logs"
SCHEMA = 1


@dataclass(frozen=True)
class PlannedRun:
    """A run as it was asked for."""

    run: Run
    recipe: str
    """Its name, or the path of its file."""
    seed: int | None
    """None: the recipe's own."""
    resolved: Recipe


def make_plan(recipes: Sequence[str | Path], settings: Settings, seeds: int | None, folder: Path) -> list[PlannedRun]:
    """All runs that are asked for, in order."""
    if not recipes:
        raise ConfigError("no recipe: name one or more (see 'saccade list recipes')")
    plan: list[PlannedRun] = []
    is_one = len(recipes) == 1 and seeds is not None
    labels: dict[str, str] = {}
    for recipe in recipes:
        is_file = Path(recipe).suffix in (".yaml", ".yml")
        named = str(Path(recipe).absolute()) if is_file else str(recipe)
        label = Path(recipe).stem if is_file else str(recipe)
        if label in labels:
            raise ConfigError(
                f"'{recipe}' and '{labels[label]}' would share the folder {folder / label}: name a recipe once, and "
                "use `seeds` for several runs of it"
            )
        labels[label] = str(recipe)
        with naming(recipe, recipes):
            resolved = settings.resolve(named)
        for number in range(seeds or 1):
            seed = None if seeds is None else resolved.seed + number * resolved.replicas
            parts = ([] if is_one else [label]) + ([] if seed is None else [f"seed-{seed}"])
            name = "/".join(parts)
            own = resolved if seed is None else replace(settings, seed=seed).resolve(named)
            run = Run(name, label, folder / name, folder / LOGS / f"{name}.txt")
            plan.append(PlannedRun(run, named, seed, own))
    return plan


@dataclass(frozen=True)
class PreviousRuns:
    """What runs.json says of runs that go on."""

    folder: Path
    recipes: list[str]
    digests: dict[str, str]
    settings: Settings
    seeds: int | None
    threads: int
    runs: dict[str, dict[str, Any]]

    def check_same(self, plan: Sequence[PlannedRun], settings: Settings) -> None:
        """Refuse other recipes or settings than those it was begun with; more of them are welcome."""
        old, new = asdict(self.settings), asdict(settings)
        for name in old:
            if str(old[name]) != str(new[name]):
                raise ConfigError(
                    f"{self.folder} was begun with {name} = {old[name]!r}, now it is {new[name]!r}: resume with the "
                    "same settings, or start in another `out`"
                )
        names = {planned.run.name for planned in plan}
        if missing := [name for name in self.runs if name not in names]:
            raise ConfigError(
                f"{self.folder} holds {', '.join(missing)}, which these recipes and seeds leave out: name them "
                "too, or resume without recipes"
            )
        for planned in plan:
            if self.digests.get(planned.run.recipe, digest(planned.resolved)) != digest(planned.resolved):
                raise ConfigError(
                    f"the recipe {planned.recipe} changed since {self.folder} was begun: put it back, or start in "
                    "another `out`"
                )

    def restore(self, runs: Sequence[Run]) -> None:
        """Mark what is finished already."""
        for run in runs:
            entry = self.runs.get(run.name)
            if entry is not None and entry["state"] == "finished" and run.is_begun:
                run.state = "finished"
                _restore(run, entry)


def read_runs(folder: Path) -> PreviousRuns:
    """What ``folder`` remembers of its runs.

    Raises:
        CheckpointError: it does not hold several runs, or its file is damaged.
    """
    path = folder / RUNS
    try:
        read = parse_json(read_regular(path).decode("utf-8"))
        check_schema(read["schema_version"], SCHEMA, what=RUNS)
        before = PreviousRuns(
            folder,
            [str(each["recipe"]) for each in read["recipes"].values()],
            {label: str(each["digest"]) for label, each in read["recipes"].items()},
            from_dict(Settings, read["settings"]),
            None if read["seeds"] is None else int(read["seeds"]),
            int(read["threads"]),
            {str(run["name"]): dict(run) for run in read["runs"]},
        )
        if not 1 <= before.threads <= 4096:
            raise ValueError(f"threads {before.threads}")
        for entry in before.runs.values():
            run = Run("", "", folder, folder)
            _restore(run, entry)
            result_of(run)
        return before
    except FileNotFoundError:
        raise CheckpointError(f"{folder} does not hold several runs (no {RUNS}); start without `resume`") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, ConfigError) as error:
        raise CheckpointError(f"{path} is damaged ({type(error).__name__}: {error})") from error


def _restore(run: Run, entry: dict[str, Any]) -> None:
    """Give ``run`` what runs.json says of its end."""
    if entry["state"] == "finished" and entry["result"] is None:
        raise ValueError(f"{entry['name']} is finished and has no result")
    run.result, run.attempts = entry["result"], int(entry["attempts"])
    run.used = {str(kind): int(used) for kind, used in entry["used"].items()}


def result_of(run: Run) -> RunResult | None:
    """The result as a run told it."""
    from saccade.engine.state import Best
    from saccade.engine.trainer import RunResult

    told = run.result
    if told is None:
        return None
    best = told["best"]
    return RunResult(
        out=run.folder,
        stopped=told["stopped"],
        step=told["step"],
        phase=told["phase"],
        best=None
        if best is None
        else Best(_number(best["value"]), best["step"], best["replica"], _numbers(best["metrics"])),
        validation=_numbers(told["validation"]),
        seconds=told["seconds"],
        checkpoint=None if told["checkpoint"] is None else Path(told["checkpoint"]),
        model=None if told["model"] is None else Path(told["model"]),
    )


def _numbers(values: dict[str, float | None]) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float | None) -> float:
    """A file has null where a score is not a number."""
    return math.nan if value is None else float(value)


def digest(recipe: Recipe) -> str:
    """Digest of everything in the resolved recipe except its seed."""
    content = to_dict(recipe) | {"seed": 0}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
