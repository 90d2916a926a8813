"""Tables 1a and 1b and Figures 5 to 7 of Seo et al. (2016, arXiv:1606.02393), from recorded runs and shipped models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from saccade.families.question.reproduction.ablations import ablation_table, penalty_curve, penalty_table
from saccade.families.question.reproduction.confirm import Confirmation, confirm, confirmation_table
from saccade.families.question.reproduction.drawings import drawings_table
from saccade.families.question.reproduction.figures import penalty_figure, recall_figure, scale_figure, scenes_figure
from saccade.families.question.reproduction.page import hattnet_page
from saccade.families.question.reproduction.projections import projection_table, study_projections
from saccade.families.question.reproduction.readings import reading_table, recorded_readings
from saccade.families.question.reproduction.table1 import DATA, LABELS, LEGEND, Protocol, Table1
from saccade.predict import load
from saccade.recorded import recorded_runs
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cost import cost_table
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.result import Reproduction

QUICK, FULL = 500, 1000
"""Test examples of each shipped model; curves of precision and recall need hundreds."""
PROJECTED = ("hattnet-ctx-mref", "soft-mref")
"""Shipped models whose maps are laid on the picture in every way."""
SCORES = ("accuracy", "true_positive_strength", "selectivity", "causal_follow", "causal_hold")
"""What the cells of the result hold."""


def reproduce(request: Request) -> Reproduction:
    """Table 1 from the records, its figures, and the shipped models scored on this machine."""
    recorded = Table1(recorded_runs(), tuple(request.data or DATA), cast(Protocol, request.protocol))
    shown = request.completed(recorded)
    count = request.limit or (QUICK if request.quick else FULL)
    variants = recorded_runs(variants=True)
    points = penalty_curve(shown.runs, variants)
    confirmed = confirm(shown.runs, shown.data, limit=count, device=request.device, progress=request.progress)

    main = [make(name) for make in (shown.accuracy, shown.strength) for name in shown.data]
    looking = [found for name in shown.data if (found := shown.looking(name)).rows]
    beyond = [ablation_table(shown.runs, variants)] if variants else []
    beyond += [penalty_table(points)] if len(points) > 1 else []
    beyond += [drawn] if (drawn := drawings_table(shown.runs, shown.data)).rows else []
    beyond += [cost] if (cost := cost_table(shown.runs, shown.data, labels=LABELS)).rows else []
    beyond += [reading_table(each, shown.runs, variants) for each in recorded_readings() if each.data in shown.data]
    beyond += _projections([each.model for each in confirmed], count, request)
    checked = [confirmation_table(confirmed)] if confirmed else []

    drawings: list[Drawing] = []
    page = None
    if request.folder is not None:
        request.progress("drawing", 0, 1)
        drawings = _drawings(shown, confirmed, penalty_figure(points), request.device)
        page = hattnet_page(main, looking, beyond, checked, drawings)
    return request.result(
        [*main, *looking, *beyond, *checked],
        [cell.to_json() for cell in shown.cells(SCORES)],
        LEGEND,
        confirmed=[each.to_json() for each in confirmed],
        drawings=drawings,
        page=page,
    )


def _projections(models: Sequence[str], count: int, request: Request) -> list[PlainTable]:
    """The ways to lay maps on the picture, compared for those of ``PROJECTED`` that are among ``models``."""
    wanted = [name for name in PROJECTED if name in models]
    found = []
    for done, name in enumerate(wanted):
        request.progress("laying maps on pictures in every way", done, len(wanted))
        found.append(projection_table(study_projections(load(name, request.device), count)))
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
