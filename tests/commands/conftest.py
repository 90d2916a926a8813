"""Short splits and small chunks, so that a whole training run takes a second; and one such run to share."""

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
