"""``reproduce``: a published table and its figures, from recorded or fresh runs, measured beside published.

Which tables there are, and how each is made, the families say; see :class:`saccade.families.contract.PaperTable`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.checks import check_numbers
from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from saccade.verbs.reproduction.result import Reproduction


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
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Reproduction:
    """Make a paper's table and figures, measured beside published.

    A table is made from recorded runs, and confirmed with the shipped models.

    Args:
        table: name of a table. 'saccade reproduce' lists them.
        data: only this data set; several may be named. READER:PATH where pictures have to be read. None: all.
        protocol: one of the table's, e.g. authors or dev.
        seeds: with ``train``, seeds that every cell shall have.
        train: train the cells without a run, into ``out``.
        jobs: with ``train``, runs side by side. Each has a process of its own.
        quick: fewer examples for what is computed here.
        limit: examples of each model scored here. New runs are tested in full by default. None: as the table says.
        out: folder for figures, report.html and new runs. Earlier runs are found there again. None: nothing is written.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        overrides: with ``train``, further ``key=value`` texts for every recipe.
        on_progress: called with what is going on, how far it is, and how far it goes.

    Returns:
        The tables, every cell as plain values, the figures, and where the page is.

    Raises:
        ConfigError: there is no such table, or an argument does not fit it.
        OutputError: ``out`` cannot be written.

    Example:
        >>> saccade.reproduce("hattnet-table1", out="table1").report  # doctest: +SKIP
    """
    from saccade.atomic import make_folder
    from saccade.families import tables
    from saccade.families.contract import load_target
    from saccade.verbs.reproduction.request import Request

    started = time.monotonic()
    check_tables_exist([table])
    check_numbers(least=1, seeds=seeds, jobs=jobs, limit=limit)
    if train and out is None:
        raise ConfigError("training needs a place for its runs: name one with `out`")
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
        progress=on_progress,
        started=started,
    )
    result: Reproduction = load_target(tables()[table].target)(request)
    return result


def check_tables_exist(names: Sequence[str]) -> None:
    """Refuse a table that no family has, before work on another one begins."""
    from saccade.families import tables

    known = tables()
    for name in names:
        if name not in known:
            raise ConfigError(f"no table '{name}': {nearest(name, known)}")
