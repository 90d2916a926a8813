"""``serve``: the page and the API on this machine, or where it is asked to be."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from saccade.errors import ConfigError, MissingExtraError, OutputError

LOOPBACK = "127.0.0.1"
PORT = 8765
_NEEDED = ("fastapi", "uvicorn", "pydantic", "python_multipart")


def serve(
    models: Sequence[str | Path] = (),
    *,
    host: str = LOOPBACK,
    port: int = PORT,
    allow_remote: bool = False,
    device: str = "auto",
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve ``models`` until interrupted.

    Args:
        models: zoo names, model folders or run folders; none means every model that ships with saccade.
        host: address to listen on.
        port: to listen on; 0 takes a free one.
        allow_remote: must be True for any address but the loopback: whoever reaches it may use the models.
        device: where the models compute.
        announce: called with the page's address once requests are let in.
    """
    check_extra()
    check_host(host, allow_remote=allow_remote)
    import torch
    import uvicorn

    from saccade.web.app import create_app
    from saccade.web.service import Service

    # Models this small lose more by handing work between threads than they gain; requests run side by side instead.
    torch.set_num_threads(1)
    service = Service(models, device)
    names = () if is_loopback(host) else ("" if _is_address(host) else host, socket.gethostname())
    with listening(host, port) as open_socket:
        address, actual = open_socket.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        announce(f"http://{shown}:{actual}/")
        config = uvicorn.Config(
            create_app(service, names),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=3,
            ws="none",
        )
        uvicorn.Server(config).run(sockets=[open_socket])


def check_extra() -> None:
    """Refuse to go on without the packages of the extra ``web``."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError("the page", "web", f"{', '.join(missing)} is not installed")


def check_host(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that others can reach, unless that is wanted."""
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(
            f"host {host}: whoever reaches this address could use the models; add --allow-remote if that is wanted, "
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
        raise OutputError(f"cannot listen on {host} port {port} ({said}); choose another with --port") from error
    return opened


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
