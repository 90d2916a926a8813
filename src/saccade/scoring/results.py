"""What scoring returns: means with intervals, baselines, the score of every map, what was left out; its page."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from saccade.data.maps import SEPARATOR, picture_of
from saccade.data.pictures.files import SUFFIXES, find_files
from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import first_few
from saccade.errors import ConfigError, SaccadeError
from saccade.metrics.intervals import Interval
from saccade.metrics.result import without_nan
from saccade.scoring.sources import Maps, Truths
from saccade.show import overlay as marks
from saccade.show.overlay import overlay
from saccade.show.report import Figure, Gallery, Report, Section
from saccade.show.tables import ShownTable

SCORES, MAPS, SCENES, PAGE = "scores.json", "maps.csv", "scenes.csv", "report.html"
SCHEMA_VERSION = 1
WORDS: Any = json.loads(resources.files("saccade.scoring").joinpath("words.json").read_text("utf-8"))
"""Titles of scores and rows, choices, and what pages say."""
TITLES: dict[str, str] = WORDS["titles"]
CHOICES: dict[str, dict[str, str]] = WORDS["choices"]
"""How to treat maps and masks that cannot be scored as they are; the first of each is the default."""
_LISTED = 10
_EACH = 4  # maps of a kind that are drawn
_PANEL = 320  # pixels of a drawing's longer side
_ROWS = 50  # of what was left out, on the page

Means = Mapping[str, Mapping[str, float]]  # Name of a baseline or bound → its scores
TableRows = tuple[list[str], list[list[str]]]  # The columns and the rows of a table


@dataclass(frozen=True)
class Policies:
    """One choice of each, see :data:`CHOICES`; all are printed with the scores."""

    signed: str = "keep"
    resize: str = "truth"
    nan: str = "skip"
    missing: str = "skip"
    empty: str = "skip"
    broken: str = "stop"
    separator: str = SEPARATOR  # between picture and question in the name of a map

    def __post_init__(self) -> None:
        if not self.separator.strip():
            raise ConfigError("separator: empty; what usually stands between picture and question is __")

    def with_sign(self, map: Tensor) -> Tensor:
        """The map as ``signed`` wants it."""
        return map.abs() if self.signed == "abs" else map.clamp(min=0) if self.signed == "positive" else map

    def lines(self) -> list[str]:
        """Each choice and what it means, as it is printed."""
        return [f"{name} {getattr(self, name)}: {choices[getattr(self, name)]}" for name, choices in CHOICES.items()]


@dataclass(frozen=True)
class SceneScores:
    """Scores of maps of scenes and of their twins, see :mod:`saccade.scoring.causal`."""

    scores: Mapping[str, Interval]  # means over scenes
    baselines: Means
    names: tuple[str, ...]  # of the scenes
    values: Mapping[str, Tensor]
    """The score of each scene (N,), NaN where a map that it needs is missing, or where the areas are not alike."""
    facts: Mapping[str, Any]  # of the causal set, from its causal.json: version, digest, count and settings

    def table(self) -> TableRows:
        """Columns and rows: the maps with their intervals, the scenes that count, then baselines."""
        return score_table(self.scores, WORDS["scene_titles"], self.baselines, WORDS["scene_rows"], has_n=True)

    def csv_text(self) -> str:
        """A row for each scene."""
        columns = zip(self.names, *(values.tolist() for values in self.values.values()))
        return csv_of(["scene", *self.values], ([name, *map(csv_cell, values)] for name, *values in columns))


@dataclass(frozen=True)
class ScoreResult:
    """Scores of maps, beside baselines and bounds on the same truth."""

    kind: str  # of the truth: masks, boxes or points
    scores: Mapping[str, Interval]
    """Means over maps, with intervals by picture. ``pr_auc`` is pooled over all pixels and has no interval."""
    baselines: Means
    names: tuple[str, ...]  # of the maps that were scored
    pictures: tuple[str, ...]  # of each map
    values: Mapping[str, Tensor]  # the score of each map (N,), NaN where it has none
    left_out: Mapping[str, tuple[str, ...]]  # names by reason: missing, missing_twins, extra, nan, broken
    notes: Mapping[str, str]  # what was wrong with those that are broken, by name
    counts: Mapping[str, int]
    policies: Policies
    maps: str
    truth: str
    verdict: str = ""  # whether the maps beat the best of those that do not look, in one sentence
    settings: Mapping[str, Any] = field(default_factory=dict)  # method, model
    scene: SceneScores | None = None  # if the truth is a causal set
    sources: tuple[Maps, Truths] | None = field(default=None, repr=False, compare=False)
    """Where maps and truths can be read again, to be drawn."""

    @property
    def main(self) -> str:
        """The score by which maps are put in order."""
        return "nss" if self.kind == "points" else "true_positive_strength"

    def __repr__(self) -> str:
        return f"ScoreResult({self.maps} against {self.truth}: {self.counted()})"

    def __str__(self) -> str:
        of_scenes = {} if self.scene is None else self.scene.scores
        return "\n".join(f"{TITLES.get(name, name)} {score}" for name, score in {**self.scores, **of_scenes}.items())

    def table(self) -> TableRows:
        """Columns and rows: the maps with their intervals, then baselines and bounds."""
        means = dict(self.baselines)
        if not self.counts["resized"]:
            means.pop("all_objects", None)  # on pixels it is the exact one
        elif "grid_oracle" in means:  # of coarse cells, the best bounds strength alone
            strength = "true_positive_strength"
            means["grid_oracle"] = {name: value for name, value in means["grid_oracle"].items() if name == strength}
        return score_table(self.scores, TITLES, means, WORDS["rows"])

    def counted(self) -> str:
        """What was scored and what was not, in one line."""
        counts = self.counts
        parts = [f"{counts['scored']:,} of {counts['truths']:,} scored, {counts['pictures']:,} pictures"]
        for name, words in WORDS["counted"].items():
            few = first_few(self.left_out.get(name, ()), 3)
            parts += [f"{counts[name]:,} {words}" + (f" ({few})" if few else "")] if counts.get(name) else []
        return "; ".join(parts)

    def to_json(self) -> dict[str, object]:
        """Plain values; NaN is None."""
        from saccade import __version__

        scene = self.scene
        of_scenes = {} if scene is None else {
            "scene": {"n": len(scene.names), **scores_json(scene.scores, scene.baselines)}, "set": dict(scene.facts)
        }  # fmt: skip
        return {
            "schema_version": SCHEMA_VERSION,
            "saccade": __version__,
            "maps": self.maps,
            "truth": self.truth,
            "kind": self.kind,
            **self.settings,
            "policies": asdict(self.policies),
            "counts": dict(self.counts),
            **scores_json(self.scores, self.baselines),
            "verdict": self.verdict,
            **of_scenes,
            "left_out": {reason: list(names[:_LISTED]) for reason, names in self.left_out.items() if names},
            "left_out_because": dict(list(self.notes.items())[:_LISTED]),
        }

    def save(self, folder: str | Path, *, pictures: str | Path | None = None) -> list[Path]:
        """Write scores.json, maps.csv and report.html to ``folder``, of a causal set also scenes.csv."""
        from saccade.files import write_json, write_text

        place = Path(folder)
        written = [write_json(place / SCORES, self.to_json()), write_text(place / MAPS, self.csv_text())]
        if self.scene is not None:
            written.append(write_text(place / SCENES, self.scene.csv_text()))
            pictures = Path(self.truth) / "images" if pictures is None else pictures
        if self.sources is not None:
            written.append(score_page(self, *self.sources, pictures).save(place / PAGE))
        return written

    def csv_text(self) -> str:
        """A row for each map, and for each that was left out, with the reason."""
        columns = [name for name in TITLES if name in self.values]
        values = zip(*(self.values[name].tolist() for name in columns))
        rows = [
            [name, picture, "empty" if all(map(math.isnan, own)) else "scored", *map(csv_cell, own)]
            for name, picture, own in zip(self.names, self.pictures, values)
        ]
        for reason, names in self.left_out.items():
            rows += [[name, "", reason, *("" for _ in columns)] for name in names]
        return csv_of(["map", "picture", "status", *columns], rows)


def csv_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


def csv_cell(value: float) -> str:
    """A number as CSV has it; NaN is empty."""
    return "" if math.isnan(value) else f"{value:.6g}"


def scores_json(scores: Mapping[str, Interval], baselines: Means) -> dict[str, object]:
    """Both as plain values; NaN is None."""
    means = {name: dict(values) for name, values in baselines.items()}
    return without_nan({"scores": {name: score._asdict() for name, score in scores.items()}, "baselines": means})


def score_table(
    scores: Mapping[str, Interval],
    titles: Mapping[str, str],
    baselines: Means,
    rows: Mapping[str, str],
    *,
    name: str = "maps",
    has_n: bool = False,
) -> TableRows:
    """Columns and rows: the means, below them the ends of their intervals and how many values count, then baselines."""
    columns = [score for score in titles if score in scores]
    own = [scores[score] for score in columns]
    ends = ["" if math.isnan(score.low) else f"{score.low:.2f}–{score.high:.2f}" for score in own]
    cells = [[name, *(_plain(score.mean) for score in own)], ["95 % interval", *ends]]
    cells += [["n", *(f"{score.n:,}" for score in own)]] if has_n else []
    for row, title in rows.items():
        if means := baselines.get(row):
            cells.append([title, *(_plain(means.get(score, math.nan)) for score in columns)])
    return ["", *(titles[score] for score in columns)], cells


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def score_page(scored: ScoreResult, maps: Maps, truths: Truths, pictures: str | Path | None) -> Report:
    """The page; ``pictures`` is a folder of the pictures themselves, to draw maps on."""
    files = {} if pictures is None else {file.stem: file for file in find_files([Path(pictures)], SUFFIXES, "picture")}
    about = WORDS["about"]
    columns, rows = scored.table()
    table = ShownTable(columns, rows, best_row=0, dash="not defined, or no bound known")
    explained = f"{about['points' if scored.kind == 'points' else 'masks']}\n\n{about['rows']}"
    sections = [Section("Scores", explained, [table])]
    if scored.scene is not None:
        facts = scored.scene.facts
        version = f"{facts.get('version') or 'a causal set'} of {facts['count']:,} scenes, digest `{facts['digest']}`"
        table = ShownTable(*scored.scene.table(), dash="not defined, or no such map")
        sections.append(Section("About the scene", f"{about['scenes']}\n\nSet: {version}.", [table]))
    sections += _drawn(scored, maps, truths, files)
    sections.append(Section("What was done", "\n\n".join(f"`{line}`" for line in scored.policies.lines())))
    lost = [
        (name, scored.notes.get(name, WORDS["reasons"][reason]))
        for reason, names in scored.left_out.items()
        for name in names
    ]
    if lost:
        more = f" The first {_ROWS} of {len(lost):,}; all are in maps.csv." if len(lost) > _ROWS else ""
        text = f"What was not scored, and why.{more}"
        sections.append(Section("Left out", text, [ShownTable(("name", "why"), lost[:_ROWS])]))
    return Report(f"Scores of {Path(scored.maps).name or 'maps'}", f"{scored.counted()}.", sections)


def _drawn(scored: ScoreResult, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> list[Section]:
    values = scored.values[scored.main]  # (N,)
    order = [at for at in torch.argsort(values, stable=True).tolist() if not bool(values[at].isnan())]
    middle = max(0, len(order) // 2 - _EACH // 2)
    chosen = {"Best": order[::-1][:_EACH], "Median": order[middle : middle + _EACH], "Worst": order[:_EACH]}
    sections = []
    for title, numbers in chosen.items():
        drawn = [picture for at in numbers if (picture := _picture(scored, at, maps, truths, files)) is not None]
        text = "These maps came from a stream and cannot be read again; give a path or an array to draw them."
        if drawn:
            text = f"By {TITLES[scored.main]}. The truth is outlined. Each map is shown by its own peak."
        sections.append(Section(f"{title} maps", text, [Gallery(drawn)] if drawn else []))
    return sections


def _picture(scored: ScoreResult, at: int, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> Figure | None:
    """A map on its picture, or on grey; None where it cannot be read again."""
    name, separator = scored.names[at], scored.policies.separator
    try:
        map = maps.read(name)
    except SaccadeError:  # it was there a moment ago
        return None
    truth = truths.truth_of(name, separator)
    if map is None or truth is None:
        return None
    values = scored.policies.with_sign(map.detach().cpu().float().nan_to_num(0.0, 0.0, 0.0))
    values = values - values.min().clamp(max=0)  # one with a sign is drawn from its lowest value up
    mask = truths.evidence(truth, (values.shape[0], values.shape[1])).mask.cpu()
    outline: marks.Mark = marks.Mask(mask.numpy())
    if truths.kind == "points":
        outline = marks.Points(truths.points(truth).at.tolist())
    file, size = files.get(picture_of(name, separator).rpartition("/")[2]), (mask.shape[1], mask.shape[0])
    below = Image.new("RGB", size, (96, 96, 96)) if file is None else read_picture(file).image.resize(size)
    drawn = overlay(below, values.numpy(), outline=outline)
    drawn.thumbnail((_PANEL, _PANEL))
    text = f"{name}: {TITLES[scored.main]} {float(scored.values[scored.main][at]):.3f}"
    return Figure(drawn, text, f"the map {name} with its truth outlined")
