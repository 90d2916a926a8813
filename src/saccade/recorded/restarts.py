"""Restarts of one training run: the test error of each, and of the one that was kept.

A record may hold several runs, such as one for each task, with as many restarts each. Restart r of the record is
restart r of every run, so a record has one mean error for each restart, and their spread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Restarts:
    """What one run gave; errors are shares of test questions."""

    errors: dict[str, tuple[float, ...]]
    """By task: the test error of every restart at the end of training."""
    kept: dict[str, float]
    """By task: the test error of the weights that were kept."""
    chosen: int
    """The restart whose weights these are."""
    train_accuracy: tuple[float, ...] = ()
    """Training accuracy of every restart at the end; the run keeps the best."""
    accuracy: tuple[float, ...] = ()
    """The same on the validation questions."""
    generated: tuple[str, ...] = ()
    """Tasks whose training questions were generated here, because no official file has them."""
    minutes: float | None = None
    steps: int | None = None
    sha256: str = ""
    """Digest of the kept weights."""

    def __post_init__(self) -> None:
        if set(self.errors) != set(self.kept):
            raise ValueError("errors and kept must have the same tasks")
        if len({len(each) for each in self.errors.values()}) != 1 or not next(iter(self.errors.values())):
            raise ValueError("errors: every task needs one number for each restart")

    @property
    def count(self) -> int:
        """How many restarts there were."""
        return len(next(iter(self.errors.values())))


def kept_errors(runs: Sequence[Restarts], without: Collection[str] = ()) -> dict[str, float]:
    """The test error of each task with the weights that were kept."""
    return {task: error for run in runs for task, error in run.kept.items() if task not in without}


def errors_by_restart(runs: Sequence[Restarts], without: Collection[str] = ()) -> list[dict[str, float]]:
    """The test error of each task, for each restart; of as many restarts as all runs have."""
    count = min((run.count for run in runs), default=0)
    return [
        {task: errors[number] for run in runs for task, errors in run.errors.items() if task not in without}
        for number in range(count)
    ]
