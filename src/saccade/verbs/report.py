"""``report``: runs and records as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.checks import check_numbers

if TYPE_CHECKING:
    from saccade.show.report import Report


def report(
    sources: str | Path | Sequence[str | Path],
    *,
    looks: int = 4,
    scores: Path | str | None = None,
    device: str = "auto",
) -> Report:
    """Make a page that opens offline, of one run or of records.

    Args:
        sources: one run folder, or records and folders of records. Folders of rows that ``look_folder`` wrote count as
            records.
        looks: validation pictures of a run to show, with where its model looks. Of rows, how many are drawn.
        scores: of a run, the file that 'saccade evaluate --json' wrote. None: no scores.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.

    Returns:
        The page; ``.save("report.html")`` writes it.

    Raises:
        DataError: a source is neither a run folder nor a record.
        ConfigError: ``scores`` was given for records.

    Example:
        >>> saccade.report("runs/soft").save("soft.html")  # doctest: +SKIP
    """
    from saccade.verbs.report_page import make_report

    check_numbers(least=0, most=100, looks=looks)
    named = [sources] if isinstance(sources, (str, Path)) else sources
    return make_report(named, looks=looks, scores=scores, device=device)
