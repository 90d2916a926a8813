"""Readers of captions by name: ``flickr8k:FOLDER``, ``csv:my.csv`` → a table of captioned pictures."""

from __future__ import annotations

from collections.abc import Mapping

from saccade.data.tables.references import Reader, read_reference
from saccade.families.caption.coco import CocoOptions, read_coco
from saccade.families.caption.flickr import FlickrOptions, read_flickr8k, read_flickr30k
from saccade.families.caption.table import CaptionOptions, CaptionTable, read_caption_csv, read_caption_jsonl

CAPTION_READERS: dict[str, Reader[CaptionTable]] = {
    "flickr8k": Reader(read_flickr8k, FlickrOptions),
    "flickr30k": Reader(read_flickr30k, FlickrOptions),
    "coco": Reader(read_coco, CocoOptions),
    "csv": Reader(read_caption_csv, CaptionOptions),
    "jsonl": Reader(read_caption_jsonl, CaptionOptions),
}


def read_captions(reference: str, options: Mapping[str, object] | None = None) -> CaptionTable:
    """The captions that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    return read_reference(reference, CAPTION_READERS, options, "picture")
