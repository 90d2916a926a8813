"""Losses of any model's total map, as its trace combines it: on the evidence of a batch, and apart for each question.

A model with one look is taught on the cells of its grid; one with several on pixels, where their maps are combined. How
cells lie on pixels does not change while a model trains, so it is worked out once: a captured step then finds it.

Axes: B examples, h and w cells, H and W pixels of the network input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.geometry import Size, cell_profiles
from saccade.losses.maps import evidence_loss, overlap_loss
from saccade.models.base import AttentionModel
from saccade.trace import COMBINE, AttentionTrace, Look, ModelOutput


class _Laid(NamedTuple):
    """How the cells of a look lie on the picture: what each gives to each row and column."""

    rows: Tensor
    """(h,H)."""
    columns: Tensor
    """(w,W)."""


class _MapTerm:
    """What the losses of total maps share."""

    setting = ""
    """The weight of this loss, as recipes call it."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _Laid] = {}

    def _looks(self, model: AttentionModel, raw: ModelOutput) -> tuple[Look, ...]:
        """The looks that the total is made of."""
        looks = AttentionTrace(looks=model.looks(raw), total=model.total).looks_of_total
        looks = looks[-1:] if model.total == "last" else looks
        fixed = [look for look in looks if look.weights is not None and not look.has_steps and look.frame is not None]
        if not looks or len(fixed) < len(looks):
            raise ConfigError(self._untaught(type(model).__name__))
        return looks

    def _total(self, model: AttentionModel, looks: Sequence[Look], size: Size, device: torch.device) -> Tensor:
        """The total map (B,H,W) on the pixels of the network input."""
        combine, neutral = COMBINE[model.total]
        total = torch.full((len(self._weights(looks[0])), *size), neutral, device=device)  # (B,H,W)
        for look in looks:
            rows, columns = self._laid(look, size, device)
            total = combine(total, rows.T @ self._weights(look) @ columns + look.base)
        return total

    def _laid(self, look: Look, size: Size, device: torch.device) -> _Laid:
        """How the cells of ``look`` lie on the pixels of a picture of that size."""
        grid = tuple(self._weights(look).shape[-2:])
        key = (look.name, grid, size, device)
        if key not in self._known:
            frame = cast(Tensor, look.frame)
            found = cell_profiles(frame.detach().cpu(), (grid[0], grid[1]), size) if frame.dim() == 2 else None
            if found is None:
                raise ConfigError(self._untaught(f"the look '{look.name}'"))
            rows, columns = (each.float().to(device) for each in found)
            self._known[key] = _Laid(rows, columns)
        return self._known[key]

    def _weights(self, look: Look) -> Tensor:
        """(B,h,w) float."""
        return cast(Tensor, look.weights).float()

    def _untaught(self, who: str) -> str:
        why = "has no map, a crop, steps, or a grid that moves from picture to picture"
        return f"loss: {self.setting} teaches maps on a fixed grid; {who} {why}: leave it out"


class EvidenceTerm(_MapTerm):
    """Result of ``forward_raw`` and evidence → the loss of :mod:`saccade.losses.maps`."""

    setting = "evidence_weight"

    def __call__(self, model: AttentionModel, raw: ModelOutput, evidence: Tensor) -> Tensor:
        """The loss, a scalar.

        Args:
            model: whose looks are taught.
            raw: what its ``forward_raw`` gave.
            evidence: (B,H,W) bool, in pixels of the network input.
        """
        looks, mask = self._looks(model, raw), evidence.float()  # (B,H,W)
        size = (evidence.shape[-2], evidence.shape[-1])
        if len(looks) == 1 and not looks[0].base:
            rows, columns = self._laid(looks[0], size, evidence.device)
            on_evidence = rows @ mask @ columns.T  # (B,h,w): n of Eq. (1)
            everywhere = rows.sum(1)[:, None] * columns.sum(1)  # (h,w): d
            return evidence_loss(self._weights(looks[0]), on_evidence, everywhere[None])
        total = self._total(model, looks, size, evidence.device)  # (B,H,W)
        return evidence_loss(total, mask, torch.ones_like(mask[:1]))


class OverlapTerm(_MapTerm):
    """Result of ``forward_raw`` about pictures that are asked several times → :mod:`saccade.losses.maps`."""

    setting = "overlap_weight"

    def __call__(self, model: AttentionModel, raw: ModelOutput, size: Size, asks: int) -> Tensor:
        """The loss, a scalar.

        Args:
            model: whose looks are taught.
            raw: what its ``forward_raw`` gave, of B examples.
            size: (H, W) of the network input.
            asks: how many examples in a row are about one picture.
        """
        looks = self._looks(model, raw)
        if len(looks) == 1 and not looks[0].base:
            return overlap_loss(self._weights(looks[0]), asks)
        return overlap_loss(self._total(model, looks, size, raw.logits.device), asks)
