"""Pictures in: every way in, every colour mode, every way to be damaged."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.data.pictures import reading as pictures
from saccade.data.pictures.reading import find_pictures, prepare, read_picture, stream_pictures
from saccade.errors import DataError

CORNERS = np.zeros((20, 30, 3), np.uint8)  # wider than high, every corner another colour
CORNERS[:10, :15], CORNERS[:10, 15:], CORNERS[10:, :15], CORNERS[10:, 15:] = (
    (250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)
)  # fmt: skip


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pixels(picture: pictures.Picture) -> np.ndarray:
    return np.asarray(picture.image)


def png_header(width: int, height: int, padding: int = 900) -> bytes:
    """A PNG of about 1 KB that claims to be width×height."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * padding))
        + chunk(b"IEND", b"")
    )


def test_every_way_in_gives_the_same_pixels(tmp_path: Path) -> None:
    image = Image.fromarray(CORNERS)
    path = tmp_path / "corners.png"
    image.save(path)
    with path.open("rb") as file:
        from_file = read_picture(file)
    tensor = torch.from_numpy(CORNERS).permute(2, 0, 1).float() / 255
    ways = [
        path,
        str(path),
        path.read_bytes(),
        image,
        CORNERS,
        CORNERS / 255,
        (CORNERS / 255).astype(np.float16),
        tensor,
    ]
    for picture in [from_file, *map(read_picture, ways)]:
        assert picture.size == (20, 30)
        assert picture.image.mode == "RGB"
        assert np.array_equal(pixels(picture), CORNERS)
    assert read_picture(path).name == str(path)
    assert read_picture(path).stem == "corners"
    assert read_picture(read_picture(path)).name == str(path)


def test_an_open_file_is_read_from_where_it_stands_and_can_be_read_again(tmp_path: Path) -> None:
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
    for source in (grey, grey[..., None], torch.from_numpy(grey)[None].float() / 255, grey > 5):
        assert pixels(read_picture(source)).shape == (3, 4, 3)
    assert np.array_equal(pixels(read_picture(grey))[..., 1], grey)
    assert pixels(read_picture(grey > 5)).max() == 255


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (np.full((4, 4, 3), 2.0), "divide by 255"),
        (np.full((4, 4, 3), np.nan), "between 0 and 1"),
        (torch.full((3, 4, 4), -0.5), "between 0 and 1"),
        (np.zeros((4, 4, 3), np.int64), "uint8"),
        (np.zeros((0, 4, 3), np.uint8), "nothing to look at"),
        (42, "found int"),
        (None, "found NoneType"),
        (io.StringIO("text"), "binary"),
    ],
)
def test_what_is_no_picture_is_refused(source, word: str) -> None:
    with pytest.raises(DataError, match=word):
        read_picture(source)


DEEP = np.array([[0, 257, 25700, 65535]], np.uint16)
FRAMES = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "lime")]


def half_clear() -> Image.Image:
    clear = Image.new("RGBA", (2, 1), (10, 20, 30, 0))
    clear.putpixel((1, 0), (10, 20, 30, 255))
    return clear


def palette() -> Image.Image:
    image = Image.new("P", (2, 1))
    image.putpalette([200, 0, 0, 0, 200, 0])
    image.putdata([0, 1])
    return image


COLOURS = {
    "16-bit PNG": (encoded(Image.fromarray(DEEP)), [[0] * 3, [1] * 3, [100] * 3, [255] * 3], "16-bit grey scaled"),
    "16-bit array": (DEEP, [[0] * 3, [1] * 3, [100] * 3, [255] * 3], "16-bit grey scaled"),
    "16-bit PGM": (b"P5 4 1 65535\n" + DEEP.astype(">u2").tobytes(), [[0] * 3, [1] * 3, [100] * 3, [255] * 3], ""),
    "float TIFF": (encoded(Image.fromarray(np.array([[0.0, 0.2, 1.0]], np.float32)), "TIFF"),
                   [[0] * 3, [51] * 3, [255] * 3], "float grey scaled"),
    "transparent": (encoded(half_clear()), [[255] * 3, [10, 20, 30]], "transparency laid over white"),
    "palette": (encoded(palette()), [[200, 0, 0], [0, 200, 0]], ""),
    "transparent palette": (encoded(palette(), transparency=0), [[255] * 3, [0, 200, 0]], "transparency laid over"),
    "one bit": (encoded(Image.new("1", (2, 1), 1)), [[255] * 3] * 2, ""),
    "CMYK": (encoded(Image.new("CMYK", (1, 1), (0, 255, 255, 0)), "JPEG", quality=100), [[254, 0, 0]], "from CMYK"),
    "animation": (encoded(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), [[255, 0, 0]] * 4, "first of"),
}  # fmt: skip
"""A source, the pixels of its first row, and what is noted."""


