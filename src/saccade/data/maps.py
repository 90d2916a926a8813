"""Maps and masks by name, in files of many kinds: folders, zip and tar archives, npy, npz, PNG, TIFF and HDF5.

Files are untrusted. The size in a header is checked before values are read. Arrays of Python objects are refused,
because reading them means unpickling. An HDF5 file may not link to another file.

Boxes and points as truth: tables (CSV, JSON, JSON lines), COCO annotations, and scenes that saccade wrote.

A row names a picture (``image`` or ``file_name``) and has a box or a point (``docs/how-to/score-maps.md`` lists the
columns). With a ``label`` or ``query``, a map called ``PICTURE__LABEL`` is compared with the rows of that label; other
rows are other objects. Without ``width`` and ``height`` of the picture, coordinates are in pixels of the map.
"""

from __future__ import annotations

import io
import tarfile
import weakref
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil, floor
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import IO, Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from saccade.data.tables.rows import UnusableRowError, box_in, csv_rows, is_blank, json_in, jsonl_rows, numbers_in
from saccade.errors import DataError, MissingExtraError, SaccadeError
from saccade.files import MAX_PIXELS, open_regular
from saccade.geometry import Size

Array = npt.NDArray[Any]
PICTURES = frozenset({".png", ".tif", ".tiff"})
H5 = frozenset({".h5", ".hdf5"})
SUFFIXES = frozenset({".npy", ".npz"}) | PICTURES | H5  # Suffixes of files that hold maps or masks
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
SEPARATOR = "__"  # Between the picture and the question in the name of a map
MAX_BYTES = 8 * MAX_PIXELS + (1 << 20)  # Largest file, and largest array in it
# Of a map. What lays a map over a picture has a number for each pair of a side's cells and a side's pixels.
MAX_SIDE = 1 << 14


class Members(NamedTuple):
    """Arrays by name, a path without its suffix."""

    where: str  # what messages call all of them
    names: list[str]  # in the order in which they are quickest to read: those of a compressed archive as they lie in it
    read: Callable[[str, str | None, bool], Array]
    # (name, key, grey) → the array; ``key`` picks one of several in its file; ``grey``: pictures must not be colours
    ignored: int = 0  # files that hold no arrays


# How a member is opened, and its bytes; -1 where opening it checks the size.
Opened = tuple[Callable[[], IO[bytes]], int]


def open_members(path: Path, suffixes: Collection[str]) -> Members:
    """What ``path`` holds: a folder through and through, an archive, or a file of several arrays."""
    where, name = str(path), path.name.lower()
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    files: dict[str, Opened]
    with sound(where):
        if path.is_dir():
            names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir())
            files = {file: (partial(open_regular, path / file, MAX_BYTES), -1) for file in names}
            return _members(where, files, suffixes)
        if name.endswith(".zip"):
            return _zipped(where, path, suffixes)
        if name.endswith(ARCHIVES[1:]):
            archive = tarfile.open(path)  # noqa: SIM115 (open as long as it is read)
            infos = {info.name.removeprefix("./"): info for info in archive if info.isreg()}
            # of a regular member extractfile never returns None
            files = {file: (partial(archive.extractfile, info), info.size) for file, info in infos.items()}  # type: ignore[misc]
            return _members(where, files, suffixes)
        if path.suffix.lower() not in {".npz", *H5}:
            raise DataError(f"{path}: expected a folder, {', '.join(ARCHIVES)}, .npy, .npz or .h5")
        names, read = _open_arrays(open_regular(path), path.suffix.lower(), where)
    return Members(where, names, lambda name, key, grey: read(name))


