"""``saccade reproduce memory-table``: errors on twenty tasks from recorded runs, or from runs that are trained here."""

from __future__ import annotations

from saccade.errors import ConfigError, nearest
from saccade.families.story.published import KUMAR_2016, SUKHBAATAR_2015
from saccade.families.story.reproduction.memory_table import DATA, MemoryTable
from saccade.families.story.reproduction.systems import LEGEND
from saccade.families.story.reproduction.training import train_cells
from saccade.recorded import recorded_runs
from saccade.show.report import Section
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.result import Reproduction
from saccade.verbs.reproduction.training import RESULTS


def reproduce(request: Request) -> Reproduction:
    """The tables from the records; with ``train``, cells that lack a record are trained first."""
    for name in request.data or ():
        if name.partition(":")[0] != DATA:
            raise ConfigError(f"data '{name}': {nearest(name, (DATA,))}")
    shown = MemoryTable(recorded_runs(), request.protocol)
    if request.folder is not None:
        shown = shown.with_runs(recorded_runs(request.folder / RESULTS))
        if request.train:
            train_cells(shown.missing(), request)
            shown = shown.with_runs(recorded_runs(request.folder / RESULTS))
    main = [shown.overview(setting) for setting in shown.settings]
    tasks = [found for setting in shown.settings if (found := shown.by_task(setting)) is not None]
    looks, cost, carried = shown.looking(), shown.cost(), shown.carried_over()
    tasks += [] if carried is None else [carried]
    looking = [*([] if looks is None else [looks]), *shown.changing()]
    beyond = [] if cost is None else [cost]
    page = None
    if request.folder is not None:
        page = reproduction_page(
            "Memory networks on bAbI",
            f"{SUKHBAATAR_2015}; {KUMAR_2016}; measured again. Numbers come from recorded runs.",
            [
                Section("Mean errors", LEGEND, [table_block(table) for table in main]),
                Section("Task by task", "", [table_block(table) for table in tasks]),
                Section("Where they looked", "", [table_block(table) for table in looking]),
                Section("What it took", "", [table_block(table) for table in beyond]),
            ],
            again="From the records, or by training what has none yet.",
            commands=(
                "saccade reproduce memory-table --out reproduction",
                "saccade reproduce memory-table --data babi:PATH --train --seeds 10 --out reproduction",
            ),
        )
    return request.result([*main, *tasks, *looking, *beyond], shown.plain(), LEGEND, page=page)