@pytest.mark.parametrize(("source", "row", "note"), COLOURS.values(), ids=COLOURS)
def test_every_kind_of_colours_becomes_rgb(source: bytes, row: list[list[int]], note: str) -> None:
    picture = read_picture(source)
    assert np.abs(pixels(picture)[0].astype(int) - row).max() <= (1 if "CMYK" in note else 0)
    assert note in "".join(picture.notes)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (encoded(Image.fromarray(np.array([[0.0, 900.0]], np.float32)), "TIFF"), "from 0 to 900"),
        (png_header(30_000, 30_000), "more pixels than the 64 million"),
        (png_header(8001, 8000), "8001×8000 pixels are more than the 64 million"),
    ],
)
def test_values_and_sizes_beyond_the_limits_are_refused_before_they_are_decoded(
    source: bytes, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "million" in word:
        monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("decoded"))
    with pytest.raises(DataError, match=word):
        read_picture(source)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_comes_out_upright(orientation: int) -> None:
    upright = Image.fromarray(CORNERS)
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    stored = upright if orientation == 1 else upright.transpose(undo[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = read_picture(encoded(stored, exif=exif))
    assert picture.size == (20, 30)
    assert np.array_equal(pixels(picture), CORNERS)
    assert bool(picture.notes) == (orientation != 1)


def test_missing_empty_folder_and_foreign_files_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("not a picture at all")
    (tmp_path / "drawing.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    for name, word in [
        ("gone.png", "no such file"),
        ("empty.png", "0 bytes"),
        ("text.png", "format"),
        ("drawing.png", "format"),
        ("", "directory"),
    ]:
        with pytest.raises(DataError, match=word) as caught:
            read_picture(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    for text, word in (("", "an empty path"), ("a\0b.png", "NUL|null"), ("x" * 5000, "x"), ("http://x", "an address")):
        with pytest.raises(DataError, match=word):
            read_picture(text)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_files_cut_short_are_data_errors(kind: str, share: float) -> None:
    rng = np.random.default_rng(0)
    data = encoded(Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)), kind)
    with pytest.raises(DataError):
        read_picture(data[: int(len(data) * share)])


def test_a_wide_picture_gets_a_filled_border_above_and_below() -> None:
    inputs, canvas, size = prepare(read_picture(np.full((50, 200, 3), 255, np.uint8)), (100, 100), fill=0.25)
    assert inputs.shape == (3, 100, 100)
    assert inputs[:, 37:62].min() == 1.0  # 200×50 → 100×25, at rows 37 … 61
    assert torch.all(inputs[:, :37] == 0.25)
    assert torch.all(inputs[:, 62:] == 0.25)
    corner = geometry.apply(canvas, torch.tensor([100.0, 62.0], dtype=torch.float64))
    assert corner.tolist() == [200.0, 50.0]
    assert size.tolist() == [50, 200]


@pytest.fixture
def album(tmp_path: Path) -> Path:
    for name in ("b.png", "a.JPG", "deep/er/c.png", "deep/._c.png", ".hidden/d.png", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            b"x" if name == "notes.txt" else encoded(Image.fromarray(CORNERS), "JPEG" if "JPG" in name else "PNG")
        )
    return tmp_path


def test_folders_files_and_globs_are_found_once_in_order(album: Path) -> None:
    names = [path.relative_to(album).as_posix() for path in find_pictures([album])]
    assert names == ["a.JPG", "b.png", "deep/er/c.png"]
    assert find_pictures([album / "b.png", str(album / "*.png"), album / "b.png"]) == [album / "b.png"]
    assert find_pictures([str(album / "**" / "c.png")]) == [album / "deep" / "er" / "c.png"]
    assert find_pictures([album / "notes.txt"]) == [album / "notes.txt"]  # named outright: reading it will say why not


@pytest.mark.parametrize(
    ("paths", "word"),
    [
        (["{}/empty"], "no pictures in"),
        (["{}/empty/*.png"], "no pictures in"),
        (["{}/gone.png"], "no such file"),
        ([], "empty list"),
        ([""], "an empty path"),  # of a shell variable that was never set: not the folder one happens to be in
        (["https://x.org/a.png"], r"https://x\.org/a\.png: an address, not a file"),
    ],
)
def test_nothing_found_is_an_error(tmp_path: Path, paths: list[str], word: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=word):
        find_pictures([path.format(tmp_path) for path in paths])


def test_a_bad_picture_is_reported_and_the_rest_goes_on(album: Path) -> None:
    (album / "aa.png").write_bytes(b"broken")
    told: list[tuple[object, str]] = []
    batches = list(stream_pictures(find_pictures([album]), 2, lambda source, error: told.append((source, str(error)))))
    assert [len(batch) for batch in batches] == [2, 1]
    assert [source for source, _ in told] == [album / "aa.png"]
    with pytest.raises(DataError, match=r"aa\.png"):
        list(stream_pictures(find_pictures([album]), 2))
    with pytest.raises(DataError, match="found 0"):
        list(stream_pictures([], 0))


def test_a_batch_of_large_pictures_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "PIXEL_LIMIT", 1000)
    batches = list(stream_pictures([CORNERS] * 4, 10))  # 600 pixels each
    assert [len(batch) for batch in batches] == [2, 2]
