"""What scoring a method on photographs returns: two tables, what moves the answer, a verdict, a row for results.

**The verdict** sets the method beside the best of its baselines on the same photographs: about the scene by
``pointing``, about the model by ``cause_top``. Where the 95 % interval of the paired difference holds 0, chance can
explain it, and the verdict says so.

**Split-half τ** is Kendall's τ_a between two halves of the photographs, every other one, over how a score ranks the
method and its baselines.
"""

from __future__ import annotations

import csv
import math
import os
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from saccade.data.causal.photographs.format import Photograph, PhotographFacts
from saccade.data.causal.row_folder import SCENE
from saccade.data.tables.doubts import first_few
from saccade.metrics.intervals import ByName, Interval, mean_defined, mean_interval, paired_difference
from saccade.metrics.result import without_nan
from saccade.papers.results import results_folder
from saccade.scoring.cam import CellMaps
from saccade.scoring.results import (
    PAGE,
    SCENES,
    SCHEMA_VERSION,
    SCORES,
    WORDS,
    TableRows,
    csv_cell,
    csv_of,
    score_table,
    scores_json,
)
from saccade.show import overlay as marks
from saccade.show.overlay import overlay
from saccade.show.report import Figure, Report, Section
from saccade.show.sheet import font
from saccade.show.tables import ShownTable

OWN = "maps"
BASELINES = ("even", "centre", "noise", "edges", "other picture")
TENTH = 0.1  # A patch where nothing lies may move the answer by this share of what removing an object does
_NAMED = 3  # photographs left out that are named
_HIGH, _LINE = 180, 16  # pixels of a strip of photographs, and of the line above it
_WIDE = 130  # of a photograph in it at least, for what stands above it
_DRAWN = 3  # photographs of a kind that are drawn
_SAID = {
    "even": "an even map",
    "centre": "the centre",
    "noise": "noise",
    "edges": "Sobel edges",
    "other picture": "another picture's map",
}
_IN_ROW = {"true_positive_strength": "strength"}  # columns of results/causal.csv that have another name here


class Drawn(NamedTuple):
    """What is drawn of a photograph and its twins."""

    photograph: Photograph
    names: tuple[str, ...]  # of its pictures
    cells: CellMaps
    canvas: Tensor  # (2,3): network input → picture
    share: Tensor  # (R,): p
    strength: float


