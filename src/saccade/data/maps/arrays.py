"""One map or mask from the bytes of a file: npy, npz, PNG, TIFF or HDF5.

Files are untrusted. The size in a header is checked before values are read. Arrays of Python objects are refused,
because reading them means unpickling. An HDF5 file may not link to another file.
"""

from __future__ import annotations

import io
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from saccade.errors import DataError, MissingExtraError, SaccadeError
from saccade.untrusted import MAX_PIXELS

Array = npt.NDArray[Any]
PICTURES = frozenset({".png", ".tif", ".tiff"})
H5 = frozenset({".h5", ".hdf5"})
SUFFIXES = frozenset({".npy", ".npz"}) | PICTURES | H5
"""Suffixes of files that hold maps or masks."""
SEVERAL = frozenset({".npz"}) | H5
"""Suffixes of files that can hold several arrays by name."""
MAX_BYTES = 8 * MAX_PIXELS + (1 << 20)
"""Largest file, and largest array in it."""
MAX_SIDE = 1 << 14
"""Of a map. What lays a map over a picture has a number for each pair of a side's cells and a side's pixels."""


def read_array(data: bytes, suffix: str, name: str, key: str | None = None) -> Array:
    """The one array (…) in a file of that suffix; ``key`` picks one of several."""
    if suffix == ".npy":
        return npy_array(data, name)
    if suffix in PICTURES:
        return _grey(data, name)
    held = open_arrays(io.BytesIO(data), suffix, name)
    if key is None and len(held.names) != 1:
        raise DataError(f"{name}: holds {_listed(held.names)}; say which one with `key=NAME`")
    return held.read(held.names[0] if key is None else key)


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


def npy_array(data: bytes, name: str) -> Array:
    """The array in the bytes of a .npy file."""
    with sound(name), io.BytesIO(data) as file:
        shape, dtype = npy_header(file, name)
        if len(data) - file.tell() < int(np.prod(shape, dtype=object)) * dtype.itemsize:
            raise DataError(f"{name}: cut short: fewer bytes than {shape} values of {dtype} need; write it again")
        file.seek(0)
        return np.asarray(np.load(file, allow_pickle=False))


def npy_header(file: Any, name: str, most: int = MAX_PIXELS) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that the header tells, once both can be read safely; the file stands behind the header."""
    version = np.lib.format.read_magic(file)
    one = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if one else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise DataError(
            f"{name}: an array of Python objects, which can run code when it is read; save numbers, "
            "np.save(file, np.asarray(map, dtype=np.float32))"
        )
    if int(np.prod(shape, dtype=object)) > most:
        raise DataError(f"{name}: {shape} are more than the {most:,} values allowed; make it smaller")
    return shape, dtype


class _Npz:
    """The arrays of an .npz file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name, self._file = name, zipfile.ZipFile(file)
        self._members = {info.filename.removesuffix(".npy"): info for info in self._file.infolist()}
        self.names = [name for name, info in self._members.items() if info.filename.endswith(".npy")]

    def read(self, key: str) -> Array:
        if key not in self.names:
            raise DataError(f"{self._name}: no array '{key}', found {_listed(self.names)}; check `key`")
        return npy_array(member_bytes(self._file, self._members[key], self._name), f"{self._name}[{key}]")


def member_bytes(file: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, most: int = MAX_BYTES) -> bytes:
    """What one member of a zip file holds; never more than ``most`` bytes, whatever its header says."""
    if info.file_size > most:
        raise DataError(f"{name}: {info.filename} has {info.file_size:,} bytes, and at most {most:,} are allowed")
    with sound(f"{name}: {info.filename}"), file.open(info) as member:
        return member.read(info.file_size)


class _Hdf:
    """The datasets of an HDF5 file, by their path in it."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingExtraError(f"reading {name}", "tables") from error
        self._name, self._file = name, h5py.File(file, "r")
        self.names: list[str] = []
        # a file that is open when the interpreter ends takes the process down with it
        weakref.finalize(self, self._file.close)
        self._file.visititems(lambda key, item: self.names.append(key) if isinstance(item, h5py.Dataset) else None)

    def read(self, key: str) -> Array:
        if key.strip("/") not in self.names:  # links to other files are not among them
            raise DataError(f"{self._name}: no dataset '{key}', found {_listed(self.names)}; check `key`")
        with sound(f"{self._name}[{key}]"):
            found = self._file[key]
            if found.external or found.is_virtual:
                raise DataError(f"{self._name}[{key}]: its values lie in another file; copy them into this one")
            if found.dtype.kind not in "biuf" or found.size is None or found.size > MAX_PIXELS:
                what = f"{found.shape} of {found.dtype}"
                raise DataError(f"{self._name}[{key}]: expected at most {MAX_PIXELS:,} numbers, found {what}")
            return np.asarray(found[()])


def open_arrays(file: BinaryIO, suffix: str, name: str) -> _Npz | _Hdf:
    """A file that can hold several arrays: their ``names``, and ``read(name)``."""
    with sound(name):
        return _Npz(file, name) if suffix == ".npz" else _Hdf(file, name)


@contextmanager
def sound(name: str) -> Iterator[None]:
    """What the libraries say of a damaged file, as a DataError; a decoder may raise anything on damaged bytes."""
    from saccade.data.pictures.decoding import damaged

    try:
        yield
    except (SaccadeError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, error) from error


def _grey(data: bytes, name: str, palette: bool = True) -> Array:
    """Values (H,W) of a grey picture of any depth; (H,W,C) of colours. ``palette``: its indices, not its colours."""
    from PIL import Image

    from saccade.data.pictures.decoding import check_size

    with sound(name):
        image: Image.Image = Image.open(io.BytesIO(data), formats=("PNG", "TIFF"))
        check_size(image.size, name, MAX_PIXELS)
        if (frames := getattr(image, "n_frames", 1)) > 1:
            raise DataError(f"{name}: holds {frames} pictures; save one map in each file")
        return np.asarray(image if palette or image.mode != "P" else image.convert("RGBA"))


def grey_map(data: bytes, name: str) -> Array:
    """Values (H,W) of a picture file as a map: grey of any depth. Colours say no amount, so they are refused.

    The indices of a palette are no amounts either. A palette of greys, and colours whose channels are equal, are read.
    """
    values = _grey(data, name, palette=False)
    if values.ndim == 2:
        return values
    if values.shape[-1] == 2:
        return values[..., 0]  # grey with transparency
    colours = values[..., :3]
    if (colours != colours[..., :1]).any():
        raise DataError(
            f"{name}: a colour picture, which does not hold the values of a map; save the map as grey or .npy"
        )
    return colours[..., 0]


def _listed(names: list[str]) -> str:
    return shorten(", ".join(names), 200, placeholder=" …") or "no array"
