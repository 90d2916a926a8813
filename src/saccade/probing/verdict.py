"""The result of the trials, in numbers and in one sentence.

Every rival is compared with the linear head on the same splits: differences of the test accuracies, split by split,
with the corrected interval of :mod:`saccade.metrics.intervals`. The head that is kept, and that the sentence is about,
is the attention head with the best validation accuracy. So the sentence rests on one comparison, not on the best of
many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.metrics.intervals import Resplit, resplit_interval
from saccade.models.probe_heads import LINEAR, TITLES
from saccade.probing.folds import Split
from saccade.probing.trials import CLASS_TOKEN, Trial

SIMPLE = {
    "majority": "commonest class",
    "prior": "commonest answer to the question",
    "knn": "nearest neighbours",
    CLASS_TOKEN: "linear on the class token",
}
"""Rivals that are not heads of a model, in words."""
BASE = LINEAR
GUESSES = ("prior", "majority")
"""What answers without looking; the first that there is."""


@dataclass(frozen=True)
class Compared:
    """One rival beside the linear head."""

    name: str
    title: str
    val: float
    """Mean validation accuracy of what was chosen."""
    test: Resplit
    difference: Resplit | None
    """Test accuracy less that of the linear head; None for the linear head itself."""
    seed_spread: float
    """Standard deviation over seeds of the same split, the mean over splits; NaN for one seed."""


def compare(trials: Mapping[str, Trial], splits: Sequence[Split]) -> list[Compared]:
    """Every rival beside the linear head."""
    trained, tested = (_mean_size(splits, part) for part in ("train", "test"))

    def interval(scores: Tensor) -> Resplit:
        return resplit_interval(scores, trained=trained, tested=tested)

    base = trials[BASE].by_split
    rows = []
    for name, trial in trials.items():
        by_seed = torch.tensor(trial.test, dtype=torch.float64)  # (J,S)
        rows.append(
            Compared(
                name=name,
                title=title_of(name),
                val=sum(trial.val) / len(trial.val),
                test=interval(trial.by_split),
                difference=None if name == BASE else interval(trial.by_split - base),
                seed_spread=float(by_seed.std(1).mean()) if by_seed.shape[1] > 1 else float("nan"),
            )
        )
    return rows


def title_of(name: str) -> str:
    """What a rival is called in a sentence."""
    return SIMPLE.get(name) or TITLES[name]


def choose(rows: Sequence[Compared]) -> str:
    """The attention head with the best validation accuracy."""
    heads = [row for row in rows if row.name in TITLES and row.name != BASE]
    return max(heads, key=lambda row: row.val).name


def sentence(rows: Sequence[Compared], chosen: str) -> str:
    """The verdict.

    It tells the chosen head, the linear head and whether they differ; and it says so where the features tell nothing
    that guessing would not.
    """
    of = {row.name: row for row in rows}
    base, guess = of[BASE], next(of[name] for name in GUESSES if name in of)
    head = of[chosen]
    parts = [f"{head.title} {_percent(head.test)}"]
    if chosen != BASE and head.difference is not None:
        parts = [f"{parts[0]}, {base.title} {100 * base.test.mean:.1f} %: {_told(head.difference)}"]
    against = guess.difference
    gains = head.difference is not None and head.difference.low > 0  # then the features do tell something
    if against is not None and not against.high < 0 and not gains:
        parts.append(
            f"{base.title} is not detectably better than always giving the {guess.title} "
            f"({100 * guess.test.mean:.1f} %): "
            "these features do not tell the classes apart, or there are too few pictures"
        )
    else:
        parts.append(f"the {guess.title} alone is {100 * guess.test.mean:.1f} %")
    return "; ".join(parts)


def _told(difference: Resplit) -> str:
    points, half = 100 * difference.mean, 100 * difference.half
    if not difference.is_beyond_zero:
        return f"no difference detected (± {half:.1f})"
    return f"{'better' if points > 0 else 'worse'} by {abs(points):.1f} ± {half:.1f} points"


def _percent(found: Resplit) -> str:
    return f"{100 * found.mean:.1f} ± {100 * found.half:.1f} %"


def _mean_size(splits: Sequence[Split], part: str) -> float:
    return sum(len(getattr(split, part)) for split in splits) / len(splits)
