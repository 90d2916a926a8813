"""Records what a run is trained on when it starts, and compares it when it is resumed.

``data.json`` in the run folder holds, part by part (rows, pictures, vocabulary, glyphs, …), a name and a value for
everything that the run learns from, in order, as the task tells it. The value is a digest, which begins with ``#``, or
short plain text. A run that goes on with other data would be a mixture of two runs and its best model a choice between
them, so it is refused, unless the change is accepted; then the change is noted too, and goes into every model that is
saved from there on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.atomic import write_text
from saccade.config import check_schema
from saccade.errors import CheckpointError, ConfigError, DataError

FILE = "data.json"
SCHEMA_VERSION = 1
UNKNOWN = (
    "this run began with a version of saccade that did not note its data: whether the data changed since cannot be "
    "checked; it is noted from here on"
)

Entries = Sequence[tuple[str, str]]
"""Names and values, in order; a name may be there more than once."""
Parts = Mapping[str, Entries]
"""By the name of the part."""


@dataclass(frozen=True)
class DataNote:
    """What is known of the data of a run."""

    parts: Parts
    accepted: tuple[str, ...] = ()
    """Changes that were accepted, in words, the first first."""

    def write(self, run: Path) -> None:
        """Write the note into the folder ``run``."""
        parts = {part: [list(entry) for entry in entries] for part, entries in self.parts.items()}
        values = {"schema_version": SCHEMA_VERSION, "accepted": list(self.accepted), "parts": parts}
        write_text(run / FILE, json.dumps(values, ensure_ascii=False) + "\n")


def read_note(run: Path) -> DataNote | None:
    """The note in the folder ``run``; None where there is none, as in runs of earlier versions.

    Raises:
        CheckpointError: it cannot be read.
    """
    path = run / FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return DataNote(_checked_parts(values), tuple(str(each) for each in values["accepted"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error}), so the data of the run is not known; put the file back, or "
            "continue with `resume=True` and `accept_changed_data=True`"
        ) from error


def _checked_parts(values: Any) -> Parts:
    check_schema(values["schema_version"], SCHEMA_VERSION, what=FILE)
    return {
        str(part): [(str(name), str(value)) for name, value in entries] for part, entries in values["parts"].items()
    }


@dataclass(frozen=True)
class DataComparison:
    """How the data of a run that goes on stands to that of its beginning."""

    accepted: tuple[str, ...] = ()
    """Changes that were accepted before."""
    changes: tuple[str, ...] = ()
    """Changes that are accepted now."""
    remark: str = ""
    """What else is to be said."""

    def accepted_by(self, step: int) -> tuple[str, ...]:
        """All changes that were accepted, in words; ``step`` is where the run goes on."""
        return (*self.accepted, *(f"from step {step} on: {change}" for change in self.changes))


def compare_data(run: Path, parts: Parts, *, accept: bool) -> DataComparison:
    """Compare ``parts`` with what the run in the folder ``run`` noted.

    Args:
        run: the run folder.
        parts: what the task would learn from now.
        accept: whether a change is accepted.

    Raises:
        DataError: something changed, and that is not accepted.
        CheckpointError: the note cannot be read, and a change is not accepted.
    """
    try:
        note = read_note(run)
    except CheckpointError:
        if not accept:
            raise
        return DataComparison(changes=(f"it is not known how: {FILE} could not be read",))
    if note is None:
        return DataComparison(remark=UNKNOWN)
    changes = data_changes(note.parts, parts)
    if changes and not accept:
        raise DataError(
            f"{run}: the data is not what the run began with: {'; '.join(changes)}. Put it back, start a new run in "
            "another `out`, or continue with `resume=True` and `accept_changed_data=True`"
        )
    return DataComparison(note.accepted, tuple(changes))


def data_changes(old: Parts, new: Parts) -> list[str]:
    """In words, a line for each part that is not what it was: what was added, removed and changed, and the first.

    >>> rows = [("a.png", "#1"), ("b.png", "#2"), ("c.png", "#3")]
    >>> data_changes({"rows": rows}, {"rows": [("a.png", "#1"), ("c.png", "#4")]})
    ['rows: 1 of 3 removed (first b.png), 1 changed (first c.png)']
    """
    names = dict.fromkeys((*old, *new))
    found = ((part, _change(old.get(part, ()), new.get(part, ()))) for part in names)
    return [f"{part}: {change}" for part, change in found if change]


def _change(old: Entries, new: Entries) -> str:
    before, after = _numbered(old), _numbered(new)
    removed = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    changed = [name for name in before if name in after and before[name] != after[name]]
    told = []
    if removed:
        told.append(f"{len(removed):,} of {len(before):,} removed (first {_told(removed[0], before)})")
    if added:
        told.append(f"{len(added):,} added (first {_told(added[0], after)})")
    if changed:
        was, now = before[changed[0]], after[changed[0]]
        plain = "" if was.startswith("#") else f": was {was}, now {now}"
        told.append(f"{len(changed):,} changed (first {changed[0][0]}{plain})")
    moved = [name for name, place in zip(before, after) if name != place]
    if not told and moved:
        told.append(f"in another order (first {moved[0][0]})")
    return ", ".join(told)


def _numbered(entries: Iterable[tuple[str, str]]) -> dict[tuple[str, int], str]:
    """Values by name and by how many entries of that name came before."""
    seen: Counter[str] = Counter()
    values = {}
    for name, value in entries:
        values[name, seen[name]] = value
        seen[name] += 1
    return values


def _told(name: tuple[str, int], values: Mapping[tuple[str, int], str]) -> str:
    """A name, with its value where that is plain text."""
    return name[0] if values[name].startswith("#") else f"{name[0]}: {values[name]}"