@dataclass
class PhotographScores:
    """Scores of a method on a network and a set of photographs, beside baselines, in two groups."""

    method: str
    model: str
    truth: str
    facts: PhotographFacts
    network: str  # how a picture became its input
    names: list[str] = field(default_factory=list)  # of the photographs that were scored
    scene: ByName = field(default_factory=ByName, repr=False)  # row → score → value of each photograph
    about_model: ByName = field(default_factory=ByName, repr=False)
    effects: ByName = field(default_factory=ByName, repr=False)
    """Change → ``effect`` |Δp|, ``changes``, and ``scale`` of patches."""
    broken: list[str] = field(default_factory=list)  # photographs whose maps hold NaN or infinity
    answers: list[tuple[str, int]] = field(default_factory=list)  # label and answer of each photograph with a label
    classes: tuple[str, ...] = ()  # what the answers are called, by number
    pictures: int = 0  # photographs and twins that were scored
    zeros: int = 0  # of their maps those of zeros
    signed: int = 0  # of their maps those with negative values, which a policy took away
    best: list[Drawn] = field(default_factory=list, repr=False)  # the strongest first
    worst: list[Drawn] = field(default_factory=list, repr=False)

    def draw(self, drawn: Drawn) -> None:
        """Keep it if it is among the strongest or the weakest."""
        self.best = sorted([*self.best, drawn], key=lambda other: -other.strength)[:_DRAWN]
        self.worst = sorted([*self.worst, drawn], key=lambda other: other.strength)[:_DRAWN]

    def intervals(self, group: str, row: str = OWN) -> dict[str, Interval]:
        """The means of a row with intervals by photograph; ``group`` is scene, model or effects."""
        groups = {"scene": self.scene, "model": self.about_model, "effects": self.effects}
        return groups[group][row].intervals(torch.arange(len(self.names)))

    @property
    def scores(self) -> dict[str, Interval]:
        """Means over photographs with their intervals: about the scene and, where it has a table, about the model."""
        return self.intervals("scene") | ({} if self.refused else self.intervals("model"))

    @property
    def refused(self) -> str | None:
        """Why there is no table about the model; None where there is one."""
        patch = self.effects["patch"]["effect"]
        here = ~patch.isnan()
        moved = mean_defined(patch[here])
        removed = max(mean_defined(self.effects[change]["effect"][here]) for change in ("target", "others"))
        if moved > TENTH * removed:
            return (
                f"No table about the model: filling in a patch of ground moves the answer by {moved:.3g}, more than a "
                f"tenth of what removing an object does ({removed:.3g}), so effects are not those of objects alone."
            )
        if not self.intervals("model")["cause_top"].n:
            return (
                "No table about the model: no object moves the answer by 0.1 in any photograph, so what it depends on "
                "is not among them."
            )
        return None

    def table(self, group: str) -> TableRows:
        """Columns and rows of a group, scene or model: the maps with their intervals, n, then baselines."""
        titles = WORDS["photograph_titles"][group]
        values = self.scene if group == "scene" else self.about_model
        scores = {name: score for name, score in self.intervals(group).items() if score.n}
        return score_table(scores, titles, values.means(), WORDS["photograph_rows"], name=self.method, has_n=True)

    def effects_table(self) -> TableRows:
        """Columns and rows: how far each change moves the answer."""
        rows = []
        for change, title in WORDS["changes"].items():
            moved, changes, scale = self.intervals("effects", change).values()
            if moved.n:
                title += f" (sides {scale.mean:.2f} of the object's)" if scale.mean < 1 else ""
                ends = f"{moved.low:.2f}–{moved.high:.2f}"
                rows.append([title, f"{moved.mean:.3f}", ends, f"{changes.mean:.3f}", f"{moved.n:,}"])
        return ["", "|Δp|", "95 % interval", "answers that change", "n"], rows

    def tables(self) -> list[tuple[str, str, TableRows]]:
        """Title, what it means, columns and rows of all tables."""
        about, refused = WORDS["about"], self.refused
        tables = [
            ("what moves the answer", f"Model {self.model}: {self.network}.", self.effects_table()),
            ("about the scene", about["photographs"], self.table("scene")),
        ]
        return tables if refused else [*tables, ("about the model", about["causes"], self.table("model"))]

    @property
    def verdict(self) -> str:
        """One sentence that names the baseline that wins, if one does."""
        parts = [self._compared(self.scene, "pointing", "points to the object")]
        if self.refused is None:
            parts.append(self._compared(self.about_model, "cause_top", "finds what the answer depends on"))
        return f"{self.method} {'; it '.join(parts)}."

    def _compared(self, values: ByName, score: str, does: str) -> str:
        own = values[OWN][score]
        means = {name: mean_defined(values[name][score]) for name in BASELINES}
        best = max(means, key=lambda name: -math.inf if math.isnan(means[name]) else means[name])
        mine, other = mean_defined(own), means[best]
        difference = paired_difference(own, values[best][score])
        is_sure = difference.low > 0 or difference.high < 0  # not of a single photograph, which has no interval
        doubt = "" if is_sure else ", which chance can explain"
        if mine > other:
            return f"{does} more often than every baseline ({mine:.2f} against {other:.2f} of {_SAID[best]}{doubt})"
        how = "as often as" if mine == other else "less often than"
        return f"{does} {how} {_SAID[best]} does ({mine:.2f} against {other:.2f}{doubt})"

    def split_half(self) -> dict[str, float]:
        """Kendall's τ of each score between two halves; NaN where a half has none."""
        groups = (self.scene,) if self.refused else (self.scene, self.about_model)
        return {score: _tau(values, score) for values in groups for score in values[OWN].names}

    def row(self) -> str:
        """The lines for results/causal.csv: value, ends of the interval and n, effects of changes, split-half τ."""
        path = results_folder() / "causal.csv"
        with path.open(encoding="utf-8") as file:
            columns = next(csv.reader(file))
        count, folder = len(self.names), Path(os.path.abspath(self.truth)).name
        facts = {"set": folder, "model": self.model, "method": self.method, "n": count, "seeds": 1}
        own = facts | {"kind": "map", "scenes": count, "empty": self.zeros / self.pictures}
        lines: list[dict[str, Any]] = [
            own | {"what": what} | {name: score._asdict()[part] for name, score in self.scores.items()}
            for what, part in {"value": "mean", "low": "low", "high": "high", "n": "n"}.items()
        ]
        moved = {change: self.intervals("effects", change)["effect"] for change in self.effects}
        lines += [
            facts | {"method": change, "kind": "effect", "what": "effect", "n": effect.n, "effect": effect.mean}
            for change, effect in moved.items()
            if effect.n
        ]
        lines.append(facts | {"kind": "split-half tau"} | self.split_half())
        rows = [[line.get(_IN_ROW.get(name, name), "") for name in columns] for line in lines]
        cells = ([csv_cell(value) if isinstance(value, float) else str(value) for value in row] for row in rows)
        return csv_of(columns, cells)

    def to_json(self) -> dict[str, object]:
        """Plain values; NaN is None."""
        from saccade import __version__

        def group(name: str, values: ByName) -> dict[str, object]:
            return scores_json(self.intervals(name), {row: own for row, own in values.means().items() if row != OWN})

        effects = {name: scores_json(self.intervals("effects", name), {})["scores"] for name in WORDS["changes"]}
        facts: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "saccade": __version__,
            "method": self.method,
            "model": self.model,
            "input": self.network,
            "truth": self.truth,
            "set": {name: value for name, value in asdict(self.facts).items() if name != "labels"},
            "n": len(self.names),
            "left_out": {"nan": list(self.broken)},
            "accuracy": None if isinstance(self.accuracy, str) else self.accuracy._asdict(),
            "maps_of_zeros": self.zeros,
            "maps_with_negative_values": self.signed,
            "effects": effects,
            "scene": group("scene", self.scene),
            "model_scores": None if self.refused else group("model", self.about_model),
            "refused": self.refused,
            "split_half_tau": self.split_half(),
            "verdict": self.verdict,
        }
        return without_nan(facts)

    def csv_text(self) -> str:
        """A row for each photograph: scores about the scene, about the model, and effects."""
        columns = {**self.scene[OWN].values(), **self.about_model[OWN].values()}
        columns |= {f"effect_{change}": values["effect"] for change, values in self.effects.items()}
        numbers = zip(*(values.tolist() for values in columns.values()))
        return csv_of(["photograph", *columns], ([name, *map(csv_cell, own)] for name, own in zip(self.names, numbers)))

    def save(self, folder: str | Path) -> list[Path]:
        """Write scores.json, scenes.csv and report.html to ``folder``."""
        from saccade.files import write_json, write_text

        place = Path(folder)
        written = [write_json(place / SCORES, self.to_json()), write_text(place / SCENES, self.csv_text())]
        return [*written, photographs_page(self).save(place / PAGE)]

    @property
    def accuracy(self) -> Interval | str:
        """How often the network gives the label of a photograph; else why that is not known, "" if none has a label."""
        number_of = {name: number for number, name in enumerate(self.classes)}
        if unknown := [label for label, _ in self.answers if label not in number_of]:
            known = f"its {len(self.classes):,} answers, '{self.classes[0]}' to '{self.classes[-1]}'"
            return f"accuracy of the network: not known, labels such as '{unknown[0]}' are none of {known}"
        right = [number_of[label] == answer for label, answer in self.answers]
        return mean_interval(torch.tensor(right).double()) if right else ""

    def counted(self) -> str:
        """What was scored and what was not, in one line."""
        parts = [f"{len(self.names):,} photographs of {self.truth}, filled in by {self.facts.fill}"]
        nan = f"{len(self.broken):,} left out as their maps hold NaN ({first_few(self.broken, _NAMED)})"
        parts += [nan] if self.broken else []
        accuracy = self.accuracy
        parts += filter(None, [accuracy if isinstance(accuracy, str) else f"accuracy of the network {accuracy}"])
        of_all = f"of {self.pictures:,} maps"
        parts += [f"{self.signed:,} {of_all} had negative values, see --signed"] if self.signed else []
        parts += [f"{self.zeros:,} {of_all} are zeros"] if self.zeros else []
        return "; ".join(parts)

    def __str__(self) -> str:
        return self.verdict


