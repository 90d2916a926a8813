"""Maps that wait until there are others of their size, so that many are scored together."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


class Rows:
    """Tensors of one size, copied one behind the other into one piece of memory that grows by doubling.

    What is copied can be freed at once. Kept one by one, small tensors between large ones would keep the allocator
    from using its memory again.
    """

    def __init__(self) -> None:
        self._held: Tensor | None = None
        self._used = 0

    def add(self, rows: Tensor) -> None:
        """Copy further rows (B,…)."""
        need = self._used + len(rows)
        if self._held is None or need > len(self._held):
            larger = rows.new_empty(max(need, 2 * self._used), *rows.shape[1:])
            if self._held is not None:
                larger[: self._used] = self._held[: self._used]
            self._held = larger
        self._held[self._used : need] = rows
        self._used = need

    def all(self) -> Tensor | None:
        """All rows (N,…), to be read before others are added; None: there are none."""
        return None if self._held is None or not self._used else self._held[: self._used]

    def clear(self) -> None:
        """Forget the rows and keep the memory."""
        self._used = 0


@dataclass
class Waiting:
    """Maps of one size, with truths of one size, that were not scored yet."""

    names: list[str] = field(default_factory=list)
    truths: list[str] = field(default_factory=list)
    maps: Rows = field(default_factory=Rows)
    masks: Rows = field(default_factory=Rows)
    objects: Rows = field(default_factory=Rows)

    def clear(self) -> None:
        """Forget all and keep the memory."""
        self.names, self.truths = [], []
        for rows in (self.maps, self.masks, self.objects):
            rows.clear()
