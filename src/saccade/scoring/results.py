"""What scoring found, and how: means with intervals, baselines, the score of every map, what was left out and why."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from saccade.data.maps.arrays import SEPARATOR
from saccade.errors import ConfigError
from saccade.metrics.intervals import Interval
from saccade.metrics.result import without_nan
from saccade.scoring.sources import Maps, Truths

SCORES, MAPS, SCENES, PAGE = "scores.json", "maps.csv", "scenes.csv", "report.html"
SCHEMA_VERSION = 1
"""Schema version of the JSON file."""
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
SCENE_COLUMNS = ("map_follow", "map_turn", "map_specific", "map_hold", "map_hold_background")
"""Scores about scenes and their twins in the order of tables."""
SCENE_ROWS = {
    "foreground": "maps × foreground",
    "uniform": "uniform",
    "centre_gaussian": "centre",
    "shuffled": "shuffled",
    "grid_oracle": "best on its grid",
    "target_mask": "target's mask",
}
"""What they are compared with."""
_LISTED = 10


CHOICES: dict[str, dict[str, str]] = {
    "signed": {
        "keep": "values stay as they are; of masks and boxes a negative one is an error",
        "abs": "absolute values",
        "positive": "values below 0 become 0",
    },
    "resize": {
        "truth": "a map is laid over the picture at the size of the truth, smooth between its cells",
        "map": "a mask is brought to the size of the map; a pixel is in it where half of it was",
        "never": "a map of another size than its truth is an error",
    },
    "nan": {
        "skip": "a map with NaN or infinity is left out and counted",
        "zero": "NaN and infinity become 0",
        "stop": "a map with NaN or infinity is an error",
    },
    "missing": {
        "skip": "a truth without a map is left out and counted",
        "zero": "a truth without a map counts as a map of zeros",
        "stop": "a truth without a map is an error",
    },
    "empty": {
        "skip": "a map whose truth is empty is left out and counted",
        "stop": "an empty truth is an error",
    },
    "broken": {
        "stop": "a file that cannot be read is an error",
        "skip": "a file that cannot be read is left out and counted",
    },
}
"""How to treat maps and masks that cannot be scored as they are; the first of each is the default."""


@dataclass(frozen=True)
class Policies:
    """One choice of each, see :data:`CHOICES`; all are printed with the scores."""

    signed: str = "keep"
    resize: str = "truth"
    nan: str = "skip"
    missing: str = "skip"
    empty: str = "skip"
    broken: str = "stop"
    separator: str = SEPARATOR
    """Between picture and question in the name of a map."""

    def __post_init__(self) -> None:
        if not self.separator.strip():
            raise ConfigError("separator: empty; what usually stands between picture and question is __")

    def lines(self) -> list[str]:
        """Each choice and what it means, as it is printed."""
        return [f"{name} {getattr(self, name)}: {choices[getattr(self, name)]}" for name, choices in CHOICES.items()]


@dataclass(frozen=True)
class SceneScores:
    """Scores of maps of scenes and of their twins, see :mod:`saccade.scoring.causal`."""

    scores: Mapping[str, Interval]
    """Means over scenes."""
    baselines: Mapping[str, Mapping[str, float]]
    names: tuple[str, ...]
    """Names of the scenes."""
    values: Mapping[str, Tensor]
    """The score of each scene (N,), NaN where a map that it needs is missing, or where the areas are not alike."""
    facts: Mapping[str, Any]
    """Facts of the causal set, from its causal.json: version, digest, count and settings."""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: the maps with their intervals, the scenes that count, then baselines."""
        wanted = [name for name in SCENE_COLUMNS if name in self.scores]
        rows = _own_rows([self.scores[name] for name in wanted])
        rows.append(["n", *(f"{self.scores[name].n:,}" for name in wanted)])
        for name, title in SCENE_ROWS.items():
            if found := self.baselines.get(name):
                rows.append([title, *(_plain(found.get(score, math.nan)) for score in wanted)])
        return ["", *(name.replace("_background", ", background") for name in wanted)], rows

    def to_json(self) -> dict[str, object]:
        """Plain values; NaN is None."""
        return {"n": len(self.names), **_scores_json(self.scores, self.baselines)}

    def csv_text(self) -> str:
        """A row for each scene."""
        rows = zip(self.names, *(each.tolist() for each in self.values.values()))
        return _csv_text(["scene", *self.values], ([name, *map(_cell, values)] for name, *values in rows))


