"""``saccade evaluate``: task metrics, attention metrics and baselines of one model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.named_data import named_data
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages

COLUMNS = 5
"""Scores side by side in one table: more do not fit a terminal of 80 characters."""


@command_of(
    "saccade.verbs.evaluate:evaluate",
    {"model": Typed("MODEL"), "sweeps": RARE},
    leave_out={"allow_pack"},
    example="saccade evaluate soft-mref --limit 500\nsaccade evaluate runs/mine --data csv:my.csv --json > scores.json",
)
def evaluate(given: Given, json: Json = False, quiet: Quiet = False) -> None:
    """Score and print."""
    import saccade
    from saccade.devices import wake_cuda

    if given["data"] is not None:
        given["data"] = named_data(given["data"], quiet=quiet)
    wake_cuda(given["device"])
    with stages(shown=not quiet and not json) as update:
        update("scoring", 0, given["limit"])  # before the model is loaded: a few pictures are scored in one go
        result = saccade.evaluate(**given, on_progress=partial(update, "scoring"))
    if json:
        print_json(result)
    else:
        show(result)


def show(result: Mapping[str, Any]) -> None:
    """The result of an evaluation as tables: answers, attention, and both beside their baselines."""
    from saccade.show.score_tables import score_tables

    for table in score_tables(result, columns=COLUMNS):
        rows = [[_in_a_terminal(cell) for cell in row] for row in table.rows]
        print_table(table.caption, table.columns, rows, note=table.note)
    if result.get("verdict"):
        typer.echo(f"{result['verdict']}.")
    if result.get("caution"):
        remark(str(result["caution"]))


def _in_a_terminal(cell: Any) -> str:
    """What a cell shows, without the narrow space of pages, which many a terminal has no sign for."""
    return str(getattr(cell, "shown", cell)).replace("\u202f", "")