def _tau(values: ByName, score: str) -> float:
    """Kendall's τ_a of the rows' means between the odd and the even photographs."""
    halves = [[mean_defined(values[row][score][start::2]) for row in (OWN, *BASELINES)] for start in (0, 1)]
    pairs = [((a - b), (c - d)) for (a, c), (b, d) in combinations(list(zip(*halves)), 2)]
    known = [one * other for one, other in pairs if not math.isnan(one * other)]
    return sum((product > 0) - (product < 0) for product in known) / len(known) if known else math.nan


def photographs_page(scored: PhotographScores) -> Report:
    """The page of a method that was scored on photographs: verdict, tables, and its best and worst maps."""
    sections = [
        Section(title.capitalize(), text, [ShownTable(*rows, dash="not defined, or not made")])
        for title, text, rows in scored.tables()
    ]
    if scored.refused:
        sections.append(Section("About the model", scored.refused))
    for title, drawn in (("Best", scored.best), ("Worst", scored.worst)):
        text = (
            "By strength. The photograph, and its twins under what was changed. The object is outlined. Each map is of "
            "the class that the model gives to the photograph, and shown by its own peak; p is the share of that class."
        )
        sections.append(Section(f"{title} maps", text, list(map(_strip, drawn))))
    return Report(f"{scored.method} of {scored.model}", f"{scored.verdict}\n\n{scored.counted()}.", sections)


def _strip(drawn: Drawn) -> Figure:
    """A photograph and its twins side by side, each with its map."""
    photograph, names, cells, canvas, share, strength = drawn
    panels = []
    for name, map, p in zip(names, cells.over(canvas, photograph.size), share.tolist()):
        picture = photograph if name == SCENE else photograph.twins[name]
        inside = picture.label_map == photograph.target + 1
        panel = overlay(picture.image, map.numpy(), outline=marks.Mask(inside), least_side=1)
        panels.append((f"{name}: p {p:.2f}", panel.resize((round(panel.width * _HIGH / panel.height), _HIGH))))
    strip = Image.new("RGB", (sum(max(panel.width, _WIDE) for _, panel in panels), _HIGH + _LINE), "white")
    left, pen = 0, ImageDraw.Draw(strip)
    for text, panel in panels:
        strip.paste(panel, (left, _LINE))
        pen.text((left + 2, 1), text, "black", font=font(12))
        left += max(panel.width, _WIDE)
    caption = f"{photograph.name}: strength {strength:.3f}"
    return Figure(strip, caption, f"the map of {photograph.name} and of its twins")
