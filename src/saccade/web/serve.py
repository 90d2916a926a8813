"""What the server of the page listens on, how uvicorn runs it, and what requests may cost."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from saccade.errors import ConfigError, MissingExtraError, OutputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bytes, pixels, seconds and places; every one of them can be hit, and then the answer says which."""

    picture_bytes: int = 28 * MEGABYTE
    """Largest request with a picture: one of 20 MiB in base64."""
    request_bytes: int = MEGABYTE // 4
    """Largest request without a picture."""
    pixels: int = 32_000_000
    """Most pixels of an uploaded picture; its header is checked before it is decoded."""
    side: int = 1024
    """Pixels of the longer side that are kept of a picture; a larger one is reduced."""
    decoders: int = 2
    """Processes that decode pictures."""
    decoding_seconds: float = 5.0
    """For one picture to be decoded; then its process is killed."""
    decoding_wait_seconds: float = 15.0
    """For a picture to wait until a process is free."""
    connections: int = 256
    """Open at once; one more is answered with 503."""
    answer_seconds: float = 30.0
    """For a model to answer, waiting in its queue included."""
    waiting: int = 128
    """Requests that may wait for one model."""
    kept_bytes: int = 48 * MEGABYTE
    """Memory for uploaded pictures and rendered scenes; the latest are kept."""
    encodings_bytes: int = 8 * MEGABYTE
    """Memory for encoded pictures, for each model."""
    records: int = 256
    """Answers that can be fetched again."""
    records_bytes: int = 32 * MEGABYTE
    """Memory for those answers."""


LOOPBACK = "127.0.0.1"
PORT = 8765
_NEEDED = ("fastapi", "uvicorn", "pydantic")


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
            f"host {host}: other machines can reach this address; allow it (allow_remote) if they may use the models, "
            f"or leave it at {LOOPBACK}"
        )


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine only."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


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
        raise OutputError(f"cannot listen on {host} port {port} ({said}); choose another port") from error
    return opened


def is_address(host: str) -> bool:
    """Whether ``host`` is a number, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
