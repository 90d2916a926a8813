"""Every packaged recipe: resolves in each of its protocols, and builds a task; those of shipped models are theirs."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from saccade.commands.train import build_task, resolve
from saccade.config import from_dict
from saccade.engine.recipe import Recipe, load_recipe, packaged_recipes, read_recipe
from saccade.families import data_entries, family, models
from saccade.families.question.scenes import SCENES, SceneDataConfig
from saccade.models.facts import read_facts
from saccade.zoo import shipped

PROTOCOLS = {"authors", "unlimited"}
SPLITS = {"pictures", "species"}
"""Protocols of the birds."""
CAPTIONS = {"official", "dev"}
"""Protocols of captioned photographs."""


STORIES = {"task", "joint"}
"""Protocols of stories: a model for each task, or one for all."""


@cache
def whole(name: str) -> Recipe:
    """A recipe in its own protocol; not to be changed."""
    return load_recipe(name)


def on_stories(name: str) -> bool:
    """Whether a recipe is trained on stories, which are generated and finite."""
    return whole(name).family == "story"


CLASSES = {"full", "short", "tune", "paper"}
"""Protocols of a collection that is always split in the same way: all of train, or a part held out to choose by."""


def on_collection(name: str) -> bool:
    """Whether a recipe names a known collection of pictures, which must be fetched; nothing is then chosen by val."""
    entries = data_entries().get(str(whole(name).data.get("name")), ())
    return any(entry.kind == "collection" for _, entry in entries)


def on_pictures(name: str) -> bool:
    """Whether a recipe is trained on given pictures instead of generated scenes: it then does not name them."""
    return "name" not in whole(name).data


def cases() -> list[tuple[str, str | None]]:
    """Every recipe with each of its protocols; None for one that has none."""
    return [
        (name, protocol) for name in packaged_recipes() for protocol in read_recipe(name).get("protocols") or [None]
    ]


CASES = cases()
every = pytest.mark.parametrize(("name", "protocol"), CASES)
generated = pytest.mark.parametrize(
    ("name", "protocol"), [case for case in CASES if not on_pictures(case[0]) and not on_collection(case[0])]
)


def test_recipes_are_packaged_and_have_protocols() -> None:
    assert {"soft-mref", "attributes", "attributes-head", "soft-cub", "soft-vg"} <= set(packaged_recipes())
    for name in packaged_recipes():
        of_files = SPLITS if name.endswith("-cub") else CAPTIONS if name.startswith("sat-") else set()
        drawn = STORIES if on_stories(name) else CLASSES if on_collection(name) else PROTOCOLS
        known = of_files if on_pictures(name) else drawn
        assert {protocol for recipe, protocol in CASES if recipe == name and protocol} <= known
        assert load_recipe(name).protocol in {*known, *([None] if on_stories(name) else [])} or not known


def test_a_file_holds_variants_and_data_chooses_among_them() -> None:
    base, other = load_recipe("soft"), load_recipe("soft-mbg")
    assert (base.name, base.data["name"], other.name, other.data["name"]) == ("soft", "mref", "soft-mbg", "mbg")
    assert (base.batch_size, other.batch_size) == (1024, 256)
    assert base.model == other.model
    assert resolve("soft", data="mbg") == other
    assert resolve("soft-mdist", data="mbg").name == "soft-mdist"  # a variant that was named stays


@every
def test_every_protocol_resolves_to_a_whole_recipe(name: str, protocol: str | None) -> None:
    recipe = load_recipe(name, protocol=protocol)
    assert (recipe.name, recipe.protocol, recipe.protocols) == (name, protocol, {})
    assert recipe.title
    assert "arXiv" in recipe.paper or "CVPR" in recipe.paper
    assert recipe.model.name in family(recipe.family).models
    for phase in recipe.phases:
        if on_collection(name):
            assert phase.select is None, "the last weights are kept: val may have been learnt"
        elif phase.loss.get("target") == "responses":
            assert phase.select is None, "no score of validation says how near regions are to what they learn"
        elif not on_stories(name):
            assert phase.select is not None, "which weights are kept is decided on validation"
            assert phase.restore_best
        assert phase.total_steps(150) >= phase.validation_steps(150)
    assert (recipe.phases[-1].select is None) == on_collection(name)


@generated
def test_every_protocol_builds_its_task(name: str, protocol: str) -> None:
    small = ["data.questions=100", "data.tasks=[1,2]"] if on_stories(name) else ["data.glyphs=pack"]
    small = [] if load_recipe(name).family == "classify" else small
    recipe = load_recipe(name, protocol=protocol, overrides=small)
    recipe.model.config.pop("pretrained", None)  # published weights are not at hand
    task = build_task(recipe)
    steps = task.steps_per_epoch(recipe.batch_size)
    assert all(phase.total_steps(steps) > 0 for phase in recipe.phases)
    assert (steps is None) == (protocol == "unlimited")


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("model", ["hard", "cross", "film", "blind"])
def test_rows_of_one_table_differ_in_the_model_alone(model: str, protocol: str) -> None:
    soft, other = (load_recipe(f"{name}-mref", protocol=protocol) for name in ("soft", model))
    assert other.model.name == model
    for key in ("family", "data", "phases", "batch_size", "accumulate", "precision", "ema", "seed", "graph"):
        assert getattr(other, key) == getattr(soft, key), key
    assert other.model.config == soft.model.config


@pytest.mark.parametrize("data", ["", "-scenes", "-tuned"])
def test_rows_about_captions_differ_in_the_attention_alone(data: str) -> None:
    soft, hard = (load_recipe(f"{name}{data}") for name in ("sat-soft", "sat-hard"))
    assert (soft.model.name, hard.model.name) == ("sat-soft", "sat-hard")
    assert soft.model.config == hard.model.config
    assert (soft.phases[0].loss["name"], hard.phases[0].loss["name"].split("_")[0]) == ("soft", "hard")
    for key in ("family", "data", "batch_size", "accumulate", "precision", "ema", "seed", "graph", "protocol"):
        assert getattr(soft, key) == getattr(hard, key), key


MULTISETS = ("mnist-set", "mnist-multiset", "svhn-multiset")


@pytest.mark.parametrize("data", MULTISETS)
@pytest.mark.parametrize(
    ("system", "loss"),
    [("hsal-ce", "cross_entropy"), ("hsal-ordered", "cross_entropy_ordered"), ("hsal-oracle", "multiset_loss")],
)
def test_rows_about_multisets_differ_in_what_teaches_the_controllers_alone(system: str, loss: str, data: str) -> None:
    hsal, other = (load_recipe(f"{name}-{data}") for name in ("hsal", system))
    assert [phase.loss for phase in other.phases[1:]] == [{"name": loss}] * (len(hsal.phases) - 1)
    assert all(phase.loss["name"].startswith("reinforce") for phase in hsal.phases[1:])
    shorter = {"steps": 4000} if f"{system}-{data}" in ("hsal-ordered-mnist-set", "hsal-ordered-mnist-multiset") else {}
    as_taught = [replace(one, loss=loss, **shorter) for one in hsal.phases[1:]]
    assert list(other.phases[1:]) == as_taught
    assert other.phases[0] == hsal.phases[0]
    for key in ("family", "data", "batch_size", "accumulate", "precision", "ema", "seed", "graph"):
        assert getattr(other, key) == getattr(hsal, key), key
    assert _published_network(other) == _published_network(hsal)
    if system != "hsal-ce":  # the paper's own baseline is on its own network
        assert other.model == hsal.model


def _published_network(recipe: Recipe) -> tuple[str, dict[str, Any]]:
    """A reader without what saccade adds to it: glimpses that follow the priority map."""
    return recipe.model.name, recipe.model.config | {"follow_priority": False}


@pytest.mark.parametrize("data", MULTISETS)
def test_counts_see_what_hsal_sees(data: str) -> None:
    hsal, counts = (load_recipe(f"{name}-{data}") for name in ("hsal", "counts"))
    looks = ("sharpness", "follow_priority")  # of a mask, of glimpses
    seen = {key: value for key, value in hsal.model.config.items() if key not in looks}
    assert (counts.model.name, counts.model.config) == ("multiset-counts", seen)
    assert (counts.data, counts.phases[0]) == (hsal.data, hsal.phases[0])
    assert all(phase.loss == {"name": "counts"} for phase in counts.phases[1:])


def _data_meant(recipe: Recipe) -> Any:
    """The settings of generated scenes with their defaults; of pictures, as they are."""
    return from_dict(SceneDataConfig, recipe.data) if recipe.data.get("name") in SCENES else recipe.data


def last_training(command: str) -> Recipe:
    """The recipe of the last ``saccade train`` in a recorded command, as it resolves today."""
    words = next(part.split(maxsplit=2)[2] for part in reversed(command.split("&&")) if "saccade train" in part)
    recipe, *rest = shlex.split(words)
    given: dict[str, Any] = {}
    for option, value in zip(rest[::2], rest[1::2], strict=True):
        name = {"--set": "overrides", "--phase": "phases"}.get(option, option.removeprefix("--"))
        given[name] = (*given.get(name, ()), value) if name in ("overrides", "phases") else value
    given.pop("out", None)
    return resolve(recipe, **{**given, "seed": int(given["seed"])} if "seed" in given else given)


@pytest.mark.parametrize("name", shipped())
def test_the_recipe_of_a_shipped_model_still_is_the_one_that_made_it(name: str) -> None:
    facts = read_facts(shipped()[name])
    recorded = from_dict(Recipe, facts.recipe)
    now = load_recipe(recorded.name, protocol=facts.protocol)
    if "--set" in facts.training["command"] and recorded.start:  # it went on learning, with settings of its own
        now = replace(last_training(facts.training["command"]), start=recorded.start)
    if on_pictures(recorded.name):  # a recipe does not know where the pictures are, nor what can be asked about them
        found = {"multiset": ("classes", "most"), "question": ("queries", "answers")}.get(recorded.family, ())
        for recipe in (now, recorded):
            recipe.data.pop("name", None)
            recipe.model.config.update({key: facts.model[key] for key in found})
    if on_stories(recorded.name):  # nor which words there are, nor how long stories are; these were official ones
        recorded.data["name"] = now.data["name"]
        counted = ("words", "memory", "longest", "times", "answer_words", "passes")
        now.model.config.update({key: facts.model[key] for key in counted if key in facts.model})
    if recorded.family == "caption":  # nor which words there are, nor how large scenes are
        now.model.config.update({key: facts.model[key] for key in ("vocabulary", "input_size")})
    taught = {phase.name for phase in recorded.phases}
    assert recorded.phases == tuple(phase for phase in now.phases if phase.name in taught)
    if taught != {phase.name for phase in now.phases}:
        assert recorded.start, "the phases before were those of another run"
    elif now.start is not None:
        assert recorded.start == now.start
    for key in ("family", "batch_size", "accumulate", "replicas", "precision", "ema", "seed"):
        assert getattr(recorded, key) == getattr(now, key), key
    assert recorded.model.name == now.model.name
    assert _data_meant(recorded) == _data_meant(now)  # whether or not a default is written out
    built = models()[now.model.name].build(now.model.config)
    assert built.config == from_dict(type(built.config), facts.model)
