"""What a phase of classification may be taught by: one dataclass for each loss, by its name in a recipe."""

from __future__ import annotations

from saccade.tasks.label_task import CrossEntropy

LOSSES: dict[str, type] = {"default": CrossEntropy, "cross_entropy": CrossEntropy}
