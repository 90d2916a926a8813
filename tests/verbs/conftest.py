"""Short splits and small chunks, so that a whole training run takes a second; and one such run to share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tiny_runs import short_splits, train_tiny


@pytest.fixture(autouse=True)
def _short_splits() -> Iterator[None]:
    with short_splits():
        yield


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a few steps; not to be changed."""
    with short_splits():
        return train_tiny(tmp_path_factory.mktemp("runs") / "tiny").out


@pytest.fixture(scope="module")
def tuned(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of two steps that went on from ``run`` with other rates and seeds."""
    runs = tmp_path_factory.mktemp("tuned")
    short = ("phases.0.steps=2", "phases.0.validate_every=2")
    with short_splits():
        slow = train_tiny(runs / "slow", *short, "phases.0.optimizer.lr=1e-4", start=run)
        fast = train_tiny(runs / "fast", *short, "phases.0.optimizer.lr=1e-3", seed=1, start=run)
    return slow.out, fast.out
