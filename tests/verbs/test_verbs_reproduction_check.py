"""Recorded commands against the recipes of today: what they resolve to, and what is done about those that moved on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from saccade.commands.door import app
from saccade.engine.recipe import load_recipe
from saccade.errors import ConfigError
from saccade.recorded import RecordedRun, read_run, recorded_runs, results_folder
from saccade.verbs.reproduction import check, commands
from saccade.verbs.reproduction.check import check_records, check_tables
from saccade.verbs.reproduction.commands import changes, pins_for, runs_made, runs_needed, trainings


def recorded(name: str) -> RecordedRun:
    return read_run(next(results_folder().rglob(f"{name}.json")))


def stored(folder: Path, name: str, **changed: Any) -> None:
    """A copy of a record in another folder, with some of its values changed."""
    values = json.loads(next(results_folder().rglob(f"{name}.json")).read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(values | changed), encoding="utf-8")


def test_every_recorded_command_gives_the_settings_of_its_record() -> None:
    found = check_records()
    assert {each.name: each.note for each in found if each.state == "differs"} == {}
    assert len(found) > 150
    assert {each.state for each in found} == {"same", "pinned", "superseded"}
    old = [each for each in found if each.state == "superseded"]
    assert all(each.note for each in old)


def test_a_setting_that_has_moved_on_is_found_and_its_pin_undoes_it() -> None:
    run = replace(recorded("counts-svhn-multiset-seed0"), pins="")
    found = changes(run)
    assert ("phases.2.optimizer.name", "adamw", "adam") in {(each.path, each.now, each.recorded) for each in found}
    assert ("data.augment.blur", 0.2, 0.0) in {(each.path, each.now, each.recorded) for each in found}
    assert changes(replace(run, pins=pins_for(found))) == []
    assert changes(replace(run, pins=pins_for(found[1:]))) == found[:1]


def test_a_default_that_is_spelt_out_is_no_difference() -> None:
    run = recorded("hattnet-ctx-sparse-mdist-unlimited-seed0")
    assert run.settings["gate_penalty"] == 0.0, "the recipe of today leaves it out"
    assert not run.pins
    assert changes(run) == []


def test_phases_that_are_gone_or_new_are_one_change() -> None:
    run = replace(recorded("hsal-svhn-multiset-frozen-seed0"), pins="")
    assert [each.path for each in changes(run)] == ["phases"]


def test_a_command_is_read_word_by_word() -> None:
    first, last = trainings(
        "saccade train hsal-mnist-set --seed 1 --phase activation --out runs/a && "
        "saccade train hsal-mnist-multiset --start runs/a --set start_parts='[backbone.*]' --out runs/b && python x.py"
    )
    assert (first.recipe, first.out, first.start) == ("hsal-mnist-set", "runs/a", None)
    assert [phase.name for phase in first.resolved().phases] == ["activation"]
    assert (last.start, last.resolved().start_parts) == ("runs/a", ("backbone.*",))
    with pytest.raises(ConfigError, match="--sede"):
        trainings("saccade train soft-mref --sede 1")


def test_one_run_for_each_is_compared_without_what_stands_for_several() -> None:
    run = recorded("dmn-babi-task-1k-seed0")
    assert trainings(run.command)[-1].placeholders == {"data.tasks"}
    assert changes(run) == []


def test_runs_that_a_command_reads_and_makes() -> None:
    command = "saccade train a --out runs/a && saccade train b --start runs/a --out runs/b"
    assert (runs_made(command), runs_needed(command)) == ({"runs/a", "runs/b"}, set())
    assert runs_needed("saccade average runs/c runs/d --out runs/e") == {"runs/c", "runs/d"}


def test_states(tmp_path: Path) -> None:
    stored(tmp_path, "soft-mref-unlimited-seed0")
    stored(tmp_path, "hard-mref-unlimited-seed0", pins="")
    stored(tmp_path, "hattnet-ctx-mref-unlimited-seed1")
    stored(tmp_path, "hsal-mnist-set-unlimited-seed0")  # begins with a run that no record here makes
    stored(tmp_path, "stn-mref-authors-seed0", command="saccade train stn-mrefs --protocol authors")
    stored(tmp_path / "variants", "stn-mref-unlimited-pace-seed0", superseded="another pace")
    stored(tmp_path / "superseded", "film-mref-unlimited-seed0")
    found = {each.name: each for each in check_records(tmp_path)}
    assert {name.rpartition("-seed")[0]: each.state for name, each in found.items()} == {
        "soft-mref-unlimited": "pinned",
        "hard-mref-unlimited": "differs",
        "hattnet-ctx-mref-unlimited": "same",
        "hsal-mnist-set-unlimited": "differs",
        "stn-mref-authors": "differs",
        "stn-mref-unlimited-pace": "superseded",
        "film-mref-unlimited": "differs",
    }
    assert found["hard-mref-unlimited-seed0"].pins == "--set stored=float32"
    assert "runs/hsal-mnist-set-unlimited-first-seed0" in found["hsal-mnist-set-unlimited-seed0"].note
    assert "stn-mref" in found["stn-mref-authors-seed0"].note
    assert "why" in found["film-mref-unlimited-seed0"].note
    titles = [table.title for table in check_tables(list(found.values()))]
    assert titles[1:] == ["pinned records", "superseded records", "differs records"]


def test_the_command_prints_a_table_and_fails_where_a_record_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored(tmp_path, "soft-mref-unlimited-seed0")
    monkeypatch.setattr(check, "recorded_runs", lambda folder=None, **options: recorded_runs(tmp_path, **options))
    monkeypatch.setattr(check, "superseded_runs", lambda folder=None: ())
    done = CliRunner().invoke(app, ["reproduce", "--check"])
    assert done.exit_code == 0, done.output
    assert "--set stored=float32" in done.stdout
    stored(tmp_path, "soft-mref-unlimited-seed0", pins="")
    done = CliRunner().invoke(app, ["reproduce", "--check", "--json"])
    assert done.exit_code == 1
    assert [each["state"] for each in json.loads(done.stdout)] == ["differs"]


@pytest.mark.parametrize("words", [["hattnet-table1", "--check"], ["--check", "--coverage"]])
def test_check_and_coverage_stand_alone(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["reproduce", *words]).exit_code == 2


@pytest.mark.parametrize(
    ("recipe", "name"), [("ran-56", "cifar10"), ("racnn-details", "details"), ("racnn", "cub:birds")]
)
def test_a_setting_of_labelled_pictures_that_is_only_spelt_out_is_no_difference(recipe: str, name: str) -> None:
    plain, spelt, other = (
        commands._whole_data(load_recipe(recipe, overrides=[f"data.name={name}", *more]), {})
        for more in ((), ("data.cache_mb=4096",), ("data.cache_mb=1",))
    )
    assert plain == spelt
    assert plain != other
