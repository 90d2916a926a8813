"""A published table and its figures, from recorded or fresh runs: measured beside published, in every cell."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from saccade.atomic import make_folder
from saccade.errors import ConfigError, nearest
from saccade.predict import load
from saccade.recorded import RecordedRun, recorded_runs
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.ablations import ablation_table, penalty_curve, penalty_table
from saccade.verbs.reproduction.caption_table import LEGEND as CAPTION_LEGEND
from saccade.verbs.reproduction.caption_table import OFFICIAL, CaptionTable, caption_page, likelihood_figure
from saccade.verbs.reproduction.confirm import Confirmation, Progress, confirm, confirmation_table
from saccade.verbs.reproduction.cost import cost_table
from saccade.verbs.reproduction.figures import Drawing, penalty_figure, recall_figure, scale_figure, scenes_figure
from saccade.verbs.reproduction.multiset_table import DATA as MULTISETS
from saccade.verbs.reproduction.multiset_table import LEGEND as MULTISET_LEGEND
from saccade.verbs.reproduction.multiset_table import MultisetTable, multiset_page, training_figures
from saccade.verbs.reproduction.page import hattnet_page
from saccade.verbs.reproduction.people import people_table
from saccade.verbs.reproduction.projections import projection_table, study_projections
from saccade.verbs.reproduction.reading_figures import reading_figures
from saccade.verbs.reproduction.table1 import DATA, LEGEND, Protocol, Table1
from saccade.verbs.reproduction.training import RESULTS, RUNS, Job, missing_jobs, train_missing

TABLES: dict[str, str] = {
    "hattnet-table1": "Seo et al. 2016, Tables 1a and 1b, Figures 5 to 7: five attention systems on MREF, MDIST, MBG",
    "hsal-table1": "Welleck et al. 2017, Table 1, Figures 3 to 6, 12: multisets read by saliency and reinforcement",
    "sat-table1": "Xu et al. 2015, Table 1: captions with soft and hard attention; --data flickr8k:FOLDER and the like",
}
"""Name → what it is."""

QUICK, FULL = 500, 1000
"""Test examples of each shipped model; curves of precision and recall need hundreds."""
PROJECTED = ("hattnet-ctx-mref", "soft-mref")
"""Shipped models whose maps are laid on the picture in every way."""


@dataclass(frozen=True)
class Reproduction:
    """Everything that came out."""

    table: str
    tables: Sequence[PlainTable]
    cells: Sequence[dict[str, Any]]
    """Every number of the tables as plain values; fractions."""
    confirmed: Sequence[Confirmation]
    figures: Sequence[Path]
    report: Path | None
    seconds: float
    legend: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "table": self.table,
            "cells": list(self.cells),
            "confirmed": [each.to_json() for each in self.confirmed],
            "figures": [str(path) for path in self.figures],
            "report": None if self.report is None else str(self.report),
            "seconds": round(self.seconds, 2),
        }


def reproduce(
    table: str,
    *,
    data: Sequence[str] | None = None,
    protocol: str = "all",
    seeds: int = 1,
    train: bool = False,
    jobs: int = 1,
    quick: bool = False,
    limit: int | None = None,
    out: Path | str | None = None,
    device: str = "auto",
    overrides: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Reproduction:
    """Make ``table`` anew from recorded results, and confirm it with the models that ship.

    Args:
        table: a key of ``TABLES``.
        data: data sets by name, or as READER:PATH where pictures have to be read; None: all of the table's.
        protocol: authors, unlimited or all; of captions official, which all stands for, or dev.
        seeds: with ``train``, how many seeds every cell shall have.
        train: train the cells that lack a run, into ``out``.
        jobs: with ``train``, how many runs at a time, each in a process of its own.
        quick: fewer examples for what is computed here.
        limit: examples of each shipped model (and, with ``train``, of each new run, which else are tested in full).
        out: folder for figures, ``report.html`` and new runs, and where earlier ones are found again; without it
            nothing is drawn or written.
        device: auto, cpu, cuda, cuda:N or mps.
        overrides: with ``train``, further ``key=value`` texts for every recipe.
        progress: called with what is going on, how far it is, and how far it goes.
    """
    if table not in TABLES:
        raise ConfigError(f"no table '{table}': {nearest(table, TABLES)}")
    if seeds < 1:
        raise ConfigError(f"seeds: at least 1, found {seeds}")
    if jobs < 1:
        raise ConfigError(f"jobs: at least 1, found {jobs}")
    if train and out is None:
        raise ConfigError("training needs a place for its runs: name one with --out")
    started = time.monotonic()
    folder = None if out is None else make_folder(Path(out))  # first, so that a wrong place is found at once

    def trained(missing: Sequence[Job]) -> Sequence[RecordedRun]:
        """The runs that ``out`` holds, after those that are missing there were added, if that was asked for."""
        if folder is None:
            return ()
        if not train:
            return recorded_runs(folder / RESULTS)
        options: dict[str, Any] = {"limit": limit, "device": device, "overrides": overrides, "progress": progress}
        return train_missing(missing, folder, side_by_side=jobs, **options)

    if table == "hsal-table1":
        held = MultisetTable(recorded_runs(), tuple(data or MULTISETS))
        held = held if folder is None else held.with_runs(recorded_runs(folder / RESULTS))
        return _multisets(held.with_runs(trained(held.missing(seeds))), folder, device, started)
    if table == "sat-table1":
        told = CaptionTable.of_references(recorded_runs(), data, OFFICIAL if protocol == "all" else protocol)
        told = told if folder is None else told.with_runs(recorded_runs(folder / RESULTS))
        return _captions(told.with_runs(trained(told.missing(seeds))), folder, started, progress)
    shown = Table1(recorded_runs(), tuple(data or DATA), cast(Protocol, protocol))
    shown = shown if folder is None else shown.with_runs(recorded_runs(folder / RESULTS))
    shown = shown.with_runs(trained(missing_jobs(shown, seeds)))
    count = limit or (QUICK if quick else FULL)
    variants = recorded_runs(variants=True)
    points = penalty_curve(shown.runs, variants)
    confirmed = confirm(shown.runs, shown.data, limit=count, device=device, progress=progress)

    main = [make(name) for make in (shown.accuracy, shown.strength) for name in shown.data]
    looking = [found for name in shown.data if (found := shown.looking(name)).rows]
    beyond = [ablation_table(shown.runs, variants)] if variants else []
    beyond += [penalty_table(points)] if len(points) > 1 else []
    beyond += [cost] if (cost := cost_table(shown.runs, shown.data)).rows else []
    beyond += _projections([each.model for each in confirmed], count, device, progress)
    checked = [confirmation_table(confirmed)] if confirmed else []

    figures: list[Path] = []
    report = None
    if folder is not None:
        progress("drawing", 0, 1)
        drawings = _drawings(shown, confirmed, penalty_figure(points), device)
        figures = [drawing.write(folder) for drawing in drawings]
        report = hattnet_page(main, looking, beyond, checked, drawings).save(folder / "report.html")
    scores = ("accuracy", "true_positive_strength", "selectivity", "causal_follow", "causal_hold")
    return Reproduction(
        table=table,
        tables=[*main, *looking, *beyond, *checked],
        cells=[cell.to_json() for cell in shown.cells(scores)],
        confirmed=confirmed,
        figures=figures,
        report=report,
        seconds=time.monotonic() - started,
        legend=LEGEND,
    )


def _multisets(shown: MultisetTable, folder: Path | None, device: str, started: float) -> Reproduction:
    """Table 1 of Welleck et al. (2017), from the records; its failures where a model is at hand."""
    looking = [found for name in shown.data if (found := shown.looking(name)).rows]
    figures: list[Path] = []
    report = None
    if folder is not None:
        drawings = [
            *training_figures(shown),
            *reading_figures(folder / RUNS, shown.data, MULTISETS, device),
        ]
        figures = [drawing.write(folder) for drawing in drawings]
        report = multiset_page(shown, looking, drawings).save(folder / "report.html")
    return Reproduction(
        table="hsal-table1",
        tables=[shown.answers(), *looking],
        cells=[cell.to_json() for cell in shown.cells()],
        confirmed=[],
        figures=figures,
        report=report,
        seconds=time.monotonic() - started,
        legend=MULTISET_LEGEND,
    )


def _captions(shown: CaptionTable, folder: Path | None, started: float, progress: Progress) -> Reproduction:
    """Table 1 of Xu et al. (2015), and its curve, from the records; people, where the captions are at hand."""
    figures: list[Path] = []
    report = None
    if folder is not None:
        drawings = likelihood_figure(shown)
        figures = [drawing.write(folder) for drawing in drawings]
        report = caption_page(shown, drawings).save(folder / "report.html")
    beside = [found for name in shown.data if (found := shown.beside(name)).rows]
    scenes = [found for found in (shown.scenes(),) if found.rows]
    each = (people_table(name, source, shown.protocol, progress) for name, source in shown.sources.items())
    people = [found for found in each if found is not None]
    return Reproduction(
        table="sat-table1",
        tables=[*(shown.printed(name) for name in shown.data), *people, *beside, *scenes],
        cells=[cell.to_json() for cell in shown.cells()],
        confirmed=[],
        figures=figures,
        report=report,
        seconds=time.monotonic() - started,
        legend=CAPTION_LEGEND,
    )


def _projections(models: Sequence[str], count: int, device: str, progress: Progress) -> list[PlainTable]:
    """The variants for the models that ship."""
    wanted = [name for name in PROJECTED if name in models]
    found = []
    for done, name in enumerate(wanted):
        progress("laying maps on pictures in every way", done, len(wanted))
        found.append(projection_table(study_projections(load(name, device), count)))
    return found


def _drawings(
    shown: Table1, confirmed: Sequence[Confirmation], penalties: Drawing | None, device: str
) -> list[Drawing]:
    """Every figure that there is something for."""
    found = [
        *(scale_figure(shown, setting) for setting in shown.settings),
        recall_figure(confirmed, shown.data),
        *(scenes_figure(confirmed, name, device) for name in shown.data),
        penalties,
    ]
    return [drawing for drawing in found if drawing is not None]
