"""Tasks: where data, model, loss and metric meet. One dictionary, readable without importing torch."""

from __future__ import annotations

import importlib
from typing import Any

from saccade.errors import ConfigError, nearest

TASKS: dict[str, str] = {
    "caption": "saccade.families.caption.task:CaptionTask",
    "multiset": "saccade.families.multiset.task:MultisetTask",
    "question": "saccade.families.question.task:QuestionTask",
}


def task_class(name: str) -> Any:
    """The class of the task called ``name``, or a ConfigError that names the nearest."""
    if name not in TASKS:
        raise ConfigError(f"no task '{name}': {nearest(name, TASKS)}")
    module, _, cls = TASKS[name].partition(":")
    return getattr(importlib.import_module(module), cls)
