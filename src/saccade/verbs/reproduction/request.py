"""What a user asked of ``saccade reproduce``, as the function of a family gets it.

A family declares a :class:`~saccade.families.contract.PaperTable` whose target takes a :class:`Request` and returns a
:class:`~saccade.verbs.reproduction.result.Reproduction`. Most targets go three steps: make a table of the recorded
runs; let :meth:`Request.completed` add what ``--out`` holds and train what is missing; hand tables, figures and page to
:meth:`Request.result`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from saccade.recorded import RecordedRun, recorded_runs
from saccade.show.report import Report
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.result import Reproduction
from saccade.verbs.reproduction.training import RESULTS, RUNS, Job, Progress, train_missing

ALL = "all"
"""Every protocol that a table has, or its usual one."""


class TableOfRuns(Protocol):
    """A table that is made of recorded runs."""

    def with_runs(self, more: Iterable[RecordedRun]) -> Self:
        """The same table with further runs; a cell that already has a run of a seed keeps it."""
        ...

    def missing(self, seeds: int) -> Sequence[Job]:
        """The runs of seeds 0 … ``seeds`` − 1 that its cells lack and that can be trained here."""
        ...


AnyTable = TypeVar("AnyTable", bound=TableOfRuns)


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`saccade.verbs.reproduce.reproduce`, checked as far as no family is needed for it."""

    table: str
    """Its name."""
    data: Sequence[str] | None = None
    """Data sets by name or as READER:PATH; None: all that the table has."""
    protocol: str = ALL
    seeds: int = 1
    train: bool = False
    jobs: int = 1
    quick: bool = False
    limit: int | None = None
    folder: Path | None = None
    """For figures, the page and new runs; None: nothing is drawn, trained or written."""
    device: str = "auto"
    overrides: Sequence[str] = ()
    progress: Progress = lambda what, done, total: None
    started: float = field(default_factory=time.monotonic)
    """On the monotonic clock."""

    @property
    def runs(self) -> Path | None:
        """The folder of the runs that were trained for this table."""
        return None if self.folder is None else self.folder / RUNS

    def completed(self, table: AnyTable) -> AnyTable:
        """``table`` with the runs that ``folder`` holds; with ``train``, those that are missing are trained first."""
        if self.folder is None:
            return table
        table = table.with_runs(recorded_runs(self.folder / RESULTS))
        if not self.train:
            return table
        return table.with_runs(
            train_missing(
                table.missing(self.seeds),
                self.folder,
                side_by_side=self.jobs,
                limit=self.limit,
                device=self.device,
                overrides=self.overrides,
                progress=self.progress,
            )
        )

    def result(
        self,
        tables: Sequence[PlainTable],
        cells: Sequence[dict[str, Any]],
        legend: str,
        *,
        confirmed: Sequence[dict[str, Any]] = (),
        drawings: Sequence[Drawing] = (),
        page: Report | None = None,
    ) -> Reproduction:
        """Writes figures and page into ``folder``, if there is one, and gives everything back.

        Args:
            tables: what is printed, in order.
            cells: every number of the tables as plain values; fractions.
            legend: what a reader must know of all tables.
            confirmed: shipped models that were scored here, as plain values.
            drawings: each becomes ``folder/NAME.png``.
            page: becomes ``folder/report.html``.
        """
        return Reproduction(
            table=self.table,
            tables=tables,
            cells=cells,
            confirmed=confirmed,
            figures=[] if self.folder is None else [drawing.write(self.folder) for drawing in drawings],
            report=None if self.folder is None or page is None else page.save(self.folder / "report.html"),
            seconds=time.monotonic() - self.started,
            legend=legend,
        )
