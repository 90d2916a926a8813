"""Tables of Wang et al. (2017, arXiv:1704.06904) and of Fu et al. (CVPR 2017), from recorded runs."""

from __future__ import annotations

from saccade.errors import ConfigError, nearest
from saccade.families.classify.reproduction.residual_table import COLUMNS, DATA, LEGEND, ResidualTable, residual_page
from saccade.families.classify.reproduction.zoom_table import LEGEND as ZOOM_LEGEND
from saccade.families.classify.reproduction.zoom_table import SETTINGS, ZoomTable, zoom_page
from saccade.recorded import recorded_runs
from saccade.verbs.reproduction.request import ALL, Request
from saccade.verbs.reproduction.result import Reproduction


def reproduce_residual(request: Request) -> Reproduction:
    """Errors of attention networks and their controls; with ``--train``, cells without a run are trained."""
    if request.protocol not in (known := (*(setting.protocol for setting in COLUMNS), ALL)):
        raise ConfigError(f"protocol '{request.protocol}': {nearest(request.protocol, known)}")
    settings = tuple(setting for setting in COLUMNS if request.protocol in (setting.protocol, ALL))
    for name in request.data or ():
        if name.partition(":")[0] != DATA:
            raise ConfigError(f"data '{name}': this table is of {DATA} alone")
    source = next(iter(request.data or ()), None)
    shown = request.completed(ResidualTable(recorded_runs(), source, settings))
    tables = [shown.errors(), shown.differences()]
    page = residual_page(tables) if request.folder is not None else None
    return request.result(tables, [cell.to_json() for cell in shown.cells()], LEGEND, page=page)


def reproduce_zoom(request: Request) -> Reproduction:
    """What each scale says and where it looks, beside controls; with ``--train``, cells without a run are trained."""
    if request.protocol not in (known := (SETTINGS["details"].protocol, ALL)):
        raise ConfigError(f"protocol '{request.protocol}': {nearest(request.protocol, known)}")
    shown = request.completed(ZoomTable(recorded_runs(), tuple(request.data or SETTINGS)))
    tables = [*(shown.answers(name) for name in shown.names), *shown.further()]
    page = zoom_page(tables) if request.folder is not None else None
    return request.result(tables, [cell.to_json() for cell in shown.cells()], ZOOM_LEGEND, page=page)