@dataclass(frozen=True)
class ScoreResult:
    """Scores of maps, beside baselines and bounds on the same truth."""

    kind: str
    """Kind of the truth: masks, boxes or points."""
    scores: Mapping[str, Interval]
    """Means over maps, with intervals by picture. ``pr_auc`` is pooled over all pixels and has no interval."""
    baselines: Mapping[str, Mapping[str, float]]
    """The same scores of what maps are compared with."""
    names: tuple[str, ...]
    """Names of the maps that were scored."""
    pictures: tuple[str, ...]
    """The picture of each."""
    values: Mapping[str, Tensor]
    """The score of each map (N,), NaN where it has none."""
    left_out: Mapping[str, tuple[str, ...]]
    """Names by reason: missing, missing_twins, extra, nan, broken."""
    notes: Mapping[str, str]
    """What was wrong with those that are broken, by name."""
    counts: Mapping[str, int]
    policies: Policies
    maps: str
    truth: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else to tell: method, model."""
    scene: SceneScores | None = None
    """Scores of scenes and their twins, if the truth is a causal set."""
    sources: tuple[Maps, Truths] | None = field(default=None, repr=False, compare=False)
    """Where maps and truths can be read again, to be drawn."""

    @property
    def main(self) -> str:
        """The score by which maps are put in order."""
        return "nss" if self.kind == "points" else "true_positive_strength"

    def __str__(self) -> str:
        of_scenes = {} if self.scene is None else self.scene.scores
        told = {**self.scores, **of_scenes}
        return "\n".join(f"{TITLES.get(name, name)} {found}" for name, found in told.items())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: the maps with their intervals, then baselines and bounds."""
        wanted = [name for name in TITLES if name in self.scores]
        rows = _own_rows([self.scores[name] for name in wanted])
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
            "missing": "without a map", "missing_twins": "twins without a map",
            "unread": "maps of twins that no score reads", "extra": "maps without a truth", "nan": "maps with NaN",
            "broken": "unreadable", "empty": "with an empty truth", "zero": "maps of zeros (they score 0)",
            "resized": "maps brought to another size", "outside": "points outside their picture",
            "rows": "rows of the truth unreadable", "ignored": "other files",
        }  # fmt: skip
        parts += [f"{counts[name]:,} {words}" for name, words in told.items() if counts.get(name)]
        return "; ".join(parts)

    def to_json(self) -> dict[str, object]:
        """Plain values; NaN is None."""
        from saccade import __version__

        return {
            "schema_version": SCHEMA_VERSION,
            "saccade": __version__,
            "maps": self.maps,
            "truth": self.truth,
            "kind": self.kind,
            **self.settings,
            "policies": asdict(self.policies),
            "counts": dict(self.counts),
            **_scores_json(self.scores, self.baselines),
            **({} if self.scene is None else {"scene": self.scene.to_json(), "set": dict(self.scene.facts)}),
            "left_out": {reason: list(names[:_LISTED]) for reason, names in self.left_out.items() if names},
            "left_out_because": dict(list(self.notes.items())[:_LISTED]),
        }  # fmt: skip

    def save(self, folder: str | Path, *, pictures: str | Path | None = None) -> list[Path]:
        """Write scores.json, maps.csv and report.html to ``folder``, of a causal set also scenes.csv.

        ``pictures``: the pictures, to draw maps on; those of a causal set are known.
        """
        from saccade.files import write_json, write_text
        from saccade.scoring.page import score_page

        place = Path(folder)
        written = [write_json(place / SCORES, self.to_json()), write_text(place / MAPS, self.csv_text())]
        if self.scene is not None:
            written.append(write_text(place / SCENES, self.scene.csv_text()))
            pictures = Path(self.truth) / "images" if pictures is None else pictures
        if self.sources is not None:
            page = score_page(self, *self.sources, pictures=None if pictures is None else Path(pictures))
            written.append(page.save(place / PAGE))
        return written

    def csv_text(self) -> str:
        """A row for each map, and for each that was left out, with the reason."""
        columns = [name for name in TITLES if name in self.values]
        rows = [
            [name, picture, "empty" if all(map(math.isnan, values)) else "scored", *map(_cell, values)]
            for name, picture, *values in zip(
                self.names, self.pictures, *(self.values[key].tolist() for key in columns)
            )
        ]
        for reason, names in self.left_out.items():
            rows += [[name, "", reason, *("" for _ in columns)] for name in names]
        return _csv_text(["map", "picture", "status", *columns], rows)


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _scores_json(scores: Mapping[str, Interval], baselines: Mapping[str, Mapping[str, float]]) -> dict[str, object]:
    means = {name: dict(values) for name, values in baselines.items()}
    return without_nan({"scores": {name: score._asdict() for name, score in scores.items()}, "baselines": means})


def _own_rows(scores: Sequence[Interval]) -> list[list[str]]:
    """The means, and below them the ends of their intervals."""
    ends = ["" if math.isnan(each.low) else f"{each.low:.2f}–{each.high:.2f}" for each in scores]
    return [["maps", *(_plain(each.mean) for each in scores)], ["95 % interval", *ends]]


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
