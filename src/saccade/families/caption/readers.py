"""Readers of captions by name: ``flickr8k:FOLDER``, ``csv:my.csv`` → a table of captioned pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.data.tables.references import Reader, read_reference, split_reference
from saccade.data.tables.rows import csv_stream, jsonl_stream
from saccade.errors import DataError
from saccade.families.caption.coco import CocoOptions, read_coco
from saccade.families.caption.flickr import FlickrOptions, read_flickr8k, read_flickr30k
from saccade.families.caption.table import CaptionOptions, CaptionTable, read_caption_csv, read_caption_jsonl
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.families.question.readers import READERS

CAPTION_READERS: dict[str, Reader[CaptionTable]] = {
    "flickr8k": Reader(read_flickr8k, FlickrOptions),
    "flickr30k": Reader(read_flickr30k, FlickrOptions),
    "coco": Reader(read_coco, CocoOptions),
    "csv": Reader(read_caption_csv, CaptionOptions),
    "jsonl": Reader(read_caption_jsonl, CaptionOptions),
}


def holds_captions(reference: str) -> bool:
    """Whether ``reference`` names captions, where the same reader may also name questions or multisets.

    What cannot be read is left to the reader that is asked for it, and its message.
    """
    try:
        name, path = split_reference(reference, CAPTION_READERS)
        if name not in READERS and name not in MULTISET_READERS:
            return True
        rows = csv_stream(path, ("image",)) if name == "csv" else jsonl_stream(path, [])
        _, cells = next(rows, (0, {}))
    except DataError:
        return False
    return "query" not in cells and ("caption" in cells or "captions" in cells)


def read_captions(reference: str, options: Mapping[str, Any] | None = None) -> CaptionTable:
    """The captions that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    return read_reference(reference, CAPTION_READERS, options, "picture")
