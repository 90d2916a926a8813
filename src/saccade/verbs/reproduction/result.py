"""What a reproduction gives back: tables to print, their numbers, and the files that were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.verbs.plain_table import PlainTable


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table with everything that belongs to it."""

    table: str
    """Its name."""
    tables: Sequence[PlainTable]
    """What is printed, in order."""
    cells: Sequence[dict[str, Any]]
    """Every number of the tables as plain values; fractions."""
    confirmed: Sequence[dict[str, Any]]
    """Shipped models that were scored on this machine, each beside its record, as plain values."""
    figures: Sequence[Path]
    report: Path | None
    seconds: float
    legend: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "table": self.table,
            "cells": list(self.cells),
            "confirmed": list(self.confirmed),
            "figures": [str(path) for path in self.figures],
            "report": None if self.report is None else str(self.report),
            "seconds": round(self.seconds, 2),
        }
