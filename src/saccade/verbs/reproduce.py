"""A published table and its figures, from recorded or fresh runs: measured beside published, in every cell.

Which tables there are, and how each is made, the families say; see :class:`saccade.families.contract.PaperTable`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from saccade.atomic import make_folder
from saccade.errors import ConfigError, nearest
from saccade.families import tables
from saccade.families.contract import load_target
from saccade.verbs.reproduction.request import ALL, Request
from saccade.verbs.reproduction.result import Reproduction
from saccade.verbs.reproduction.training import Progress


def reproduce(
    table: str,
    *,
    data: Sequence[str] | None = None,
    protocol: str = ALL,
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
        table: a key of :func:`saccade.families.tables`.
        data: data sets by name, or as READER:PATH where pictures have to be read; None: all of the table's.
        protocol: one of the table's, such as ``authors``, ``unlimited`` or ``dev``; all: every one that the table shows
            side by side.
        seeds: with ``train``, how many seeds every cell shall have.
        train: train the cells that lack a run, into ``out``.
        jobs: with ``train``, how many runs at a time, each in a process of its own.
        quick: fewer examples for what is computed here.
        limit: examples of each shipped model (and, with ``train``, of each new run; by default those are tested in
            full).
        out: folder for figures, ``report.html`` and new runs, and where earlier ones are found again; without it
            nothing is drawn or written.
        device: auto, cpu, cuda, cuda:N or mps.
        overrides: with ``train``, further ``key=value`` texts for every recipe.
        progress: called with what is going on, how far it is, and how far it goes.
    """
    started = time.monotonic()
    check_tables_exist([table])
    if seeds < 1:
        raise ConfigError(f"seeds: at least 1, found {seeds}")
    if jobs < 1:
        raise ConfigError(f"jobs: at least 1, found {jobs}")
    if train and out is None:
        raise ConfigError("training needs a place for its runs: name one with --out")
    request = Request(
        table=table,
        data=data,
        protocol=protocol,
        seeds=seeds,
        train=train,
        jobs=jobs,
        quick=quick,
        limit=limit,
        folder=None if out is None else make_folder(Path(out)),  # first: a wrong place is found at once
        device=device,
        overrides=overrides,
        progress=progress,
        started=started,
    )
    result: Reproduction = load_target(tables()[table].target)(request)
    return result


def check_tables_exist(names: Sequence[str]) -> None:
    """Refuse a table that no family has, before work on another one begins."""
    known = tables()
    for name in names:
        if name not in known:
            raise ConfigError(f"no table '{name}': {nearest(name, known)}")
