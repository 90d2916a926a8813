"""Decodes untrusted pictures in processes that are killed at a deadline; see :mod:`.decoder_process`.

Peak memory of one picture: a process may map ``memory_for(pixels)`` bytes, where ``pixels`` is the most that the header
may say: 0.9 GB for the 32 million of the server, 1.5 GB for the 64 million of the command line.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore, Lock, Timer
from typing import BinaryIO, TypeVar

from PIL import Image

import saccade
from saccade.data.pictures.decoder_process import receive, send
from saccade.data.pictures.decoding import LONGEST_SIDE, strips
from saccade.errors import DataError
from saccade.untrusted import MAX_PIXELS

SECONDS = 60.0
"""For one picture, on the command line and in Python; a photograph of 64 million pixels takes two or three."""
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:] + sys.path; "
    "from saccade.data.pictures.decoder_process import main; main(int(sys.argv[1]))"
)
_KEPT_ENVIRONMENT = ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # to find libraries; no secrets
_START_SECONDS = 60.0

Result = TypeVar("Result")
Decoded = tuple[Image.Image, tuple[str, ...]]
"""A picture, RGB, and notes of what was done to it."""


def memory_for(pixels: int) -> int:
    """Bytes that a process may map to decode a picture of ``pixels``.

    The largest need is that of an animated WebP: 4 bytes a pixel for each of two canvases, the frame, the picture and
    its conversion. 256 MiB hold Python, Pillow, numpy and the file.
    """
    return (256 << 20) + 20 * pixels


class Decoder:
    """One process that decodes one picture at a time.

    Args:
        memory: bytes that it may map.
    """

    def __init__(self, memory: int) -> None:
        roots = [str(Path(saccade.__file__).parent.parent), *(path for path in sys.path if path)]
        kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter)
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, str(memory), *roots],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**kept, "OPENBLAS_NUM_THREADS": "1"},
                process_group=0 if os.name == "posix" else None,  # Ctrl-C is for us, not for it
            )
        except OSError as error:
            raise DataError(
                f"the process that decodes pictures cannot be started ({error.strerror or error})"
            ) from error
        self._is_killed = False
        self._asked = 0  # requests so far
        self._why = "its decoder crashed; the file is damaged, fetch or export it again"
        try:
            ready = self._within(_START_SECONDS, lambda: receive(self._replies))
        except (OSError, ValueError):  # it says something else
            ready = None
        except BaseException:
            self.close()
            raise
        if not ready:
            self.close()
            raise DataError("the process that decodes pictures did not start; 'saccade doctor' checks the installation")

    def decode(self, source: bytes | Path, name: str, *, pixels: int, side: int | None, seconds: float) -> Decoded:
        """The picture in ``source``, or a DataError; after ``seconds`` the process is killed.

        Args:
            source: the bytes of a file, or its path.
            name: what messages call it.
            pixels: the most that it may hold, by its header.
            side: a larger picture is reduced until its longer side has this many pixels; None: it stays as it is.
            seconds: the deadline.
        """
        self._asked += 1
        asked: dict[str, object] = {"request": self._asked, "name": name, "pixels": pixels, "side": side}
        asked["seconds"] = seconds
        if isinstance(source, Path):
            asked["path"] = os.fsencode(source.absolute()).decode("latin-1")
        else:
            asked["bytes"] = len(source)

        def exchange() -> Decoded:
            send(self._requests, asked)
            if not isinstance(source, Path):
                self._requests.write(source)
            self._requests.flush()
            return self._reply(pixels)

        late = f"decoding it takes longer than {seconds:g} s; save it again as a plain PNG or JPEG"
        try:
            return self._within(seconds, exchange, late)
        except DataError:
            raise
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
            # It was killed, or what it says makes no sense.
            self.kill()
            raise DataError(f"{name}: {self._why}") from error
        except BaseException:  # Ctrl-C or no memory: the rest of the reply would be taken for the next picture
            self.kill()
            raise

    def kill(self, why: str | None = None) -> None:
        """End the process at once; ``why`` is what the one who waits for a picture is told."""
        if why is not None and self.is_alive:
            self._why = why
        self._is_killed = True
        self._process.kill()

    def close(self) -> None:
        """End the process and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._replies):
            try:
                pipe.close()
            except OSError:  # what was left to write has no reader
                continue

    @property
    def is_alive(self) -> bool:
        """Whether it can decode another picture; one that was killed may take a moment to end."""
        return not self._is_killed and self._process.poll() is None

    @property
    def _requests(self) -> BinaryIO:
        return self._process.stdin  # type: ignore[return-value]  # the process was started with pipes

    @property
    def _replies(self) -> BinaryIO:
        return self._process.stdout  # type: ignore[return-value]  # as above

    def _within(self, seconds: float, work: Callable[[], Result], late: str = "") -> Result:
        timer = Timer(seconds, self.kill, (late,))
        timer.daemon = True
        timer.start()
        try:
            return work()
        finally:
            timer.cancel()

    def _reply(self, pixels: int) -> Decoded:
        """A picture from the pipe; nothing in it is believed without a check."""
        header = receive(self._replies)
        if header is None:
            raise EOFError
        if header["request"] != self._asked:
            raise ValueError("the reply to another request")
        if "error" in header:
            raise DataError(str(header["error"]))
        width, height = (int(each) for each in header["size"])
        if not (0 < width <= LONGEST_SIDE and 0 < height <= LONGEST_SIDE and width * height <= pixels):
            raise ValueError("a size that was not allowed")
        image = Image.new("RGB", (width, height))
        for box in strips(image.size):
            rows = box[3] - box[1]
            packed = self._replies.read(3 * width * rows)
            if len(packed) < 3 * width * rows:
                raise EOFError
            image.paste(Image.frombytes("RGB", (width, rows), packed), box[:2])
        return image, tuple(str(note) for note in header["notes"])


