"""``saccade evaluate``: task metrics, attention metrics and baselines of one model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from saccade.cli.named_data import named_data
from saccade.cli.options import Beam, Device, Json, LengthPenalty, Quiet
from saccade.cli.terminal import bar, print_json, print_table, remark

_OF_MODEL = "the model's own"
COLUMNS = 5
"""Scores side by side in one table: more do not fit a terminal of 80 characters."""


def evaluate(
    model: Annotated[str, typer.Argument(help="Zoo name, model folder or run folder.", metavar="MODEL|RUN")],
    data: Annotated[
        str | None,
        typer.Option("--data", help="A name, READER:PATH or a path.", show_default="what the model was trained on"),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="val or test.")] = "test",
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="unlimited or authors.", show_default=_OF_MODEL)
    ] = None,
    glyphs: Annotated[
        str | None, typer.Option("--glyphs", help="disjoint, merged or pack.", show_default=_OF_MODEL)
    ] = None,
    drawing: Annotated[
        str | None, typer.Option("--drawing", help="Of scenes: blend, authors or both.", show_default=_OF_MODEL)
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", help="At most N examples; of a table, a sample.", min=1, show_default="all")
    ] = None,
    twins: Annotated[
        int | None,
        typer.Option("--twins", help="Scenes that are rendered again, to score maps.", min=0, show_default="100"),
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    json: Json = False,
    device: Device = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Of the scenes it is scored on.", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Score a model; metrics are fractions in JSON and percent in the table.

    CIDEr-D goes from 0 to 10, times 100 in the table as papers print it; what is called _raw has units of its own.
    """
    import saccade
    from saccade.devices import wake_cuda

    data = None if data is None else named_data(data, quiet=quiet)
    wake_cuda(device)
    with bar("scoring", limit, shown=not quiet and not json) as update:
        result = saccade.evaluate(
            model,
            data=data,
            split=split,
            protocol=protocol,
            glyphs=glyphs,
            drawing=drawing,
            limit=limit,
            twins=twins,
            beam=beam,
            length_penalty=length_penalty,
            device=device,
            seed=seed,
            progress=update,
        )
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
