"""Values of many examples, kept batch by batch where they were made, and read as whole columns in main memory."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.metrics.intervals import SHARE, Ends, Interval, mean_defined, mean_interval


class ColumnBuffer:
    """Tensors by name, example axis first."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}

    def append(self, **columns: Tensor) -> None:
        """Keep tensors of a batch."""
        for name, part in columns.items():
            self._parts.setdefault(name, []).append(_alone(part.detach()))

    def join(self, later: ColumnBuffer) -> None:
        """Keep what other columns hold, after what these do."""
        for name, parts in later._parts.items():
            self._parts.setdefault(name, []).extend(parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which they came."""
        return tuple(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Tensor:
        parts = self._parts[name] = [torch.cat(self._parts[name]).cpu()]  # a GPU is waited for here, and only here
        return parts[0]


class Values(ColumnBuffer):
    """Columns of scores (N,) in float64, NaN where a score is undefined."""

    def add_values(self, values: Mapping[str, Tensor]) -> None:
        """Keep values (B,) of a batch under their names."""
        self.append(**{name: part.detach().double() for name, part in values.items()})

    def values(self) -> dict[str, Tensor]:
        """All values (N,), by name."""
        return {name: self[name] for name in self.names}

    def means(self) -> dict[str, float]:
        """The mean of each over the examples where it is defined; NaN where it is nowhere."""
        return {name: mean_defined(values).mean for name, values in self.values().items()}

    def intervals(self, groups: Tensor) -> dict[str, Interval]:
        """Each mean with its interval, with the group as the unit.

        Args:
            groups: id of each example's picture (N,). Values of which there are fewer belong to the first examples.
        """
        return {
            name: mean_interval(values, groups[: len(values)], ends=ends_of(name))
            for name, values in self.values().items()
        }


ENDS: dict[str, Ends] = dict.fromkeys(("distance", "nss", "map_follow", "map_turn"))
"""Scores that are not shares have no ends."""


def ends_of(score: str) -> Ends:
    """Between which values the score of that name lies: 0 and 1, but for :data:`ENDS` and what has units of its own."""
    return None if score.endswith("_raw") else ENDS.get(score, SHARE)


def _alone(part: Tensor) -> Tensor:
    """``part`` with memory of its own: a view would keep all that it is a view of."""
    is_view = part.untyped_storage().nbytes() > part.numel() * part.element_size()
    return part.clone() if is_view else part
