"""The rows of a board while it is measured: the values of every question, and their summary for a record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from saccade.metrics.intervals import ColumnBuffer, Paired, Values, holm, kendall_tau, mean_defined, paired
from saccade.metrics.result import without_nan

SCENE = ("map_follow", "map_turn", "map_specific", "map_hold")
"""About the scene, by re-rendering."""
PLACES = ("true_positive_strength", "selectivity", "pointing", "iou")
"""About the scene, without re-rendering."""
MODEL = ("cause_top", "cause_pairs", "misplaced", "off_objects")
"""About the model, by re-rendering."""
SWEPT = ("deletion", "insertion")
"""About the model, by pixels that are blackened."""
ASKED = "between_questions"
"""How far the map goes from one question to another about the same scene, of those that have the same answer: TV."""
LESS_IS_BETTER = ("misplaced", "off_objects", "deletion")
COMPARED = ("map_follow", "map_turn", "map_specific", "cause_top", "cause_pairs", "misplaced")
"""Scores whose leader is told: a constant map leads in ``map_hold``, and a segmenter in ``off_objects``."""


@dataclass
class Row:
    """The maps of one method on one model, or of a rival."""

    model: str
    method: str
    kind: str
    """``map``: it competes; ``rival``: it knows nothing of the model; ``truth``: it was told the answer."""
    values: Values = field(default_factory=Values)
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``question``, ``scene``, ``right`` and ``empty`` of every question."""

    @property
    def name(self) -> str:
        """Model and method."""
        return f"{self.model}: {self.method}"

    def add(self, scores: dict[str, Tensor], **columns: Tensor) -> None:
        """Take the scores (B,) of a batch, and its ``question``, ``scene``, ``right`` and ``empty`` (B,)."""
        self.columns.append(**columns)
        self.values.add_values(scores)

    def of(self, score: str) -> Tensor:
        """The values (N,) of a score, NaN where it is undefined or was not measured."""
        count = len(self.columns["question"])
        values = self.values[score] if score in self.values else torch.zeros(0, dtype=torch.float64)
        return torch.cat([values, values.new_full((count - len(values),), torch.nan)])

    def summary(self) -> dict[str, Any]:
        """Plain numbers of this row."""
        scenes, right = self.columns["scene"], self.columns["right"]
        first = torch.unique(scenes, return_inverse=True)[1] % 2 == 0  # (N,): every second scene
        intervals = self.values.intervals(scenes)
        parts = {"first_half": first, "second_half": ~first, "right": right, "wrong": ~right}
        return {
            "model": self.model,
            "method": self.method,
            "kind": self.kind,
            "n": len(scenes),
            "scenes": len(torch.unique(scenes)),
            "empty": float(self.columns["empty"].double().mean()),
            "scores": {name: each.mean for name, each in intervals.items()},
            "intervals": {name: [each.low, each.high] for name, each in intervals.items()},
            "counts": {name: each.n for name, each in intervals.items()},
            "parts": {
                part: {
                    "n": int(chosen.sum()),
                    **{name: mean_defined(self.of(name)[chosen]).mean for name in self.values.names},
                }
                for part, chosen in parts.items()
            },
        }


def summarised(rows: list[Row]) -> dict[str, Any]:
    """All rows as plain numbers, how stable their order is, and which of them a leader beats."""
    told = [row.summary() for row in rows]
    competing = [number for number, row in enumerate(rows) if row.kind == "map"]
    agreement = {}
    for score in (*SCENE, *PLACES, *MODEL, *SWEPT):
        halves = [
            [told[number]["parts"][part].get(score, torch.nan) for number in competing]
            for part in ("first_half", "second_half")
        ]
        both = [pair for pair in zip(*halves) if not any(value != value for value in pair)]
        if len(both) > 2:
            agreement[score] = kendall_tau(*zip(*both))
    comparisons = {score: found for score in COMPARED if (found := _against_leader(rows, competing, score))}
    whole: dict[str, object] = without_nan({"rows": told, "kendall_tau": agreement, "comparisons": comparisons})
    return whole


def _against_leader(rows: list[Row], competing: list[int], score: str) -> dict[str, object]:
    """The best of the competing rows, and how far every other one is from it, with p corrected for their number."""
    means = {number: mean_defined(rows[number].of(score)).mean for number in competing}
    means = {number: mean for number, mean in means.items() if mean == mean}
    if len(means) < 2:
        return {}
    sign = -1 if score in LESS_IS_BETTER else 1
    leader = max(means, key=lambda number: sign * means[number])
    others = [number for number in means if number != leader]
    found = [_paired(rows[leader], rows[number], score) for number in others]
    corrected = holm([each.p for each in found])
    return {
        "leader": rows[leader].name,
        "others": [
            {"row": rows[number].name, "difference": each.difference, "p": each.p, "p_holm": p, "scenes": each.pictures}
            for number, each, p in zip(others, found, corrected)
        ],
    }


def _paired(one: Row, other: Row, score: str) -> Paired:
    """The leader minus another row, on the questions that both have."""
    mine, theirs = one.columns["question"], other.columns["question"]
    known = torch.full((int(max(mine.max(), theirs.max())) + 1,), torch.nan, dtype=torch.float64)
    known[theirs] = other.of(score)
    return paired(one.of(score), known[mine], one.columns["scene"])
