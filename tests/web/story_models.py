"""Untrained models of stories, small, with a vocabulary of their own."""

from __future__ import annotations

from pathlib import Path

import torch

from saccade.config import to_dict
from saccade.families import family_of_model, model_spec
from saccade.models.facts import ModelFacts
from saccade.models.folder import save_model
from tiny_models import tiny_config

WORDS = (
    "",
    "mary",
    "john",
    "sandra",
    "moved",
    "went",
    "back",
    "to",
    "the",
    "kitchen",
    "garden",
    "office",
    "where",
    "is",
)
STORY = ["Mary moved to the kitchen.", "John went to the garden.", "Mary went back to the office."]
QUESTION = "Where is Mary?"


def save_story_model(folder: Path, name: str = "teller", architecture: str = "memn2n", **changes: object) -> Path:
    """A model of the size for tests in ``folder``, with ``changes`` of its settings."""
    torch.manual_seed(sum(name.encode()))
    spec = model_spec(architecture)
    config = tiny_config(architecture, words=len(WORDS), **{"memory": 5, **changes})
    model = spec.load()(config)
    with torch.no_grad():
        for values in model.parameters():
            values.mul_(2)  # so that hops differ, and weights are far from uniform
    facts = ModelFacts(
        architecture=architecture,
        model=to_dict(config),
        family=family_of_model(architecture).name,
        queries=(),
        answers=WORDS,
        preprocessing=None,
        name=name,
    )
    save_model(model, folder, facts)
    return folder
