"""Uploaded pictures are decoded in a process each, which is killed at a deadline and has a memory limit.

A hostile picture can make a decoder run for minutes, take gigabytes or crash. The process gets a file on its stdin and
its limits as its argument. It writes a line of JSON (size and notes, or an error) and the pixels.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import AvifImagePlugin, Image

import saccade
from saccade.data.pictures.files import decode
from saccade.errors import DataError

if TYPE_CHECKING:  # a process that decodes needs no server
    from saccade.web.guard import Limits

_BOOT = "import sys; sys.path[:] = sys.argv[2:] + sys.path; from saccade.web.decode import main; main(sys.argv[1])"
_KEPT_ENVIRONMENT = ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # to find libraries; no secrets
_MOST_SAID = 1 << 16  # bytes of the line of JSON


def memory_for(pixels: int) -> int:
    """Bytes that a process may map to decode a picture of ``pixels``.

    The largest need is that of an animated WebP: 4 bytes a pixel for each of two canvases, the frame, the picture and
    its conversion; 256 MiB hold the rest.
    """
    return (256 << 20) + 20 * pixels


class Sandbox:
    """The processes of one server, under its ``limits``."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = asyncio.Semaphore(limits.decoders)

    async def read(self, data: bytes, name: str) -> tuple[Image.Image, tuple[str, ...]]:
        """The picture in ``data``, RGB and reduced, and notes of what was done to it.

        A TimeoutError if all processes are busy for longer than ``decoding_wait_seconds``.
        """
        await asyncio.wait_for(self._free.acquire(), self._limits.decoding_wait_seconds)
        try:
            output = await self._said(data, name)
        finally:
            self._free.release()
        try:
            line, _, pixels = output.partition(b"\n")
            reply = json.loads(line)
            if "error" not in reply:  # nothing of it is believed without a check
                width, height = map(int, reply["size"])
                if len(pixels) != 3 * width * height or width < 1:
                    raise ValueError("other pixels than it says")
                return Image.frombytes("RGB", (width, height), pixels), tuple(map(str, reply["notes"]))
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"{name}: its decoder crashed; the file is damaged, export it again") from error
        raise DataError(str(reply["error"]))

    async def _said(self, data: bytes, name: str) -> bytes:
        limits, pipe = self._limits, asyncio.subprocess.PIPE
        request = {"name": name, "pixels": limits.pixels, "side": limits.side, "seconds": limits.decoding_seconds}
        roots = [str(Path(saccade.__file__).parent.parent), *(path for path in sys.path if path)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, json.dumps(request), *roots),
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            env={variable: os.environ[variable] for variable in _KEPT_ENVIRONMENT if variable in os.environ},
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is for us, not for it
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (pipes were asked for)
        try:
            async with asyncio.timeout(limits.decoding_seconds):
                process.stdin.write(data)
                process.stdin.close()
                return await process.stdout.readexactly(3 * limits.side**2 + _MOST_SAID)
        except asyncio.IncompleteReadError as ended:
            await process.wait()  # it ends by itself; kill() would reap it, and asyncio complain on stderr
            return ended.partial
        except TimeoutError:
            late = f"decoding it takes longer than {limits.decoding_seconds:g} s; save it again as a plain PNG or JPEG"
            return _refusal(f"{name}: {late}")
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def main(request: str) -> None:
    """Decode the file on stdin, in a process of its own."""
    wanted = json.loads(request)
    name, side, memory = str(wanted["name"]), int(wanted["side"]), memory_for(wanted["pixels"])
    _restrict(memory, seconds=math.ceil(wanted["seconds"]) + 1)
    warnings.simplefilter("ignore")
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    try:
        image, notes = decode(io.BytesIO(sys.stdin.buffer.read()), name, wanted["pixels"])
        if max(image.size) > side:
            notes += (f"reduced from {image.width}×{image.height}",)
            image.thumbnail((side, side), Image.Resampling.LANCZOS)
        reply = json.dumps({"size": image.size, "notes": notes}).encode() + b"\n" + image.tobytes()
    except DataError as error:
        reply = _refusal(str(error))
    except MemoryError:
        reply = _refusal(f"{name}: decoding it takes more than {memory / (1 << 20):.0f} MiB of memory; make it smaller")
    sys.stdout.buffer.write(reply)


def _refusal(error: str) -> bytes:
    return json.dumps({"error": error}).encode() + b"\n"


def _restrict(memory: int, seconds: int) -> None:
    """Limit memory and time, forbid to write files and to dump core, where the platform knows such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):  # macOS refuses some values of RLIMIT_AS
            continue
