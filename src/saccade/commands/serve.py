"""``serve``: the live page, on this machine or where it is asked to be."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from saccade.commands.verb import Command, checked, remark, say, warn
from saccade.config import Within
from saccade.errors import ConfigError, MissingExtraError, OutputError


@checked
def serve(
    models: Sequence[str | Path] = (),
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Within(0, 65535)] = 8765,
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

    Example:
        >>> saccade.serve(["soft-mref"], announce=print)  # doctest: +SKIP
    """
    try:
        import uvicorn

        from saccade.web.app import create_app
        from saccade.web.guard import LOG, TOKEN, server_config
        from saccade.web.service import Service
    except ModuleNotFoundError as error:
        raise MissingExtraError("the page", "web", f"{error.name} is not installed") from error
    import torch

    is_remote, is_name = _reach(host)
    if is_remote and not allow_remote:
        raise ConfigError(
            f"host {host}: other machines can reach this address; allow it (allow_remote) if they may use the models, "
            "or leave it at 127.0.0.1"
        )
    # Models this small lose more by handing work between threads than they gain; requests run side by side instead.
    torch.set_num_threads(1)
    service = Service(models, device)
    names = (host if is_name else "", socket.gethostname()) if is_remote else ()
    token = secrets.token_urlsafe(32) if is_remote else None
    if is_remote if log is None else log:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        LOG.handlers[:] = [handler]
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
    with _listening(host, port) as open_socket:
        address, actual = open_socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        page = f"http://{shown}:{actual}/" + (f"?{TOKEN}={token}" if token is not None else "")
        if announce is not None:
            announce(page)
        else:
            if is_remote:
                warn("warning: who has this address and its token can use these models; traffic is not encrypted")
            say(page)
            if not quiet:
                remark("open it in a browser; Ctrl-C ends it")
        uvicorn.Server(server_config(create_app(service, names, token), service.limits)).run(sockets=[open_socket])


def _reach(host: str) -> tuple[bool, bool]:
    """Whether other machines can reach ``host``, and whether it is a name and no number."""
    try:
        return not ipaddress.ip_address(host).is_loopback, False
    except ValueError:
        return host != "localhost", True


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio switches Nagle's algorithm off: an answer would wait 40 ms for its second half.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(256)
    except OSError as error:
        opened.close()
        raise OutputError(f"cannot listen on {host} port {port} ({error.strerror}); choose another port") from error
    return opened


COMMAND = Command(
    serve,
    lambda result, arguments, remark: None,
    place={"models": "MODEL"},
    names={"port": "-p", "log": "--log/--no-log", "quiet": "-q"},
    json=False,
    example="saccade serve soft-mref hard-mref",
)
