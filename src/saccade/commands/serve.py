"""``serve``: the live page, on this machine or where it is asked to be."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from saccade.commands.verb import Command, Number, check_call, remark, say, warn


def serve(
    models: Sequence[str | Path] = (),
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Number(0, 65535)] = 8765,
    allow_remote: bool = False,
    log: bool | None = None,
    device: str = "auto",
    quiet: bool = False,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Ask models in a browser: drag a digit and see attention follow.

    It serves until it is interrupted.

    Args:
        models: zoo names, model folders or run folders. None: all shipped models.
        host: address to listen on. Any but the loopback needs ``allow_remote``.
        port: port to listen on; 0 takes a free one.
        allow_remote: let other machines in, if they have the token that is printed. It is made anew each time.
        log: a line on stderr for each request. None: on with another address.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        quiet: no remarks.
        announce: called with the page's address, token included, once requests are let in. None: it is printed.

    Raises:
        MissingExtraError: the extra ``web`` is not installed.
        ConfigError: other machines can reach ``host``, and ``allow_remote`` is not set.
        OutputError: the port is taken.

    Example:
        >>> saccade.serve(["soft-mref"], announce=print)  # doctest: +SKIP
    """
    check_call(serve, locals())
    from saccade.web.serve import check_extra, check_host, is_address, is_loopback, listening, server_config

    check_extra()
    check_host(host, allow_remote=allow_remote)
    import torch
    import uvicorn

    from saccade.web.app import create_app
    from saccade.web.guard import PARAMETER, new_token, show_log
    from saccade.web.service import Service

    # Models this small lose more by handing work between threads than they gain; requests run side by side instead.
    torch.set_num_threads(1)
    service = Service(models, device)
    is_remote = not is_loopback(host)
    names = ("" if is_address(host) else host, socket.gethostname()) if is_remote else ()
    token = new_token() if is_remote else None
    if is_remote if log is None else log:
        show_log()
    with listening(host, port) as open_socket:
        address, actual = open_socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        page = f"http://{shown}:{actual}/" + (f"?{PARAMETER}={token}" if token is not None else "")
        if announce is not None:
            announce(page)
        else:
            _announce(page, is_remote, quiet)
        uvicorn.Server(server_config(create_app(service, names, token), service.limits)).run(sockets=[open_socket])


def _announce(page: str, is_remote: bool, quiet: bool) -> None:
    """Print the address, and what to know about it."""
    if is_remote:
        warn("warning: anyone who has this address and its token can use these models; traffic is not encrypted")
    say(page)
    if not quiet:
        remark("open it in a browser; Ctrl-C ends it")


COMMAND = Command(
    serve,
    lambda result, given, remark: None,
    place={"models": "MODEL"},
    names={"port": "-p", "log": "--log/--no-log", "quiet": "-q"},
    json=False,
    example="saccade serve soft-mref hard-mref",
)
