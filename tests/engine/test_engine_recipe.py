"""Reading, merging and refusing recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from saccade.config import to_dict
from saccade.engine import recipe as recipe_module
from saccade.engine.recipe import Phase, Select, load_recipe
from saccade.errors import ConfigError

TEXT = """
schema_version: 2
name: soft-tiny
family: question
model: {name: soft, config: {width: 8}}
data: {name: mref, glyphs: disjoint}
protocol: unlimited
protocols:
  unlimited: {batch_size: 256}
  authors:
    batch_size: 200
    data: {glyphs: merged}
    phases.0.epochs: 300
    phases.0.steps: null
phases:
  - steps: 100
    optimizer: {name: rmsprop, lr: 3e-3}
    clip_norm: 5
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "soft-tiny.yaml"
    path.write_text(TEXT)
    return path


def test_values_and_defaults(path):
    recipe = load_recipe(path)
    assert recipe.batch_size == 256
    assert recipe.phases[0].optimizer.lr == 0.003
    assert recipe.phases[0].optimizer.alpha == 0.99
    assert recipe.phases[0].train == ("*",)
    assert recipe.data == {"name": "mref", "glyphs": "disjoint"}


def test_protocol_is_merged_group_by_group_and_recorded(path):
    recipe = load_recipe(path, protocol="authors")
    assert (recipe.batch_size, recipe.protocol, recipe.protocols) == (200, "authors", {})
    assert recipe.data == {"name": "mref", "glyphs": "merged"}
    assert (recipe.phases[0].epochs, recipe.phases[0].steps) == (300, None)


def test_overrides_come_last_and_are_read_as_yaml(path):
    overrides = ["batch_size=32", "phases.0.optimizer.lr=1e-4", "model.config.sizes=[1, 2]", "model.config.rate=2e-3"]
    recipe = load_recipe(path, protocol="authors", overrides=overrides)
    assert recipe.batch_size == 32
    assert recipe.phases[0].optimizer.lr == 1e-4
    assert recipe.model.config == {"width": 8, "sizes": [1, 2], "rate": 0.002}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["bach_size=3"], "did you mean 'batch_size'"),
        (["phases.0.optimizer.name=adamm"], "did you mean 'adam'"),
        (["phases.0.steps=0"], "steps: must be 1 or more"),
        (["phases.0.epochs=3"], "3 epochs.*epochs=null"),
        (["phases.0.steps=null"], "no steps and no epochs"),
        (["phases.0.patience=3"], "need 'select'"),
        (["phases.0.optimizer.nesterov=true"], "nesterov"),
        (["phases.0.optimizer.lr=-1"], "lr: must be above 0"),
        (["phases.0.optimizer.lr=.inf"], "lr: must be above 0 and finite, found inf"),
        (["phases.0.optimizer.weight_decay=.nan"], "weight_decay: must be 0 or more and finite, found nan"),
        (["phases.0.optimizer.eps=0"], "eps: must be above 0"),
        (["phases.0.optimizer.betas=[0.9, 1]"], "betas"),
        (["phases.0.optimizer.alpha=-0.1"], "alpha"),
        (["phases.0.optimizer.name=sgd", "phases.0.optimizer.momentum=.nan"], "momentum"),
        (["phases=[]"], "phases"),
        (["phases=[{steps: 1}, {steps: 2}]"], "phases"),
        (["ema=1.5"], "ema"),
        (["precision=16-mixed"], "precision"),
        (["batch_size"], "expected key=value"),
        (["batch_size=[1"], "not readable as YAML"),
        (["phases.3.steps=1"], "numbered from 0"),
        (["replicas=2", "channels_last=true"], "choose one"),
    ],
)
def test_mistakes_are_named(path, overrides, words):
    with pytest.raises(ConfigError, match=words):
        load_recipe(path, overrides=overrides)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1\n- 2\n", "mapping"),
        ("name: x\n", "schema_version"),
        ("schema_version: 1\n", "schema_version 1"),
        ("schema_version: 99\n", "schema_version 99"),
        ("a: [1\n", "not readable as YAML"),
        ("a: 1\na: 2\n", "'a'"),
        ("a: !!python/object/apply:os.system ['true']\n", "not readable as YAML"),
    ],
)
def test_broken_files(tmp_path, text, words):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_recipe(tmp_path / "r.yaml")


