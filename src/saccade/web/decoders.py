"""Uploaded pictures are decoded in a few processes; see :mod:`saccade.data.pictures.decoder_pool`.

If the client hangs up or decoding takes too long, the process that decodes is killed, so no work is left behind.
"""

from __future__ import annotations

import asyncio

from saccade.data.pictures.decoder_pool import DecoderPool
from saccade.data.pictures.reading import Picture
from saccade.web.errors import ApiError
from saccade.web.limits import Limits


class Decoders:
    """The processes of one server, under its ``limits``."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = DecoderPool(
            limits.decoders, pixels=limits.pixels, side=limits.side, seconds=limits.decoding_seconds
        )
        self._free = asyncio.Semaphore(limits.decoders)

    async def read(self, data: bytes, name: str) -> Picture:
        """The picture in ``data``, reduced; a DataError says why it cannot be used, an ApiError that all are busy."""
        seconds = self._limits.decoding_wait_seconds
        try:
            await asyncio.wait_for(self._free.acquire(), seconds)
        except TimeoutError as error:
            said = f"other pictures are being decoded, and none was done within {seconds:g} s; try again in a moment"
            raise ApiError(429, "busy", said) from error
        try:
            job = self._pool.submit(data, name)
            try:
                image, notes = await asyncio.wrap_future(job.future)
            except asyncio.CancelledError:
                job.give_up()
                raise
        finally:
            self._free.release()
        return Picture(image, name, notes)

    def close(self) -> None:
        """End the processes."""
        self._pool.close()
