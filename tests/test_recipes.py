"""Every packaged recipe: resolves in each of its protocols, and builds a task; those of shipped models are theirs."""

from __future__ import annotations

import shlex
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest

from saccade.backbones import build_backbone
from saccade.commands.train import build_task, resolve
from saccade.config import from_dict
from saccade.engine.phases import trainable_names
from saccade.engine.recipe import Recipe, Select, load_recipe, packaged_recipes, read_recipe, recipe_titles
from saccade.errors import ConfigError
from saccade.families import data_entries, family, model_spec, models
from saccade.families.question.scenes.data import SPECS, SceneDataConfig
from saccade.models.base import ImageModel
from saccade.models.io.facts import read_facts
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


def test_titles_are_those_of_the_whole_recipes() -> None:
    whole = {name: load_recipe(name) for name in packaged_recipes()}
    assert recipe_titles() == {name: (recipe.title, recipe.paper) for name, recipe in whole.items()}


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


@pytest.mark.parametrize("model", ["hard", "cross", "film", "blind"])
def test_rows_about_birds_differ_in_the_model_alone(model: str) -> None:
    soft, other = (load_recipe(f"{name}-cub", protocol="species") for name in ("soft", model))
    assert other.model.name == model
    assert other.model.config == soft.model.config
    for key in ("family", "data", "phases", "batch_size", "accumulate", "precision", "ema", "seed", "graph"):
        assert getattr(other, key) == getattr(soft, key), key


def test_what_lies_behind_a_gate_is_tuned() -> None:
    """A frozen stage behind a gate could not get used to it."""
    for name in ("hattnet-ctx-cub", "hattnet-ctx-vg"):
        recipe = load_recipe(name)
        config = recipe.model.config
        stages = build_backbone(config["backbone"], through=config["through"]).names
        behind = stages[stages.index(config["gated"][0]) + 1 :]
        frozen = recipe.phases[-1].freeze
        for stage in behind:
            assert not any(fnmatchcase(f"backbone.stages.{stage}.x", pattern) for pattern in frozen), stage


def test_pictures_have_to_be_named() -> None:
    with pytest.raises(ConfigError, match="give `data=READER:PATH`; readers: csv"):
        build_task(load_recipe("attributes"))
    with pytest.raises(ConfigError, match="give `data=READER:PATH`; readers: csv, jsonl, svhn"):
        build_task(load_recipe("hsal-svhn-multiset"))


def test_a_head_is_all_that_learns_in_the_recipe_of_heads() -> None:
    """On pictures that stay the same, behind a backbone that says so: then its features are kept."""
    recipe = load_recipe("attributes-head")
    (phase,) = recipe.phases
    model = model_spec(recipe.model.name).build(_built(recipe))
    learning = trainable_names(phase, [name for name, _ in model.named_parameters()])
    assert {name.partition(".")[0] for name in learning} == {"attention", "head"}
    assert phase.freeze_statistics
    assert phase.patience is not None
    assert recipe.data["augment"] is None
    assert isinstance(model, ImageModel)
    assert model.encoder is not None


@pytest.mark.parametrize("data", ["", "-scenes", "-tuned"])
def test_rows_about_captions_differ_in_the_attention_alone(data: str) -> None:
    soft, hard = (load_recipe(f"{name}{data}") for name in ("sat-soft", "sat-hard"))
    assert (soft.model.name, hard.model.name) == ("sat-soft", "sat-hard")
    assert soft.model.config == hard.model.config
    assert (soft.phases[0].loss["name"], hard.phases[0].loss["name"].split("_")[0]) == ("soft", "hard")
    for key in ("family", "data", "batch_size", "accumulate", "precision", "ema", "seed", "graph", "protocol"):
        assert getattr(soft, key) == getattr(hard, key), key


@pytest.mark.parametrize(
    ("name", "settings", "penalty"),
    [
        ("sat-none", {"attention_kind": "none"}, 0),
        ("sat-soft-ungated", {"gate": False}, 1),
        ("sat-soft-unpenalised", {}, 0),
    ],
)
def test_ablations_of_captions_differ_in_what_they_are_called_for(name: str, settings: dict, penalty: int) -> None:
    for protocol in sorted(CAPTIONS):
        soft, other = (load_recipe(each, protocol=protocol) for each in ("sat-soft", name))
        assert other.model.config == soft.model.config | settings
        assert other.phases == (replace(soft.phases[0], loss={"name": "soft", "penalty": penalty}),)
        for key in ("family", "data", "batch_size", "accumulate", "precision", "ema", "seed", "graph", "protocol"):
            assert getattr(soft, key) == getattr(other, key), key
        assert models()[other.model.name].target == "saccade.models.sat:SatModel"


@pytest.mark.parametrize("name", ["sat-soft", "sat-hard", "sat-none", "sat-soft-ungated", "sat-soft-unpenalised"])
def test_captions_of_few_pictures_are_not_given_up_while_they_are_learnt(name: str) -> None:
    (phase,) = load_recipe(name).phases
    assert phase.patience is not None
    assert phase.select == Select("bleu_4", "max", beside="log_likelihood")


def test_the_encoder_of_photographs_rests() -> None:
    """And what it makes of the pictures is kept."""
    for name in ("sat-soft", "sat-hard"):
        (phase,) = load_recipe(name).phases
        assert (phase.features, phase.freeze) == ("kept", ("backbone.*",))
    assert load_recipe("sat-soft", protocol="dev").data["options"] == {"splits": "dev"}


