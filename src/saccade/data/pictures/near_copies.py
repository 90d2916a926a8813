"""Pictures that look the same although their bytes differ: saved again, resized, or with another quality.

A score on a near-copy of a training picture is partly a score on training data. Near-copies are named, never dropped:
whether two frames of a video are one picture is for the user to say.

Each picture gets a signature: a difference hash (is each of 8×8 cells brighter than its right neighbour? Krawetz 2013)
and a thumbnail of 16×16 cells. Two pictures are near-copies if their hashes differ in few bits and their thumbnails are
close for the contrast that the picture has; the second test keeps apart plain pictures, whose hashes are often equal.

Signatures are kept in the cache folder by the digest of the file's content, so a picture is decoded once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from saccade.atomic import write_bytes
from saccade.cache import cache_home
from saccade.data.pictures.content_digest import content_digests
from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import in_lines
from saccade.data.tables.wording import pluralise
from saccade.errors import DataError, OutputError

MAX_PICTURES, MAX_BYTES = 4000, 1 << 29
"""Larger tables are not searched for near-copies: that would take minutes."""
BITS = 6
"""Bits of 64 in which the hashes of near-copies differ at most."""

_HASH, _SIDE = 8, 16
_EACH = 16 + _HASH + 3 * _SIDE * _SIDE  # bytes of an entry: digest, hash, thumbnail
_KEPT = 20_000  # entries in the cache folder: 16 MB
_FILE, _HEADER = "near-copies.index", b"saccade near copies 1\n"
_NO_DIGEST = "-"

OnProgress = Callable[[str, int, int], None]
"""Called with what is going on, how far it is, and how far it goes."""


class _Signatures(NamedTuple):
    bits: np.ndarray
    """(N,64) of −1 and 1."""
    thumbnails: np.ndarray
    """(N, 3·16·16) float32, 0 to 255."""


def near_copies(split_of: Mapping[Path, str], on_progress: OnProgress | None = None) -> str:
    """In one line, the pictures that look like one in another split; or why they were not looked for; or nothing.

    Args:
        split_of: every picture's split.
        on_progress: called while pictures are decoded.
    """
    if len(set(split_of.values())) < 2:
        return ""
    found = [(path, size) for path in split_of if (size := _size(path)) is not None]
    if len(found) > MAX_PICTURES or sum(size for _, size in found) > MAX_BYTES:
        return _unsearched(len(found), sum(size for _, size in found) / 1e6)
    paths, digests, signatures = _signed([path for path, _ in found], on_progress)
    pairs = _alike(signatures, [split_of[path] for path in paths], digests)
    if not pairs:
        return ""
    copy, original = (paths[number] for number in pairs[0])
    looks = "looks" if len(pairs) == 1 else "look"
    return (
        f"{pluralise(len(pairs), 'picture')} {looks} like one in another split, so a score is partly of pictures that "
        f"were learned (first {copy.name} ({split_of[copy]}) ≈ {original.name} ({split_of[original]}))"
    )


class CopyGroups(NamedTuple):
    """Which pictures belong together because they look the same."""

    group: list[int]
    """For each picture: the number of the first one that it looks like, or its own."""
    unsearched: str
    """Why near-copies were not looked for, in words; nothing where they were."""


def copy_groups(paths: Sequence[Path], on_progress: OnProgress | None = None) -> CopyGroups:
    """Groups of pictures that are copies or near-copies of each other, directly or over others.

    In a set that is too large for near-copies, only pictures with the same bytes are grouped.
    """
    group = [*range(len(paths))]
    sizes = [_size(path) for path in paths]
    megabytes = sum(size or 0 for size in sizes) / 1e6
    if len(paths) > MAX_PICTURES or megabytes > MAX_BYTES / 1e6:
        first: dict[str, int] = {}
        for number, digest in enumerate(content_digests(paths, unreadable=_NO_DIGEST)):
            group[number] = number if digest == _NO_DIGEST else first.setdefault(digest, number)
        return CopyGroups(group, _unsearched(len(paths), megabytes))
    usable, _, signatures = _signed([*paths], on_progress)
    place = {path: number for number, path in enumerate(paths)}
    places = [place[path] for path in usable]
    for number, near in enumerate(_near_each(signatures)):
        for other in near:
            _join(group, places[number], places[other])
    return CopyGroups([_root(group, number) for number in range(len(paths))], "")


def _near_each(signatures: _Signatures) -> Iterator[list[int]]:
    """For each picture, the earlier ones that it looks like."""
    bits, thumbnails = signatures
    allowed = np.clip(0.1 * thumbnails.std(axis=1), 1, 5)  # (N,)
    for number in range(len(bits)):
        differing = (64 - bits[:number] @ bits[number]) / 2  # (number,)
        near = np.flatnonzero(differing <= BITS)
        distance = np.abs(thumbnails[near] - thumbnails[number]).mean(axis=1)  # (near,)
        yield near[distance <= np.minimum(allowed[near], allowed[number])].tolist()


def _root(group: list[int], number: int) -> int:
    while group[number] != number:
        number = group[number]
    return number


def _join(group: list[int], one: int, other: int) -> None:
    low, high = sorted((_root(group, one), _root(group, other)))
    group[high] = low


def _unsearched(pictures: int, megabytes: float) -> str:
    return (
        f"near-copies across splits were not looked for: {pluralise(pictures, 'picture')} of {megabytes:,.0f} MB, "
        f"more than {MAX_PICTURES:,} or {MAX_BYTES / 1e6:,.0f} MB"
    )


def with_near_copies(summary: str, split_of: Mapping[Path, str], on_progress: OnProgress | None = None) -> str:
    """The summary of a table, and below it what :func:`near_copies` says."""
    return in_lines(summary, [near_copies(split_of, on_progress)])


def signature(image: Image.Image) -> bytes:
    """The difference hash of a picture, 8 bytes, and its thumbnail, 768 bytes."""
    grey = np.asarray(image.convert("L").resize((_HASH + 1, _HASH), Image.Resampling.BOX), np.int16)  # (8,9)
    thumbnail = image.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.packbits(grey[:, 1:] > grey[:, :-1]).tobytes() + thumbnail.tobytes()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _signed(paths: list[Path], on_progress: OnProgress | None) -> tuple[list[Path], list[str], _Signatures]:
    """The pictures that can be read, digests of their contents, and their signatures."""
    digests = content_digests(paths, unreadable=_NO_DIGEST)
    known = _read_index()
    missing = {digest: path for path, digest in zip(paths, digests) if digest not in known and digest != _NO_DIGEST}
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        fresh = {}
        for done, (digest, made) in enumerate(zip(missing, pool.map(_of_file, missing.values())), start=1):
            if made is not None:
                fresh[digest] = made
            if on_progress is not None:
                on_progress("near-copies", done, len(missing))
    if fresh:
        known |= fresh
        _write_index(known)
    usable = [(path, digest) for path, digest in zip(paths, digests) if digest in known]
    content = np.frombuffer(b"".join(known[digest] for _, digest in usable), np.uint8).reshape(len(usable), -1)
    bits = np.unpackbits(content[:, :_HASH], axis=1).astype(np.float32) * 2 - 1
    kept = _Signatures(bits, content[:, _HASH:].astype(np.float32))
    return [path for path, _ in usable], [digest for _, digest in usable], kept


def _of_file(path: Path) -> bytes | None:
    try:
        return signature(read_picture(path).image)
    except DataError:
        return None  # it is left out, and named, when the split is opened


def _alike(signatures: _Signatures, splits: list[str], digests: list[str]) -> list[tuple[int, int]]:
    """Numbers of pictures outside train that look like one in another split, each with the first such one.

    Pictures with the same bytes are not among them: those are named when the table is read.
    """
    bits, thumbnails = signatures
    split, digest = np.array(splits), np.array(digests)
    contrast = thumbnails.std(axis=1)  # (N,)
    allowed = np.clip(0.1 * contrast, 1, 5)
    pairs: list[tuple[int, int]] = []
    for number in range(len(splits)):
        if split[number] == "train":
            continue
        differing = (64 - bits @ bits[number]) / 2  # (N,)
        earlier = (split == "train") | ((split != split[number]) & (np.arange(len(splits)) < number))
        near = np.flatnonzero(earlier & (differing <= BITS) & (digest != digest[number]))
        distance = np.abs(thumbnails[near] - thumbnails[number]).mean(axis=1)  # (near,)
        near = near[distance <= np.minimum(allowed[near], allowed[number])]
        if len(near):
            pairs.append((number, int(near[0])))
    return pairs


def _read_index() -> dict[str, bytes]:
    """Signatures by the digest of the content; nothing where there is no whole index."""
    try:
        content = (cache_home() / _FILE).read_bytes()
    except OSError:
        return {}
    entries = content[len(_HEADER) :]
    if not content.startswith(_HEADER) or len(entries) % _EACH:
        return {}
    parts = (entries[at : at + _EACH] for at in range(0, len(entries), _EACH))
    return {part[:16].hex(): part[16:] for part in parts}


def _write_index(known: Mapping[str, bytes]) -> None:
    newest = list(known.items())[-_KEPT:]
    content = _HEADER + b"".join(bytes.fromhex(digest) + made for digest, made in newest)
    try:
        write_bytes(cache_home() / _FILE, content)
    except OutputError:
        return  # pictures will be decoded again next time
