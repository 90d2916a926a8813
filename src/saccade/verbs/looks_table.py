"""The table of many looks, ``looks.csv``: a row for each picture, beside what is kept of it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from saccade.atomic import write_bytes
from saccade.sighting import Sighting

NAME = "looks.csv"
COLUMNS = ("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes")
COLUMNS += ("raw_confidence", "fit", "fit_p")  # behind the others: programs may count columns


def row_of(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    said = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    told = ("; ".join(seen.notes), f"{seen.said.raw_confidence:.6f}" if seen.is_answered else "", *fit)
    return (seen.source.name, seen.question or "", *said, x, y, stem, *told)


def write_looks(folder: Path, rows: list[tuple[object, ...]]) -> Path:
    """Write the table into ``folder``; one of an earlier call is replaced."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return write_bytes(folder / NAME, text.getvalue().encode("utf-8", "replace"))
