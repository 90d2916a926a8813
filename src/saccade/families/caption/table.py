"""Pictures and their captions as rows of a table: what every reader of captions returns, before a picture is opened.

Your own table is CSV or JSON lines with ``image, caption``:

======== =============================================================================================================
column    holds
======== =============================================================================================================
image     path of the picture, from the table's folder; a picture with several captions has as many rows
caption   a sentence; or ``captions`` in JSON lines, a list of them
split     optional: train, val or test; the same in all rows of a picture
group     optional: pictures that belong together; all of them go into one split
======== =============================================================================================================

Other columns are ignored; splits, and what is refused of them, are those of ``question_rows.py``. No torch here, and no
pixels. Rows are read one by one, and of each only its caption is kept. What cannot be used is left out, never silently:
see ``skipped``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from saccade.config import Within
from saccade.data.tables.doubts import SplitMember, check_splits, check_usable, in_lines, pluralise, repeated_keys
from saccade.data.tables.rows import (
    Cells,
    FilesFrom,
    UnusableRowError,
    check_width,
    csv_stream,
    group_and_split,
    jsonl_stream,
    text_in,
)
from saccade.data.tables.splits import OTHER_SPLIT, advice_on_column, split_sizes
from saccade.families.caption.vocabulary import tokenise

CAPTIONS = 5
"""Captions of a picture at most, as in the paper: COCO has up to seven, and a fair score has five everywhere."""

_RowSource = Callable[[list[str], list[str]], Iterator[tuple[int, Cells]]]
"""Lists for what is no row at all and for rows with repeated keys → the rows of a file, each with its line."""


@dataclass(frozen=True)
class CaptionedPicture:
    """One picture and what people said about it."""

    image: Path
    captions: tuple[str, ...]
    """One or more, as they were written."""
    split: str
    """train, val or test."""


@dataclass(frozen=True)
class CaptionTable:
    """All pictures of a data set."""

    name: str
    """READER:PATH."""
    rows: tuple[CaptionedPicture, ...]
    skipped: tuple[str, ...] = ()
    """Captions and pictures left out, each with its reason: ``REASON: WHERE``."""
    doubts: tuple[str, ...] = ()
    """What its reader found doubtful, in words."""
    if_empty: str = OTHER_SPLIT
    """What to do about a split that has no rows, in words."""

    def count(self, split: str) -> int:
        """Pictures in ``split``."""
        return sum(row.split == split for row in self.rows)

    def summary(self, words: int) -> str:
        """What the table holds, in one line, and below it what looks wrong with it.

        How many ``words`` it teaches depends on who learns from it.
        """
        pictures = f"{pluralise(len(self.rows), 'picture')} ({split_sizes(self.count)})"
        captions = pluralise(sum(len(row.captions) for row in self.rows), "caption")
        return in_lines(f"{self.name}: {captions} of {pictures}, {pluralise(words, 'word')}", self.doubts)

    def split_of(self) -> dict[Path, str]:
        """The split of every picture."""
        return {row.image: row.split for row in self.rows}

    def captions(self, split: str) -> Iterator[str]:
        """The captions of ``split``, one after another."""
        return (caption for row in self.rows if row.split == split for caption in row.captions)

    def some(self, split: str, pictures: int) -> CaptionTable:
        """The table with ``split`` cut to its first ``pictures`` pictures."""
        first = {row.image for row in [row for row in self.rows if row.split == split][:pictures]}
        return replace(self, rows=tuple(row for row in self.rows if row.split != split or row.image in first))


@dataclass(frozen=True)
class CaptionOptions:
    """What all readers of captions can be told."""

    captions: Annotated[int, Within(1)] = CAPTIONS
    """Captions of a picture at most; the first ones stay."""
    strict: bool = False
    """Refuse data of which something cannot be used, instead of leaving it out."""


class CaptionGathering:
    """Captions as they are found, in any order, until they are a table.

    Args:
        name: READER:PATH.
        options: how many captions stay, and what to do about those that cannot be used.
    """

    def __init__(self, name: str, options: CaptionOptions) -> None:
        self.name, self.options = name, options
        self.skipped: list[str] = []
        self.repeated: list[str] = []
        """Rows of JSON lines in which a key is there more than once."""
        self._captions: dict[Path, list[str]] = {}
        self.if_empty = OTHER_SPLIT
        """What to do about a split that has no rows, in words."""
        self._split: dict[Path, str] = {}

    def add(self, image: Path, caption: object, split: str, *, again: str | None = None) -> None:
        """Take in one caption; one beyond ``options.captions`` is dropped without a word, as in the paper.

        Args:
            image: the picture it is about.
            caption: what was said.
            split: train, val or test.
            again: what to call a caption that the picture has already; if not given it counts as said by two people.

        Raises:
            UnusableRowError: it holds no word, or its picture is in another split already.
        """
        text = _clean(caption)
        if self._split.setdefault(image, split) != split:
            raise UnusableRowError("picture in two splits", f"{image.name} in {self._split[image]} and {split}")
        said = self._captions.setdefault(image, [])
        if again is not None and text in said:
            raise UnusableRowError(again, f"'{text[:40]}'")
        if len(said) < self.options.captions:
            said.append(text)

    def skip(self, where: str, error: UnusableRowError) -> None:
        """Note what cannot be used, and where."""
        self.skipped.append(error.at(where))

    def table(self) -> CaptionTable:
        """All that was taken in, pictures in the order in which they were first seen.

        Raises:
            DataError: nothing was taken in, or the options are strict and something was left out.
        """
        rows = tuple(
            CaptionedPicture(image, tuple(said), self._split[image]) for image, said in self._captions.items() if said
        )
        check_usable(self.name, rows, self.skipped, strict=self.options.strict, thing="caption")
        return CaptionTable(self.name, rows, tuple(self.skipped), (repeated_keys(self.repeated),), self.if_empty)


def read_caption_csv(path: Path, options: CaptionOptions) -> CaptionTable:
    """The captions of a CSV file with a header, in UTF-8."""
    return _table(f"csv:{path}", path.parent, lambda skipped, repeated: csv_stream(path, ("image", "caption")), options)


def read_caption_jsonl(path: Path, options: CaptionOptions) -> CaptionTable:
    """The captions of a file with one JSON object in each line, in UTF-8."""
    return _table(f"jsonl:{path}", path.parent, partial(jsonl_stream, path), options)


def _table(name: str, folder: Path, rows: _RowSource, options: CaptionOptions) -> CaptionTable:
    gathering = CaptionGathering(name, options)
    has_split = any("split" in cells for _, cells in rows([], []))
    gathering.if_empty = advice_on_column(has_split)
    files = FilesFrom(folder)
    placed: dict[SplitMember, None] = {}  # each picture once, in order
    for line, cells in rows(gathering.skipped, gathering.repeated):
        where = f"line {line}"
        try:
            check_width(cells)
            picture = text_in(cells, "image")
            image = files.picture(picture)
            group, split = group_and_split(cells, picture, has_split)
            placed[SplitMember(image, group, split)] = None
            for caption in _captions_in(cells):
                gathering.add(image, caption, split, again="duplicate")
        except UnusableRowError as error:
            gathering.skip(where, error)
    check_splits(name, folder, placed)
    return gathering.table()


def _captions_in(cells: Cells) -> list[object]:
    several = cells.get("captions")
    if isinstance(several, list) and several:
        return several
    return [text_in(cells, "caption")]


def _clean(caption: object) -> str:
    """The caption on one line; it must hold a word."""
    if not isinstance(caption, str):
        raise UnusableRowError("caption is not text", repr(caption)[:40])
    text = " ".join(caption.split())
    if not tokenise(text):
        raise UnusableRowError("empty caption", f"'{text[:40]}' has no word" if text else "")
    return text
