"""Recipes and commands of recorded runs: they keep the schema of their time, and still say what was trained."""

from __future__ import annotations

import json
import shlex
from typing import Any

from saccade.config import from_dict
from saccade.engine.recipe import Recipe, load_recipe
from saccade.recorded import RecordedRun, recorded_runs, results_folder


def trained_by(command: str) -> tuple[str, list[str], str | None] | None:
    """Recipe, overrides and protocol of the last training in a recorded command; None of a mean of runs."""
    trainings = [part for part in command.split("&&") if part.split()[:2] == ["saccade", "train"]]
    if not trainings:
        return None
    recipe, *rest = shlex.split(trainings[-1])[2:]
    options = list(zip(rest[::2], rest[1::2], strict=True))
    protocols = [value for option, value in options if option == "--protocol"]
    return recipe, [value for option, value in options if option == "--set"], protocols[0] if protocols else None


def all_runs() -> list[RecordedRun]:
    return [*recorded_runs(), *recorded_runs(variants=True)]


def test_a_recorded_recipe_is_read_as_one_of_today() -> None:
    colons = 0
    for run in all_runs():
        recipe = from_dict(Recipe, run.recipe, where=run.name)
        path = next(results_folder().rglob(f"{run.name}.json"))
        old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["recipe"]
        if old["schema_version"] != 1:
            continue
        for phase, before in zip(recipe.phases, old["phases"], strict=True):
            name, *numbers = before["loss"].split(":")
            assert list(phase.loss.values()) == [name, *map(float, numbers)], run.name
            assert (phase.name, phase.freeze) == (before["name"], tuple(before["freeze"])), run.name
            colons += bool(numbers)
    assert colons > 30


def test_a_recorded_command_still_means_the_loss_and_the_material_of_its_run() -> None:
    colons = 0
    for run in all_runs():
        found = trained_by(run.again)
        if found is None:
            continue
        recipe, overrides, protocol = found
        now = {phase.name: phase for phase in load_recipe(recipe, protocol=protocol, overrides=overrides).phases}
        for phase in from_dict(Recipe, run.recipe).phases:
            same = now[phase.name]
            assert (same.loss, same.data, same.features) == (phase.loss, phase.data, phase.features), run.name
        colons += any(".loss=" in override and ":" in override for override in overrides)
    assert colons >= 3
