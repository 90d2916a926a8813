"""What a scoring run remembers of every example, batch by batch, to be read as whole columns at the end."""

from __future__ import annotations

import torch
from torch import Tensor


class KeptColumns:
    """Tensors by name, example axis first, in main memory."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}

    def keep(self, **columns: Tensor) -> None:
        """Keep tensors of a batch."""
        for name, part in columns.items():
            self._parts.setdefault(name, []).append(part.detach().cpu())

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Tensor:
        return torch.cat(self._parts[name])
