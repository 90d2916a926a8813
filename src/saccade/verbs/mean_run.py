"""Averages the weights of several runs that started from the same weights; the result is as fast as one model.

Of runs that were taught by different settings it is a "soup" (Wortsman et al. 2022, arXiv:2203.05482); of runs taught
by different rewards it lies between them and can earn more of each (Ramé et al. 2023, arXiv:2306.04488). What is
written is a run folder as training leaves it. Its recipe is that of the first run; its facts say of which runs it is
the mean, and where the recipes of the others differ. Scores of the runs are theirs and stay with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from saccade.atomic import folder_in_place, recover, writing
from saccade.config import by_path, from_dict, to_dict
from saccade.engine.recipe import Recipe
from saccade.engine.recipe_versions import migrate_recipe
from saccade.engine.run_folder import RunFolder, versions
from saccade.errors import CheckpointError, ConfigError, OutputError, nearest
from saccade.models.io.facts import CONFIG, ModelFacts, Part, StoredType, read_facts
from saccade.models.io.folder import save_model
from saccade.show.report_sources import read_metrics
from saccade.verbs.mean_weights import mean_model

_OF_ONE_KIND = ("architecture", "family", "sentences", "preprocessing", "queries", "answers", "model")
"""Facts that models must share to have a mean."""


def write_mean_run(
    runs: Sequence[str | Path],
    *,
    out: str | Path,
    weights: Sequence[float] | None = None,
    stored: StoredType | None = None,
) -> ModelFacts:
    """Write a run whose model has the mean weights of those of ``runs``; see :func:`saccade.average`."""
    if isinstance(runs, (str, Path)) or len(runs) < 2:
        found = [runs] if isinstance(runs, (str, Path)) else runs
        raise ConfigError(
            f"averaging needs two runs or more, found {', '.join(map(str, found)) or 'none'}; name another"
        )
    shares = _shares(weights, len(runs))
    if stored is not None and stored not in get_args(StoredType):
        raise ConfigError(f"stored: no type '{stored}': {nearest(str(stored), get_args(StoredType))}")
    out = Path(out)
    recover(out)
    _check_place(out)
    opened = [_opened(Path(run)) for run in runs]
    first = opened[0]
    for other in opened[1:]:
        _check_of_one_kind(first, other)
    parts = tuple(
        Part(run.path.resolve().name, share, run.facts.sha256, dict(_changes(first.facts.recipe, run.facts.recipe)))
        for run, share in zip(opened, shares, strict=True)
    )
    model = mean_model([run.model for run in opened], parts)
    with folder_in_place(out) as place:
        folder = RunFolder(place)
        title = f"mean of {len(parts)} runs" + (f": {first.recipe.title}" if first.recipe.title else "")
        of_run = {"seed": first.recipe.seed, "versions": versions(), "mean_of": [to_dict(part) for part in parts]}
        folder.create(replace(first.recipe, title=title), of_run)
        facts = save_model(model, folder.model, _facts(opened, parts, stored))
        _log(folder, opened, parts)
    return facts


class _Run(NamedTuple):
    """A run that has kept a model."""

    path: Path
    """As it was given."""
    facts: ModelFacts
    recipe: Recipe
    """With the place of its data, which the facts have forgotten."""
    steps: int
    seconds: float

    @property
    def model(self) -> Path:
        return RunFolder(self.path).model


def _opened(path: Path) -> _Run:
    folder = RunFolder(path)
    recover(folder.model)  # a run may have been killed while it replaced its model
    try:
        is_run, has_model = (path / "config.yaml").is_file(), (folder.model / CONFIG).is_file()
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}); name a run that you have permission to read"
        ) from error
    if not is_run:
        found = "it has no config.yaml" if path.is_dir() else "there is no such folder"
        raise CheckpointError(f"{path}: not a run folder ({found}); name folders that 'saccade train' wrote")
    if not has_model:
        raise CheckpointError(f"{path}: a run that has not saved a model yet; continue with 'saccade train … --resume'")
    facts = read_facts(folder.model)
    kept = from_dict(Recipe, migrate_recipe(facts.recipe, what=str(folder.model / CONFIG)), where=str(folder.model))
    facts = replace(facts, recipe=to_dict(kept))  # recipes of different ages are compared key by key
    recipe = from_dict(Recipe, folder.recorded(), where=str(path / "config.yaml"))
    last = read_metrics(path / "metrics.jsonl")[-1]
    return _Run(path, facts, recipe, last["step"], float(last.get("seconds", 0.0)))


def _shares(weights: Sequence[float] | None, count: int) -> list[float]:
    """How much each of ``count`` runs counts; 1 in all."""
    given = [1.0] * count if weights is None else list(weights)
    if len(given) != count:
        raise ConfigError(f"weights: {len(given)} for {count} runs; give one for each run")
    total = sum(given)
    if not all(weight > 0 for weight in given) or not math.isfinite(total):
        raise ConfigError(
            f"weights: finite numbers above 0, found {', '.join(map(str, given))}; leave out runs that should not count"
        )
    return [weight / total for weight in given]


def _check_place(out: Path) -> None:
    """Refuse a place that holds something, before any work is done."""
    with writing(out):  # it may not even be allowed to look into it
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: a file is in the way; name a folder")
        if out.is_dir() and any(out.iterdir()):
            raise OutputError(f"{out}: is not empty; choose a new or empty folder")


def _check_of_one_kind(first: _Run, other: _Run) -> None:
    """Refuse models of which one cannot be the other with different weights."""
    here, there = (by_path({key: to_dict(run.facts)[key] for key in _OF_ONE_KIND}) for run in (first, other))
    for key in [*here, *(key for key in there if key not in here)]:
        if here.get(key) != there.get(key):
            raise ConfigError(
                f"{key} is {_told(there.get(key))} in {other.path} and {_told(here.get(key))} in {first.path}: "
                "such models cannot be averaged; average runs of one model, with the same settings, questions and "
                "answers"
            )


def _changes(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings of the recipe ``other`` that ``first`` has differently, by dotted key; None where it has none."""
    here, there = by_path(first), by_path(other)
    for key in [*there, *(key for key in here if key not in there)]:
        if here.get(key) != there.get(key):
            yield key, there.get(key)


def _told(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def _facts(runs: Sequence[_Run], parts: tuple[Part, ...], stored: StoredType | None) -> ModelFacts:
    """Those of the first run, but for what is not true of the mean; what it took is what all runs took."""
    first = runs[0].facts
    machines = dict.fromkeys(str(run.facts.training["machine"]) for run in runs if "machine" in run.facts.training)
    training = {
        "step": sum(run.steps for run in runs),
        "minutes": round(sum(run.seconds for run in runs) / 60, 2),
        "machine": ", ".join(machines),
        "versions": versions(),
    }
    return replace(
        first,
        name="",
        dtype=stored or first.dtype,
        revision=versions()["revision"],
        training=training,
        scores=(),
        calibration=None,
        mean_of=parts,
    )


def _log(folder: RunFolder, runs: Sequence[_Run], parts: Sequence[Part]) -> None:
    """Say in the log what it is the mean of, and in one row of the metrics, which has no values, what that took."""
    for run, part in zip(runs, parts, strict=True):
        folder.log(f"{part.share:.4g} of {run.path} (SHA-256 {part.sha256})")
    steps, seconds = sum(run.steps for run in runs), round(sum(run.seconds for run in runs), 3)
    folder.measure({"step": steps, "phase": "average", "kind": "average", "values": {}, "seconds": seconds})
