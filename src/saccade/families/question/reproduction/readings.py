"""Table 1b under every reading of the paper: what its true-positive strength would be, had the authors meant this.

The paper sums "attention probabilities within the ground-truth segmentation" and divides by the sum of all. It does not
say which map of several that is, nor how it was laid on the picture. The list below was fixed before anything was
measured, from what the text, its figures and the released code allow. All of it is printed, for every system and beside
an even map under the same reading. None is preferred: the tables of saccade use the first, as its traces do.

Scaling a map to sum 1 or to peak 1 changes nothing about a product, whose scale cancels; it decides about a mean.

How a model was trained is a reading too: the released code has dropout before the classifier. Such runs are on record
(:func:`training_rows`), with the sizes of the released code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from saccade import geometry
from saccade.config import from_dict
from saccade.errors import DataError
from saccade.families.question.published import OTHER_PHOTOGRAPHS, PUBLISHED
from saccade.families.question.query_model import query_model
from saccade.families.question.reproduction.ablations import changed
from saccade.families.question.reproduction.projections import Projection, zero_outside
from saccade.families.question.reproduction.table1 import LABELS, SETTINGS, Table1
from saccade.families.question.scenes.data import SceneBatch, SceneData, SceneDataConfig
from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.predict import Predictor
from saccade.recorded import RecordedRun, measure, results_folder
from saccade.tasks.forward_passes import in_parts
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import mean_text

SYSTEMS = ("soft", "hard", "hattnet", "hattnet-ctx", "hattnet-ctx-sparse")
METRIC = "true_positive_strength"
FOLDER = "readings"
"""Folder of the recorded readings: one study for each data set."""

Combine = Callable[[Tensor], Tensor]
"""The maps of all looks (L,B,H,W) → one map (B,H,W)."""


def product(maps: Tensor) -> Tensor:
    """All maps multiplied."""
    return maps.prod(0)


def last(maps: Tensor) -> Tensor:
    """That of the last look."""
    return maps[-1]


def mean(maps: Tensor) -> Tensor:
    """The mean of all maps as they are: open gates outweigh a softmax."""
    return maps.mean(0)


def mean_of_sums(maps: Tensor) -> Tensor:
    """The mean of all maps, each scaled to sum 1."""
    return (maps / maps.sum((-2, -1), keepdim=True).clamp(min=1e-12)).mean(0)


def mean_of_peaks(maps: Tensor) -> Tensor:
    """The mean of all maps, each scaled to peak 1."""
    return (maps / maps.amax((-2, -1), keepdim=True).clamp(min=1e-12)).mean(0)


READINGS: dict[str, tuple[Projection, Combine]] = {
    "product of all maps, edge extended (ours)": (geometry.project, product),
    "product of all maps, zero border": (zero_outside, product),
    "last map alone, edge extended": (geometry.project, last),
    "last map alone, zero border": (zero_outside, last),
    "mean of all maps as they are": (geometry.project, mean),
    "mean of all maps, each of sum 1": (geometry.project, mean_of_sums),
    "mean of all maps, each of peak 1": (geometry.project, mean_of_peaks),
}
"""Fixed before measuring; see the module."""


@dataclass(frozen=True)
class ReadingStudy:
    """The strengths of some systems on one data set under every reading; fractions."""

    data: str
    n: int
    material: str
    """Glyphs of the scenes, and what lies behind them."""
    strengths: dict[str, dict[str, float]]
    """By system, then by reading."""
    even: dict[str, float]
    """By reading: maps of four grids that are the same everywhere."""


@torch.no_grad()
def study_readings(predictors: Mapping[str, Predictor], data: str, n: int) -> ReadingStudy:
    """Score the models ``predictors`` (by system) on the first ``n`` test questions of ``data``, in every way."""
    strengths: dict[str, dict[str, float]] = {}
    even: dict[str, float] = {}
    material, most = "", 0
    for system, predictor in predictors.items():
        model = query_model(predictor)
        split = SceneData(SceneDataConfig(data), "test", device=predictor.device, allow_pack=True)
        material = f"{split.glyphs.name}, {split.backgrounds}"
        batch = split.take(torch.arange(n))
        size = (split.spec.size, split.spec.size)
        trace = model.wrap(in_parts(model, batch.images, batch.query), size).trace
        grids = [(look.weights, look.frame) for look in trace.looks]
        strengths[system] = _read(grids, batch, size)
        if len(grids) > most:  # the even map on as many grids as any of the systems has
            flat = [(None if weights is None else torch.ones_like(weights), frame) for weights, frame in grids]
            even, most = _read(flat, batch, size), len(grids)
    return ReadingStudy(data, n, material, strengths, even)


def _read(
    grids: Sequence[tuple[Tensor | None, Tensor | None]], batch: SceneBatch, size: geometry.Size
) -> dict[str, float]:
    evidence = batch.evidence()
    found = {}
    for name, (project, combine) in READINGS.items():
        laid = []
        for weights, frame in grids:
            if weights is None or frame is None:
                raise DataError("readings are compared for maps on grids, and this model has none")
            laid.append(project(weights, frame, size))  # (B,H,W)
        found[name] = mean_defined(true_positive_strength(combine(torch.stack(laid)), evidence)).mean
    return found


def recorded_readings(folder: Path | None = None) -> list[ReadingStudy]:
    """The studies that come with saccade, or those of another folder of results."""
    files = sorted(((folder or results_folder()) / FOLDER).glob("*.json"))
    return [from_dict(ReadingStudy, json.loads(file.read_text(encoding="utf-8")), where=str(file)) for file in files]


def reading_table(study: ReadingStudy, runs: Sequence[RecordedRun], variants: Sequence[RecordedRun]) -> PlainTable:
    """Readings by systems, the published row first."""
    systems = [system for system in SYSTEMS if system in study.strengths]
    published = [PUBLISHED.get((system, study.data)) for system in (*systems, "uniform")]
    told = [None if row is None else row.metrics.get(METRIC) for row in published]
    rows = [["published", *("–" if value is None else f"{100 * value:.1f}" for value in told)]]
    for reading in READINGS:
        values = [study.strengths[system][reading] for system in systems] + [study.even[reading]]
        rows.append([reading, *(f"{100 * value:.1f}" for value in values)])
    rows += training_rows(study.data, systems, runs, variants)
    title = f"Table 1b on {study.data.upper()} under every reading: true-positive strength %"
    note = (
        f"The first rows: the shipped models, trained on fresh scenes, n = {study.n:,} questions ({study.material}). "
        "Below them: runs with the sizes of the released code, merged glyphs, product, edge extended; blend: scenes "
        "drawn by saccade's blending, the others as the released code draws. The released code's own training, RMSprop "
        "and a dropout of 0.5, has no run of HAttNet-CTX. The list was fixed before measuring; none of its rows is "
        "preferred."
    )
    if study.data == "mbg":
        note += f" MBG: {OTHER_PHOTOGRAPHS}."
    return PlainTable(title, ["reading", *(LABELS[system] for system in systems), "even map"], rows, note)


def _last_map(run: RecordedRun) -> RecordedRun:
    """The run with the strength of its last map alone in place of that of all maps multiplied."""
    looks = run.evaluation.attention.get("by_look") or {}
    if not looks:  # a model with one map
        return run
    attention = {**run.evaluation.attention, METRIC: list(looks.values())[-1].get(METRIC)}
    return replace(run, evaluation=replace(run.evaluation, attention=attention))


def training_rows(
    data: str, systems: Sequence[str], runs: Sequence[RecordedRun], variants: Sequence[RecordedRun]
) -> list[list[str]]:
    """What training decides: the recipe with the authors' sizes, and recorded runs of that size with other settings."""
    setting = SETTINGS[0]
    table = Table1(runs)
    held = [measure(table.of(system, data, setting), METRIC) for system in systems]
    even = next(
        (found for system in systems if (found := measure(table.of(system, data, setting), METRIC, of="uniform"))), None
    )
    drawn = [table.drawn(system, data, setting) for system in systems]
    told = [mean_text(found) + (f", {how}" if how else "") for found, how in zip(held, drawn)]
    rows = [["as trained with the authors' sizes", *told, mean_text(even)]] if any(held) else []
    last = [measure([_last_map(run) for run in table.of(system, data, setting)], METRIC) for system in systems]
    told = [mean_text(found) + (f", {how}" if how else "") for found, how in zip(last, drawn)]
    rows += [["… last map alone", *told, mean_text(even)]] if any(last) else []
    wanted = (data, setting.protocol, setting.glyphs)
    for run in variants:
        if (run.on, run.protocol, run.glyphs) == wanted and run.system in systems:
            line = [mean_text(measure([run], METRIC)) if run.system == system else "–" for system in systems]
            how = "" if run.drawing == setting.drawing else f", {run.drawing}"
            rows.append([f"… with {changed(run)}{how}", *line, "–"])
    return rows
