"""A published transformer and its facts, as the loaders for timm and transformers return them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from saccade.geometry import Size


@dataclass(frozen=True, eq=False)
class Published:
    """A transformer with its published weights."""

    network: nn.Module
    name: str
    """As the user wrote it: ``timm:NAME`` or ``hf:NAME``."""
    size: Size
    """(H, W) of its input."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...] = ()
    """What it answers, by number, no two alike; none of a model without a head."""


def distinct(words: Sequence[str]) -> tuple[str, ...]:
    """Names of classes, those that repeat with their number: ImageNet has two cranes.

    >>> distinct(["crane", "tench", "crane"])
    ('crane (class 0)', 'tench', 'crane (class 2)')
    """
    often = Counter(words)
    return tuple(f"{word} (class {number})" if often[word] > 1 else word for number, word in enumerate(words))


def numbered(count: int) -> tuple[str, ...]:
    """Classes whose names are not known.

    >>> numbered(2)
    ('class 0', 'class 1')
    """
    return tuple(f"class {number}" for number in range(count))
