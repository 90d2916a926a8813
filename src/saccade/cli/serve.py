"""``saccade serve``: the live page."""

from __future__ import annotations

from typing import Annotated

import typer

from saccade.cli.options import Device, Quiet
from saccade.cli.terminal import remark, warn


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Zoo names, model folders or run folders; all shipped ones if none.", metavar="[MODEL…]"),
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", help="0 takes a free one.", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option("--host", help="Another address needs --allow-remote.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in, if they have the token that is printed.")
    ] = False,
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--no-log", help="A line on stderr for each request.", show_default="on with another address"
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Ask the models in a browser: drag a digit and see attention follow."""
    from saccade.web.serve import is_loopback
    from saccade.web.serve import serve as serve_models

    def announce(address: str) -> None:
        if not is_loopback(host):
            warn(
                "warning: anyone who has this address, which contains the token, can use these models; traffic is "
                "not encrypted"
            )
        typer.echo(address)
        if not quiet:
            remark("open it in a browser; Ctrl-C ends it")

    serve_models(
        models or (), host=host, port=port, allow_remote=allow_remote, device=device, log=log, announce=announce
    )