def test_missing_file_and_unknown_name(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(tmp_path / "no.yaml")
    monkeypatch.setattr(recipe_module, "packaged_recipes", lambda: ["soft-mref", "hard-mref"])
    with pytest.raises(ConfigError, match="did you mean 'soft-mref'"):
        load_recipe("soft-mreff")


def test_selection_rules():
    top, low = Select("accuracy", "max"), Select("loss", "min")
    assert top.better(0.2, None)
    assert top.better(0.3, 0.2)
    assert not top.better(0.2, 0.2)
    assert low.better(0.1, 0.2)
    assert not low.better(float("nan"), None)


def test_a_second_metric_decides_ties_alone():
    alone, both = Select("bleu"), Select("bleu", beside="likelihood")
    old = {"bleu": 0.0, "likelihood": -3.0}
    assert both.beats({"bleu": 0.0, "likelihood": -2.0}, old)
    assert not alone.beats({"bleu": 0.0, "likelihood": -2.0}, old)
    assert not both.beats({"bleu": 0.0, "likelihood": -3.0}, old)
    assert not both.beats({"bleu": 0.0, "likelihood": -4.0}, old)
    assert not both.beats({"bleu": 0.0}, old)
    assert both.beats({"bleu": 0.1, "likelihood": -9.0}, old)
    assert not both.beats({"bleu": 0.1, "likelihood": -1.0}, {"bleu": 0.2, "likelihood": -3.0})
    assert both.beats({"bleu": 0.0, "likelihood": -9.0}, {"bleu": float("nan"), "likelihood": -1.0})
    assert not both.beats({"bleu": float("nan"), "likelihood": -1.0}, None)
    assert Select("error", "min", beside="loss").beats({"error": 0.5, "loss": 1.0}, {"error": 0.5, "loss": 2.0})


def test_lengths_in_steps_and_epochs():
    assert Phase(steps=10).total_steps(None) == 10
    assert Phase(epochs=3).total_steps(7) == 21
    assert Phase(epochs=3, validate_every=2).validation_steps(7) == 14
    assert Phase(steps=10, validate_every=2).validation_steps(7) == 2
    assert Phase(steps=10).validation_steps(7) == 7
    assert Phase(steps=10).validation_steps(None) == 10
    with pytest.raises(ConfigError, match="no end"):
        Phase(epochs=3).total_steps(None)
    with pytest.raises(ConfigError, match="less than one batch"):
        Phase(epochs=3).total_steps(0)


@pytest.mark.parametrize("override", ["protocol=authors", "protocols.authors.seed=1", "schema_version=9"])
def test_what_decides_the_settings_is_not_set_by_an_override(override):
    with pytest.raises(ConfigError, match="`protocol=NAME`"):
        load_recipe("soft-mref", overrides=[override])


def extending(folder: Path, text: str, name: str = "more.yaml") -> Path:
    (folder / name).write_text(f"schema_version: 2\n{text}")
    return folder / name


def test_an_extension_says_what_differs_and_keeps_the_rest(path):
    more = extending(
        path.parent, "extends: soft-tiny.yaml\nname: hard-tiny\nmodel: {name: hard, config: {hidden: 3}}\n"
    )
    start, found = load_recipe(path), load_recipe(more)
    assert (found.name, found.model.name, found.model.config) == ("hard-tiny", "hard", {"width": 8, "hidden": 3})
    assert (found.phases, found.data, found.batch_size) == (start.phases, start.data, start.batch_size)
    assert load_recipe(more, protocol="authors").phases == load_recipe(path, protocol="authors").phases
    assert "extends" not in to_dict(found)
    assert load_recipe(path) == start


def test_overrides_of_a_protocol_are_laid_on_top_of_those_extended(path):
    text = "extends: soft-tiny.yaml\nprotocols:\n  authors: {phases.0.epochs: 50, ema: 0.9}\n  quick: {seed: 4}\n"
    more = extending(path.parent, text)
    found = load_recipe(more, protocol="authors")
    assert (found.phases[0].epochs, found.phases[0].steps, found.ema, found.batch_size) == (50, None, 0.9, 200)
    assert load_recipe(more, protocol="quick").seed == 4
    assert load_recipe(more).batch_size == 256
    again = extending(path.parent, "extends: more.yaml\nprotocols: {authors: {phases.0.epochs: 9}}\n", "third.yaml")
    assert load_recipe(again, protocol="authors").phases[0].epochs == 9
    assert load_recipe(again, protocol="authors").ema == 0.9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("extends: more.yaml\n", r"more\.yaml → .*more\.yaml"),
        ("extends: soft-mreff\n", "did you mean 'soft-mref'"),
        ("extends: none.yaml\n", "cannot be read"),
        ("extends: [soft-mref]\n", "expected the name or path of a recipe"),
        ("extends: soft-mref\nbach_size: 3\n", "did you mean 'batch_size'"),
    ],
)
def test_extensions_that_cannot_be(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        load_recipe(extending(tmp_path, text))
