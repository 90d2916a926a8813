"""What a probe compares, how its heads are trained, and how long it will take.

:class:`Plan` has the settings of a user, and defaults. Progress is one scale over all that a probe does, in expected
seconds. What a head costs follows from its size, and from the measured speed of the backbone on one picture.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch

from saccade.backbones.catalog import FEATURES as MAPS
from saccade.config import Count, Weight, Within
from saccade.data.tables.doubts import pluralise
from saccade.data.tables.table import Table
from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.metrics.verdict import MOST
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID
from saccade.probing.features import CLASS_TOKEN, FEATURES, FINER
from saccade.progress import OnProgress

RATES, DECAYS = (1e-3, 3e-3, 1e-2, 3e-2), (1e-2, 1.0)
QUICK_HEADS, QUICK_RATES, QUICK_DECAYS = ("cross", PYRAMID), (3e-3, 1e-2), (1e-2,)
"""What a quick probe compares: the cheapest attention on one map and on several, with few settings."""
SHOTS = (1, 2, 5, 10)
"""Training pictures of a class, for the low-shot curve."""


class Setting(NamedTuple):
    """How a head is trained."""

    rate: float
    decay: float
    """Of the weights."""


@dataclass(frozen=True)
class Plan:
    """What is probed and how heads are trained.

    A quick probe, which is the default, compares few heads with few settings. With ``grid`` it compares all.
    """

    backbone: str = "mobilenetv2"
    """Its name, or features:FOLDER (:mod:`saccade.backbones.feature_folder`), which has no network."""
    through: str | None = None
    """Last stage of the backbone; None: all stages."""
    size: Annotated[int, Within(16, 1024)] = 224
    """Side of the network input in pixels."""
    heads: Sequence[str] | None = None
    """Heads to compare with the linear one; None: :data:`QUICK_HEADS`, of a grid all that the backbone can have."""
    grid: bool = False
    """Whether to compare all heads and settings."""
    keep: str | None = None
    """The head of the model; None: the attention head that is best on validation."""
    untrained: bool = False
    """Whether the backbone has random weights."""
    rates: tuple[float, ...] | None = None
    """Learning rates to choose from; None: :data:`QUICK_RATES`, of a grid :data:`RATES`."""
    linear_rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
    """Learning rates of the linear head. It is cheap and the baseline to beat, so it is tuned the most."""
    decays: tuple[float, ...] | None = None
    """Weight decays to choose from; None: :data:`QUICK_DECAYS`, of a grid :data:`DECAYS`."""
    seeds: Annotated[int, Within(1, 20)] = 3
    """Trainings with the best setting."""
    splits: Annotated[int, Within(3, 20)] = 5
    shares: tuple[float, ...] = (0.25, 0.5)
    """Shares of the training pictures for the learning curve; the full set is added."""
    shots: bool = False
    """Whether to learn from :data:`SHOTS` pictures a class too."""
    steps: Count | None = None
    """Batches to learn from; None: :attr:`epochs` times through the training pictures."""
    epochs: Count | None = None
    """How often to see all training pictures; None: ten times, and at least 150 batches."""
    batch_size: Count = 64
    hidden: Count = 32
    queries: Count = 4
    evidence_weight: Weight = 0.0
    """Weight of an extra loss that trains the attention heads to look at boxes and masks; 0: no such loss."""
    device: str = "auto"
    """Where features are computed and heads learn: auto, cpu, cuda, cuda:N or mps."""

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("give epochs or steps, not both")
        if self.backbone.startswith(MAPS):
            for name, unused in (("through", None), ("size", Plan.size), ("untrained", False)):
                if getattr(self, name) != unused:
                    raise ConfigError(f"{name}: '{self.backbone}' has maps and no network; leave it out")

    def steps_for(self, pictures: int) -> int:
        """Batches for that many training pictures."""
        batches = -(-pictures // self.batch_size)
        return self.steps or (self.epochs * batches if self.epochs else max(150, 10 * batches))

    @property
    def compared(self) -> Sequence[str]:
        """The heads to compare; those that the backbone cannot have are among them only if they are named."""
        every = HEADS if self.grid else QUICK_HEADS
        return (*every, CLASS_TOKEN) if self.heads is None else self.heads

    def settings(self, head: str) -> list[Setting]:
        """The settings that validation chooses from."""
        rates = self.rates or (RATES if self.grid else QUICK_RATES)
        decays = self.decays or (DECAYS if self.grid else QUICK_DECAYS)
        own = self.linear_rates if head in (LINEAR, CLASS_TOKEN) else rates
        return [Setting(rate, decay) for rate in own for decay in decays]


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

    def __call__(self, part: str, done: float, total: float | None, what: str | None = None) -> None:
        """Say that ``done`` of ``total`` of a part is done; ``what`` is its name, where it is another one."""
        parts = [*self._seconds]
        before = sum(self._seconds[name] for name in parts[: parts.index(part)])
        share = (before + self._seconds[part] * done / max(total or 1, 1)) / sum(self._seconds.values())
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
