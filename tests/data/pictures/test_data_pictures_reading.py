"""Pictures in: every way in, every kind of colours, what is refused and why, and how a list of them is streamed."""

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hostile_pictures import jpeg_of_scans, ppm_of_comments
from saccade import geometry
from saccade.data.pictures import files, reading
from saccade.data.pictures.files import FORMATS, decode
from saccade.data.pictures.reading import find_pictures, prepare, read_picture, stream_pictures
from saccade.errors import DataError

CORNERS = np.zeros((20, 30, 3), np.uint8)  # wider than high, every corner another colour
CORNERS[:10, :15], CORNERS[:10, 15:], CORNERS[10:, :15], CORNERS[10:, 15:] = (
    (250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)
)  # fmt: skip


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pixels(picture: reading.Picture) -> np.ndarray:
    return np.asarray(picture.image)


def noise(mode: str = "RGB", size: tuple[int, int] = (23, 17)) -> Image.Image:
    rng = np.random.default_rng(0)
    if mode == "F":
        return Image.fromarray(rng.random((size[1], size[0]), dtype=np.float32))
    if mode == "I;16":
        return Image.fromarray(rng.integers(0, 65536, (size[1], size[0]), dtype=np.uint16))
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 4), dtype=np.uint8), "RGBA").convert(mode)


def test_every_way_in_gives_the_same_pixels(tmp_path: Path) -> None:
    path = tmp_path / "corners.png"
    Image.fromarray(CORNERS).save(path)
    tensor = torch.from_numpy(CORNERS).permute(2, 0, 1).float() / 255
    half = (CORNERS / 255).astype(np.float16)
    for way in (path, str(path), path.read_bytes(), Image.fromarray(CORNERS), CORNERS, CORNERS / 255, half, tensor):
        assert np.array_equal(pixels(read_picture(way)), CORNERS)
    again = read_picture(read_picture(path))
    assert (again.name, again.stem, again.size, again.image.mode) == (str(path), "corners", (20, 30), "RGB")


def test_an_open_file_is_read_from_where_it_stands_and_can_be_read_again() -> None:
    file = io.BytesIO(b"before" + encoded(Image.fromarray(CORNERS)))
    file.seek(6)
    for _ in range(2):
        assert np.array_equal(pixels(read_picture(file)), CORNERS)
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as end:
        end.write(encoded(Image.fromarray(CORNERS)))
    with os.fdopen(reader, "rb") as pipe:
        assert np.array_equal(pixels(read_picture(pipe)), CORNERS)


def test_grey_arrays_and_tensors_become_rgb() -> None:
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for source in (grey, grey[..., None], torch.from_numpy(grey)[None].float() / 255):
        assert np.array_equal(pixels(read_picture(source)), grey[..., None].repeat(3, -1))
    assert np.array_equal(pixels(read_picture(grey > 5))[..., 1], (grey > 5) * 255)


DEEP = np.array([[0, 257, 25700, 65535]], np.uint16)
FRAMES = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "lime")]
CLEAR = Image.fromarray(np.array([[[10, 20, 30, 0], [10, 20, 30, 255]]], np.uint8), "RGBA")
PALETTE = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
PALETTE.putpalette([200, 0, 0, 0, 200, 0])
COLOURS = {
    "16-bit PNG": (encoded(Image.fromarray(DEEP)), [[0] * 3, [1] * 3, [100] * 3, [255] * 3], "16-bit grey scaled"),
    "16-bit array": (DEEP, [[0] * 3, [1] * 3, [100] * 3, [255] * 3], "16-bit grey scaled"),
    "float TIFF": (encoded(Image.fromarray(np.array([[0.0, 0.2, 1.0]], np.float32)), "TIFF"),
                   [[0] * 3, [51] * 3, [255] * 3], "float grey scaled"),
    "transparent": (encoded(CLEAR), [[255] * 3, [10, 20, 30]], "transparency laid over white"),
    "transparent palette": (encoded(PALETTE, transparency=0), [[255] * 3, [0, 200, 0]], "transparency laid over"),
    "CMYK": (encoded(Image.new("CMYK", (1, 1), (0, 255, 255, 0)), "JPEG", quality=100), [[254, 0, 0]], "from CMYK"),
    "animation": (encoded(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), [[255, 0, 0]] * 4, "first of"),
}  # fmt: skip
"""A source, the pixels of its first row, and what is noted."""


