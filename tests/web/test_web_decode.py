"""An upload is decoded in a process of its own, with a deadline and a memory limit."""

from __future__ import annotations

import asyncio
import io
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from hostile_pictures import jpeg_of_scans, png, ppm_of_comments
from saccade.errors import DataError
from saccade.web import decode
from saccade.web.decode import Sandbox, memory_for
from saccade.web.guard import Limits

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not enforce RLIMIT_AS")


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def read(data: bytes, **limits) -> tuple[Image.Image, tuple[str, ...]]:
    async def once() -> tuple[Image.Image, tuple[str, ...]]:
        return await Sandbox(Limits(**{"decoding_seconds": 60, **limits})).read(data, "a.png")

    with ThreadPoolExecutor(1) as thread:  # the browser of other tests may have a loop in this one
        return thread.submit(asyncio.run, once()).result()


def noise(size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def test_a_picture_is_decoded_and_a_large_one_reduced() -> None:
    image = noise((90, 60))
    found, notes = read(encoded(image))
    assert (found.tobytes(), notes) == (image.tobytes(), ())
    found, notes = read(encoded(image), side=32)
    image.thumbnail((32, 32), Image.Resampling.LANCZOS)
    assert found.tobytes() == image.tobytes()
    assert notes == ("reduced from 90×60",)


@pytest.mark.parametrize("data", [jpeg_of_scans(2000, 3000), ppm_of_comments(1_500_000)], ids=["jpeg", "ppm"])
def test_what_takes_too_long_is_killed(data: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.png.*0\.3 s"):
        read(data, decoding_seconds=0.3)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "{}",
        "[]",
        '{"size": [1, 1], "notes": []}\nab',  # too few pixels
        '{"size": [5000, 1], "notes": []}\n' + "a" * 15,
        '{"size": [-1, -1], "notes": []}\nabc',
        '{"size": "ab", "notes": []}\nabc',
    ],
)
def test_a_process_that_was_taken_over_is_not_believed(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_BOOT", f"print({said!r}, end='')")
    with pytest.raises(DataError, match="crashed"):
        read(encoded(noise((4, 4))))


def test_a_process_that_talks_without_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_BOOT", "while True: print('a' * 1000000)")
    with pytest.raises(DataError, match="crashed"):
        read(encoded(noise((4, 4))))


@linux
def test_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000² transparent pixels take 4 bytes each as decoded and as converted: 200 MB, beside Python and Pillow."""
    narrow = "import saccade.web.decode as d; d.memory_for = lambda _: 200 << 20; "
    monkeypatch.setattr(decode, "_BOOT", decode._BOOT.replace("main(sys", narrow + "main(sys"))
    with pytest.raises(DataError, match="more than 200 MiB"):
        read(png(5000, 5000))


@linux
def test_what_the_header_may_say_fits_the_stated_memory() -> None:
    """The format that takes the most: 21 bytes a pixel."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGBA", (2000, 2000)), "WEBP", lossless=True, quality=0, method=0, exif=exif)
    assert read(data, pixels=4_000_000)[0].size == (1024, 1024)
    assert memory_for(32_000_000) < 0.92e9
