"""The leaderboard of maps: attention, attribution methods and rivals on the same scenes and their twins."""

from __future__ import annotations

from saccade.errors import ConfigError, nearest
from saccade.families.question.board.methods import OWN
from saccade.families.question.reproduction.board.entrants import DATA
from saccade.families.question.reproduction.board.recording import BoardRecord, measure_board, recorded_boards
from saccade.families.question.reproduction.board.tables import LEGEND, board_tables, parts_table
from saccade.recorded import recorded_runs
from saccade.show.report import Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.request import ALL, Request
from saccade.verbs.reproduction.result import Reproduction

QUICK, FULL = 10, 25
"""Questions of each shipped model whose own attention is scored on this machine."""
BIRDS = "cub"


def reproduce(request: Request) -> Reproduction:
    """The tables from recorded boards; the attention of the shipped models is scored here, beside its record."""
    wanted = list(request.data or (*DATA, BIRDS))
    for name in wanted:
        if name not in (*DATA, BIRDS):
            raise ConfigError(f"data '{name}': {nearest(name, (*DATA, BIRDS))}")
    if request.protocol != ALL:
        raise ConfigError(f"protocol '{request.protocol}': the boards have none; leave it out")
    if request.train:
        raise ConfigError("causal-benchmark trains nothing; train the recipes and run 'tools/board.py --runs FOLDER'")
    boards = [board for board in recorded_boards() if board.data in wanted]
    tables = board_tables(boards)
    if BIRDS in wanted and (parts := parts_table(recorded_runs())) is not None:
        tables.append(parts)
    checked, confirmed = _checked(boards, request)
    page = None
    if request.folder is not None:
        page = reproduction_page(
            "Where do maps lie, and what do answers depend on?",
            "Attention, attribution methods and rivals on the same scenes, which are rendered again with one thing "
            "changed. Numbers come from recorded runs that are part of saccade; what was computed here says so.",
            [
                Section("The leaderboard", LEGEND, [table_block(table) for table in tables]),
                Section("Checked on this machine", "", [table_block(table) for table in checked]),
            ],
            again="From the records, or by measuring again.",
            commands=("saccade reproduce causal-benchmark --out board", "python tools/board.py --runs runs"),
        )
    cells = [{"board": board.name, **row} for board in boards for row in board.rows]
    return request.result([*tables, *checked], cells, LEGEND, confirmed=confirmed, page=page)


def _checked(boards: list[BoardRecord], request: Request) -> tuple[list[PlainTable], list[dict[str, object]]]:
    """The own attention of shipped models on a few test questions, beside the record."""
    count = request.limit or (QUICK if request.quick else FULL)
    rows, found = [], []
    for board in boards:
        if board.planted != "none":
            continue
        here = measure_board(
            board.data,
            count=count,
            device=request.device,
            methods=(OWN,),
            untaught=False,
            progress=request.progress,
        )
        for row in [] if here is None else here.rows:
            recorded = board.row(row["model"], row["method"])
            if row["kind"] != "map" or recorded is None:
                continue
            told = {score: row["scores"].get(score) for score in ("map_follow", "map_turn", "cause_top", "misplaced")}
            is_other = row["model"] in board.outdated
            beside = {score: None if is_other else recorded["scores"].get(score) for score in told}
            rows.append([board.data.upper(), row["model"], *(_beside(told[score], beside[score]) for score in told)])
            found.append({"data": board.data, "model": row["model"], "n": row["n"], "here": told, "recorded": beside})
    if not rows:
        return [], []
    columns = ["data", "model", "follow", "turn", "top cause", "misplaced"]
    note = f"Its own attention, the first {count} questions here (recorded, of more; –: of earlier weights), %."
    return [PlainTable("checked on this machine", columns, rows, note)], found


def _beside(here: float | None, recorded: float | None) -> str:
    first, second = ("–" if value is None else f"{100 * value:.1f}" for value in (here, recorded))
    return f"{first} ({second})"
