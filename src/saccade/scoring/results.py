"""What scoring found: means with intervals, baselines, the score of every map, and what was left out."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from saccade.metrics.intervals import Interval
from saccade.scoring.maps import Maps
from saccade.scoring.policies import Policies
from saccade.scoring.truths import Truths

SCORES, MAPS, PAGE = "scores.json", "maps.csv", "report.html"
SCHEMA_VERSION = 1
"""Of the JSON file."""
TITLES = {
    "true_positive_strength": "strength",
    "selectivity": "selectivity",
    "pointing": "pointing",
    "iou": "IoU",
    "pr_auc": "PR-AUC",
    "nss": "NSS",
    "auc_judd": "AUC Judd",
    "auc_shuffled": "AUC shuffled",
}
"""Scores as tables call them, in their order."""
ROWS = {
    "uniform": "uniform",
    "centre_gaussian": "centre",
    "shuffled": "shuffled",
    "all_objects": "all objects on the grid",
    "all_objects_exact": "all objects",
    "grid_oracle": "bound",
    "points_exact": "the points themselves",
}
"""Baselines and bounds as tables call them, in their order."""
_LISTED = 10


@dataclass(frozen=True)
class Scored:
    """Scores of maps, beside baselines and bounds on the same truth."""

    kind: str
    """Of the truth: masks, boxes or points."""
    scores: Mapping[str, Interval]
    """Means over maps, with intervals by picture. ``pr_auc`` is pooled over all pixels and has no interval."""
    baselines: Mapping[str, Mapping[str, float]]
    """The same scores of what maps are compared with."""
    names: tuple[str, ...]
    """Of the maps that were scored."""
    pictures: tuple[str, ...]
    """The picture of each."""
    values: Mapping[str, Tensor]
    """The score of each map (N,), NaN where it has none."""
    left_out: Mapping[str, tuple[str, ...]]
    """Names by reason: missing, extra, nan, broken."""
    notes: Mapping[str, str]
    """What was wrong with those that are broken, by name."""
    counts: Mapping[str, int]
    policies: Policies
    maps: str
    truth: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else to tell: method, model."""
    sources: tuple[Maps, Truths] | None = field(default=None, repr=False, compare=False)
    """Where maps and truths can be read again, to be drawn."""

    @property
    def main(self) -> str:
        """The score by which maps are put in order."""
        return "nss" if self.kind == "points" else "true_positive_strength"

    def __str__(self) -> str:
        return "\n".join(f"{TITLES.get(name, name)} {found}" for name, found in self.scores.items())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: the maps with their intervals, then baselines and bounds."""
        wanted = [name for name in TITLES if name in self.scores]
        rows = [["maps", *(_told(self.scores[name]) for name in wanted)]]
        for name, title in ROWS.items():
            found = dict(self.baselines.get(name, {}))
            if name == "all_objects" and not self.counts["resized"]:
                continue  # on pixels it is the exact one
            if name == "grid_oracle" and self.counts["resized"]:  # of coarse cells, the best bounds strength alone
                found = {score: value for score, value in found.items() if score == "true_positive_strength"}
            if found:
                rows.append([title, *(_plain(found.get(score, math.nan)) for score in wanted)])
        return ["", *(TITLES[name] for name in wanted)], rows

    def counted(self) -> str:
        """What was scored and what was not, in one line."""
        counts = self.counts
        parts = [f"{counts['scored']:,} of {counts['truths']:,} scored, {counts['pictures']:,} pictures"]
        told = {
            "missing": "without a map", "extra": "maps without a truth", "nan": "maps with NaN",
            "broken": "unreadable", "empty": "with an empty truth", "zero": "maps of zeros (they score 0)",
            "resized": "maps brought to another size", "outside": "points outside their picture",
            "rows": "rows of the truth unreadable", "ignored": "other files",
        }  # fmt: skip
        parts += [f"{counts[name]:,} {words}" for name, words in told.items() if counts.get(name)]
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN is None."""
        from saccade import __version__

        return {
            "schema_version": SCHEMA_VERSION,
            "saccade": __version__,
            "maps": self.maps,
            "truth": self.truth,
            "kind": self.kind,
            **self.settings,
            "policies": self.policies.to_json(),
            "counts": dict(self.counts),
            "scores": {name: {key: _finite(value) for key, value in found._asdict().items()}
                       for name, found in self.scores.items()},
            "baselines": {name: {score: _finite(value) for score, value in found.items()}
                          for name, found in self.baselines.items()},
            "left_out": {reason: list(names[:_LISTED]) for reason, names in self.left_out.items() if names},
            "left_out_because": dict(list(self.notes.items())[:_LISTED]),
        }  # fmt: skip

    def save(self, folder: str | Path, *, pictures: str | Path | None = None) -> list[Path]:
        """Write scores.json, maps.csv and report.html to ``folder``; ``pictures``: the pictures, to draw maps on."""
        from saccade.atomic import write_json, write_text
        from saccade.scoring.page import score_page

        place = Path(folder)
        written = [write_json(place / SCORES, self.to_json()), write_text(place / MAPS, self.csv_text())]
        if self.sources is not None:
            page = score_page(self, *self.sources, pictures=None if pictures is None else Path(pictures))
            written.append(page.save(place / PAGE))
        return written

    def csv_text(self) -> str:
        """A row for each map, and for each that was left out, with the reason."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        columns = [name for name in TITLES if name in self.values]
        writer.writerow(["map", "picture", "status", *columns])
        writer.writerows(self._rows(columns))
        return stream.getvalue()

    def _rows(self, columns: list[str]) -> Iterator[list[str]]:
        values = [self.values[name].tolist() for name in columns]
        for number, (name, picture) in enumerate(zip(self.names, self.pictures)):
            row = [column[number] for column in values]
            is_empty = all(math.isnan(value) for value in row)
            yield [name, picture, "empty" if is_empty else "scored",
                   *("" if math.isnan(value) else f"{value:.6g}" for value in row)]  # fmt: skip
        for reason, names in self.left_out.items():
            for name in names:
                yield [name, "", reason, *("" for _ in columns)]


def _told(found: Interval) -> str:
    if math.isnan(found.mean):
        return "–"
    return f"{found.mean:.3f}" + ("" if math.isnan(found.low) else f" ({found.low:.3f}–{found.high:.3f})")


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
