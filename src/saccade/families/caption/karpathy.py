"""Karpathy's splits of Flickr8k, Flickr30k and COCO: one JSON file with every picture, its split and its captions.

Karpathy and Fei-Fei, "Deep Visual-Semantic Alignments for Generating Image Descriptions" (arXiv:1412.2306): an object
with ``images``, a list of ``{filename, filepath, split, sentences: [{raw, tokens}]}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from saccade.data.tables.rows import UnusableRowError, json_in
from saccade.errors import DataError
from saccade.families.caption.table import CaptionGathering


class KarpathyEntry(NamedTuple):
    """One picture of the file."""

    folder: str
    """``val2014`` for COCO, empty for the Flickr sets."""
    file: str
    split: str
    captions: tuple[object, ...]


def gather_karpathy(
    path: Path,
    gathering: CaptionGathering,
    find: Callable[[KarpathyEntry], Path | None],
    splits: Mapping[str, str],
) -> None:
    """Add the captions of the file ``path`` to ``gathering``.

    Args:
        path: the JSON file.
        gathering: what captions are added to, and what cannot be used.
        find: where the picture of an entry is, None if nowhere.
        splits: a split of the file → train, val or test; pictures of other splits are passed over.
    """
    try:
        entries = [
            KarpathyEntry(
                str(each.get("filepath", "")),
                each["filename"],
                each["split"],
                tuple(s["raw"] for s in each["sentences"]),
            )
            for each in json_in(path)["images"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: an entry of 'images' lacks filename, split or sentences ({type(error).__name__}: {error}); "
            "this reader takes Karpathy's dataset_*.json"
        ) from error
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        if entry.split not in splits:
            continue
        try:
            if (entry.folder, entry.file) in seen:
                raise UnusableRowError("picture named twice")
            seen.add((entry.folder, entry.file))
            image = find(entry)
            if image is None:
                raise UnusableRowError("no such picture", entry.folder)
            if not entry.captions:
                raise UnusableRowError("no caption")
        except UnusableRowError as error:
            gathering.skip(entry.file, error)
            continue
        for caption in entry.captions:
            try:
                gathering.add(image, caption, splits[entry.split])
            except UnusableRowError as error:
                gathering.skip(entry.file, error)
