"""Untrusted pictures are decoded in processes that are killed at a deadline and have a memory limit."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import GifImagePlugin, Image, TiffImagePlugin

from hostile_pictures import gif_of_frames, jpeg_of_scans, png, ppm_of_comments, tiff_of_frames
from saccade.data.pictures import decoder_pool, decoding, reading
from saccade.data.pictures.decoder_pool import Decoder, DecoderPool, memory_for
from saccade.data.pictures.decoding import FORMATS, SUFFIXES, decode
from saccade.data.pictures.reading import Picture, prepare, read_picture, stream_pictures
from saccade.errors import DataError

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not enforce RLIMIT_AS")


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(mode: str = "RGB", size: tuple[int, int] = (23, 17)) -> Image.Image:
    rng = np.random.default_rng(0)
    if mode == "F":
        return Image.fromarray(rng.random((size[1], size[0]), dtype=np.float32))
    if mode == "I;16":
        return Image.fromarray(rng.integers(0, 65536, (size[1], size[0]), dtype=np.uint16))
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 4), dtype=np.uint8), "RGBA").convert(mode)


@pytest.fixture(scope="module")
def pool():
    """Of one process."""
    made = DecoderPool(1)
    yield made
    made.close()


KINDS = {
    "PNG": ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"), "JPEG": ("RGB", "L", "CMYK"), "WEBP": ("RGB", "RGBA"),
    "BMP": ("RGB", "L"), "GIF": ("P",), "TIFF": ("RGB", "CMYK", "F", "I;16", "RGBA"), "PPM": ("RGB", "L"),
    "AVIF": ("RGB", "RGBA"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_a_process_decodes_as_this_one_does(kind: str, pool: DecoderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in KINDS[kind]:
        data = encoded(noise(mode), kind)
        here, notes = decode(io.BytesIO(data), "a", 1000)
        there, told = pool.decode(data, "a")
        assert there.tobytes() == here.tobytes()
        assert told == notes
        with monkeypatch.context() as patched:
            patched.setattr(decoding, "STRIP", 50)  # two rows at a time
            by_rows, _ = decode(io.BytesIO(data), "a", 1000)
        assert by_rows.tobytes() == here.tobytes()


def test_colours_are_converted_as_a_whole_picture_would_be(pool: DecoderPool) -> None:
    """Against the plain calls of Pillow and numpy, not against ourselves."""
    clear, deep = noise("RGBA"), noise("I;16")
    white = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    assert pool.decode(encoded(clear), "a")[0].tobytes() == white.tobytes()
    grey = np.round(np.asarray(deep) * (255.0 / 65535.0)).astype(np.uint8)  # (H,W)
    assert (np.asarray(pool.decode(encoded(deep), "a")[0]) == grey[..., None]).all()
    assert pool.decode(encoded(noise("CMYK"), "TIFF"), "a")[0].tobytes() == noise("CMYK").convert("RGB").tobytes()


def test_a_large_picture_is_reduced_where_it_is_decoded() -> None:
    image = noise(size=(90, 60))
    reducing = DecoderPool(1, side=32)
    found, notes = reducing.decode(encoded(image), "a")
    reducing.close()
    image.thumbnail((32, 32), Image.Resampling.LANCZOS)
    assert found.tobytes() == image.tobytes()
    assert notes == ("reduced from 90×60",)


def test_a_network_input_is_the_same_by_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    image = noise(size=(61, 47))
    wanted = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255  # (3,H,W)
    monkeypatch.setattr(decoding, "STRIP", 200)
    assert torch.equal(prepare(Picture(image, "a"), (47, 61))[0], wanted)


def test_the_process_has_pillow_and_not_torch() -> None:
    code = "import saccade.data.pictures.decoder_process, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "PIL" in loaded
    assert not {"torch", "numpy", "matplotlib"} & set(loaded)


@pytest.mark.parametrize("data", [jpeg_of_scans(2000, 3000), ppm_of_comments(1_500_000)], ids=["jpeg", "ppm"])
def test_what_takes_too_long_is_killed_and_the_next_is_decoded(data: bytes) -> None:
    hasty = DecoderPool(1, seconds=0.2)
    with pytest.raises(DataError, match=r"a\.jpg: decoding it takes longer than 0\.2 s"):
        hasty.decode(data, "a.jpg")
    hasty._seconds = 60.0  # so that a busy machine changes nothing
    assert hasty.decode(encoded(noise()), "b.png")[0].size == (23, 17)
    hasty.close()


def test_of_many_frames_one_is_touched(monkeypatch: pytest.MonkeyPatch, pool: DecoderPool) -> None:
    touched: list[int] = []

    def counting(original):
        return lambda image, frame, *rest: (touched.append(frame), original(image, frame, *rest))[1]

    for plugin in (TiffImagePlugin.TiffImageFile, GifImagePlugin.GifImageFile):
        monkeypatch.setattr(plugin, "_seek", counting(plugin._seek))
    for data in (tiff_of_frames(1000), gif_of_frames(300)):
        touched.clear()
        assert decode(io.BytesIO(data), "a", 1000)[1] == ("the first of several frames",)
        assert max(touched) <= 1  # whether there is a second
        assert len(touched) <= 3
        assert pool.decode(data, "a")[1] == ("the first of several frames",)


def test_one_that_nobody_wants_any_more_is_killed() -> None:
    """Without that this test would take the pool's 600 s."""
    patient = DecoderPool(1, seconds=600)
    running, waiting = (patient.submit(ppm_of_comments(1_500_000), "a.ppm") for _ in range(2))
    waiting.give_up()
    running.give_up()
    with pytest.raises(BaseException, match=r"given up|^$"):
        running.result()
    assert patient.decode(encoded(noise()), "b.png")[0].size == (23, 17)
    patient.submit(ppm_of_comments(1_500_000), "a.ppm")
    patient.close()  # while one is at work


