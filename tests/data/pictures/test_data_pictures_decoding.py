"""Formats, colours and limits of the files that are decoded, and how a folder of them is streamed."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import GifImagePlugin, Image, TiffImagePlugin

from hostile_pictures import gif_of_frames, jpeg_of_scans, ppm_of_comments, tiff_of_frames
from saccade.data.pictures import files, reading
from saccade.data.pictures.files import FORMATS, decode
from saccade.data.pictures.reading import read_picture, stream_pictures
from saccade.errors import DataError


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


KINDS = {
    "PNG": ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"), "JPEG": ("RGB", "L", "CMYK"), "WEBP": ("RGB", "RGBA"),
    "BMP": ("RGB", "L"), "GIF": ("P",), "TIFF": ("RGB", "CMYK", "F", "I;16", "RGBA"), "PPM": ("RGB", "L"),
    "AVIF": ("RGB", "RGBA"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_colours_converted_by_rows_are_those_of_the_whole_picture(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in KINDS[kind]:
        data = encoded(noise(mode), kind)
        whole, _ = decode(io.BytesIO(data), "a", 1000)
        with monkeypatch.context() as patched:
            patched.setattr(files, "STRIP", 50)  # two rows at a time
            by_rows, _ = decode(io.BytesIO(data), "a", 1000)
        assert by_rows.tobytes() == whole.tobytes()


def test_colours_are_converted_as_plain_pillow_and_numpy_do() -> None:
    clear, deep = noise("RGBA"), noise("I;16")
    white = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    assert read_picture(encoded(clear)).image.tobytes() == white.tobytes()
    grey = np.round(np.asarray(deep) * (255.0 / 65535.0)).astype(np.uint8)  # (H,W)
    assert (np.asarray(read_picture(encoded(deep)).image) == grey[..., None]).all()
    assert read_picture(encoded(noise("CMYK"), "TIFF")).image.tobytes() == noise("CMYK").convert("RGB").tobytes()


def test_decoding_imports_pillow_and_not_torch() -> None:
    code = "import saccade.data.pictures.files, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "PIL" in loaded
    assert not {"torch", "numpy", "matplotlib"} & set(loaded)


def test_of_many_frames_one_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []

    def counting(original):
        return lambda image, frame, *rest: (touched.append(frame), original(image, frame, *rest))[1]

    for plugin in (TiffImagePlugin.TiffImageFile, GifImagePlugin.GifImageFile):
        monkeypatch.setattr(plugin, "_seek", counting(plugin._seek))
    for data in (tiff_of_frames(1000), gif_of_frames(300)):
        touched.clear()
        assert read_picture(data).notes == ("the first of several frames",)
        assert max(touched) <= 1  # whether there is a second
        assert len(touched) <= 3


@pytest.mark.parametrize(
    "data", [jpeg_of_scans(2000, 3000), ppm_of_comments(1_500_000), b"P3 1 1 255\n1 2 3\n" + bytes(17 << 20)]
)
def test_what_asks_for_more_work_than_its_pixels_do_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.jpg"):
        read_picture(data, name="a.jpg")


def test_a_thread_of_pixels_is_refused_by_its_header() -> None:
    """One pixel wide, Pillow keeps three bytes of pointers for one of pixels."""
    for size in ("1 64000000", "64000000 1"):
        with pytest.raises(DataError, match=r"a side is longer than 1,000,000"):
            read_picture(f"P5 {size} 255\n".encode() + bytes(100))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PyP 2 2 255\n" + bytes(4), "not a picture"),
        (b"P0CMYK\n2 2 255\n" + bytes(16), "not a picture"),
        (b"8BPS" + bytes(60), "not a picture"),
        (b"\0\0\0\x18ftypheic" + bytes(60), "HEIC file"),
        (b"just text", "not a picture in a format"),
    ],
)
def test_other_formats_are_refused_by_name(data: bytes, kind: str) -> None:
    with pytest.raises(DataError, match=f"a: {kind}.*convert it"):
        read_picture(data, name="a")


def test_an_error_of_any_kind_in_a_decoder_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (AssertionError("x"), RecursionError("x"), ZeroDivisionError("x"), NotImplementedError("x")):

        def fails(*_, error=error):
            raise error

        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fails)
        with pytest.raises(DataError, match="damaged or cut short"):
            read_picture(encoded(noise()))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The files that reading has begun of."""
    begun: list[object] = []

    def count(source, **options):
        begun.append(source)
        return read_picture(source, **options)

    monkeypatch.setattr(reading, "read_picture", count)
    return begun


def test_a_list_is_decoded_ahead_and_an_iterator_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an iterator a person may be the source: its answer must not wait for later pictures."""
    data, begun = encoded(noise()), counted(monkeypatch)
    taken: list[int] = []
    slow = stream_pictures((taken.append(number) or data for number in range(4)), 1)
    next(slow)
    assert (len(begun), len(taken)) == (1, 1)
    slow.close()
    monkeypatch.setattr(reading, "THREADS", 1)
    begun.clear()
    stream = stream_pictures([data] * 4, 1)
    next(stream)
    next(stream)
    assert len(begun) >= 2
    stream.close()


def test_waiting_pictures_are_bounded_by_their_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that are decoded and not taken yet count; a list of huge ones is not decoded as a whole."""
    monkeypatch.setattr(reading, "PIXEL_LIMIT", 500)  # 391 pixels each
    begun = counted(monkeypatch)

    class AtOnce(reading.ThreadPoolExecutor):
        def submit(self, work, *given):
            job = super().submit(work, *given)
            job.result()
            return job

    monkeypatch.setattr(reading, "ThreadPoolExecutor", AtOnce)
    stream = stream_pictures([encoded(noise())] * 20, 10)
    assert len(next(stream)) == 2
    assert len(begun) == 2
    stream.close()
