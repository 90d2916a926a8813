"""Runs with other settings than their recipe's: the ablation table, and the curve of the sparse gates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from saccade.families.question.reproduction.table1 import DATA, LABELS, SETTINGS
from saccade.recorded import Measured, RecordedRun, measure
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import Setting, mean_text, seeds_text

UNTOLD = (
    "data.glyphs=",
    "data.drawing=",
    "data.backgrounds=",
    "seed=",
    "compile=",
    "graph=",
    "channels_last=",
    "phases.0.validate_every=",
)
METRICS = ("accuracy", "true_positive_strength", "selectivity", "causal_follow", "causal_hold")
RIGHT = ("accuracy", "exact_match")
"""What says how often an answer is right: of a question; of a multiset or a caption."""


@dataclass(frozen=True)
class PenaltyPoint:
    """HAttNet-CTX at one price of gates that are open where nothing is."""

    penalty: float
    accuracy: Measured
    strength: Measured
    selectivity: Measured


def ablation_table(runs: Sequence[RecordedRun], variants: Sequence[RecordedRun]) -> PlainTable:
    """Every variant under the plain runs of the same system, data and protocol; what was changed is the row's name.

    Only questions about scenes: what is read or said has other scores, in tables of its own.
    """
    rows: list[list[str]] = []
    for key, group in _cells([run for run in variants if run.on in DATA]).items():
        system, data, protocol, glyphs, drawing, _ = key
        plain = [run for run in runs if _cell(run, run.system) == key[:-1]]
        drawn = "" if drawing == "blend" else f", drawing {drawing}"
        told = f"{LABELS.get(system, system)}\n{data.upper()}, {Setting(protocol, glyphs).label}{drawn}"
        if plain and told not in {row[0] for row in rows}:
            rows.append(_row(told, "as the recipe has it", plain))
        rows.append(_row(told, key[-1], group))
    columns = ("system", "changed\nseeds × n", "right", "on target", "selective", "follows", "holds")
    return PlainTable("ablations: %, mean ± std over seeds", columns, rows)


def _cells(variants: Sequence[RecordedRun]) -> dict[tuple[str, ...], list[RecordedRun]]:
    """Variants that differ in nothing but their seed, by system, data, protocol, glyphs, drawing, and what changed."""
    cells: dict[tuple[str, ...], list[RecordedRun]] = {}
    for run in variants:
        system = run.recipe["name"].removesuffix(f"-{run.on}")
        cells.setdefault((*_cell(run, system), changed(run)), []).append(run)
    return dict(sorted(cells.items()))


def _cell(run: RecordedRun, system: str) -> tuple[str, ...]:
    return system, run.on, run.protocol, run.glyphs, run.drawing


def _row(told: str, what: str, runs: Sequence[RecordedRun]) -> list[str]:
    right = next((found for metric in RIGHT if (found := measure(runs, metric)) is not None), None)
    held = [right, *(measure(runs, metric) for metric in METRICS[1:])]
    first = next((found for found in held if found is not None), None)
    count = "" if first is None else f"\n{seeds_text(first)}"
    return [told, f"{what}{count}", *map(mean_text, held)]


_PHRASES = {
    r"model\.config\.norm_after_gates=(?i:false)": "no BatchNorm after the gates",
    r"model\.config\.context=(\d+)": r"gates see \1×\1 cells",
    r"model\.config\.gated=\[\]": "no gates",
    r"model\.config\.gated=\[?(.+?)\]?": r"gates after \1 only",
    r"model\.config\.(gate|spread)_penalty=(.+)": r"\1 penalty \2",
    r"phases\.\d+\.optimizer\.lr=(.+)": r"learning rate \1",
    r"phases\.\d+\.optimizer\.weight_decay=(.+)": r"weight decay \1",
    r"precision=(.+)": r"precision \1",
    r"start=null": "from nothing",
    r"ema=(.+)": r"weights averaged with decay \1",
    r"data\.augment\.area=\[(.+), ?(.+)\]": r"pictures cut to \1–\2 of their area",
    r"data\.augment\.aspect=(.+)": r"stretched by up to \1",
    r"data\.augment\.mirror=(?i:false)": "not mirrored",
    r"phases\.\d+\.(steps|epochs)=(.+)": r"\2 \1",
    r"model\.config\.(\w+)=(.+)": r"\1 \2",
}


def changed(run: RecordedRun) -> str:
    """In words, what the command of ``run`` set otherwise than its recipe; its name where the command does not say.

    Glyphs and seed are no changes: they have columns of their own. How a run was made to go faster is none either.
    """
    words = shlex.split(run.command)
    given = [value for option, value in pairwise(words) if option == "--set"]
    told = [_phrase(text) for text in given if not text.startswith(UNTOLD)]
    return ", ".join(told) or run.name


def _phrase(text: str) -> str:
    for pattern, phrase in _PHRASES.items():
        match = re.fullmatch(pattern, text)
        if match:
            return match.expand(phrase)
    return text


def penalty_curve(runs: Sequence[RecordedRun], variants: Sequence[RecordedRun]) -> list[PenaltyPoint]:
    """HAttNet-CTX on MREF by its spread penalty, from 0 on: recorded runs that differ in nothing else.

    They were trained equally long, or the price would be mixed up with the time: of the lengths on record the one with
    the most prices, first of all with that of 0.
    """
    unlimited = SETTINGS[-1]
    by_length: dict[str, dict[float, list[RecordedRun]]] = {}
    for run in (*runs, *variants):
        setting = (unlimited.protocol, unlimited.glyphs, unlimited.drawing)
        wanted = (run.on, run.protocol, run.glyphs, run.drawing) == ("mref", *setting)
        others = {key: value for key, value in run.settings.items() if key not in ("spread_penalty", "dropout")}
        plain = others.pop("gate_penalty", 0.0) == 0 and others in ({}, {"context": 3})
        if wanted and plain and run.recipe["model"]["name"] == "hattnet-ctx":
            by_penalty = by_length.setdefault(_length(run), {})
            by_penalty.setdefault(float(run.settings.get("spread_penalty", 0.0)), []).append(run)
    by_penalty = max(by_length.values(), key=lambda prices: (0.0 in prices, len(prices)), default={})
    points = []
    for penalty, found in sorted(by_penalty.items()):
        one_each = list({run.seed: run for run in reversed(found)}.values())  # a recorded run before a variant
        accuracy, strength, selectivity = (measure(one_each, metric) for metric in METRICS[:3])
        if accuracy is not None and strength is not None and selectivity is not None:
            points.append(PenaltyPoint(penalty, accuracy, strength, selectivity))
    return points


def _length(run: RecordedRun) -> str:
    """How long a run was trained, in words."""
    phases = run.recipe.get("phases", ())
    spans = [f"{phase[unit]} {unit}" for phase in phases for unit in ("steps", "epochs") if phase.get(unit)]
    return f"{', '.join(spans)} of {run.recipe.get('batch_size')}"


def penalty_table(points: Sequence[PenaltyPoint]) -> PlainTable:
    """The curve in numbers, with what each price costs in accuracy."""
    plain = next((point.accuracy.mean for point in points if point.penalty == 0), None)
    rows = []
    for point in points:
        cost = "–" if plain is None else f"{100 * (plain - point.accuracy.mean):+.2f}"
        held = map(mean_text, (point.accuracy, point.strength, point.selectivity))
        rows.append([f"{point.penalty:g}", *held, cost, seeds_text(point.accuracy)])
    columns = ("spread penalty", "accuracy", "on target", "selective", "accuracy lost", "seeds × n")
    return PlainTable("sparse gates: HAttNet-CTX on MREF, unlimited, %", columns, rows)
