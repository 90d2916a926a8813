"""What ``saccade look`` prints: a table of the answers, and what is to be known about them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.commands.signature import Stream
from saccade.commands.terminal import plain, print_table, remark, warn
from saccade.data.files import plural
from saccade.errors import DataError

if TYPE_CHECKING:
    from saccade.adapters.folder import FolderLooks
    from saccade.predict import Predictor
    from saccade.show.slot_table import SlotGrid
    from saccade.sighting import Sighting

ROWS_SHOWN = 40
TABLES_SHOWN = 3
WARNED = 20
"""Different remarks about inputs that are printed; --json has all."""
KINDS_NAMED = 6
PHOTOGRAPHS = ("HEIC", "HEIF", "AVIF", "JXL", "DNG", "CR2", "NEF", "ARW")
"""Photographs that Pillow does not read, or not everywhere."""


@dataclass(frozen=True)
class Skipped:
    """An input that could not be read."""

    source: str
    error: str
    is_picture: bool

    def to_json(self) -> dict[str, str]:
        """As an answer names it."""
        return {"picture" if self.is_picture else "source": self.source, "error": self.error}


class Looks(Stream):
    """The answers of one model as they come, and of them what is printed at the end."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self._on_progress = on_progress
        self._bad: list[tuple[object, DataError]] = []
        self.rows: list[tuple[object, ...]] = []
        self.tables: list[Sighting] = []
        self.ways: list[Sighting] = []
        self.remarks: dict[str, list[str]] = {}
        self.answered = self.told = self.skipped = self.unlike = 0

    def over(
        self, predictor: Predictor, files: Sequence[Any], sightings: Iterator[Sighting], left_out: Counter[str]
    ) -> Looks:
        """The same, once there is something to look at."""
        self.predictor, self.files, self._sightings, self.left_out = predictor, files, sightings, left_out
        self.is_picture = predictor.facts.preprocessing is not None
        if any(kind in PHOTOGRAPHS for kind in left_out):
            warn(_of_left_out(left_out, predictor.reads.thing))
        return self

    def __iter__(self) -> Iterator[Sighting | Skipped]:
        error = ""
        for each in chain(self._sightings, [None]):
            for source, why in self._bad:
                error = error or str(why)
                yield Skipped(str(source), str(why), self.is_picture)
            self._bad.clear()
            if each is not None:
                self._note(each)
                yield each
            if len(self.files) > 1:
                self._on_progress(self.answered + self.skipped, len(self.files))
        if not self.answered:
            none = f"none of the {self.skipped} {plural(self.predictor.reads.thing)} could be read; see the lines above"
            raise DataError(error if self.skipped == 1 else none)

    def skip(self, source: object, error: DataError) -> None:
        """Go on without a source that cannot be read."""
        self.skipped += 1
        self._bad.append((source, error))
        if len(self.files) > 1:  # one picture alone ends in the error line
            warn(f"skipped: {error}")

    def _note(self, each: Sighting) -> None:
        for text in each.remarks:
            self.remarks.setdefault(text, []).append(each.source.name)
        self.tables += [each] if not each.is_spatial and len(self.tables) < TABLES_SHOWN else []
        self.ways += [each] if each.on_the_way and len(self.ways) < ROWS_SHOWN else []
        rows = _cells(each)
        self.rows += rows[: max(0, ROWS_SHOWN - len(self.rows))]  # of a hundred thousand, those that are shown
        self.answered, self.told = self.answered + 1, self.told + len(rows)
        self.unlike += bool(each.unlike)


class Compared(Stream):
    """What several models say of each source."""

    def __init__(self, several: Iterator[list[Sighting]]) -> None:
        self._several = several
        self.rows: list[tuple[object, ...]] = []

    def __iter__(self) -> Iterator[Sighting]:
        for seen in chain.from_iterable(self._several):
            if len(self.rows) < ROWS_SHOWN:
                first = _cells(seen)[0]
                self.rows.append((first[0], seen.model, *first[1:4], first[5]))
            yield seen


def _cells(seen: Sighting) -> list[tuple[object, ...]]:
    """A row for the answer; of captions one for each, as each has words of its own."""
    fit = seen.fit.verdict if seen.fit.p is None else f"{seen.fit.verdict} ({seen.fit.p:.2g})"
    if seen.is_caption:
        every = (seen, *seen.others)
        return [(seen.source.name, None, each.answer, f"{each.confidence:.1%}", None, None, fit) for each in every]
    second = f"{seen.alternatives[0][0]} {seen.alternatives[0][1]:.1%}" if seen.alternatives else None
    looked_at = " · ".join(f"{x}, {y}" for x, y in seen.looked_at) if seen.looked_at else seen.top_slot
    said = (seen.answer, f"{seen.confidence:.1%}") if seen.is_answered else (None, None)
    return [(seen.source.name, seen.question, *said, second, looked_at, fit)]


def show(result: Looks | Compared | FolderLooks, given: Mapping[str, Any], quiet: bool) -> None:
    """Print what was seen."""
    if isinstance(result, Looks):
        _show_looks(result, given["out"], quiet)
    elif isinstance(result, Compared):
        columns = ("input", "model", "asked", "answer", "confidence", "looked at x, y")
        _table("side by side", columns, result.rows, _short_names([str(row[0]) for row in result.rows]))
        if not quiet and given["out"] is not None:
            remark(f"wrote one picture and one page for each input to {given['out']}")
    else:
        _show_rows(result, quiet)


