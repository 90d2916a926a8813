"""Small untrained models of every family, and a family of somebody else."""

from pathlib import Path
from typing import Any

import torch

from saccade.config import to_dict
from saccade.families import Family, ModelSpec, families, family_of_data, family_of_model, model_spec
from saccade.families.question.task import QuestionTask
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.models.hsal import HsalModel
from tiny_models import save_tiny, tiny_config, tiny_facts

LIVE = tuple(name for family in families().values() for name in family.live)
"""The models that the tour carries in its page, as their families say."""
WORDS = (
    "", "mary", "john", "sandra", "moved", "went", "back", "to", "the", "kitchen", "garden", "office", "where", "is"
)  # fmt: skip
STORY = ["Mary moved to the kitchen.", "John went to the garden.", "Mary went back to the office."]
QUESTION = "Where is Mary?"


def save_story_model(folder: Path, name: str = "teller", architecture: str = "memn2n", **changes: object) -> Path:
    """A model of stories with a vocabulary of its own, with ``changes`` of its settings."""
    torch.manual_seed(sum(name.encode()))
    config = tiny_config(architecture, words=len(WORDS), **{"memory": 5, **changes})
    model = model_spec(architecture).load()(config)
    with torch.no_grad():
        for values in model.parameters():
            values.mul_(2)  # so that hops differ, and weights are far from uniform
    family = family_of_model(architecture).name
    facts = ModelFacts(
        architecture=architecture, model=to_dict(config), family=family, queries=(), answers=WORDS, preprocessing=None,
        name=name,
    )  # fmt: skip
    save_model(model, folder, facts)
    return folder


def facts_of(data: str, **more: object) -> ModelFacts:
    """Facts of a model of the family that knows ``data``; ``more`` are settings of the data."""
    return tiny_facts(family=family_of_data(data).name, data={"name": data, **more})


def save_trained(folder: Path, data: str, name: str, queries: tuple[str, ...] = ()) -> Path:
    """A model of the family that knows ``data``, saved as if it had been trained on it."""
    family = family_of_data(data).name
    architecture = {"multiset": "hsal", "caption": "sat-soft"}.get(family)
    if architecture is None:
        return save_tiny(folder, name=name, queries=queries, data={"name": data})
    config, kind = tiny_config(architecture), model_spec(architecture).load()
    is_reader = kind is HsalModel
    facts = ModelFacts(
        architecture=architecture, model=to_dict(config), family=family, queries=(),
        answers=tuple(f"word{number}" for number in range(config.classes if is_reader else config.vocabulary)),
        preprocessing=Preprocessing((31, 34) if is_reader else config.input_size), sentences=not is_reader,
        data={"name": data}, name=name,
    )  # fmt: skip
    save_model(kind(config), folder, facts)
    return folder


class Lines(Family):
    """Somebody's family: pictures and questions, with a panel of its own."""

    def task(self) -> Any:
        return QuestionTask


def save_foreign(folder: Path, monkeypatch: Any) -> Path:
    """A model of the family "lines", whose panel lies in ``folder``."""
    (folder / "panel.js").write_text("// Nothing to be seen.\nexport function panel(place) {}\n", encoding="utf-8")
    family = Lines(
        name="lines", title="a picture in, a line out", folder=folder, data={}, headline=("accuracy",),
        models={"line-soft": ModelSpec(lambda: model_spec("soft").load(), "draws lines", "nobody")},
        panel="panel.js",
    )  # fmt: skip
    monkeypatch.setitem(families(), "lines", family)
    return save_tiny(folder / "m", name="liner", family="lines", architecture="line-soft")