def _members(where: str, files: Mapping[str, Opened], suffixes: Collection[str]) -> Members:
    """The files of a folder or an archive, of which no two may differ in their suffix alone."""
    shown = [file for file in files if not any(part.startswith((".", "__MACOSX")) for part in file.split("/"))]
    fitting = [file for file in shown if PurePosixPath(file).suffix.lower() in suffixes]
    file_of = {stem_of(file): file for file in fitting}
    if len(file_of) < len(fitting):
        name, times = Counter(map(stem_of, fitting)).most_common(1)[0]
        same = ", ".join(sorted(file for file in fitting if stem_of(file) == name)[:4])
        raise DataError(f"{where}: {times} files are called '{name}' ({same}); keep one of them")

    def read(name: str, key: str | None, grey: bool) -> Array:
        file, suffix = f"{where}: {file_of[name]}", PurePosixPath(file_of[name]).suffix.lower()
        opened, size = files[file_of[name]]
        if size > MAX_BYTES:
            raise DataError(f"{file} has {size:,} bytes, and at most {MAX_BYTES:,} are allowed")
        with sound(file), opened() as member:
            data = member.read(size)
        if suffix == ".npy":
            with sound(file), io.BytesIO(data) as member:
                shape, is_fortran, dtype = npy_header(member, file)
                count = int(np.prod(shape, dtype=object))
                # Unlike np.load this takes no memory for values that are not there.
                values = np.frombuffer(data, dtype, count, member.tell())
                return values.reshape(shape, order="F" if is_fortran else "C")
        if suffix in PICTURES:
            return _grey_map(data, file) if grey else _pixels(data, file)
        names, read_one = _open_arrays(io.BytesIO(data), suffix, file)
        if key is None and len(names) != 1:
            raise DataError(f"{file}: holds {_listed(names)}; say which one with `key=NAME`")
        return read_one(names[0] if key is None else key)

    return Members(where, list(file_of), read, len(shown) - len(fitting))


def _zipped(where: str, file: Path | BinaryIO, suffixes: Collection[str]) -> Members:
    packed = zipfile.ZipFile(file)
    infos = [info for info in packed.infolist() if not info.is_dir()]
    return _members(where, {info.filename: (partial(packed.open, info), info.file_size) for info in infos}, suffixes)


def stem_of(file: str) -> str:
    """A file's path without the last suffix.

    >>> stem_of("a/cat.v2.npy")
    'a/cat.v2'
    """
    path = PurePosixPath(file.replace("\\", "/"))
    return path.with_suffix("").as_posix() if path.suffix else str(path)


def as_map(values: Array, name: str) -> npt.NDArray[np.float32]:
    """The array as a map (H,W) in float32; further axes of length 1 go.

    Scores do not change with the scale of a map, so values that float32 cannot hold are divided by the largest first.
    """
    values = _plane(values, name, "map")
    if max(values.shape) > MAX_SIDE:
        raise DataError(f"{name}: a map of {values.shape}; no side may be longer than {MAX_SIDE:,}; make it smaller")
    if values.dtype.kind == "f" and values.dtype.itemsize > 4:
        peak = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if peak > 1e30 or 0 < peak < 1e-30:
            values = values / peak
    values = np.ascontiguousarray(values, dtype=np.float32)
    return values if values.flags.writeable else values.copy()  # torch warns of arrays that it could not write to


def as_mask(values: Array, name: str) -> npt.NDArray[np.bool_]:
    """The array as a mask (H,W): true where it is not 0. Of colours, any channel counts."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"{name}: a mask that holds NaN or infinity; make it of 0 and 1")
    if values.dtype.kind in "biuf" and values.ndim == 3 and values.shape[-1] in (3, 4):
        values = np.asarray(values[..., :3].any(-1))  # (H,W)
    return np.asarray(_plane(values, name, "mask") != 0)


def _plane(values: Array, name: str, what: str) -> Array:
    """The numbers (H,W) of a map or mask; further axes of length 1 go."""
    shape = values.shape
    while values.ndim > 2 and 1 in (values.shape[0], values.shape[-1]):
        values = values[0] if values.shape[0] == 1 else values[..., 0]
    if values.dtype.kind not in "biuf" or values.ndim != 2 or values.size == 0:
        cure = "; sum over channels first, as map.sum(0) or abs(map).sum(0), and say which" if values.ndim == 3 else ""
        raise DataError(f"{name}: a {what} is (H,W) numbers, found {shape} of {values.dtype}{cure}")
    return values


def npy_header(file: Any, name: str, most: int = MAX_PIXELS) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type in the header; the file stands behind the header."""
    one = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if one else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    if dtype.hasobject:
        raise DataError(
            f"{name}: an array of Python objects, which can run code when it is read; save numbers, "
            "np.save(file, np.asarray(map, dtype=np.float32))"
        )
    if int(np.prod(shape, dtype=object)) > most:
        raise DataError(f"{name}: {shape} are more than the {most:,} values allowed; make it smaller")
    return shape, is_fortran, dtype


