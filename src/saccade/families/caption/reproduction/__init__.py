"""Table 1 of Xu et al. (2015, arXiv:1502.03044) and its curve of BLEU over likelihood, from recorded runs."""

from __future__ import annotations

from saccade.families.caption.reproduction.people import people_table
from saccade.families.caption.reproduction.table1 import (
    LEGEND,
    OFFICIAL,
    CaptionTable,
    caption_page,
    likelihood_figure,
)
from saccade.recorded import recorded_runs
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.request import ALL, Request
from saccade.verbs.reproduction.result import Reproduction


def reproduce(request: Request) -> Reproduction:
    """Table 1 and its curve from the records; people beside it where the captions are at hand; scenes below."""
    protocol = OFFICIAL if request.protocol == ALL else request.protocol
    shown = request.completed(CaptionTable.of_references(recorded_runs(), request.data, protocol))
    drawings: list[Drawing] = []
    page = None
    if request.folder is not None:
        drawings = likelihood_figure(shown)
        page = caption_page(shown, drawings)
    each = (make(name) for name in shown.data for make in (shown.differences, shown.beside))
    beside = [found for found in each if found.rows]
    scenes = [found for found in (shown.scenes(),) if found.rows]
    counted = (people_table(name, source, shown.protocol, request.progress) for name, source in shown.sources.items())
    people = [found for found in counted if found is not None]
    return request.result(
        [*(shown.printed(name) for name in shown.data), *people, *beside, *scenes],
        [cell.to_json() for cell in shown.cells()],
        LEGEND,
        drawings=drawings,
        page=page,
    )
