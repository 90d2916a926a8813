"""What a probe compares and how its heads are trained: the settings of a user, and what stands for those left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from saccade.backbones.catalog import FEATURES
from saccade.config import Count, Weight, Within
from saccade.errors import ConfigError
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID
from saccade.probing.features import CLASS_TOKEN

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
        if self.backbone.startswith(FEATURES):
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