@pytest.mark.parametrize("name", ["sat-soft-tuned", "sat-hard-tuned"])
def test_a_tuned_encoder_learns_in_one_phase_and_keeps_its_statistics(name: str) -> None:
    recipe = load_recipe(name, protocol="dev")
    assert [phase.name for phase in recipe.phases] == ["decoder", "whole", "self_critical"]
    assert [phase.freeze for phase in recipe.phases] == [("backbone.*",), ("backbone.*.running_*",), ("backbone.*",)]
    assert [(phase.data, phase.features) for phase in recipe.phases] == [
        ("default", "kept"),
        ("default", "auto"),
        ("own_words", "auto"),
    ]
    weights = {"sat-soft-tuned": {"bleu": 0.3, "meteor": 0.6}, "sat-hard-tuned": {"bleu": 0.5, "meteor": 0.8}}
    assert recipe.phases[-1].loss == {"name": "self_critical", **weights[name]}
    assert not recipe.graph  # captions are drawn, and as long as they come
    assert (recipe.data["options"], recipe.data["augment"]["mirror"]) == ({"splits": "dev"}, True)
    network = build_backbone(recipe.model.config["backbone"], through=recipe.model.config["through"])
    assert any(f"backbone.{name}".endswith("running_mean") for name, _ in network.named_buffers())


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


@pytest.mark.parametrize("data", MULTISETS)
def test_the_published_reading_differs_in_how_it_is_taught_alone(data: str) -> None:
    hsal, plain = (load_recipe(f"{name}-{data}") for name in ("hsal", "hsal-plain"))
    assert hsal.phases[1].loss == {"name": "reinforce_expected", "entropy": 0.01}
    assert plain.phases[1].loss == {"name": "reinforce", "entropy": 0.01}
    assert replace(plain.phases[1], loss=hsal.phases[1].loss) == hsal.phases[1]
    assert (len(plain.phases), plain.ema) == (2, None)
    assert not plain.model.config.get("follow_priority")
    assert _published_network(plain) == _published_network(hsal)
    by_picture = Select("single_accuracy")  # nor do boxes choose what is taught without them
    assert plain.phases[0] == replace(hsal.phases[0], loss="single_object", select=by_picture)
    assert plain.data | {"options": None} == hsal.data | {"options": None}
    if data == "svhn-multiset":  # whose pictures never hold one digit alone, but have boxes
        assert hsal.phases[0].loss == {"name": "each_object"}
    else:
        assert (hsal.data["options"], plain.data["options"]) == ({"among": True}, {"among": False})
    for key in ("family", "batch_size", "accumulate", "precision", "seed", "graph"):
        assert getattr(plain, key) == getattr(hsal, key), key


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


@pytest.mark.parametrize("name", [name for name in packaged_recipes() if load_recipe(name).family == "multiset"])
def test_the_backbone_of_a_multiset_reader_is_taught_first_and_then_frozen(name: str) -> None:
    """And where the boxes of SVHN taught it, taught once more with the rest, its statistics as they were."""
    recipe = load_recipe(name)
    model = model_spec(recipe.model.name).build(_built(recipe))
    parameters, statistics = (dict(each) for each in (model.named_parameters(), model.named_buffers()))
    learning = [set(trainable_names(phase, list(parameters), list(statistics))) for phase in recipe.phases]
    first, second, *third = learning
    assert first == {name for name in parameters if name.startswith(("backbone.", "single."))}
    assert second == set(parameters) - first
    assert recipe.phases[1].freeze_statistics
    assert [phase.data for phase in recipe.phases] == ["objects", *["default"] * (len(recipe.phases) - 1)]
    if recipe.phases[0].loss == {"name": "each_object"}:
        assert third == [{name for name in parameters if not name.startswith("single.")}]
        assert "backbone.*.running_*" in recipe.phases[2].freeze
    else:
        assert third == ([second] if recipe.phases[1].name == "reading" else [])  # both teach the same parts


def _built(recipe: Recipe) -> dict[str, Any]:
    """Settings of a model that needs no published weights."""
    return {key: value for key, value in recipe.model.config.items() if key != "pretrained"}


def _data_meant(recipe: Recipe) -> Any:
    """The settings of generated scenes with their defaults; of pictures, as they are."""
    return from_dict(SceneDataConfig, recipe.data) if recipe.data.get("name") in SPECS else recipe.data


def test_soft_mref_by_protocol() -> None:
    fresh, authors = (load_recipe("soft-mref", protocol=protocol) for protocol in ("unlimited", "authors"))
    assert (fresh.batch_size, fresh.phases[0].steps, fresh.phases[0].epochs) == (1024, 6_000, None)
    assert (authors.batch_size, authors.phases[0].steps, authors.phases[0].epochs) == (200, None, 54)
    assert fresh.phases[0].optimizer.lr == 4e-3
    assert authors.phases[0].optimizer.lr == 5e-3
    assert load_recipe("soft-mref") == fresh  # what it does when nothing is said
    assert authors.data == {**fresh.data, "drawing": "authors"}
    with pytest.raises(ConfigError, match="unknown protocol 'author': did you mean 'authors'"):
        load_recipe("soft-mref", protocol="author")


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