def _show_looks(looks: Looks, out: Path | None, quiet: bool) -> None:
    predictor, thing = looks.predictor, looks.predictor.reads.thing
    seen = [each.source.name for each in (*looks.ways, *looks.tables)]
    short = _short_names([*(str(row[0]) for row in looks.rows), *seen, *(names[0] for names in looks.remarks.values())])
    looked_at = "looked at x, y" if looks.is_picture else "looked at"
    columns = (thing, "asked", "answer", "confidence", "next best", looked_at, "fit (p)")
    _table(f"{predictor.name} ({predictor.facts.architecture})", columns, looks.rows, short)
    if looks.ways:
        steps = [name for name, _, _ in looks.ways[0].on_the_way]
        rows = [
            (short[each.source.name], *(f"{said} {share:.0%}" for _, said, share in each.on_the_way), each.answer)
            for each in looks.ways
        ]
        print_table("what each step says", (thing, *steps, "all together"), rows)
    for each in looks.tables:
        _print_slots(f"{short[each.source.name]}: {each.question or ''} → {each.answer}", each.slot_grid)
    for text, names in list(looks.remarks.items())[:WARNED]:
        who = short[names[0]] if len(names) == 1 else f"{len(names):,} of {looks.answered:,} {plural(thing)}"
        warn(f"{who}: {text}")
    if len(looks.remarks) > WARNED:
        warn(f"… and {len(looks.remarks) - WARNED:,} other remarks; --json prints them all")
    if looks.unlike:
        warn(predictor.of_unlike(looks.unlike, looks.answered))
    if quiet:
        return
    if looks.left_out and not any(kind in PHOTOGRAPHS for kind in looks.left_out):
        remark(_of_left_out(looks.left_out, thing))
    if looks.told > ROWS_SHOWN:
        remark(f"… and {looks.told - ROWS_SHOWN} more; --json prints them all")
    if looks.skipped:
        remark(f"{looks.answered} answered, {looks.skipped} skipped because they could not be read")
    kept = "pictures, records and one table of all (looks.csv)" if looks.answered > 1 else "pictures and records"
    remark(f"{kept} are in {out}" if out is not None else "--out DIR keeps pictures and records")
    for text in predictor.caveats:
        remark(text)


def _print_slots(title: str, grid: SlotGrid) -> None:
    """Looks over slots: a line for each sentence, a column for each look, cells coloured by weight."""
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    from saccade.show.slot_table import NEEDED

    def cell(row: int, column: int) -> Text:
        ink, fill = (Color.from_rgb(*colour) for colour in (grid.ink(row, column), grid.fill(row, column)))
        return Text(f" {grid.weights[row, column]:.2f} ", Style(color=ink, bgcolor=fill))

    columns = range(len(grid.headings))
    rows = [
        ("*" if row in grid.supporting else "", text, *(cell(row, column) for column in columns))
        for row, text in enumerate(grid.texts)
    ]
    note = grid.legend + (f"; *: {NEEDED}" if grid.supporting else "")
    print_table(title, ("", "sentence", *map(plain, grid.headings)), rows, note=note)


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]], short: Mapping[str, str]) -> None:
    """Those columns that have something in them; inputs by their short names."""
    used = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    shown = [[short[str(row[0])] if place == 0 else row[place] for place in used] for row in rows]
    print_table(title, [columns[place] for place in used], shown)


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Each file, named from the folder that all of them are in: a terminal has no room for more."""
    files = {name: Path(name) for name in names}
    try:
        shared = os.path.commonpath([file.parent for file in files.values()])
    except ValueError:  # on several drives, or some absolute and some not
        return {name: name for name in files}
    return {name: str(file.relative_to(shared)) for name, file in files.items()}


def _of_left_out(kinds: Counter[str], thing: str) -> str:
    """What of the folders is not looked at, counted by kind, and what to do about photographs among it."""
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(KINDS_NAMED))
    rest = kinds.total() - sum(count for _, count in kinds.most_common(KINDS_NAMED))
    cure = [kind for kind in PHOTOGRAPHS if kind in kinds] if thing == "picture" else []
    files = "file" if kinds.total() == 1 else "files"
    told = f"left out {kinds.total()} {files} of other kinds: {named}" + (f" and {rest} others" if rest else "")
    return told + (f"; save {' and '.join(cure)} as JPEG or PNG to look at them" if cure else "")


def _show_rows(looked: FolderLooks, quiet: bool) -> None:
    for text in looked.first_errors:
        warn(text)
    rate = looked.rows / looked.seconds if looked.seconds and not looked.resumed else None
    row = (looked.rows, looked.errors, looked.parts, looked.seconds, None if rate is None else f"{rate:.1f}")
    print_table(f"rows in {looked.out}", ("rows", "with an error", "files", "seconds", "rows a second"), [row])
    if quiet:
        return
    if looked.resumed:
        remark(f"{looked.resumed} of {looked.parts} files were there already")
    for text in looked.remarks:
        remark(text)
    remark(f"'saccade report {looked.out}' draws some, 'saccade score {looked.out} --truth …' scores the maps")
