"""``serve``: the page and the API on this machine, or where it is asked to be."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.checks import check_numbers
from saccade.errors import ConfigError, MissingExtraError, OutputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from saccade.web.limits import Limits

LOOPBACK = "127.0.0.1"
PORT = 8765
_NEEDED = ("fastapi", "uvicorn", "pydantic", "python_multipart")


def serve(
    models: Sequence[str | Path] = (),
    *,
    host: str = LOOPBACK,
    port: int = PORT,
    allow_remote: bool = False,
    log: bool | None = None,
    device: str = "auto",
    announce: Callable[[str], None] = lambda address: None,
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
        announce: called with the page's address, token included, once requests are let in.

    Raises:
        MissingExtraError: the extra ``web`` is not installed.
        ConfigError: other machines can reach ``host``, and ``allow_remote`` is not set.
        OutputError: the port is taken.

    Example:
        >>> saccade.serve(["soft-mref"], announce=print)  # doctest: +SKIP
    """
    check_numbers(least=0, most=65535, port=port)
    check_extra()
    check_host(host, allow_remote=allow_remote)
    import torch
    import uvicorn

    from saccade.web.access import PARAMETER, new_token
    from saccade.web.app import create_app
    from saccade.web.guard import show_log
    from saccade.web.service import Service

    # Models this small lose more by handing work between threads than they gain; requests run side by side instead.
    torch.set_num_threads(1)
    service = Service(models, device)
    is_remote = not is_loopback(host)
    names = ("" if _is_address(host) else host, socket.gethostname()) if is_remote else ()
    token = new_token() if is_remote else None
    if is_remote if log is None else log:
        show_log()
    with listening(host, port) as open_socket:
        address, actual = open_socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        announce(f"http://{shown}:{actual}/" + (f"?{PARAMETER}={token}" if token is not None else ""))
        uvicorn.Server(server_config(create_app(service, names, token), service.limits)).run(sockets=[open_socket])


def server_config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """How uvicorn runs ``app``."""
    import uvicorn

    return uvicorn.Config(
        app,
        http="h11",
        limit_concurrency=limits.connections,
        log_level="error",  # what a client does wrong stands in the log of requests
        access_log=False,
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16 << 10,
        ws="none",
    )


def check_extra() -> None:
    """Refuse to go on without the packages of the extra ``web``."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError("the page", "web", f"{', '.join(missing)} is not installed")


def check_host(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that others can reach, unless that is wanted."""
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(
            f"host {host}: other machines can reach this address; add `allow_remote=True` if they may use the models, "
            f"or leave it at {LOOPBACK}"
        )


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine only."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound to ``host`` and ``port`` and listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio switches Nagle's algorithm off: an answer would wait 40 ms for its second half.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(256)
    except (OSError, OverflowError) as error:
        opened.close()
        said = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot listen on {host} port {port} ({said}); choose another `port`") from error
    return opened


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
