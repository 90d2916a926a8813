"""Reading, merging and refusing recipes; schedules by hand."""

from pathlib import Path

import pytest

from saccade.config import to_dict
from saccade.engine.recipe import Phase, Schedule, Select, load_recipe
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


def test_missing_file_and_unknown_name(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(tmp_path / "no.yaml")
    with pytest.raises(ConfigError, match="did you mean 'soft-mref'"):
        load_recipe("soft-mreff")


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
    ("overrides", "named"),
    [
        ("phases.0.optimizer.name=adamm", "'adam'"),
        ("phases.0.epochs=3", "epochs=null"),
        ("phases.0.optimizer.lr=-1", "lr"),
        ("phases.0.schedule.name=milestones", "'at'"),
        ("phases=[{steps: 1}, {steps: 2}]", "phases"),
        ("channels_last=true", "replicas"),
        ("protocol=authors", "protocol=NAME"),
    ],
)
def test_an_override_that_cannot_be(path, overrides, named):
    with pytest.raises(ConfigError, match=named):
        load_recipe(path, overrides=[*(["replicas=2"] if "channels" in overrides else []), overrides])


WHOLE = "schema_version: 2\nname: x\nfamily: question\nmodel: {name: soft}\nphases: [{steps: 5}]\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("- 1\n- 2\n", "mapping"),
        (WHOLE + "title: 2024-13-45\nseed: 2024-13-45", "seed"),
        (WHOLE + "batch_size: 1000000000000", "batch_size"),
        (WHOLE + "extends: x.yaml", r"x\.yaml → .*x\.yaml"),
        (WHOLE.replace("[{steps: 5}]", "{a: 1}"), "phases"),
        (WHOLE.replace("[{steps: 5}]", "[{name: [], freeze: abc}]"), "phases"),
        (WHOLE.replace("steps: 5", "steps: 5, refit: 1") + "ema: 0.9", "refit"),
        ("schema_version: 2\nextends: none.yaml\n", "none.yaml"),
    ],
)
def test_a_file_that_is_refused(tmp_path, text, named):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConfigError, match=named):
        load_recipe(tmp_path / "x.yaml")


AUTHORS = Schedule("step", unit="epoch", start=30, every=12, factor=1.5)  # of the released code


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        (Schedule(warmup=4), {0: 0.25, 1: 0.5, 3: 1.0, 5: 1.0}),
        (Schedule("cosine"), {0: 1, 25: 0.853553, 50: 0.5, 100: 0}),  # (1 + cos(π/4)) / 2 at a quarter of the way
        (Schedule("linear", floor=0.5), {0: 1, 50: 0.75, 100: 0.5, 140: 0.5}),
        (Schedule("step", start=25, every=25, factor=2), {24: 1, 25: 0.5, 49: 0.5, 50: 0.25, 75: 0.125}),
        (Schedule("milestones", at=(64, 96)), {63: 1, 64: 0.1, 95: 0.1, 96: 0.01}),
        (AUTHORS, {30 * 7 - 1: 1, 30 * 7: 1 / 1.5, 42 * 7 - 1: 1 / 1.5, 42 * 7: 1 / 1.5**2, 54 * 7: 1 / 1.5**3}),
    ],
)
def test_rates_by_hand(schedule: Schedule, found: dict[int, float]) -> None:
    """Of a phase of 100 steps, epochs of 7."""
    rates = {step: schedule.scale(step, total=100, steps_per_epoch=7) for step in found}
    assert rates == pytest.approx(found)
