"""Small models of stories in folders, with random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.config import to_dict
from saccade.families import model_spec
from saccade.models.facts import ModelFacts
from saccade.models.folder import save_model

WORDS = (
    "", "bathroom", "garden", "hallway", "in", "is", "john", "kitchen", "mary", "sandra", "the", "to", "went", "where",
)  # fmt: skip
TOLD = ("Mary went to the garden.", "John went to the hallway.", "Mary went to the kitchen.")


def save_story_model(
    folder: Path,
    architecture: str = "memn2n",
    *,
    words: Sequence[str] = WORDS,
    data: Mapping[str, Any] | None = None,
    **config: Any,
) -> Path:
    """A model with random weights, by default of :data:`WORDS`, with a memory of 6 sentences."""
    spec = model_spec(architecture)
    fields = spec.load().Config.__dataclass_fields__
    known = {"words": len(words), "memory": 6, "longest": 6, "times": 6}
    torch.manual_seed(0)
    settings = {**{key: value for key, value in known.items() if key in fields}, **config}
    model = spec.build(settings)
    facts = ModelFacts(
        architecture=architecture,
        model=to_dict(model.config),
        family="story",
        queries=(),
        answers=tuple(words),
        preprocessing=None,
        name=f"tiny-{architecture}",
        data=dict(data or {"name": "stories", "tasks": [1]}),
    )
    save_model(model, folder, facts)
    return folder
