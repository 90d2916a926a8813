"""The process that decodes pictures: it has Pillow, a memory limit and an alarm clock, and nothing else.

A hostile picture can make a decoder run for minutes, take gigabytes or crash. None of that can be stopped inside the
process that computes; a process of its own is killed. :class:`saccade.data.pictures.decoder_pool.Decoder` starts it.

A request on stdin is a length (4 bytes, big endian), that many bytes of JSON, and the bytes of a picture if the JSON
has no path. The reply on stdout is the same: a length, JSON with the size and the notes or with an error, and the
pixels, three bytes each, row by row. A reply has the number of its request. The first reply, before any request, says
that the process is ready.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import warnings
from typing import Any, BinaryIO

from PIL import AvifImagePlugin, Image

from saccade.data.pictures.decoding import decode, strips
from saccade.errors import DataError

MAX_JSON = 1 << 16
"""Bytes of the JSON in a request or a reply."""
_LATE = 1.0  # seconds after its deadline at which the process ends itself, in case nobody is left to kill it


def main(memory: int) -> None:
    """Answer requests until stdin ends.

    Args:
        memory: bytes that the process may map (``RLIMIT_AS``); Linux enforces it, macOS and Windows do not.
    """
    _restrict(memory)
    warnings.simplefilter("ignore")
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    _tell(replies, {"ready": True})
    while (asked := receive(requests)) is not None:
        data = None if "path" in asked else requests.read(int(asked["bytes"]))
        number = asked["request"]
        _set_alarm(float(asked["seconds"]) + _LATE)
        try:
            image, notes = _decoded(asked, data)
        except DataError as error:
            _tell(replies, {"request": number, "error": str(error)})
        except MemoryError:
            said = f"decoding it takes more than {memory / (1 << 20):.0f} MiB of memory; make it smaller"
            _tell(replies, {"request": number, "error": f"{asked['name']}: {said}"})
        else:
            send(replies, {"request": number, "size": image.size, "notes": notes})
            for box in strips(image.size):
                replies.write(image.crop(box).tobytes())
            replies.flush()
            del image
        _set_alarm(0)


def send(pipe: BinaryIO, header: dict[str, object]) -> None:
    """Write a length and JSON."""
    packed = json.dumps(header).encode("ascii")
    pipe.write(struct.pack(">I", len(packed)) + packed)


def receive(pipe: BinaryIO) -> dict[str, Any] | None:
    """The JSON that comes next; None at the end."""
    start = pipe.read(4)
    if len(start) < 4:
        return None
    (length,) = struct.unpack(">I", start)
    if length > MAX_JSON:
        raise ValueError(f"{length} bytes of JSON, at most {MAX_JSON}")
    packed = pipe.read(length)
    return None if len(packed) < length else json.loads(packed)


def reduced(image: Image.Image, side: int | None) -> tuple[Image.Image, tuple[str, ...]]:
    """``image`` with its longer side at most ``side``, and a note that says from what."""
    if side is None or max(image.size) <= side:
        return image, ()
    note = f"reduced from {image.width}×{image.height}"
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image, (note,)


def _decoded(asked: dict[str, Any], data: bytes | None) -> tuple[Image.Image, tuple[str, ...]]:
    name = asked["name"]
    if data is not None:
        image, notes = decode(io.BytesIO(data), name, asked["pixels"])
    else:
        try:
            with open(asked["path"].encode("latin-1"), "rb") as file:  # bytes, whatever the encoding of names is
                image, notes = decode(file, name, asked["pixels"])
        except OSError as error:
            raise DataError(f"{name}: cannot be opened ({error.strerror or error})") from error
    image, more = reduced(image, asked["side"])
    return image, notes + more


def _tell(pipe: BinaryIO, header: dict[str, object]) -> None:
    send(pipe, header)
    pipe.flush()


def _restrict(memory: int) -> None:
    """Limit memory, forbid to write files and to dump core, where the platform knows such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):  # macOS refuses some values of RLIMIT_AS
            continue


def _set_alarm(seconds: float) -> None:
    """End this process in ``seconds`` by a signal that no decoder can hold up; 0 takes it back."""
    if os.name == "posix":
        signal.setitimer(signal.ITIMER_REAL, seconds)
