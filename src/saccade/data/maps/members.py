"""Files by name in a folder, a zip or tar archive, or one file that holds several arrays."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from saccade.data.maps.arrays import MAX_BYTES, SEVERAL, Array, grey_map, member_bytes, open_arrays, read_array, sound
from saccade.data.maps.arrays import PICTURES as PICTURE_SUFFIXES
from saccade.errors import DataError
from saccade.untrusted import open_regular, read_regular

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def open_members(path: Path, suffixes: Collection[str]) -> Members:
    """What ``path`` holds: a folder through and through, an archive, or a file of several arrays; arrays by name."""
    where, name = str(path), path.name.lower()
    if path.is_dir():

        def in_folder(file: str) -> bytes:
            with sound(str(path / file)):
                return read_regular(path / file, MAX_BYTES)

        return _Files(where, sorted(_walk(path)), suffixes, in_folder)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    with sound(where):
        if name.endswith(".zip"):
            packed = zipfile.ZipFile(path)
            infos = {info.filename: info for info in packed.infolist() if not info.is_dir()}
            return _Files(where, list(infos), suffixes, lambda file: member_bytes(packed, infos[file], where))
        if name.endswith(ARCHIVES[1:]):
            archive = tarfile.open(path)  # noqa: SIM115 (open as long as it is read)
            members = {info.name.removeprefix("./"): info for info in archive if info.isreg()}
            return _Files(where, list(members), suffixes, lambda file: _tar_bytes(archive, members[file], where))
    if path.suffix.lower() in SEVERAL:
        return ArrayMembers(path)
    raise DataError(f"{path}: expected a folder, {', '.join(ARCHIVES)}, .npy, .npz or .h5")


def _tar_bytes(archive: tarfile.TarFile, info: tarfile.TarInfo, where: str) -> bytes:
    if info.size > MAX_BYTES:
        raise DataError(f"{where}: {info.name} has {info.size:,} bytes, and at most {MAX_BYTES:,} are allowed")
    with sound(f"{where}: {info.name}"):
        member = archive.extractfile(info)
        return b"" if member is None else member.read(info.size)


class _Files:
    """The files of a folder or an archive, of which no two differ in their suffix alone."""

    def __init__(
        self, where: str, files: list[str], suffixes: Collection[str], bytes_of: Callable[[str], bytes]
    ) -> None:
        self.where, self._bytes = where, bytes_of
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
        """In the order in which they are quickest to read: those of a compressed archive as they lie in it."""
        return list(self._files)

    def read(self, name: str, key: str | None = None, *, grey: bool = False) -> Array:
        """The array of that name; ``grey``: a picture must be a map, not colours or a palette of them."""
        file = self._files[name]
        data, suffix = self._bytes(file), PurePosixPath(file).suffix.lower()
        if grey and suffix in PICTURE_SUFFIXES:
            return grey_map(data, file)
        return read_array(data, suffix, file, key)


class ArrayMembers:
    """The arrays of one npz or HDF5 file."""

    def __init__(self, path: Path) -> None:
        self.where, self.ignored = str(path), 0
        with sound(str(path)):
            file = open_regular(path)
        self._held = open_arrays(file, path.suffix.lower(), str(path))

    @property
    def names(self) -> list[str]:
        """In the order in which they lie in the file."""
        return list(self._held.names)

    def read(self, name: str, key: str | None = None, *, grey: bool = False) -> Array:
        """The array of that name; such files hold no pictures."""
        return self._held.read(name)


Members = _Files | ArrayMembers
"""Arrays by name, a path without its suffix: ``names``, ``read`` and how many files were ``ignored``."""


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


def short_names(sides: Sequence[Iterable[str]], separator: str) -> bool:
    """Whether the last part of a path is enough: on every side no two paths share it."""
    if separator == "/":
        return False
    return all(len({path.rpartition("/")[2] for path in paths}) == len(paths) for paths in map(list, sides))


def by_short_name(paths: Iterable[str], short: bool) -> dict[str, str]:
    """Paths by the names they are called."""
    return {path.rpartition("/")[2] if short else path: path for path in paths}


def truth_for(name: str, known: Mapping[str, object], separator: str) -> str | None:
    """The name of the truth about a map: its own, else that of its picture; None where there is neither."""
    if name in known:
        return name
    picture = picture_of(name, separator)
    return picture if picture in known else None
