"""Files by name in a folder, a zip or tar archive, or one file that holds several arrays."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from saccade.data.maps.arrays import MAX_BYTES, SEVERAL, Array, grey_map, member_bytes, open_arrays, read_array, sound
from saccade.data.maps.arrays import PICTURES as PICTURE_SUFFIXES
from saccade.errors import ConfigError, DataError
from saccade.untrusted import open_regular, read_regular

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class Members(Protocol):
    """Arrays by name; a name is a path without its suffix."""

    where: str
    ignored: int
    """Files that hold no array by their suffix."""

    @property
    def names(self) -> list[str]:
        """In the order in which they are quickest to read."""

    def read(self, name: str, key: str | None = None, *, grey: bool = False) -> Array:
        """The array of that name; ``grey``: a picture must be a map, not colours or a palette of them."""


def open_members(path: Path, suffixes: Collection[str]) -> Members:
    """What ``path`` holds: a folder through and through, an archive, or a file of several arrays."""
    if path.is_dir():
        return FolderMembers(path, suffixes)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    name = path.name.lower()
    if name.endswith(".zip"):
        return ZipMembers(path, suffixes)
    if name.endswith(ARCHIVES[1:]):
        return TarMembers(path, suffixes)
    if path.suffix.lower() in SEVERAL:
        return ArrayMembers(path)
    raise DataError(f"{path}: expected a folder, {', '.join(ARCHIVES)}, .npy, .npz or .h5")


class _Files:
    """What folders and archives share: names of files, of which no two differ in their suffix alone."""

    def __init__(self, where: str, files: list[str], suffixes: Collection[str]) -> None:
        self.where = where
        shown = [file for file in files if not any(part.startswith((".", "__MACOSX")) for part in file.split("/"))]
        fitting = [file for file in shown if PurePosixPath(file).suffix.lower() in suffixes]
        self.ignored = len(shown) - len(fitting)
        self._files = {_stem(file): file for file in fitting}
        if len(self._files) < len(fitting):
            name, times = Counter(_stem(file) for file in fitting).most_common(1)[0]
            same = ", ".join(sorted(file for file in fitting if _stem(file) == name)[:4])
            raise DataError(f"{where}: {times} files are called '{name}' ({same}); keep one of them")

    @property
    def names(self) -> list[str]:
        return list(self._files)

    def read(self, name: str, key: str | None = None, *, grey: bool = False) -> Array:
        file = self._files[name]
        data, suffix = self._bytes(file), PurePosixPath(file).suffix.lower()
        if grey and suffix in PICTURE_SUFFIXES:
            return grey_map(data, file)
        return read_array(data, suffix, file, key)

    def _bytes(self, file: str) -> bytes:
        raise NotImplementedError


class FolderMembers(_Files):
    """The files of a folder and of those in it."""

    def __init__(self, path: Path, suffixes: Collection[str]) -> None:
        self._path = path
        super().__init__(str(path), sorted(_walk(path)), suffixes)

    def _bytes(self, file: str) -> bytes:
        with sound(str(self._path / file)):
            return read_regular(self._path / file, MAX_BYTES)


class ZipMembers(_Files):
    """The files of a zip archive."""

    def __init__(self, path: Path, suffixes: Collection[str]) -> None:
        with sound(str(path)):
            self._archive = zipfile.ZipFile(path)
        self._infos = {info.filename: info for info in self._archive.infolist() if not info.is_dir()}
        super().__init__(str(path), list(self._infos), suffixes)

    def _bytes(self, file: str) -> bytes:
        return member_bytes(self._archive, self._infos[file], self.where)


class TarMembers(_Files):
    """The files of a tar archive; of a compressed one it is quickest to read them in their order."""

    def __init__(self, path: Path, suffixes: Collection[str]) -> None:
        with sound(str(path)):
            self._archive = tarfile.open(path)  # noqa: SIM115 (open as long as it is read)
            self._infos = {info.name.removeprefix("./"): info for info in self._archive if info.isreg()}
        super().__init__(str(path), list(self._infos), suffixes)

    def _bytes(self, file: str) -> bytes:
        info = self._infos[file]
        if info.size > MAX_BYTES:
            raise DataError(f"{self.where}: {file} has {info.size:,} bytes, and at most {MAX_BYTES:,} are allowed")
        with sound(f"{self.where}: {file}"):
            member = self._archive.extractfile(info)
            return b"" if member is None else member.read(info.size)


class ArrayMembers:
    """The arrays of one npz or HDF5 file."""

    def __init__(self, path: Path) -> None:
        self.where, self.ignored = str(path), 0
        with sound(str(path)):
            file = open_regular(path)
        self._held = open_arrays(file, path.suffix.lower(), str(path))

    @property
    def names(self) -> list[str]:
        """See :class:`Members`."""
        return list(self._held.names)

    def read(self, name: str, key: str | None = None, *, grey: bool = False) -> Array:
        """See :class:`Members`."""
        return self._held.read(name)


def _stem(file: str) -> str:
    """A file's path without the last suffix.

    >>> _stem("a/cat.v2.npy")
    'a/cat.v2'
    """
    return file[: -len(PurePosixPath(file).suffix)] if PurePosixPath(file).suffix else file


def _walk(path: Path) -> Iterator[str]:
    """The files below a folder, as paths from it; links to folders are not followed."""
    for folder, inner, files in os.walk(path):
        inner.sort()
        at = Path(folder).relative_to(path).as_posix()
        yield from (file if at == "." else f"{at}/{file}" for file in files)


SEPARATOR = "__"
"""Between the picture and the question."""


def picture_of(name: str, separator: str) -> str:
    """The picture that a name is about.

    >>> picture_of("cat__colour", "__"), picture_of("cat", "__"), picture_of("a/1/tail", "/")
    ('cat', 'cat', 'a/1')
    """
    picture, _, _ = name.rpartition(separator) if separator == "/" else name.partition(separator)
    return picture or name


def checked_separator(separator: str) -> str:
    """``separator``, if it can stand between two names."""
    if not separator or separator.isspace():
        raise ConfigError("separator: what stands between picture and question must not be empty; the usual one is __")
    return separator


def short_names(sides: Sequence[Iterable[str]], separator: str) -> bool:
    """Whether the last part of a path is enough: on every side no two paths share it."""
    if separator == "/":
        return False
    for side in sides:
        paths = list(side)
        if len({PurePosixPath(path).name for path in paths}) < len(paths):
            return False
    return True


def by_short_name(paths: Iterable[str], short: bool) -> dict[str, str]:
    """Paths by the names they are called."""
    return {PurePosixPath(path).name if short else path: path for path in paths}


def truth_for(name: str, known: Mapping[str, object], separator: str) -> str | None:
    """The name of the truth about a map: its own, else that of its picture; None where there is neither."""
    if name in known:
        return name
    picture = picture_of(name, separator)
    return picture if picture in known else None
