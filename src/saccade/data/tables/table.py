"""One table for every family: rows of pictures with what is true of them, whatever file or folder they come from.

A table has the columns ``image``, ``query``, ``label`` or ``labels``, ``split``, ``group``, ``box``, ``point`` and
``mask`` (``docs/reference/data.md`` says what they hold). A family's :class:`Columns` say which of them it reads;
others are ignored. Without ``split``, 70 / 15 / 15 % of the groups (or pictures) are train / val / test by a hash of
the name, so a picture stays in its split when the table grows.

No pixels here: a hundred thousand rows take seconds. What cannot be used is left out, never silently: ``Table.skipped``
has one entry for each, ``REASON: WHERE``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from saccade.data.examples import SPLITS, split_sizes
from saccade.data.tables.doubts import check_splits, check_usable, contradictions, first_few, pluralise, spellings
from saccade.data.tables.rows import (
    Box,
    Cells,
    UnusableRowError,
    box_in,
    file_in,
    group_and_split,
    is_blank,
    numbers_in,
    text_in,
    words_of,
)
from saccade.errors import DataError

ONE_QUESTION = "what is it?"  # What is asked about pictures that have labels and no questions
UNSEEN = "never seen in train"
_NAMED = 5  # classes that a doubt names
_EVIDENCE = ("box", "point", "mask")


@dataclass(frozen=True)
class Row:
    """One picture, or one question about it, and what is true of it.

    Places are in pixels of the original picture, upright as a viewer shows it. The finest one given is the evidence:
    the mask, else the point, else the box. A box beside a point or mask is the object they lie on.
    """

    image: Path
    labels: tuple[str, ...]  # A label, an answer or several, all that is on the picture, or its captions
    split: str  # train, val or test
    query: str = ""  # What is asked about the picture; empty: nothing, the label says what it shows
    box: Box | None = None  # xyxy
    point: tuple[float, float] | None = None  # (x, y)
    mask: Path | None = None  # A picture of the same size; what is not black is evidence
    mask_grey: int | None = None  # Where a mask has several objects: the grey value of the one that is evidence
    boxes: tuple[Box | None, ...] = ()  # One for each label; or none at all
    crop: Box | None = None  # The part of the picture to look at, all of it if not given
    group: str = ""  # What must not be torn apart by a split: a patient, a species; empty: the picture alone

    @property
    def label(self) -> str:
        """What the picture shows, where that is one label."""
        return self.labels[0]


Found = tuple[str, Row]  # A row, and where it was found: a line, a file


def one_label(cells: Cells) -> tuple[str, ...]:
    """The one label of a row."""
    return (text_in(cells, "label"),)


def answers_in(cells: Cells) -> tuple[str, ...]:
    """The answer of a row, or several, each once."""
    several = cells.get("labels")
    if is_blank(several):
        return (text_in(cells, "label" if "label" in cells else "labels"),)
    labels = dict.fromkeys(words_of(several, "labels"))  # in order, each once
    if not labels:
        raise UnusableRowError("empty label")
    return tuple(labels)


@dataclass(frozen=True)
class Columns:
    """What a family reads of the rows of a table."""

    needed: tuple[str, ...] = ("image", "label")  # Columns that must be there; ``label|labels`` asks for either
    optional: frozenset[str] = frozenset({"box", "mask"})  # Of box, point and mask, those that count
    labels: Callable[[Cells], tuple[str, ...]] = one_label  # What is true of a row, or an :class:`UnusableRowError`
    # The boxes of so many labels, where each has its own.
    boxes: Callable[[Cells, int], tuple[Box | None, ...]] | None = None
    asks: bool = False  # Whether rows have a question
    thing: str = "picture"  # What a row is, in messages
    word: tuple[str, str] = ("class", "classes")  # What an answer is called, one and several
    # What goes with a label that is never seen in training: the label (and a row without any other), or its row. None:
    # nothing, labels are sentences.
    unknown: Literal["label", "row"] | None = "row"

    def row(self, cells: Cells, folder: Path, has_split: bool) -> Row:
        """One row, or the :class:`UnusableRowError` that says why it cannot be used."""
        if None in cells:  # where csv puts what it has no column for
            raise UnusableRowError("more cells than columns", "quote cells that hold commas")
        name = text_in(cells, "image")
        image = file_in(folder, name, "picture")
        group, split = group_and_split(cells, name, has_split)
        labels = self.labels(cells)
        box, point, mask = (cells.get(column) if column in self.optional else None for column in _EVIDENCE)
        return Row(
            image,
            labels,
            split,
            query=text_in(cells, "query") if self.asks else "",
            box=box_in(box),
            # numbers_in gives as many as asked for
            point=numbers_in(point, "point", 2),  # type: ignore[arg-type]
            mask=None if is_blank(mask) else file_in(folder, str(mask).strip(), "mask"),
            boxes=() if self.boxes is None else self.boxes(cells, len(labels)),
            group="" if is_blank(cells.get("group")) else group,
        )

    def matching(
        self, rows: Iterable[Found], queries: Iterable[str], answers: Iterable[str], why: str
    ) -> tuple[list[Row], list[str]]:
        """The rows whose query and labels are among ``queries`` and ``answers``; and what was left out (``why``)."""
        if self.unknown is None:
            return [row for _, row in rows], []
        known_queries, known_answers = {*queries}, {*answers}
        usable: list[Row] = []
        skipped: list[str] = []
        for where, row in rows:
            if self.asks and row.query not in known_queries:
                skipped.append(f"query {why}: {where}, '{row.query}'")
                continue
            labels = tuple(label for label in row.labels if label in known_answers)
            strange = [label for label in row.labels if label not in known_answers]
            skipped += [
                f"label {why}: {where}, '{label}'" for label in strange[: None if self.unknown == "label" else 1]
            ]
            if not strange:
                usable.append(row)
            elif labels and self.unknown == "label":
                usable.append(replace(row, labels=labels))
        return usable, skipped


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    strict: bool = False
    """Refuse a table with rows that cannot be used, instead of leaving them out."""


@dataclass(frozen=True)
class Table:
    """All rows of a data set and the words they use: what every reader makes."""

    name: str  # READER:PATH
    rows: tuple[Row, ...]
    columns: Columns
    queries: tuple[str, ...] = ()  # What can be asked; its place here is a query's number
    answers: tuple[str, ...] = ()  # What can be answered; its place here is a label's number
    several: bool = False  # Whether a row may have several labels at once
    most: int = 1  # Labels of a training row at most
    kind: str = ""  # What several labels are: multiset, set or list
    skipped: tuple[str, ...] = ()  # Rows left out, each with its reason
    # Every row that could be read, those with words that are never seen in train too: a model may know them.
    as_found: tuple[Row, ...] = ()
    doubts: Sequence[str] = ()  # What its reader found doubtful, in words

    @classmethod
    def of(
        cls,
        name: str,
        rows: Sequence[Found],
        columns: Columns,
        *,
        skipped: Iterable[str] = (),
        strict: bool = False,
        most: int | None = None,
        **facts: Any,
    ) -> Table:
        """A table whose words are those of its training rows, or of all where none is; other rows are left out.

        ``facts`` are further fields: several, kind, doubts.
        """
        every = tuple(row for _, row in rows)
        train = [row for row in every if row.split == "train"] or every
        queries = tuple(sorted({row.query for row in train})) if columns.asks else ()
        answers = () if columns.unknown is None else tuple(sorted({label for row in train for label in row.labels}))
        usable, unseen = columns.matching(rows, queries, answers, UNSEEN)
        left_out = (*skipped, *unseen)
        check_usable(name, usable, left_out, strict=strict, thing=columns.thing)
        longest = max(len(row.labels) for row in train)
        most = min(most or longest, longest)
        facts |= {"most": most, "skipped": left_out, "as_found": every}
        return cls(name, tuple(usable), columns, queries, answers, **facts)

    def count(self, split: str) -> int:
        """Rows in ``split``."""
        return sum(row.split == split for row in self.rows)

    def check_answers(self) -> None:
        """Refuse to train on rows that all have the same answer: a model that always says it is never wrong."""
        answers = {", ".join(row.labels) for row in self.rows if row.split == "train"}
        if len(answers) < 2:
            is_asked = self.queries not in ((), (ONE_QUESTION,))
            things, word, words = ("questions", "answer", "answers") if is_asked else ("pictures", "class", "classes")
            raise DataError(
                f"{self.name}: all training {things} have the {word} '{answers.pop()}', and two {words} or more are "
                f"needed to learn from; add {things} with another {word}"
            )

    def summary(self) -> str:
        """What the table holds, in one line; below it, what looks wrong with it."""
        columns = self.columns
        rows = f"{pluralise(len(self.rows), columns.thing)} ({split_sizes(self.count)})"
        pictures = pluralise(len({row.image for row in self.rows}), "picture")
        is_asked = columns.asks and self.queries != (ONE_QUESTION,)
        parts = [f"{rows} about {pictures}" if columns.asks else rows]
        queries = pluralise(len(self.queries), "query", "queries") if is_asked else f"each '{ONE_QUESTION}'"
        parts += [queries] if columns.asks else []
        parts += [pluralise(len(self.answers), *columns.word)] if columns.unknown else []
        parts += [f"at most {pluralise(self.most, 'label')} on a training picture"] if self.kind else []
        doubts = [spellings(self.queries, "queries"), spellings(self.answers, "labels")]
        doubts += [] if self.several or is_asked else self._thin_classes()
        lines = [f"doubtful: {doubt}" for doubt in (*doubts, *self.doubts) if doubt]
        return "\n".join([f"{self.name}: {', '.join(parts)}", *lines])

    def _thin_classes(self) -> Iterator[str]:
        """A single class; classes with one training picture, learned by heart; those that val or test lacks."""
        if len(self.answers) == 1:
            yield f"all are '{self.answers[0]}', so an accuracy means nothing; add pictures of another class"
        counts = {split: Counter(row.label for row in self.rows if row.split == split) for split in SPLITS}
        thin = {
            "with one training picture": (
                sorted(label for label, many in counts["train"].items() if many == 1),
                "learned by heart; add pictures",
            )
        }
        for split in SPLITS[1:]:
            if counts[split]:
                lacking = [label for label in self.answers if not counts[split][label]]
                what = "not scored" if split == "test" else "the best model is chosen without it"
                thin[f"without a {split} picture"] = (lacking, f"{what}; add pictures, or give splits yourself")
        for which, (labels, what) in thin.items():
            if labels:
                yield f"{pluralise(len(labels), 'class', 'classes')} {which} ({first_few(labels, _NAMED)}): {what}"

    def first(self, split: str, pictures: int) -> Table:
        """The table with ``split`` cut to the rows about its first pictures; of class folders, to the first of each."""
        of_split = {row.image: row.labels for row in self.rows if row.split == split}
        order = list(of_split)
        if len(self.queries) <= 1 and not self.several:
            before = Counter[tuple[str, ...]]()
            places = {}
            for image, labels in of_split.items():
                places[image] = before[labels]
                before[labels] += 1
            order.sort(key=places.__getitem__)  # stable: the first of every class, then the second …
        shown = {*order[:pictures]}

        def cut(rows: tuple[Row, ...]) -> tuple[Row, ...]:
            return tuple(row for row in rows if row.split != split or row.image in shown)

        return replace(self, rows=cut(self.rows), as_found=cut(self.as_found))


@dataclass
class CellRows:
    """What lies in a file or folder, row by row, before a family reads it."""

    rows: Sequence[tuple[str, Cells]]  # Where each row was found, and its cells
    folder: Path  # From which pictures are named
    skipped: list[str] = field(default_factory=list)  # What was left out before


def read_rows(name: str, cell_rows: CellRows, columns: Columns) -> tuple[list[Found], list[str]]:
    """The usable rows, each once, and what is doubtful of them; the others go to ``cell_rows.skipped``."""
    has_split = any("split" in cells for _, cells in cell_rows.rows)
    no_query = columns.asks and not any("query" in cells for _, cells in cell_rows.rows)
    rows: list[Found] = []
    readable: list[Row] = []
    first: dict[object, str] = {}
    for where, cells in cell_rows.rows:
        try:
            row = columns.row({**cells, "query": ONE_QUESTION} if no_query else cells, cell_rows.folder, has_split)
        except UnusableRowError as error:
            cell_rows.skipped.append(error.at(where))
            continue
        readable.append(row)
        before = first.setdefault(row if columns.asks else row.image, where)
        if columns.unknown is not None and before != where:
            reason = "duplicate" if columns.asks else "picture named twice"
            cell_rows.skipped.append(f"{reason}: {where} repeats {before}")
        else:
            rows.append((where, row))
    check_splits(name, cell_rows.folder, readable)
    if columns.unknown is None:
        return rows, []
    return rows, [contradictions(((row.image, row.query, row.labels) for row in readable), columns.thing)]
