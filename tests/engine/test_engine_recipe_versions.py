"""Recipes of schema 1: old losses and names of phases become the settings that they stood for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from saccade.config import from_dict, to_dict
from saccade.engine.recipe import Recipe, load_recipe
from saccade.engine.recipe_versions import migrate_recipe, spell_out_losses
from saccade.engine.run_folder import RunFolder
from saccade.errors import ConfigError

BACKBONE = ["backbone.*"]


def lifted(task: str | None, *phases: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A recipe of schema 1 as it is read now."""
    values = {"schema_version": 1, "phases": list(phases), **more}
    return migrate_recipe(values if task is None else values | {"task": task}, what="here")


OLD_LOSSES = {
    "default": {"name": "default"},
    "cross_entropy": {"name": "cross_entropy"},
    "single_object": {"name": "single_object"},
    "each_object": {"name": "each_object"},
    "reinforce": {"name": "reinforce"},
    "reinforce:0.01": {"name": "reinforce", "entropy": 0.01},
    "reinforce_to_go:0.1": {"name": "reinforce_to_go", "entropy": 0.1},
    "reinforce_expected:0.01": {"name": "reinforce_expected", "entropy": 0.01},
    "multiset_loss": {"name": "multiset_loss"},
    "counts": {"name": "counts"},
    "soft": {"name": "soft"},
    "soft:1": {"name": "soft", "penalty": 1.0},
    "soft:1:0.1": {"name": "soft", "penalty": 1.0, "smoothing": 0.1},
    "hard": {"name": "hard"},
    "hard:0.002:0.1": {"name": "hard", "entropy": 0.002, "smoothing": 0.1},
    "hard_to_go:0.5": {"name": "hard_to_go", "entropy": 0.5},
    "hard_code:1": {"name": "hard_code", "entropy": 1.0},
    "self_critical": {"name": "self_critical"},
    "self_critical:0.2": {"name": "self_critical", "bleu": 0.2},
    "self_critical:0.2:0.3": {"name": "self_critical", "bleu": 0.2, "meteor": 0.3},
}


