"""Questions about pictures as rows of a table: what every reader returns, before a picture is opened.

This module needs neither torch nor pixels: reading a hundred thousand rows takes seconds. Unusable rows are left out
and reported: ``QuestionTable.skipped`` has one entry for each row, ``REASON: WHERE``, so that reasons can be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from saccade.data.tables.doubts import check_usable, contradictions, in_lines, pluralise, spellings
from saccade.data.tables.splits import OTHER_SPLIT, split_sizes


@dataclass(frozen=True)
class Question:
    """One picture, what is asked about it, what is true, and where that can be seen.

    Places are in pixels of the original picture, upright as a viewer shows it. The finest one given is the evidence:
    the mask, else the point, else the box. A box beside a point or mask is the object they lie on.
    """

    image: Path
    query: str
    labels: tuple[str, ...]
    """The answer; several where the table is multi-label."""
    split: str
    """train, val or test."""
    box: tuple[float, float, float, float] | None = None
    """xyxy."""
    point: tuple[float, float] | None = None
    """(x, y)."""
    mask: Path | None = None
    """A picture of the same size; what is not black is evidence."""
    group: str = ""
    """What must not be torn apart by a split: by default the picture; a species, a patient."""
    mask_grey: int | None = None
    """Where a mask has several objects: the grey value of the one that is evidence."""


@dataclass(frozen=True)
class QuestionTable:
    """All questions of a data set and the words they use."""

    name: str
    """READER:PATH."""
    rows: tuple[Question, ...]
    queries: tuple[str, ...]
    """What can be asked; its place here is a query's number."""
    answers: tuple[str, ...]
    """What can be answered; its place here is an answer's number."""
    multi_label: bool
    """Whether a question may have several answers at once."""
    skipped: tuple[str, ...] = ()
    """Rows left out, each with its reason."""
    as_found: tuple[Question, ...] = ()
    """Every row that could be read, those with words that are never seen in train too: a model may know them."""
    doubts: tuple[str, ...] = ()
    """What its reader found doubtful, in words."""
    if_empty: str = OTHER_SPLIT
    """What to do about a split that has no rows, in words."""

    def count(self, split: str) -> int:
        """Questions in ``split``."""
        return sum(row.split == split for row in self.rows)

    def summary(self) -> str:
        """What the table holds, in one line; below it, what looks wrong with it."""
        words = f"{pluralise(len(self.queries), 'query', 'queries')}, {pluralise(len(self.answers), 'answer')}"
        pictures = pluralise(len({row.image for row in self.rows}), "picture")
        rows = f"{pluralise(len(self.rows), 'question')} ({split_sizes(self.count)})"
        doubts = (
            contradictions(((row.image, row.query, row.labels) for row in self.as_found or self.rows), "question"),
            spellings(self.queries, "queries"),
            spellings(self.answers, "answers"),
            *self.doubts,
        )
        return in_lines(f"{self.name}: {rows} about {pictures}, {words}", doubts)

    def split_of(self) -> dict[Path, str]:
        """The split of every picture."""
        return {row.image: row.split for row in self.as_found or self.rows}

    def some(self, split: str, pictures: int) -> QuestionTable:
        """The table with ``split`` cut to the questions about its first ``pictures`` pictures."""
        of_split = dict.fromkeys(row.image for row in self.rows if row.split == split)
        first = set(list(of_split)[:pictures])

        def kept(rows: tuple[Question, ...]) -> tuple[Question, ...]:
            return tuple(row for row in rows if row.split != split or row.image in first)

        return replace(self, rows=kept(self.rows), as_found=kept(self.as_found))


def make_table(
    name: str,
    found: Sequence[tuple[str, Question]],
    skipped: Iterable[str],
    *,
    multi_label: bool,
    strict: bool = False,
    doubts: Iterable[str] = (),
    if_empty: str = OTHER_SPLIT,
) -> QuestionTable:
    """A table whose words are those of its training rows; rows with other words are left out.

    A table without training rows, made to score a model that is trained already, has the words of all its rows.

    Args:
        name: READER:PATH.
        found: where each question was found (a line, a file), and the question.
        skipped: what was left out before.
        multi_label: whether a question may have several answers.
        strict: refuse a table that has rows to leave out.
        doubts: what looks wrong although it can be used, in words.
        if_empty: what to do about a split that has no rows, in words.

    Raises:
        DataError: no row can be used, or ``strict`` and some cannot.
    """
    train = [question for _, question in found if question.split == "train"] or [question for _, question in found]
    queries = tuple(sorted({question.query for question in train}))
    answers = tuple(sorted({label for question in train for label in question.labels}))
    rows, unseen = with_known_words(found, queries, answers, "never seen in train")
    left_out = (*skipped, *unseen)
    check_usable(name, rows, left_out, strict=strict)
    as_found = tuple(question for _, question in found)
    return QuestionTable(name, tuple(rows), queries, answers, multi_label, left_out, as_found, tuple(doubts), if_empty)


def with_known_words(
    found: Iterable[tuple[str, Question]], queries: Iterable[str], answers: Iterable[str], why: str
) -> tuple[list[Question], list[str]]:
    """Questions whose query and answer are among those given, and what was left out because of ``why``.

    Of several answers the known ones stay; a question with none of them goes.
    """
    known_queries, known_answers = set(queries), set(answers)
    rows: list[Question] = []
    skipped: list[str] = []
    for where, question in found:
        if question.query not in known_queries:
            skipped.append(f"query {why}: {where}, '{question.query}'")
            continue
        labels = tuple(label for label in question.labels if label in known_answers)
        skipped += [f"label {why}: {where}, '{label}'" for label in question.labels if label not in known_answers]
        if labels:
            rows.append(question if labels == question.labels else replace(question, labels=labels))
    return rows, skipped
