"""Recorded commands against the recipes of today: does each still train with the settings of its record?

A record counts as sound if its command, with its pins, resolves to the recorded settings and every run that the command
begins with is made by some record. A record whose numbers stand in no table any more says so, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.errors import SaccadeError
from saccade.recorded import RecordedRun, recorded_runs, superseded_runs
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.commands import changes, pins_for, runs_made, runs_needed

State = Literal["same", "pinned", "superseded", "differs"]


@dataclass(frozen=True)
class RecordCheck:
    """What became of one record."""

    name: str
    state: State
    """``same``: the command gives the recorded settings; ``pinned``: it does with the options that the record adds;
    ``superseded``: no table shows it; ``differs``: neither."""
    note: str = ""
    """The pins, the reason, or what differs."""
    pins: str = ""
    """Where it differs in settings alone: the options that would undo that."""

    def to_json(self) -> dict[str, str]:
        """Plain values."""
        return {"name": self.name, "state": self.state, "note": self.note, "pins": self.pins}


def check_records(folder: Path | None = None) -> list[RecordCheck]:
    """Every record in ``folder`` (by default those that come with saccade), superseded ones last."""
    counted = [*recorded_runs(folder), *recorded_runs(folder, variants=True)]
    old = superseded_runs(folder)
    made = {path for run in (*counted, *old) for path in runs_made(run.command)}
    return [*(_checked(run, made) for run in counted), *(_superseded(run) for run in old)]


def _superseded(run: RecordedRun) -> RecordCheck:
    if not run.superseded:
        return RecordCheck(run.name, "differs", "lies among the superseded runs and does not say why")
    return RecordCheck(run.name, "superseded", run.superseded)


def _checked(run: RecordedRun, made: set[str]) -> RecordCheck:
    if run.superseded:
        return RecordCheck(run.name, "superseded", run.superseded)
    try:
        found = changes(run)
    except SaccadeError as error:
        return RecordCheck(run.name, "differs", f"the command does not resolve: {error}")
    if found:
        return RecordCheck(run.name, "differs", "; ".join(map(str, found)), pins_for(found))
    missing = runs_needed(run.command) - made
    if missing:
        return RecordCheck(run.name, "differs", f"begins with {', '.join(sorted(missing))}, which no record makes")
    return RecordCheck(run.name, "pinned", run.pins) if run.pins else RecordCheck(run.name, "same")


def check_tables(found: Sequence[RecordCheck]) -> list[PlainTable]:
    """How many records are in which state; then those that are not simply the same."""
    meaning = {
        "same": "the command gives the recorded settings",
        "pinned": "it does with the options that the record adds",
        "superseded": "no table shows it any more",
        "differs": "neither: pin it, run it again, or mark it superseded",
    }
    counts = [(state, str(sum(each.state == state for each in found)), text) for state, text in meaning.items()]
    tables = [PlainTable("records against the recipes of today", ("state", "records", "what it means"), counts)]
    for state, title in (("pinned", "pinned by"), ("superseded", "why"), ("differs", "what differs")):
        rows = [(each.name, each.note) for each in found if each.state == state]
        tables += [PlainTable(f"{state} records", ("record", title), rows)] if rows else []
    return tables
