"""What the server lets one request, and all of them together, cost."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bytes, pixels, seconds and places; every one of them can be hit, and then the answer says which."""

    picture_bytes: int = 20 * MEGABYTE
    """Largest request with a picture."""
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
    body_seconds: float = 20.0
    """For a request to arrive whole."""
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
