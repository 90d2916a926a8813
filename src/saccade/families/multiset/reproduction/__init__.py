"""Table 1 and Figures 3 to 6 and 12 of Welleck et al. (2017, arXiv:1711.05165), from recorded runs and a reader."""

from __future__ import annotations

from saccade.families.multiset.reproduction.figures import reading_figures
from saccade.families.multiset.reproduction.table1 import (
    DATA,
    LEGEND,
    MultisetTable,
    multiset_page,
    training_figures,
)
from saccade.recorded import recorded_runs
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.result import Reproduction


def reproduce(request: Request) -> Reproduction:
    """Table 1 from the records; the figures of readings where a trained model is at hand."""
    shown = request.completed(MultisetTable(recorded_runs(), tuple(request.data or DATA), request.protocol))
    looking = [found for column in shown.columns() if (found := shown.looking(*column)).rows]
    drawings: list[Drawing] = []
    page = None
    if request.runs is not None:
        drawings = [*training_figures(shown), *reading_figures(request.runs, shown.data, DATA, request.device)]
        page = multiset_page(shown, looking, drawings)
    return request.result(
        [shown.answers(), shown.differences(), shown.trained(), *looking],
        [cell.to_json() for cell in shown.cells()],
        LEGEND,
        drawings=drawings,
        page=page,
    )
