"""``saccade average``: several runs in, one run of their mean weights out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from saccade.cli.options import Quiet
from saccade.cli.terminal import remark
from saccade.cli.train import scored_by
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from saccade.models.io.facts import StoredType


def average(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, two or more.", metavar="RUN…")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to be written.")],
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="How much each run counts, as in 1,2,1.", show_default="all the same"),
    ] = None,
    stored: Annotated[
        str | None, typer.Option("--stored", help="float32, float16 or int8.", show_default="the first run's")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make one model of several runs: the mean of their weights.

    It costs no more at use than one of them. The runs must have begun with the same weights, as with --start.
    """
    import saccade

    saccade.average(runs, out=out, weights=_numbers(weights), stored=cast("StoredType | None", stored))
    if not quiet:
        remark(f"run folder: {out}; score it with: {scored_by(out)}")


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"--weights {text}: expected numbers with commas between, as in 1,2,1") from error
