"""Every packaged recipe: resolves in each of its protocols, and builds a task; those of shipped models are theirs."""

from __future__ import annotations

import pytest

from saccade.config import from_dict, to_dict
from saccade.engine.recipe import Recipe, load_recipe, packaged_recipes, read_recipe
from saccade.errors import ConfigError
from saccade.models.catalog import CATALOG
from saccade.models.facts import read_facts
from saccade.tasks import TASKS
from saccade.verbs.train import build_task
from saccade.zoo import shipped

PROTOCOLS = {"authors", "unlimited"}


def cases() -> list[tuple[str, str]]:
    return [(name, protocol) for name in packaged_recipes() for protocol in read_recipe(name)["protocols"]]


every = pytest.mark.parametrize(("name", "protocol"), cases())


def test_recipes_are_packaged_and_have_protocols() -> None:
    assert "soft-mref" in packaged_recipes()
    for name in packaged_recipes():
        assert {protocol for recipe, protocol in cases() if recipe == name} <= PROTOCOLS
        assert load_recipe(name).protocol in PROTOCOLS


@every
def test_every_protocol_resolves_to_a_whole_recipe(name: str, protocol: str) -> None:
    recipe = load_recipe(name, protocol=protocol)
    assert (recipe.name, recipe.protocol, recipe.protocols) == (name, protocol, {})
    assert recipe.title
    assert "arXiv" in recipe.paper
    assert recipe.task in TASKS
    assert CATALOG[recipe.model.name].task == recipe.task
    for phase in recipe.phases:
        assert phase.select is not None, "which weights are kept is decided on validation"
        assert phase.restore_best
        assert phase.total_steps(150) > phase.validation_steps(150)


@every
def test_every_protocol_builds_its_task(name: str, protocol: str) -> None:
    recipe = load_recipe(name, protocol=protocol, overrides=["data.glyphs=pack"])
    task = build_task(recipe)
    steps = task.steps_per_epoch(recipe.batch_size)
    assert all(phase.total_steps(steps) > 0 for phase in recipe.phases)
    assert (steps is None) == (protocol == "unlimited")


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("model", ["hard", "cross", "film", "blind"])
def test_rows_of_one_table_differ_in_the_model_alone(model: str, protocol: str) -> None:
    soft, other = (load_recipe(f"{name}-mref", protocol=protocol) for name in ("soft", model))
    assert other.model.name == model
    for key in ("task", "data", "phases", "batch_size", "accumulate", "precision", "ema", "seed", "graph"):
        assert getattr(other, key) == getattr(soft, key), key
    assert other.model.config == soft.model.config


def test_soft_mref_by_protocol() -> None:
    fresh, authors = (load_recipe("soft-mref", protocol=protocol) for protocol in ("unlimited", "authors"))
    assert (fresh.batch_size, fresh.phases[0].steps, fresh.phases[0].epochs) == (256, 16_000, None)
    assert (authors.batch_size, authors.phases[0].steps, authors.phases[0].epochs) == (200, None, 54)
    assert fresh.phases[0].optimizer.lr == 2e-3
    assert authors.phases[0].optimizer.lr == 5e-3
    assert load_recipe("soft-mref") == fresh  # what it does when nothing is said
    assert authors.data == fresh.data
    with pytest.raises(ConfigError, match="unknown protocol 'author': did you mean 'authors'"):
        load_recipe("soft-mref", protocol="author")


@pytest.mark.parametrize("name", shipped())
def test_the_recipe_of_a_shipped_model_still_is_the_one_that_made_it(name: str) -> None:
    facts = read_facts(shipped()[name])
    recorded = from_dict(Recipe, facts.recipe)
    now = load_recipe(recorded.name, protocol=facts.protocol)
    for key in ("task", "model", "data", "phases", "batch_size", "accumulate", "replicas", "precision", "ema", "seed"):
        assert getattr(recorded, key) == getattr(now, key), key
    built = build_task(load_recipe(recorded.name, protocol=facts.protocol, overrides=["data.glyphs=pack"]))
    assert to_dict(built.model.config) == facts.model
