"""The loss that teaches any model where to look: its total map, as its trace combines it, on the evidence of a batch.

A model with one look is taught on the cells of its grid; one with several on pixels, where their maps are combined. How
cells lie on pixels does not change while a model trains, so it is worked out once: a captured step then finds it.

Axes: B examples, h and w cells, H and W pixels of the network input.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.geometry import cell_profiles
from saccade.losses.evidence import evidence_loss
from saccade.models.base import AttentionModel, Raw
from saccade.trace import COMBINE, AttentionTrace, Look


class _Laid(NamedTuple):
    """How the cells of a look lie on the picture: what each gives to each row and column."""

    rows: Tensor
    """(h,H)."""
    columns: Tensor
    """(w,W)."""


class EvidenceTerm:
    """Result of ``forward_raw`` and evidence → the loss of :mod:`saccade.losses.evidence`."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _Laid] = {}

    def __call__(self, model: AttentionModel, raw: Raw, evidence: Tensor) -> Tensor:
        """The loss, a scalar.

        Args:
            model: whose looks are taught.
            raw: what its ``forward_raw`` gave.
            evidence: (B,H,W) bool, in pixels of the network input.
        """
        looks = AttentionTrace(looks=model.looks(raw), total=model.total).looks_of_total
        if model.total == "last":
            looks = looks[-1:]
        if not looks:
            raise ConfigError(
                f"loss: evidence_weight teaches maps, and {type(model).__name__} has none on the picture; leave it out"
            )
        laid = [self._laid(look, evidence) for look in looks]
        mask = evidence.float()  # (B,H,W)
        if len(looks) == 1 and not looks[0].base:
            (rows, columns), weights = laid[0], _weights(looks[0])
            on_evidence = rows @ mask @ columns.T  # (B,h,w): n of Eq. (1)
            everywhere = rows.sum(1)[:, None] * columns.sum(1)  # (h,w): d
            return evidence_loss(weights, on_evidence, everywhere[None])
        combine, neutral = COMBINE[model.total]
        total = torch.full_like(mask, neutral)  # (B,H,W)
        for look, (rows, columns) in zip(looks, laid):
            total = combine(total, rows.T @ _weights(look) @ columns + look.base)
        return evidence_loss(total, mask, torch.ones_like(mask[:1]))

    def _laid(self, look: Look, evidence: Tensor) -> _Laid:
        """How the cells of ``look`` lie on the pixels of the evidence."""
        size, grid = (evidence.shape[-2], evidence.shape[-1]), tuple(_weights(look).shape[-2:])
        key = (look.name, grid, size, evidence.device)
        if key not in self._known:
            frame = look.frame
            found = (
                None
                if frame is None or frame.dim() != 2
                else cell_profiles(frame.detach().cpu(), (grid[0], grid[1]), size)
            )
            if found is None:
                raise ConfigError(_untaught(look))
            rows, columns = (each.float().to(evidence.device) for each in found)
            self._known[key] = _Laid(rows, columns)
        return self._known[key]


def _weights(look: Look) -> Tensor:
    """(B,h,w) float."""
    if look.weights is None or look.has_steps:
        raise ConfigError(_untaught(look))
    return look.weights.float()


def _untaught(look: Look) -> str:
    return (
        f"loss: evidence_weight teaches maps on a fixed grid; the look '{look.name}' is a crop, has steps, or moves "
        "from picture to picture: leave it out"
    )