@pytest.mark.parametrize("old", OLD_LOSSES)
def test_an_old_loss_is_a_mapping_now_wherever_it_is_written(old: str) -> None:
    new = OLD_LOSSES[old]
    assert lifted("caption", {"name": "main", "loss": old})["phases"][0]["loss"] == new
    dotted = migrate_recipe({"schema_version": 1, "extends": "sat-soft", "phases.2.loss": old}, what="here")
    assert dotted["phases.2.loss"] == new
    protocols = {"one": {"phases.0.loss": old}, "other": [{"phases": [{"loss": old}]}, {"phases.-1": {"loss": old}}]}
    found = lifted("caption", protocols=protocols)["protocols"]
    assert found["one"] == {"phases.0.loss": new}
    assert found["other"] == [{"phases": [{"loss": new}]}, {"phases.-1": {"loss": new}}]
    assert load_recipe("sat-soft-tuned", overrides=[f"phases.2.loss={old}"]).phases[2].loss == new


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("soft:much", r"loss 'soft:much': expected numbers after ':', found \['much'\]"),
        ("soft:1:0.1:2", "loss 'soft:1:0.1:2': 'soft' takes at most 2, found 3 numbers"),
        ("self_critical:0.2:x", r"numbers after ':', found \['0.2', 'x'\]"),
        ("reinforce:1:2", "'reinforce' takes at most 1, found 2 numbers"),
    ],
)
def test_an_old_loss_that_cannot_be_read_is_named(old: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        lifted("caption", {"loss": old})
    with pytest.raises(ConfigError, match=words):
        load_recipe("sat-soft-tuned", overrides=[f"phases.2.loss={old}"])


def test_colons_are_not_read_in_todays_files() -> None:
    """Who builds the loss says how it is written now."""
    found = migrate_recipe({"schema_version": 2, "phases": [{"loss": "soft:1"}]}, what="here")
    assert found["phases"] == [{"loss": {"name": "soft:1"}}]


def test_a_bare_name_is_short_for_a_mapping() -> None:
    assert spell_out_losses({"phases": [{"loss": "counts"}, {"steps": 3}]})["phases"] == [
        {"loss": {"name": "counts"}},
        {"steps": 3},
    ]
    whole = {"phases": [{"loss": {"name": "soft", "penalty": 1}}], "phases.0.steps": 3, "seed": 1}
    assert spell_out_losses(whole) == whole


def test_a_number_of_a_loss_is_set_by_its_path() -> None:
    overrides = ["phases.1.loss=reinforce", "phases.1.loss.entropy=0.5"]
    assert load_recipe("counts-mnist-set", overrides=overrides).phases[1].loss == {"name": "reinforce", "entropy": 0.5}
    given = load_recipe("sat-soft", overrides=["phases.0.loss={name: soft, smoothing: 0.1}"]).phases[0].loss
    assert given == {"name": "soft", "smoothing": 0.1}
    with pytest.raises(ConfigError, match=r"loss: needs a name, as in \{name: cross_entropy\}; found \{'penalty': 1\}"):
        load_recipe("sat-soft", overrides=["phases.0.loss={penalty: 1}"])
    with pytest.raises(ConfigError, match=r"phases.0.loss: expected a mapping, found list \['soft'\]"):
        load_recipe("sat-soft", overrides=["phases.0.loss=[soft]"])


@pytest.mark.parametrize(
    ("task", "phase", "said"),
    [
        ("multiset", {"name": "activation"}, {"data": "objects"}),
        ("multiset", {"name": "controllers"}, {}),
        ("caption", {"name": "self_critical", "freeze": BACKBONE}, {"data": "own_words"}),
        ("caption", {"name": "decoder", "freeze": BACKBONE}, {"features": "kept"}),
        ("caption", {"name": "decoder", "freeze": ()}, {"features": "kept", "freeze": BACKBONE}),
        ("caption", {"name": "decoder", "freeze": ["x"]}, {"features": "kept", "freeze": ["x", *BACKBONE]}),
        ("caption", {"name": "whole"}, {}),
        ("caption", {"name": "activation"}, {}),
        ("multiset", {"name": "decoder"}, {}),
        ("attribute", {"name": "activation"}, {}),
        ("question", {"name": "decoder"}, {}),
    ],
)
def test_what_a_name_meant_is_said_by_keys(task: str, phase: dict[str, Any], said: dict[str, Any]) -> None:
    (found,) = lifted(task, {**phase, "steps": 1})["phases"]
    assert found == {**phase, "steps": 1, **said}


@pytest.mark.parametrize("data", [{"name": "scenes"}, {"name": "flickr8k:x", "features_mb": 0}])
def test_where_no_features_were_kept_a_decoder_learnt_like_any_other(data: dict[str, Any]) -> None:
    phase = {"name": "decoder", "steps": 1}
    assert lifted("caption", phase, data=data)["phases"] == [phase]


def test_a_name_has_no_meaning_in_todays_files() -> None:
    values = {"schema_version": 2, "family": "multiset", "phases": [{"name": "activation"}]}
    assert migrate_recipe(values, what="here") == values


@pytest.fixture
def write(tmp_path: Path):
    def written(**values: Any) -> Path:
        path = tmp_path / "more.yaml"
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        return path

    return written


def test_an_old_extension_of_a_recipe_of_today_knows_its_family(write) -> None:
    phases = [{"name": "activation", "loss": "single_object", "steps": 1}, {"name": "x", "loss": "counts", "steps": 1}]
    path = write(schema_version=1, extends="hsal-mnist-multiset", phases=phases)
    assert [phase.data for phase in load_recipe(path).phases] == ["objects", "default"]
    captions = write(schema_version=1, extends="sat-soft", phases=[{"name": "decoder", "loss": "soft:0", "steps": 1}])
    (phase,) = load_recipe(captions).phases
    assert (phase.features, phase.freeze, phase.loss) == ("kept", ("backbone.*",), {"name": "soft", "penalty": 0})


def test_an_old_extension_that_renames_a_phase_changes_what_it_learns_from(write) -> None:
    old = {"schema_version": 1, "extends": "hsal-mnist-multiset"}
    renamed = load_recipe(write(**old, **{"phases.0.name": "first", "phases.1.name": "activation"}))
    assert [phase.data for phase in renamed.phases] == ["default", "objects"]
    today = load_recipe(write(schema_version=2, extends="hsal-mnist-multiset", **{"phases.0.name": "first"}))
    assert today.phases[0].data == "objects"


RECIPE = {
    "schema_version": 1,
    "name": "hsal-mnist-multiset",
    "task": "multiset",
    "model": {"name": "hsal"},
    "phases": [
        {"name": "activation", "loss": "single_object", "steps": 3},
        {"name": "controllers", "loss": "reinforce_expected:0.01", "steps": 3},
    ],
}


def test_a_run_of_schema_1_goes_on_with_the_recipe_of_today(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"recipe": RECIPE, "run": {}}), encoding="utf-8")
    folder = RunFolder(tmp_path)
    recipe = from_dict(Recipe, folder.recorded())
    assert [phase.data for phase in recipe.phases] == ["objects", "default"]
    assert recipe.phases[1].loss == {"name": "reinforce_expected", "entropy": 0.01}
    folder.check_same(recipe)
    changed = to_dict(recipe)
    changed["phases"][1]["loss"]["entropy"] = 0.02
    with pytest.raises(ConfigError, match=r"phases\.1\.loss\.entropy = 0\.01, now it is 0\.02"):
        folder.check_same(from_dict(Recipe, changed))
    changed["phases"][1]["loss"]["entropy"] = 0.01
    changed["phases"][0]["data"] = "default"
    with pytest.raises(ConfigError, match=r"phases\.0\.data = 'objects', now it is 'default'"):
        folder.check_same(from_dict(Recipe, changed))