def test_a_process_that_crashes_costs_its_picture_and_no_other() -> None:
    decoder = Decoder(memory_for(1000))
    decoder._process.kill()
    with pytest.raises(DataError, match=r"a\.png: its decoder crashed"):
        decoder.decode(encoded(noise()), "a.png", pixels=1000, side=None, seconds=60)
    decoder.close()


def framed(header: bytes, pixels: int = 0) -> bytes:
    """A reply of the process."""
    return len(header).to_bytes(4, "big") + header + bytes(pixels)


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff\xff\xff\xff",  # four gigabytes of JSON
        framed(b"{}"),
        framed(b"[]"),
        framed(b"{", 9),
        framed(b'{"request": 1, "size": [1, 1], "notes": []}', 2),  # too few pixels
        framed(b'{"request": 1, "size": [100, 100], "notes": []}', 30_000),  # more than were allowed
        framed(b'{"request": 1, "size": [0, 5], "notes": []}'),
        framed(b'{"request": 1, "size": "ab", "notes": []}'),
        framed(b'{"request": 0, "size": [1, 1], "notes": []}', 3),  # that of another picture
        framed(b'{"request": 2, "error": "a.png: cut short"}'),
        framed(b'{"size": [1, 1], "notes": []}', 3),
    ],
)
def test_a_process_that_was_taken_over_is_not_believed(reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, pipe = Decoder(memory_for(1000)), io.BytesIO(reply)
    with monkeypatch.context() as patched:
        patched.setattr(Decoder, "_replies", pipe)
        with pytest.raises(DataError, match=r"^a\.png: its decoder crashed"):
            decoder.decode(encoded(noise()), "a.png", pixels=1000, side=None, seconds=60)
    assert not decoder.is_alive
    decoder.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_picture_that_was_interrupted_is_not_given_to_the_next(error: type[BaseException], monkeypatch) -> None:
    """Its reply is still in the pipe."""
    interrupted = DecoderPool(1)
    first, second = encoded(noise(size=(5, 4))), encoded(noise(size=(7, 6)))

    def interrupt(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Decoder, "_reply", interrupt)
        with pytest.raises(error):
            interrupted.decode(first, "first.png")
    assert interrupted.idle == 0
    assert interrupted.decode(second, "second.png")[0].size == (7, 6)
    interrupted.close()


@pytest.mark.parametrize("boot", ["pass", "print('no such module' * 99)"], ids=["silent", "talkative"])
def test_a_process_that_does_not_start_leaves_nothing_open(boot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(decoder_pool, "_BOOT", boot)
    monkeypatch.setattr(decoder_pool.subprocess, "Popen", Watched)
    with pytest.raises(DataError, match="did not start"):
        Decoder(memory_for(1000))
    (process,) = started
    assert process.returncode is not None
    assert process.stdin.closed
    assert process.stdout.closed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_has_a_pool_of_its_own_also_when_its_parent_was_making_one() -> None:
    parents = decoder_pool.shared_pool()
    with decoder_pool._SHARED.lock:  # held by a thread of the parent
        pid = os.fork()
        if pid == 0:
            is_other = decoder_pool._SHARED.lock.acquire(blocking=False) and decoder_pool._SHARED.pool is None
            os._exit(0 if is_other else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert decoder_pool.shared_pool() is parents


@linux
def test_a_process_started_ahead_is_taken_once_and_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Decoder] = []

    class Counted(Decoder):
        def __init__(self, memory: int) -> None:
            super().__init__(memory)
            started.append(self)

    monkeypatch.setattr(decoder_pool, "Decoder", Counted)
    monkeypatch.setattr(decoder_pool, "_SHARED", shared := decoder_pool._Shared())
    decoder_pool.prestart_decoder()
    decoder_pool.prestart_decoder()
    data = encoded(noise())
    for _ in range(2):  # the second pool starts its own
        made = DecoderPool(1)
        made.decode(data, "picture")
        made.close()
    assert len(started) == 2
    decoder_pool.prestart_decoder()
    other = DecoderPool(1, memory=memory_for(1000))
    other.decode(encoded(noise(size=(9, 9))), "picture", 1000)
    other.close()
    shared.close()
    assert len(started) == 4
    assert not any(decoder.is_alive for decoder in started)


@linux
def test_a_process_started_ahead_that_ended_meanwhile_costs_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_pool, "_SHARED", shared := decoder_pool._Shared())
    decoder_pool.prestart_decoder()
    assert shared._ahead is not None
    ended = shared._ahead[1].result()
    ended._process.kill()
    ended._process.wait()
    made = DecoderPool(1)
    try:
        assert made.decode(encoded(noise()), "picture")[0].size == noise().size
    finally:
        made.close()
    assert ended._requests.closed


def test_memory_has_a_limit_and_the_process_outlives_it() -> None:
    """4,000² transparent pixels take 4 bytes each as decoded and as converted: 128 MB, beside Python and Pillow."""
    narrow = DecoderPool(1, memory=130 << 20)
    bomb = png(4000, 4000)
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match=r"bomb\.png: decoding it takes more than 130 MiB of memory"):
        narrow.decode(bomb, "bomb.png")
    assert narrow.decode(encoded(noise()), "b.png")[0].size == (23, 17)
    assert narrow.idle == 1
    narrow.close()


