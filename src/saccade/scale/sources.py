"""From paths and URIs to parts: picture files in groups, tar shards and Parquet files each as one part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from saccade.data.files import find_files
from saccade.data.pictures.decoding import SUFFIXES
from saccade.errors import ConfigError, DataError
from saccade.scale.job import Member, Part, PartKind
from saccade.scale.stores import is_remote, listed, local

SHARDS: dict[str, PartKind] = {".tar": "tar", ".tar.gz": "tar", ".tgz": "tar", ".parquet": "parquet"}
_ENDINGS = SUFFIXES | {".tar", ".gz", ".tgz", ".parquet"}


def parts_of(uris: Iterable[str | os.PathLike[str]], size: int, column: str | None = None) -> list[Part]:
    """The parts of a job: each file once, sources in the order given, the files of a folder by name.

    Args:
        uris: picture files, .tar and .parquet files, folders and globs of them; paths here, or URIs of a store.
        size: picture files in a part. A shard is one part, however many pictures it holds.
        column: of Parquet files, the one that has the pictures.
    """
    if size < 1:
        raise ConfigError(f"part: 1 picture or more, found {size}")
    asked = [os.fspath(uri) for uri in uris]
    found: dict[str, str] = {}
    for uri in asked:
        files = listed(uri) if is_remote(uri) else _local_files(uri)
        kept = [(file, stamp) for file, stamp in files if kind_of(file) is not None]
        if not kept:
            raise DataError(f"{uri}: no pictures in it; looked for {' '.join(sorted(SUFFIXES))} .tar .tgz .parquet")
        found |= kept
    if not found:
        raise DataError("nothing to look at: name pictures, folders, .tar or .parquet files")
    root = _shared_root(asked)
    members = [Member(uri, _name(uri, root), stamp) for uri, stamp in found.items()]
    return _cut(members, size, column)


def kind_of(uri: str) -> PartKind | None:
    """How a file is read, by the ending of its name; None: not at all.

    >>> kind_of("a/b.JPG"), kind_of("s3://a/b-000.tar.gz"), kind_of("a.parquet"), kind_of("a.txt")
    ('files', 'tar', 'parquet', None)
    """
    name = uri.lower()
    shard = next((kind for ending, kind in SHARDS.items() if name.endswith(ending)), None)
    return shard or ("files" if PurePosixPath(name).suffix in SUFFIXES else None)


def _cut(members: Sequence[Member], size: int, column: str | None) -> list[Part]:
    parts: list[Part] = []
    waiting: list[Member] = []

    def flush() -> None:
        if waiting:
            parts.append(Part(len(parts), "files", tuple(waiting)))
            waiting.clear()

    for member in members:
        kind = kind_of(member.uri)
        if kind == "files":
            waiting.append(member)
            if len(waiting) == size:
                flush()
        elif kind is not None:
            flush()
            parts.append(Part(len(parts), kind, (member,), column if kind == "parquet" else None))
    flush()
    return parts


def _local_files(uri: str) -> list[tuple[str, str]]:
    found = find_files([str(local(uri))], _ENDINGS, "picture")
    files = []
    for path in found:
        try:
            told = path.stat()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
        files.append((str(path.absolute()), f"{told.st_size}-{told.st_mtime_ns}"))
    return files


def _shared_root(uris: Sequence[str]) -> str:
    """The folder that all sources have in common; nothing where they lie in different stores."""
    folders = []
    for uri in uris:
        path = local(uri).absolute()
        if is_remote(uri):
            stem = uri.rstrip("/")
            is_file = kind_of(stem) is not None or any(mark in stem for mark in "*?[")
            folders.append(stem.rpartition("/")[0] if is_file else stem)
        else:
            folders.append(str(path if path.is_dir() else path.parent))
    shared = folders[0].split("/")
    for folder in folders[1:]:
        other = folder.split("/")
        same = [one == two for one, two in zip(shared, other)]
        shared = shared[: same.index(False) if False in same else len(same)]
    return "/".join(shared)


def _name(uri: str, root: str) -> str:
    """The path of a file from ``root``; of a picture without its suffix."""
    path = uri[len(root) + 1 :] if root and uri.startswith(f"{root}/") else uri
    return path[: -len(PurePosixPath(path).suffix)] if kind_of(uri) == "files" else path
