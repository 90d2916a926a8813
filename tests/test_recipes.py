"""Every packaged recipe: resolves in each of its protocols, and builds a task; those of shipped models are theirs."""

import copy
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from saccade.commands.train import build_task, resolve
from saccade.config import from_dict
from saccade.engine import recipe as recipe_files
from saccade.engine.recipe import Recipe, load_recipe, read_recipe
from saccade.families import data_entries, family, models, recipes
from saccade.families.question.scenes import SCENES, SceneDataConfig
from saccade.models.facts import read_facts
from saccade.zoo.folders import shipped

# The protocols that there are, by what a recipe is trained on; one on a table of the user's has none.
PROTOCOLS = {
    "cub": {"pictures", "species"},
    "photographs": {"official", "dev"},  # captioned ones
    "story": {"task", "joint"},  # a model for each task, or one for all
    "collection": {"full", "short", "tune", "paper"},  # all of train, or a part held out to choose by
    "drawn": {"authors", "unlimited"},
}
FILES = sorted({path.stem for path in recipes().values()})
every_file = pytest.mark.parametrize("file", FILES)


@pytest.fixture(scope="module", autouse=True)
def _parsed_once() -> Iterator[None]:
    """To parse its files is most of what it takes to read a recipe."""
    parsed = cache(recipe_files.parse_yaml)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe_files, "parse_yaml", lambda *given: copy.deepcopy(parsed(*given)))
        yield


def trained_on(name: str) -> str:
    """What a recipe is trained on: a key of ``PROTOCOLS``, or "table"."""
    recipe = load_recipe(name)
    data = recipe.data.get("name")
    if data is None:  # files, which a recipe does not name
        return "cub" if name.endswith("-cub") else "photographs" if name.startswith("sat-") else "table"
    if any(entry.kind == "collection" for _, entry in data_entries().get(str(data), ())):
        return "collection"
    return "story" if recipe.family == "story" else "drawn"


def of_file(file: str) -> list[tuple[str, str | None]]:
    """Every recipe of a file with each of its protocols; None for one that has none."""
    names = [name for name, path in recipes().items() if path.stem == file]
    return [(name, protocol) for name in names for protocol in read_recipe(name).get("protocols") or [None]]


def test_a_file_holds_variants_and_data_chooses_among_them() -> None:
    base, other = load_recipe("soft"), load_recipe("soft-mbg")
    assert (base.name, base.data["name"], other.name, other.data["name"]) == ("soft", "mref", "soft-mbg", "mbg")
    assert (base.batch_size, other.batch_size) == (1024, 256)
    assert base.model == other.model
    assert resolve("soft", data="mbg") == other
    assert resolve("soft-mdist", data="mbg").name == "soft-mdist"  # a variant that was named stays


@every_file
def test_every_protocol_resolves_to_a_whole_recipe(file: str) -> None:
    for name, protocol in of_file(file):
        kind, recipe = trained_on(name), load_recipe(name, protocol=protocol)
        assert protocol is None or protocol in PROTOCOLS[kind]
        assert (recipe.name, recipe.protocol, recipe.protocols) == (name, protocol, {})
        assert recipe.model.name in family(recipe.family).models
        for phase in recipe.phases:
            if kind == "collection":
                assert phase.select is None, "the last weights are kept: val may have been learnt"
            elif phase.loss.get("target") == "responses":
                assert phase.select is None, "no score of validation says how near regions are to what they learn"
            elif kind != "story":
                assert phase.select is not None, "which weights are kept is decided on validation"
                assert phase.restore_best
            assert phase.total_steps(150) >= phase.validation_steps(150)
        assert (recipe.phases[-1].select is None) == (kind == "collection")


@every_file
@pytest.mark.parametrize("which", [slice(2), pytest.param(slice(2, None), marks=pytest.mark.long)], ids=["few", "more"])
def test_every_protocol_builds_its_task(file: str, which: slice) -> None:
    cases = [(name, protocol) for name, protocol in of_file(file) if trained_on(name) in ("story", "drawn")]
    for name, protocol in cases[which]:
        overrides = ["data.glyphs=pack"]
        if trained_on(name) == "story":
            overrides = ["data.questions=100", "data.tasks=[1,2]"]
        elif load_recipe(name).family == "classify":
            overrides = []
        recipe = load_recipe(name, protocol=protocol, overrides=overrides)
        recipe.model.config.pop("pretrained", None)  # published weights are not at hand
        task = build_task(recipe)
        steps = task.steps_per_epoch(recipe.batch_size)
        assert all(phase.total_steps(steps) > 0 for phase in recipe.phases)
        assert (steps is None) == (protocol == "unlimited")


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
    kind = trained_on(recorded.name)
    if kind in (
        "cub",
        "photographs",
        "table",
    ):  # it does not know where pictures are, nor what can be asked
        found = {"multiset": ("classes", "most"), "question": ("queries", "answers")}.get(recorded.family, ())
        for recipe in (now, recorded):
            recipe.data.pop("name", None)
            recipe.model.config.update({key: facts.model[key] for key in found})
    if kind == "story":  # nor which words there are, nor how long stories are; these were official ones
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
