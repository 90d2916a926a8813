"""Captions as they are found, in any order and one by one, until they are a table of pictures.

A table of one's own has ``image, caption``; a picture with several captions has as many rows, all in one split. In JSON
lines ``captions`` may be a list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from saccade.config import Within
from saccade.data.tables.doubts import check_usable, pluralise
from saccade.data.tables.references import OWN
from saccade.data.tables.rows import Cells, UnusableRowError, text_in
from saccade.data.tables.splits import OTHER_SPLIT
from saccade.data.tables.table import Columns, Row, Table, TableOptions, read_rows
from saccade.families.caption.vocabulary import tokenise

CAPTIONS = 5
"""Captions of a picture at most, as in the paper: COCO has up to seven, and a fair score has five everywhere."""


def _captions(cells: Cells) -> tuple[str, ...]:
    several = cells.get("captions")
    return tuple(map(_clean, several if isinstance(several, list) and several else [text_in(cells, "caption")]))


def _clean(caption: object) -> str:
    """The caption on one line; it must hold a word."""
    if not isinstance(caption, str):
        raise UnusableRowError("caption is not text", repr(caption)[:40])
    text = " ".join(caption.split())
    if not tokenise(text):
        raise UnusableRowError("empty caption", f"'{text[:40]}' has no word" if text else "")
    return text


COLUMNS = Columns(needed=("image", "caption"), optional=frozenset(), labels=_captions, unknown=None)
"""The sentences about a picture."""


@dataclass(frozen=True)
class CaptionOptions(TableOptions):
    """What all readers of captions can be told."""

    captions: Annotated[int, Within(1)] = CAPTIONS
    """Captions of a picture at most; the first ones stay."""


class CaptionGathering:
    """Captions until they are a table.

    Args:
        name: READER:PATH.
        options: how many captions stay, and what to do about those that cannot be used.
    """

    def __init__(self, name: str, options: CaptionOptions) -> None:
        self.name, self.options = name, options
        self.skipped: list[str] = []
        self._rows: dict[Path, Row] = {}

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
        row = self._rows.setdefault(image, Row(image, (), split))
        if row.split != split:
            raise UnusableRowError("picture in two splits", f"{image.name} in {row.split} and {split}")
        if again is not None and text in row.labels:
            raise UnusableRowError(again, f"'{text[:40]}'")
        if len(row.labels) < self.options.captions:
            self._rows[image] = replace(row, labels=(*row.labels, text))

    def skip(self, where: str, error: UnusableRowError) -> None:
        """Note what cannot be used, and where."""
        self.skipped.append(error.at(where))

    def table(self, doubts: list[str] | None = None, if_empty: str = OTHER_SPLIT) -> Table:
        """All that was taken in, pictures in the order in which they were first seen.

        Raises:
            DataError: nothing was taken in, or the options are strict and something was left out.
        """
        rows = [(row.image.name, row) for row in self._rows.values() if row.labels]
        check_usable(self.name, rows, self.skipped, strict=self.options.strict, thing="caption")
        return Table.of(
            self.name, rows, COLUMNS, skipped=self.skipped, several=True, doubts=doubts or (), if_empty=if_empty
        )


def read_own(reader: str, path: Path, options: CaptionOptions) -> Table:
    """The captions of a file or folder of one's own."""
    gathering = CaptionGathering(f"{reader}:{path}", options)
    found = OWN[reader](path, COLUMNS)
    rows, doubts, if_empty = read_rows(gathering.name, found, COLUMNS)
    gathering.skipped = found.skipped
    for where, row in rows:
        for caption in row.labels:
            try:
                gathering.add(row.image, caption, row.split, again="duplicate")
            except UnusableRowError as error:
                gathering.skip(where, error)
    return gathering.table(doubts, if_empty)


def summary_of(table: Table, words: int) -> str:
    """What a table holds, in one line, and below it what looks wrong; its learner knows how many ``words`` it has."""
    captions = sum(len(row.labels) for row in table.rows)
    first, *doubts = table.summary().splitlines()
    return "\n".join([f"{first}, {pluralise(captions, 'caption')}, {pluralise(words, 'word')}", *doubts])