@pytest.mark.parametrize(("source", "row", "note"), COLOURS.values(), ids=COLOURS)
def test_every_kind_of_colours_becomes_rgb(source: bytes, row: list[list[int]], note: str) -> None:
    picture = read_picture(source)
    assert np.abs(pixels(picture)[0].astype(int) - row).max() <= (1 if "CMYK" in note else 0)
    assert note in "".join(picture.notes)


KINDS = {
    "PNG": ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"), "JPEG": ("RGB", "L", "CMYK"), "WEBP": ("RGB", "RGBA"),
    "BMP": ("RGB", "L"), "GIF": ("P",), "TIFF": ("RGB", "CMYK", "F", "I;16", "RGBA"), "PPM": ("RGB", "L"),
    "AVIF": ("RGB", "RGBA"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_colours_converted_by_rows_are_those_of_the_whole_picture(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [encoded(noise(mode), kind) for mode in KINDS[kind]]
    whole = [decode(io.BytesIO(each), "a", 1000)[0].tobytes() for each in data]
    monkeypatch.setattr(files, "STRIP", 50)  # two rows at a time
    assert [decode(io.BytesIO(each), "a", 1000)[0].tobytes() for each in data] == whole


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_comes_out_upright(orientation: int) -> None:
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    upright = Image.fromarray(CORNERS)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = upright if orientation == 1 else upright.transpose(undo[orientation])
    picture = read_picture(encoded(stored, exif=exif))
    assert np.array_equal(pixels(picture), CORNERS)
    assert bool(picture.notes) == (orientation != 1)


def png_header(width: int, height: int) -> bytes:
    """A PNG of about 1 KB that claims to be width×height."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(900))) + chunk(b"IEND", b"")


REFUSED = {
    "bright": (np.full((4, 4, 3), 2.0), "divide by 255"),
    "NaN": (np.full((4, 4, 3), np.nan), "between 0 and 1"),
    "whole numbers": (np.zeros((4, 4, 3), np.int64), "uint8"),
    "number": (42, "found int"),
    "bright TIFF": (encoded(Image.fromarray(np.array([[0.0, 900.0]], np.float32)), "TIFF"), "from 0 to 900"),
    "far too large": (png_header(30_000, 30_000), "more pixels than the 64 million"),
    "too large": (png_header(8001, 8000), "8001×8000 pixels are more than the 64 million"),
    "a thread of pixels": (b"P5 1 64000000 255\n" + bytes(100), "a side is longer than 1,000,000"),  # 3 × the memory
    "many scans": (jpeg_of_scans(2000, 3000), "a.jpg"),
    "many comments": (ppm_of_comments(1_500_000), "a.jpg"),
    "much text": (b"P3 1 1 255\n1 2 3\n" + bytes(17 << 20), "a.jpg"),
    "Python": (b"PyP 2 2 255\n" + bytes(4), "a.jpg: not a picture"),
    "HEIC": (b"\0\0\0\x18ftypheic" + bytes(60), "a.jpg: HEIC file.*convert it"),
    "empty": (b"", "0 bytes"),
}


@pytest.mark.parametrize(("source", "word"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_picture_or_asks_for_too_much_is_refused_before_it_is_decoded(
    source: object, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "million" in word or "a.jpg" in word:
        monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("decoded"))
    with pytest.raises(DataError, match=word):
        read_picture(source, name="a.jpg")


def test_paths_that_lead_to_no_picture_are_named(tmp_path: Path) -> None:
    for name, word in (("gone.png", "no such file"), ("", "directory")):
        with pytest.raises(DataError, match=word) as caught:
            read_picture(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    for text, word in (("", "an empty path"), ("a\0b.png", "NUL|null"), ("x" * 5000, "x"), ("http://x", "an address")):
        with pytest.raises(DataError, match=word):
            read_picture(text)


def test_an_error_of_any_kind_in_a_decoder_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (AssertionError("x"), RecursionError("x"), ZeroDivisionError("x")):

        def fails(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fails)
        with pytest.raises(DataError, match="damaged or cut short"):
            read_picture(encoded(noise()))


def test_decoding_imports_pillow_and_not_torch() -> None:
    code = "import saccade.data.pictures.files, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "PIL" in loaded
    assert not {"torch", "numpy", "matplotlib"} & set(loaded)


def test_a_wide_picture_gets_a_filled_border_above_and_below() -> None:
    inputs, canvas, size = prepare(read_picture(np.full((50, 200, 3), 255, np.uint8)), (100, 100), fill=0.25)
    assert inputs.shape == (3, 100, 100)
    assert inputs[:, 37:62].min() == 1.0  # 200×50 → 100×25, at rows 37 … 61
    assert torch.all(inputs[:, :37] == 0.25)
    assert torch.all(inputs[:, 62:] == 0.25)
    corner = geometry.apply(canvas, torch.tensor([100.0, 62.0], dtype=torch.float64))
    assert (corner.tolist(), size.tolist()) == ([200.0, 50.0], [50, 200])


@pytest.fixture
def album(tmp_path: Path) -> Path:
    for name in ("b.png", "a.JPG", "deep/er/c.png", "deep/._c.png", ".hidden/d.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(encoded(Image.fromarray(CORNERS)))
    return tmp_path


def test_folders_files_and_globs_are_found_once_in_order(album: Path) -> None:
    names = [path.relative_to(album).as_posix() for path in find_pictures([album])]
    assert names == ["a.JPG", "b.png", "deep/er/c.png"]
    assert find_pictures([album / "b.png", str(album / "*.png"), album / "b.png"]) == [album / "b.png"]
    assert find_pictures([str(album / "**" / "c.png")]) == [album / "deep" / "er" / "c.png"]
    assert find_pictures([album / "notes.txt"]) == [album / "notes.txt"]  # named outright: reading it will say why not
    (album / "empty").mkdir()
    for paths, word in (
        ([str(album / "empty" / "*.png")], "no pictures in"),
        ([str(album / "gone.png")], "no such file"),
        ([], "empty list"),
        ([""], "an empty path"),  # of a shell variable that was never set: not the folder one happens to be in
    ):
        with pytest.raises(DataError, match=word):
            find_pictures(paths)


def test_a_bad_picture_is_reported_and_the_rest_goes_on(album: Path) -> None:
    (album / "aa.png").write_bytes(b"broken")
    bad: list[object] = []
    batches = list(stream_pictures(find_pictures([album]), 2, lambda source, error: bad.append(source)))
    assert ([len(batch) for batch in batches], bad) == ([2, 1], [album / "aa.png"])
    with pytest.raises(DataError, match=r"aa\.png"):
        list(stream_pictures(find_pictures([album]), 2))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The files that reading has begun of."""
    begun: list[object] = []

    def count(source, **options):
        begun.append(source)
        return read_picture(source, **options)

    monkeypatch.setattr(reading, "read_picture", count)
    return begun


def test_waiting_pictures_and_batches_are_bounded_by_their_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that are decoded and not taken yet count; a list of huge ones is not decoded as a whole."""
    monkeypatch.setattr(reading, "PIXEL_LIMIT", 500)  # 391 pixels each
    begun = counted(monkeypatch)

    class AtOnce(reading.ThreadPoolExecutor):
        def submit(self, work, *arguments):
            job = super().submit(work, *arguments)
            job.result()
            return job

    monkeypatch.setattr(reading, "ThreadPoolExecutor", AtOnce)
    stream = stream_pictures([encoded(noise())] * 20, 10)
    assert len(next(stream)) == 2
    assert len(begun) == 2
    stream.close()
