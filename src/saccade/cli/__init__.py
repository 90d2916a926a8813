"""The command ``saccade``: one thin file per verb, made of a Python function (:mod:`saccade.cli.from_function`).

An error that a user can cause prints one line on stderr, ``error: …``, and exits with code 2, as wrong options do;
Ctrl-C exits with 130. ``--debug``, anywhere in the command, also prints the traceback. Nothing heavy is imported before
a verb needs it.
"""

from __future__ import annotations

import gc
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from saccade.cli import (
    compare,
    data,
    doctor,
    evaluate,
    export,
    listing,
    look,
    probe,
    report,
    reproduce,
    score,
    serve,
    tour,
    train,
)
from saccade.cli.help import VerbCommand
from saccade.cli.terminal import warn
from saccade.errors import SaccadeError


class Verbs(TyperGroup):
    """A group of commands that reports SaccadeErrors in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--debug`` may stand anywhere: it belongs to the group, so it is moved to the front."""
        return super().parse_args(ctx, sorted(args, key=lambda arg: arg != "--debug"))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; an error of the input becomes one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except SaccadeError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            typer.secho(f"error: {' '.join(str(error).split())}", fg="red", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    name="saccade",
    cls=Verbs,
    help="Models that answer, and show where they looked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from saccade import __version__

        typer.echo(f"saccade {__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of every verb."""


for verb in (
    look.look,
    compare.compare,
    tour.tour,
    train.train,
    evaluate.evaluate,
    score.score,
    probe.probe,
    reproduce.reproduce,
    report.report,
    export.export,
    serve.serve,
):
    app.command(cls=VerbCommand)(verb)
app.add_typer(data.app, name="data")
app.command("list", cls=VerbCommand)(listing.list_)
app.command(cls=VerbCommand)(doctor.doctor)


def _warn(message: Warning | str, *where: object, **more: object) -> None:
    """A warning as one line on stderr, without the place in the code, which does not help at a command line."""
    warn(f"warning: {' '.join(str(message).split())}")


def main() -> None:
    """The entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without × or → must not end in a traceback
    # saccade's own limit on pixels is lower than Pillow's and says what to do; its warning would come on top.
    warnings.filterwarnings("ignore", message="Image size .* exceeds limit")
    warnings.showwarning = _warn
    gc.set_threshold(100_000, 50, 100)  # importing torch makes half a million objects that stay: 0.1 s
    try:
        app(prog_name="saccade")
    finally:
        gc.freeze()  # all of it ends with the process; looking through torch for cycles would take 0.15 s
