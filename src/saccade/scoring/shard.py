"""What scoring found of some of the maps, to be brought together with the rest."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from saccade.metrics.maps.scorer import MapScorer


@dataclass(frozen=True)
class Shard:
    """What scoring found of a part of the maps; it can travel between processes."""

    seen: tuple[str, ...]
    """Names of all maps, in order."""
    names: tuple[str, ...]
    """Names of the scored maps, in order."""
    pictures: tuple[str, ...]
    """By their number in ``scorer``."""
    scorer: MapScorer
    found: frozenset[str]
    left_out: dict[str, list[str]]
    notes: dict[str, str]
    counts: dict[str, int]
    donors: list[tuple[str, Tensor]]
    has_objects: bool | None
