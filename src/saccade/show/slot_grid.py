"""Attention over slots as numbers in a table: a row for each slot in words, a column for each step of each look.

Pictures, pages and the terminal draw the same table from it. Weight that lies on slots without a text (a memory network
without mask gives its empty slots some) is one row more, with the sum over these slots.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from saccade.errors import DataError, ShapeError
from saccade.show.colours import Rgb, heat, ink_on
from saccade.show.scaling import Scaled, Values, as_map, by_own_peak
from saccade.trace import AttentionTrace, Look

NEEDED = "the answer needs it"
NO_LOOKS = "this model has no attention to show"


@dataclass(frozen=True, eq=False)
class SlotGrid:
    """Rows of slots under columns of looks."""

    headings: tuple[str, ...]
    """One for each column; none for a model without looks."""
    texts: tuple[str, ...]
    """One for each row."""
    weights: Values
    """(R,T) as the model used them."""
    supporting: frozenset[int] = frozenset()
    """Rows that the answer needs."""
    ended: tuple[str, ...] = ()
    """Looks and steps that are not shown: they came after the end."""

    @cached_property
    def scaled(self) -> Scaled | None:
        """The weights as they are painted; None where there is no column."""
        return by_own_peak(self.weights) if self.headings else None

    @cached_property
    def _colours(self) -> list[list[list[int]]]:
        return [] if self.scaled is None else heat(self.scaled.values).round().astype(int).tolist()  # (R,T,3)

    def fill(self, row: int, column: int) -> Rgb:
        """The colour of a cell."""
        red, green, blue = self._colours[row][column]
        return red, green, blue

    def ink(self, row: int, column: int) -> Rgb:
        """The colour of the number in it."""
        return ink_on(self.fill(row, column))

    @property
    def legend(self) -> str:
        """What colours mean, and what is not shown."""
        if self.scaled is None:
            return NO_LOOKS
        after = f"; after the end, not shown: {', '.join(self.ended)}" if self.ended else ""
        return f"weight: {self.scaled.legend}{after}"

    @property
    def bar(self) -> str:
        """What goes on after the legend where rows are marked with a bar."""
        return f"; bar at the left: {NEEDED}" if self.supporting else ""


def slot_grid(
    looks: AttentionTrace | Look | Sequence[Look], sentences: Sequence[str], supporting: Collection[int] = ()
) -> SlotGrid:
    """The table of looks over slots, of one example.

    Args:
        looks: over slots, (1,S) or (1,T,S) each; of a trace those that lie on slots.
        sentences: texts of the slots, from the first on; the slots after them are empty.
        supporting: numbers of the slots that the answer needs.
    """
    if isinstance(looks, AttentionTrace):
        looks = [look for look in looks.looks if not look.is_spatial]
    chosen = [looks] if isinstance(looks, Look) else list(looks)
    headings: list[str] = []
    ended: list[str] = []
    columns: list[torch.Tensor] = []
    for look in chosen:
        weights = _weights(look, len(sentences))  # (T,S)
        active = [True] * look.steps if look.active is None else look.active.reshape(-1).bool().tolist()
        for step in range(look.steps):
            heading = f"{look.name} {step + 1}" if look.has_steps else look.name
            (headings if active[step] else ended).append(heading)
            if active[step]:
                columns.append(weights[step].detach().cpu().float())
    if chosen and not columns:
        raise DataError(f"look '{chosen[-1].name}' has no active step: there is nothing to draw")
    many = len(sentences)
    texts, rest = list(sentences), [column[many:].sum() for column in columns]
    kept = [column[:many] for column in columns]
    if any(float(each) != 0 for each in rest):
        empty = max(len(column) for column in columns) - many
        texts.append(f"({empty} empty slots, together)" if empty > 1 else "(1 empty slot)")
        kept = [torch.cat([column, each.reshape(1)]) for column, each in zip(kept, rest)]
    values = as_map(torch.stack(kept, 1)) if kept else np.zeros((many, 0), np.float32)  # (R,T)
    return SlotGrid(tuple(headings), tuple(texts), values, frozenset(supporting), tuple(ended))


def _weights(look: Look, sentences: int) -> torch.Tensor:
    """(T,S) of a look over slots of one example."""
    if look.is_spatial or look.weights is None:
        raise DataError(f"look '{look.name}' lies on a picture; a table is made of looks of kind 'slots'")
    if look.batch_size != 1:
        raise DataError(f"a drawing shows one example, and this look holds {look.batch_size}: pass look.example(i)")
    weights = look.weights[0] if look.has_steps else look.weights
    if not 0 < sentences <= weights.shape[-1]:
        raise ShapeError("sentences", f"between 1 and {weights.shape[-1]}, the number of slots", (sentences,))
    return weights
