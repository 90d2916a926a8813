"""Random state: seeding, capture and restoration of every generator that training may draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

RngState = dict[str, Tensor]


def seed_all(seed: int, *, rank: int = 0) -> None:
    """Seed python, numpy and torch (all devices); each rank draws its own stream."""
    mixed = (seed * 1_000_003 + rank) % 2**32  # numpy takes 32 bits
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)


def capture_rng(device: torch.device) -> RngState:
    """The state of all generators as tensors, fit for safetensors."""
    _, python, python_gauss = random.getstate()
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    state = {
        "python": torch.tensor(python, dtype=torch.int64),
        "python_gauss": torch.tensor([] if python_gauss is None else [python_gauss], dtype=torch.float64),
        "numpy": torch.tensor([*np.asarray(keys).tolist(), position, has_gauss], dtype=torch.int64),
        "numpy_gauss": torch.tensor([gauss], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_rng(state: RngState, device: torch.device) -> None:
    """Set all generators to a captured ``state``; a CUDA state is skipped on other devices."""
    gauss = state["python_gauss"].tolist()
    random.setstate((3, tuple(state["python"].tolist()), gauss[0] if gauss else None))
    *keys, position, has_gauss = state["numpy"].tolist()
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, state["numpy_gauss"].item()))
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def isolated_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block on its own random stream, so that validating more often does not change training."""
    before = capture_rng(device)
    seed_all(seed)
    try:
        yield
    finally:
        restore_rng(before, device)