@linux
def test_what_the_header_may_say_fits_the_stated_memory() -> None:
    """The format that takes the most: 21 bytes a pixel."""
    limit = 4_000_000
    exact = DecoderPool(1, pixels=limit)
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGBA", (2000, 2000)), "WEBP", lossless=True, quality=0, method=0, exif=exif)
    assert exact.decode(data, "a.webp")[0].size == (2000, 2000)
    exact.close()
    assert memory_for(64_000_000) < 1.56e9
    assert memory_for(32_000_000) < 0.92e9


def test_a_thread_of_pixels_is_refused_by_its_header() -> None:
    """One pixel wide, Pillow keeps three bytes of pointers for one of pixels."""
    for size in ("1 64000000", "64000000 1"):
        with pytest.raises(DataError, match=r"no side may be longer than 1,000,000"):
            read_picture(f"P5 {size} 255\n".encode() + bytes(100))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PyP 2 2 255\n" + bytes(4), "PPM of Pillow's own file"),
        (b"PyRGBA 2 2 255\n" + bytes(16), "PPM of Pillow's own file"),
        (b"P0CMYK\n2 2 255\n" + bytes(16), "PPM of Pillow's own file"),
        (b"8BPS" + bytes(60), "PSD file"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "EPS file"),
        (b"\0\0\0\x18ftypheic" + bytes(60), "HEIC file"),
        (b"just text", "not a picture in a format"),
    ],
)
def test_other_formats_are_refused_by_name(data: bytes, kind: str) -> None:
    with pytest.raises(DataError, match=f"a: {kind}.*convert it"):
        read_picture(data, name="a")


