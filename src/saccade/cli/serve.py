"""``saccade serve``: the live page."""

from __future__ import annotations

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Quiet
from saccade.cli.terminal import remark, warn


@command_of(
    "saccade.web.serve:serve",
    {"models": Typed("MODEL"), "port": Typed("-p"), "log": Typed("--log/--no-log")},
    example="saccade serve soft-mref hard-mref",
)
def serve(given: Given, quiet: Quiet = False) -> None:
    """Serve, and print the address."""
    import saccade
    from saccade.web.serve import is_loopback

    def announce(address: str) -> None:
        if not is_loopback(given["host"]):
            warn(
                "warning: anyone who has this address, which contains the token, can use these models; traffic is "
                "not encrypted"
            )
        typer.echo(address)
        if not quiet:
            remark("open it in a browser; Ctrl-C ends it")

    saccade.serve(**given, announce=announce)
