"""``saccade average``: several runs in, one run of their mean weights out."""

from __future__ import annotations

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Quiet
from saccade.cli.terminal import remark
from saccade.cli.train import scored_by


@command_of(
    "saccade.verbs.average:average",
    {"runs": Typed("RUN", many=True), "out": Typed("-o"), "weights": Typed(commas=True, shows="X,X,…")},
    example="saccade average runs/a runs/b --out runs/mean",
)
def average(given: Given, quiet: Quiet = False) -> None:
    """Write the mean, and say how to score it."""
    import saccade

    saccade.average(**given)
    if not quiet:
        remark(f"run folder: {given['out']}; score it with: {scored_by(given['out'])}")