class Decoding:
    """A picture that is being decoded, or waits for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._decoder: Decoder | None = None
        self._given_up = False
        self.future: Future[Decoded] = Future()

    def result(self) -> Decoded:
        """The picture, once it is there, or its DataError."""
        return self.future.result()

    @property
    def is_there(self) -> bool:
        """Whether the picture is decoded and waits to be taken."""
        return self.future.done() and not self.future.cancelled() and self.future.exception() is None

    def give_up(self) -> None:
        """Nobody wants it any more: it is not begun, or its process is killed."""
        self.future.cancel()
        with self._lock:
            self._given_up = True
            if self._decoder is not None:
                self._decoder.kill("given up")

    def begin(self, decoder: Decoder) -> bool:
        """Whether it is still wanted; from now on ``decoder`` works for it."""
        with self._lock:
            self._decoder = decoder
            return not self._given_up

    def end(self) -> None:
        """The decoder works for somebody else from now on."""
        with self._lock:
            self._decoder = None


class DecoderPool:
    """A few processes that decode side by side; each starts when it is first needed.

    Args:
        processes: how many at most.
        pixels: the most that a picture may hold, by its header.
        side: a larger picture is reduced until its longer side has this many pixels; None: none is.
        seconds: for one picture, its wait for a process not included.
        memory: bytes that a process may map; by default what ``pixels`` need.
    """

    def __init__(
        self,
        processes: int,
        *,
        pixels: int = MAX_PIXELS,
        side: int | None = None,
        seconds: float = SECONDS,
        memory: int | None = None,
    ) -> None:
        self._pixels, self._side, self._seconds = pixels, side, seconds
        self._memory = memory_for(pixels) if memory is None else memory
        self._places = BoundedSemaphore(processes)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="saccade-decoding")
        self._lock = Lock()
        self._idle: list[Decoder] = []
        self._jobs: set[Decoding] = set()
        self._closed = False

    def submit(self, source: bytes | Path, name: str) -> Decoding:
        """Begin to decode ``source`` as soon as a process is free."""
        job = Decoding()
        with self._lock:
            self._jobs.add(job)
        job.future = self._threads.submit(self._run, job, source, name, self._pixels)
        job.future.add_done_callback(lambda _: self._forget(job))
        return job

    def decode(self, source: bytes | Path, name: str, pixels: int | None = None) -> Decoded:
        """Decode ``source`` and wait for it; ``pixels`` may be fewer than the pool's."""
        return self._run(Decoding(), source, name, min(pixels or self._pixels, self._pixels))

    def close(self) -> None:
        """Kill all processes; what waits is given up."""
        with self._lock:
            self._closed = True
            jobs, idle = list(self._jobs), self._idle
            self._idle = []
        for job in jobs:
            job.give_up()
        for decoder in idle:
            decoder.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    @property
    def idle(self) -> int:
        """How many processes wait for work."""
        return len(self._idle)

    def _run(self, job: Decoding, source: bytes | Path, name: str, pixels: int) -> Decoded:
        with self._places:
            decoder = self._taken()
            try:
                if not job.begin(decoder):
                    raise CancelledError
                return decoder.decode(source, name, pixels=pixels, side=self._side, seconds=self._seconds)
            finally:
                job.end()
                self._give_back(decoder)

    def _taken(self) -> Decoder:
        with self._lock:
            while self._idle:
                decoder = self._idle.pop()
                if decoder.is_alive:
                    return decoder
                decoder.close()
        return _SHARED.take_prestarted(self._memory) or Decoder(self._memory)

    def _give_back(self, decoder: Decoder) -> None:
        with self._lock:
            if decoder.is_alive and not self._closed:
                self._idle.append(decoder)
                return
        decoder.close()

    def _forget(self, job: Decoding) -> None:
        with self._lock:
            self._jobs.discard(job)