def test_every_format_has_its_suffixes() -> None:
    assert {".png", ".jpeg", ".tif", ".pgm"} <= SUFFIXES
    assert set(FORMATS) >= {"PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"}
    assert "EPS" not in FORMATS


def test_an_error_of_any_kind_in_a_decoder_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (AssertionError("x"), RecursionError("x"), ZeroDivisionError("x"), NotImplementedError("x")):

        def fails(*_, error=error):
            raise error

        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fails)
        with pytest.raises(DataError, match="damaged or cut short"):
            read_picture(encoded(noise()))


def test_a_single_plain_picture_starts_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent: list[str] = []

    class Watched(DecoderPool):
        def decode(self, source, name, pixels=None):
            sent.append(name)
            return super().decode(source, name, pixels)

    watched = Watched(1)
    monkeypatch.setattr(reading, "shared_pool", lambda: watched)
    for kind in ("PNG", "JPEG", "WEBP"):
        (tmp_path / kind).write_bytes(encoded(noise(), kind))
        read_picture(tmp_path / kind)
        read_picture((tmp_path / kind).read_bytes())
    assert sent == []
    for kind in ("GIF", "TIFF", "PPM", "BMP"):
        (tmp_path / kind).write_bytes(encoded(noise(), kind))
        assert read_picture(tmp_path / kind).size == (17, 23)
    read_picture(jpeg_of_scans(40, 30), name="scans")
    assert sent == [*(str(tmp_path / kind) for kind in ("GIF", "TIFF", "PPM", "BMP")), "scans"]
    watched.close()


@pytest.fixture
def folder(tmp_path: Path) -> list[Path]:
    """Eight pictures, one of which takes minutes and one of which ended a whole folder before."""
    for number in range(8):
        noise(size=(10 + number, 9)).save(tmp_path / f"{number}.png")
    (tmp_path / "3.png").write_bytes(ppm_of_comments(1_500_000))
    (tmp_path / "5.png").write_bytes(b"PyP 2 2 255\n" + bytes(4))
    return sorted(tmp_path.iterdir())


def test_a_folder_goes_on_in_order_past_what_is_hostile(folder: list[Path]) -> None:
    told: list[str] = []
    batches = list(
        stream_pictures(folder, 2, lambda source, error: told.append(f"{Path(source).stem}: {error}"), seconds=2)
    )
    assert [[picture.stem for picture in batch] for batch in batches] == [["0", "1"], ["2", "4"], ["6", "7"]]
    assert [picture.size for batch in batches for picture in batch] == [(9, 10 + n) for n in (0, 1, 2, 4, 6, 7)]
    assert len(told) == 2
    assert told[0].startswith("3: ")
    assert "longer than 2 s" in told[0]
    assert told[1].startswith("5: ")


def test_a_list_is_decoded_ahead_and_an_iterator_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an iterator a person may be the source: its answer must not wait for later pictures."""
    data = encoded(noise())
    begun: list[str] = []

    class Watched(DecoderPool):
        def submit(self, source, name):
            begun.append(name)
            return super().submit(source, name)

    monkeypatch.setattr(reading, "DecoderPool", Watched)
    stream = stream_pictures([data] * 4, 1)
    next(stream)
    assert len(begun) >= 2
    stream.close()
    begun.clear()
    slow = stream_pictures(iter([data] * 4), 1)
    next(slow)
    assert len(begun) == 1
    slow.close()


def test_waiting_pictures_are_bounded_by_their_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that are decoded and not taken yet count; a list of huge ones is not decoded as a whole."""
    monkeypatch.setattr(reading, "PIXEL_LIMIT", 500)  # 391 pixels each
    monkeypatch.setattr(reading, "process_count", lambda: 1)
    begun: list[reading._Begun] = []

    class Watched(reading._Begun):
        def __init__(self, source, pool):
            super().__init__(source, pool)
            self._job.future.result()  # decoded at once
            begun.append(self)

    monkeypatch.setattr(reading, "_Begun", Watched)
    stream = stream_pictures([encoded(noise())] * 20, 10)
    assert len(next(stream)) == 2
    assert len(begun) == 2
    stream.close()
