"""How far a probe is: one scale over all that it does, in expected seconds, which only goes forward.

What a head costs follows from its size: products of features and weights, and the copying of a batch. The speed of this
machine is that of the backbone on one picture, which is measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import torch

from saccade.data.tables.doubts import pluralise
from saccade.data.tables.table import Table
from saccade.geometry import Size
from saccade.metrics.verdict import MOST
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.probing.data import OnProgress
from saccade.probing.features import CLASS_TOKEN, FEATURES, FINER
from saccade.probing.plan import SHOTS, Plan

PICTURES, EVIDENCE = "pictures", "pictures without their evidence"
_DECODING = 0.01  # seconds a picture
_PRODUCTS, _COPIES, _STEP = 2e10, 2e9, 2e-3  # a second, a second, and seconds of a step beside these


class Work:
    """Progress over parts that take so many ``seconds`` each, in their order: shares of 1 for ``on_progress``."""

    def __init__(self, on_progress: OnProgress, seconds: Mapping[str, float]) -> None:
        self._on_progress, self._seconds, self._share = on_progress, seconds, 0.0
        total = sum(seconds.values())
        takes = pluralise(max(1, round(total)), "second") if total < 90 else f"{total / 60:.0f} minutes"
        self._first = f"; all of it takes about {takes}"

    def __call__(self, part: str, done: float, total: float, what: str | None = None) -> None:
        """Say that ``done`` of ``total`` of a part is done; ``what`` is its name, where it is another one."""
        parts = [*self._seconds]
        before = sum(self._seconds[name] for name in parts[: parts.index(part)])
        share = (before + self._seconds[part] * done / max(total, 1)) / sum(self._seconds.values())
        self._share = max(self._share, min(share, 1.0))
        self._on_progress((what or part) + (self._first if part == parts[0] else ""), self._share, 1)


def expected_seconds(
    network: AnyProbe, size: Size, plan: Plan, heads: Sequence[str], finer: Sequence[str], table: Table
) -> dict[str, float]:
    """What each part of a probe of the pictures of ``table`` will take; ``finer`` are the stages of a pyramid."""
    rows = table.as_found or table.rows
    pictures, classes = len({row.image for row in rows}), len({row.label for row in rows})
    asked = len(rows) / pictures  # questions about a picture
    stages, last = network.backbone, network.stage
    grids = stages.grid(size)
    learning = pictures * (plan.splits - 2) / plan.splits
    steps, batch = plan.steps_for(round(learning)), min(plan.batch_size, learning)
    seen = _seconds_a_picture(network, size)
    seconds = {PICTURES: _DECODING * pictures, FEATURES: pictures * seen}
    seconds |= {FINER: pictures * seen} if finer else {}
    for head in heads:
        names = (*finer, last) if head == PYRAMID else (last,)
        values = batch * sum(stages.channels[name] * grids[name][0] * grids[name][1] for name in names)
        values = batch * stages.channels[last] if head in (LINEAR, CLASS_TOKEN) else values
        widths = {"soft": plan.hidden, "hard": plan.hidden + classes, "queries": 2 * plan.queries}
        parts = len(plan.shares) + plan.shots * len(SHOTS)  # each is learned from by itself
        members, stacks = len(plan.settings(head)) + plan.seeds - 1 + parts, 2 + parts
        products = members * values * (2 * widths.get(head, 1) + 2 * asked)
        seconds[head] = plan.splits * steps * (products / _PRODUCTS + stacks * (values / _COPIES + _STEP))
    changed = 3 * min(pictures, MOST) if any(row.box or row.mask for row in rows) else 0
    return {**seconds, EVIDENCE: seen * changed}


@torch.no_grad()
def _seconds_a_picture(network: AnyProbe, size: Size) -> float:
    """How long the backbone takes for one; 0 where there is none."""
    if not any(True for _ in network.backbone.parameters()):
        return 0.0
    picture = torch.zeros(1, 3, *size, device=network.centre.device)
    network.encode(picture)  # the first of all takes longer
    began = time.perf_counter()
    float(network.encode(picture).sum())  # which waits for a GPU
    return time.perf_counter() - began