class _Shared:
    """The pool of this process, and the lock under which it is made."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.pool: DecoderPool | None = None
        self._parents: list[DecoderPool] = []
        self._ahead: tuple[int, Future[Decoder]] | None = None

    def prestart_decoder(self, memory: int) -> None:
        """Start a process that the next pool of the same ``memory`` takes."""
        with self.lock:
            if self._ahead is None:
                threads = ThreadPoolExecutor(1, thread_name_prefix="saccade-decoding")
                self._ahead = memory, threads.submit(Decoder, memory)
                threads.shutdown(wait=False)

    def take_prestarted(self, memory: int) -> Decoder | None:
        """The process of `prestart_decoder`, once; None where there is none, it did not start, or it has ended."""
        with self.lock:
            if self._ahead is None or self._ahead[0] != memory:
                return None
            (_, starting), self._ahead = self._ahead, None
        try:
            started = starting.result()
        except DataError:  # a second try says why
            return None
        if started.is_alive:
            return started
        started.close()  # it ended while nobody needed it
        return None

    def close(self) -> None:
        """End the processes of the pool, and the one that nobody took."""
        if self._ahead is not None and (unused := self.take_prestarted(self._ahead[0])) is not None:
            unused.close()
        if self.pool is not None:
            self.pool.close()
            self.pool = None

    def begin_anew(self) -> None:
        """In a forked process: the pool is the parent's, and the lock may be held by a thread that is not here.

        The pool is kept, because closing its pipes would send what is left in their buffers a second time.
        """
        self.lock = Lock()
        self._ahead = None
        if self.pool is not None:
            self._parents.append(self.pool)
            self.pool = None


_SHARED = _Shared()
atexit.register(_SHARED.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.begin_anew)


def shared_pool() -> DecoderPool:
    """The pool of this process, for single pictures; a forked process has its own."""
    with _SHARED.lock:
        if _SHARED.pool is None:
            _SHARED.pool = DecoderPool(process_count())
        return _SHARED.pool


def prestart_decoder() -> None:
    """Start a decoder now, for the pictures that will be read; it starts while the caller imports torch."""
    _SHARED.prestart_decoder(memory_for(MAX_PIXELS))


def process_count() -> int:
    """How many processes decode side by side by default: one a core, four at most."""
    return min(4, os.cpu_count() or 1)