def _open_arrays(file: BinaryIO, suffix: str, name: str) -> tuple[list[str], Callable[[str], Array]]:
    """A file that can hold several arrays: their names, and how one of them is read."""
    read: Callable[[str], Array]
    with sound(name):
        if suffix == ".npz":
            members = _zipped(name, file, {".npy"})
            names, read = members.names, lambda key: members.read(key, None, False)
        else:
            names, read = _hdf(file, name)

    def read_one(key: str) -> Array:
        if key.strip("/") not in names:  # links to other HDF5 files are not among them
            raise DataError(f"{name}: no array '{key}', found {_listed(names)}; check `key`")
        with sound(f"{name}[{key}]"):
            return read(key)

    return names, read_one


def _hdf(file: BinaryIO, name: str) -> tuple[list[str], Callable[[str], Array]]:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(f"reading {name}", "tables") from error
    archive, names = h5py.File(file, "r"), []
    archive.visititems(lambda key, item: names.append(key) if isinstance(item, h5py.Dataset) else None)

    def read(key: str) -> Array:
        dataset = archive[key]
        is_here = not (dataset.external or dataset.is_virtual)
        if not is_here or dataset.dtype.kind not in "biuf" or dataset.size is None or dataset.size > MAX_PIXELS:
            what = f"{dataset.shape} of {dataset.dtype}{'' if is_here else ' in another file'}"
            raise DataError(f"{name}[{key}]: expected at most {MAX_PIXELS:,} numbers in this file, found {what}")
        return np.asarray(dataset[()])

    # a file that is open when the interpreter ends takes the process down with it
    weakref.finalize(read, archive.close)
    return names, read


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Errors of the libraries about a damaged file as a DataError; a decoder may raise anything."""
    from saccade.data.pictures.files import damaged

    try:
        yield
    except (SaccadeError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, error) from error


def _pixels(data: bytes, name: str, palette: bool = True) -> Array:
    """Values (H,W) of a grey picture of any depth; (H,W,C) of colours. ``palette``: its indices, not its colours."""
    from PIL import Image

    from saccade.data.pictures.files import check_size

    with sound(name):
        image: Image.Image = Image.open(io.BytesIO(data), formats=("PNG", "TIFF"))
        check_size(image.size, name, MAX_PIXELS)
        if (frames := getattr(image, "n_frames", 1)) > 1:
            raise DataError(f"{name}: holds {frames} pictures; save one map in each file")
        return np.asarray(image if palette or image.mode != "P" else image.convert("RGBA"))


def _grey_map(data: bytes, name: str) -> Array:
    """Values (H,W) of a picture as a map: grey of any depth, also as a palette or as equal channels."""
    values = _pixels(data, name, palette=False)
    if values.ndim == 2:
        return values
    colours = values[..., :3] if values.shape[-1] > 2 else values[..., :1]  # of grey with transparency: the grey
    if (colours != colours[..., :1]).any():
        raise DataError(
            f"{name}: a colour picture, which does not hold the values of a map; save the map as grey or .npy"
        )
    return colours[..., 0]


def _listed(names: list[str]) -> str:
    return shorten(", ".join(names), 200, placeholder=" …") or "no array"


def picture_of(name: str, separator: str) -> str:
    """The picture that a name is about.

    >>> picture_of("cat__colour", "__"), picture_of("cat", "__"), picture_of("a/1/tail", "/")
    ('cat', 'cat', 'a/1')
    """
    picture, _, _ = name.rpartition(separator) if separator == "/" else name.partition(separator)
    return picture or name


def short_names(sides: Sequence[Iterable[str]], separator: str) -> bool:
    """Whether the last part of a path is enough: on every side no two paths share it."""
    if separator == "/":
        return False
    return all(len({path.rpartition("/")[2] for path in paths}) == len(paths) for paths in map(list, sides))


def by_short_name(paths: Iterable[str], short: bool) -> dict[str, str]:
    """Paths by the names they are called."""
    return {path.rpartition("/")[2] if short else path: path for path in paths}


def truth_for(name: str, truths: Mapping[str, object], separator: str) -> str | None:
    """The name of the truth about a map: its own, else that of its picture; None where there is neither."""
    if name in truths:
        return name
    picture = picture_of(name, separator)
    return picture if picture in truths else None


MarkKind = Literal["boxes", "points"]
_IMAGES = ("image", "file_name", "file", "picture")
_LABELS = ("query", "asked", "label", "category", "class")  # Beside a question, a label is its answer


class TruthMark(NamedTuple):
    """A box xyxy or a point (x, y), in pixels of the picture."""

    place: tuple[float, ...]
    label: str | None = None
    segment: Any = None  # of COCO; None where there is only a box


@dataclass
class PictureMarks:
    """What is marked in one picture."""

    size: Size | None = None  # (H, W), where it is known
    marks: list[TruthMark] = field(default_factory=list)

    def of(self, label: str | None) -> list[TruthMark]:
        """The marks with that label; None: all."""
        return [mark for mark in self.marks if label is None or mark.label == label]


@dataclass
class MarkTable:
    """Marks of pictures by the path of the picture without its suffix."""

    where: str
    kind: MarkKind = "boxes"
    pictures: dict[str, PictureMarks] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)  # Rows that could not be read, with the reason

    def add(self, image: str, size: Size | None, mark: TruthMark) -> None:
        """Add a mark; the first one says what kind all must be of."""
        kind: MarkKind = "boxes" if len(mark.place) == 4 else "points"
        if self.pictures and kind != self.kind:
            raise UnusableRowError(f"a row of {kind} in a table of {self.kind}")
        self.kind = kind
        picture = self.pictures.setdefault(stem_of(image), PictureMarks())
        if size is not None and picture.size not in (None, size):
            raise UnusableRowError("two sizes of one picture", f"{picture.size} and {size}")
        picture.size = picture.size or size
        picture.marks.append(mark)


def read_marks(path: Path) -> MarkTable:
    """The table in a CSV, JSON or JSON lines file."""
    suffix, unusable = path.suffix.lower(), list[str]()
    rows: Iterable[tuple[int, Any]]
    if suffix == ".csv":
        rows = csv_rows(path, ["image"])
    elif suffix == ".jsonl":
        rows = jsonl_rows(path, unusable)
    else:
        values = json_in(path)
        if isinstance(values, dict) and {"images", "annotations"} <= values.keys():
            return _coco(path, values)
        listed = list(_spread(path, values)) if isinstance(values, dict) else values
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise DataError(
                f"{path}: expected a list of rows with image and box or point, a mapping picture → boxes or points, or "
                "COCO annotations"
            )
        rows = enumerate(listed, start=1)
    table = MarkTable(str(path), unusable=unusable)
    for number, cells in rows:
        try:
            image, size = _first(cells, _IMAGES), _size(cells)
            if not isinstance(image, str):
                raise UnusableRowError("no image")
            objects = cells.get("objects")  # of a scene that saccade wrote
            for marked in objects if isinstance(objects, list) else [cells]:
                table.add(image.strip(), size, _mark(marked))
        except UnusableRowError as error:
            unusable.append(error.at(f"line {number}"))
    if not table.pictures:
        first = f" ({unusable[0]})" if unusable else ""
        raise DataError(f"{path}: no boxes and no points{first}; a row has image and x1 y1 x2 y2, box, x y or point")
    return table


def marked_pixels(marks: Sequence[TruthMark], size: Size) -> npt.NDArray[np.bool_]:
    """The pixels (H,W) of a picture of ``size`` that these boxes or segmentations touch."""
    from saccade.data.tables.published import UNREADABLE, segmentation

    inside = np.zeros(size, dtype=bool)
    for mark in marks:
        if mark.segment is not None:
            try:
                inside |= segmentation(mark.segment, size)
            except UNREADABLE as error:
                raise DataError(f"unreadable segmentation ({error})") from error
            continue
        x1, y1, x2, y2 = mark.place
        rows, columns = slice(max(0, floor(y1)), max(0, ceil(y2))), slice(max(0, floor(x1)), max(0, ceil(x2)))
        inside[rows, columns] = True
    return inside


def _first(cells: Mapping[str, object], names: Sequence[str]) -> object:
    return next((cells[name] for name in names if not is_blank(cells.get(name))), None)


def _mark(cells: Any) -> TruthMark:
    if not isinstance(cells, dict):
        raise UnusableRowError("unreadable objects")
    label = _first(cells, _LABELS)
    corners, at = ([cells.get(name) for name in names] for names in (("x1", "y1", "x2", "y2"), ("x", "y")))
    place: tuple[float, ...] | None = box_in(cells.get("box") if any(map(is_blank, corners)) else corners)
    place = place or numbers_in(cells.get("point") if any(map(is_blank, at)) else at, "point", 2)
    if place is None:
        raise UnusableRowError("neither box nor point")
    return TruthMark(place, None if label is None else str(label).strip())


def _size(cells: Mapping[str, object]) -> Size | None:
    sides = [cells.get("height"), cells.get("width")]
    if any(map(is_blank, sides)):
        return None
    height, width = numbers_in(sides, "size", 2) or (0, 0)
    if min(height, width) < 1 or height * width > MAX_PIXELS or height % 1 or width % 1:
        raise UnusableRowError("unreadable size", f"width {sides[1]}, height {sides[0]}")
    return int(height), int(width)


def _spread(path: Path, values: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    for image, places in values.items():
        places = places if isinstance(places, list) else [places]
        if places and not isinstance(places[0], (list, dict)):
            places = [places]
        for place in places:
            if isinstance(place, dict):
                yield {"image": image, **place}
            elif isinstance(place, list) and len(place) in (2, 4):
                yield {"image": image, "box" if len(place) == 4 else "point": place}
            else:
                raise DataError(f"{path}: '{image[:80]}': expected boxes of 4 numbers or points of 2")


def _coco(path: Path, values: Mapping[str, Any]) -> MarkTable:
    """Annotations of COCO: a box and perhaps a segmentation each, with the category as the label."""
    from saccade.data.tables.published import UNREADABLE, coco_parts

    table = MarkTable(str(path))
    images, annotations = coco_parts(path, values)
    for number, (picture, label, annotation) in enumerate(annotations, start=1):
        try:
            image, segment = images[picture], annotation.get("segmentation") or None
            size = _size(image)
            if size is None and segment is not None:
                raise UnusableRowError("a segmentation in a picture without width and height")
            x, y, width, height = map(float, annotation["bbox"]) if annotation.get("bbox") else (0.0, 0.0, 0.0, 0.0)
            if segment is None:
                box_in([x, y, x + width, y + height])
            mark = TruthMark((x, y, x + width, y + height), label, segment)
            table.add(str(image["file_name"]), size, mark)
        except UnusableRowError as error:
            table.unusable.append(error.at(f"annotation {number}"))
        except UNREADABLE as error:
            table.unusable.append(f"unreadable annotation: annotation {number}, {error}")
    for image in images.values():  # a picture without annotations has an empty mask
        with suppress(KeyError, UnusableRowError):
            table.pictures.setdefault(stem_of(str(image["file_name"])), PictureMarks(_size(image)))
    return table
