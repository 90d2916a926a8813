"""Tiny models of every family, as if they had been trained on a given data set."""

from __future__ import annotations

from pathlib import Path

import torch

from saccade.config import to_dict
from saccade.families import family_of_data, model_spec
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.models.hsal import HsalModel
from tiny_models import save_tiny, tiny_config, tiny_facts

_ARCHITECTURES = {"multiset": "hsal", "caption": "sat-soft"}


def facts_of(data: str, **more: object) -> ModelFacts:
    """Facts of a model of the family that knows ``data``; ``more`` are settings of the data."""
    return tiny_facts(family=family_of_data(data).name, data={"name": data, **more})


def save_trained(folder: Path, data: str, name: str, queries: tuple[str, ...] = ()) -> Path:
    """An untrained model of the family that knows ``data``, saved as if it had been trained on it."""
    family = family_of_data(data).name
    if family not in _ARCHITECTURES:
        return save_tiny(folder, name=name, queries=queries, data={"name": data})
    torch.manual_seed(0)
    spec = model_spec(_ARCHITECTURES[family])
    config = tiny_config(_ARCHITECTURES[family])
    is_reader = spec.load() is HsalModel
    count = config.classes if is_reader else config.vocabulary
    facts = ModelFacts(
        architecture=_ARCHITECTURES[family],
        model=to_dict(config),
        family=family,
        queries=(),
        answers=tuple(f"word{number}" for number in range(count)),
        preprocessing=Preprocessing((31, 34) if is_reader else config.input_size),
        sentences=not is_reader,
        data={"name": data},
        name=name,
    )
    save_model(spec.load()(config), folder, facts)
    return folder
