"""Recorded commands, read again: which recipe they resolve to today, and where that differs from the record.

A record keeps the command that trained it and every setting it was trained with. Recipes change. So a record whose
recipe has changed since also keeps ``pins``, the options that undo the change. What a setting is called and what it
is by default comes from the dataclasses of the model and of the data, so a setting that is only spelt out is no
difference.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from saccade.commands.train import resolve
from saccade.config import from_dict, to_dict
from saccade.engine.recipe import Recipe, load_recipe, parse_yaml
from saccade.errors import ConfigError, nearest
from saccade.families import family, model_spec
from saccade.families.contract import load_target
from saccade.recorded import RecordedRun

_ONE = {"--data": "data", "--backbone": "backbone", "--protocol": "protocol", "--start": "start"}
_ONE |= {"--seed": "seed", "--precision": "precision", "--out": "out"}
_MANY = {"--set": "overrides", "--phase": "phases"}
_NO_NUMBERS = frozenset(
    (
        "title",
        "paper",
        "protocols",
        "schema_version",
        "log_every",
        "checkpoint_every",
        "keep_checkpoints",
        "tensorboard",
    )
)
"""Settings that decide nothing about what is learned."""
EACH = re.compile(r"\bN\b")
"""In the value of a ``--set``: one run for each, as in ``data.tasks=[N]``."""


@dataclass(frozen=True)
class Change:
    """One setting that a command gives otherwise than its record."""

    path: str
    now: Any
    recorded: Any

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded}, now {self.now}"

    @property
    def pin(self) -> str:
        """The option that undoes it."""
        bare = isinstance(self.recorded, str) and parse_yaml(self.recorded, self.path) == self.recorded
        value = self.recorded if bare else json.dumps(self.recorded)
        return f"--set {shlex.quote(f'{self.path}={value}')}"


@dataclass(frozen=True)
class Training:
    """One ``saccade train`` of a recorded command."""

    recipe: str
    options: Mapping[str, Any]

    @property
    def out(self) -> str | None:
        """The run folder it makes."""
        return self.options.get("out")

    @property
    def start(self) -> str | None:
        """The run or model that it begins with."""
        return self.options.get("start")

    @property
    def placeholders(self) -> frozenset[str]:
        """Settings that stand for several runs, one each."""
        pairs = (text.partition("=") for text in self.options.get("overrides", ()))
        return frozenset(path for path, _, value in pairs if EACH.search(value))

    def resolved(self) -> Recipe:
        """The recipe at head, with the options of the command; settings that stand for several runs are left out."""
        told = {key: value for key, value in self.options.items() if key != "out"}
        given = told.get("overrides", ())
        told["overrides"] = [text for text in given if text.partition("=")[0] not in self.placeholders]
        told |= {key: tuple(told[key]) for key in ("overrides", "phases") if key in told}
        return resolve(self.recipe, **told)


def trainings(command: str) -> list[Training]:
    """Every ``saccade train`` in a command whose parts are joined by ``&&``, in order."""
    parts = [shlex.split(part) for part in command.split("&&")]
    return [_training(words[2:]) for words in parts if words[:2] == ["saccade", "train"]]


def runs_needed(command: str) -> set[str]:
    """Run folders that a command reads and does not make itself."""
    made: set[str] = set()
    needed: set[str] = set()
    for part in command.split("&&"):
        words = shlex.split(part)
        outs = [after for word, after in pairwise(words) if word == "--out"]
        needed |= {word for word in words if word.startswith("runs/")} - made - set(outs)
        made |= set(outs)
    return needed


def runs_made(command: str) -> set[str]:
    """Run folders that a command makes."""
    words = shlex.split(command)
    return {after for word, after in pairwise(words) if word == "--out"}


def changes(run: RecordedRun) -> list[Change]:
    """Where the last training of ``run.again`` differs from what is recorded; [] of a mean of runs.

    Raises:
        ConfigError: the command cannot be resolved any more.
    """
    found = trainings(run.again)
    if not found:
        return []
    *before, training = found
    for each in before:  # of these no settings are on record, but they must still be something
        each.resolved()
    now, then = training.resolved(), from_dict(Recipe, run.recipe, where=run.name)
    if len(now.phases) != len(then.phases):
        names = [", ".join(phase.name for phase in each.phases) for each in (then, now)]
        return [Change("phases", names[1], names[0])]
    at_head = load_recipe(training.recipe, protocol=training.options.get("protocol")).phases
    order = [next(place for place, each in enumerate(at_head) if each.name == phase.name) for phase in now.phases]
    left, right = _flat(now, order), _flat(then, order, run.data)
    return [
        Change(path, left.get(path), right.get(path))
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path) and path not in training.placeholders
    ]


def pins_for(found: Sequence[Change]) -> str:
    """The options that undo ``found``."""
    return " ".join(change.pin for change in found)


def _training(words: Sequence[str]) -> Training:
    recipe, *rest = words
    options: dict[str, Any] = {}
    for option, value in zip(rest[::2], rest[1::2]):
        if option in _MANY:
            options.setdefault(_MANY[option], []).append(value)
        elif option in _ONE:
            options[_ONE[option]] = int(value) if option == "--seed" else value
        else:
            raise ConfigError(f"'{option}' in a recorded command: {nearest(option, [*_ONE, *_MANY])}")
    return Training(recipe, options)


def _flat(recipe: Recipe, order: Sequence[int], data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every setting by its path, defaults filled in; phases by their place in the recipe before some were chosen."""
    values = {key: value for key, value in to_dict(recipe).items() if key not in _NO_NUMBERS}
    spec = model_spec(recipe.model.name)
    config = from_dict(spec.resolve().Config, {**spec.defaults, **recipe.model.config}, where="model.config")
    values["model"] = {"name": recipe.model.name, "config": to_dict(config)}
    values["data"] = _whole_data(recipe, data or {})
    values["start"] = None if recipe.start is None else "a run"  # folders are renamed; what they hold is checked apart
    phases = values.pop("phases")
    flat = dict(_leaves(values))
    for place, phase in zip(order, phases):
        flat |= _leaves({key: value for key, value in phase.items() if key != "name"}, f"phases.{place}.")
    return flat


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no group of settings, with its dotted path; an empty group is none."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _whole_data(recipe: Recipe, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the data; what the recipe leaves out is as the run itself recorded it, or the default."""
    owner = family(recipe.family)
    name = str(recipe.data.get("name", "")).partition(":")[0]
    settings = load_target(owner.task).for_data(name).data_settings
    if settings is None:
        return {**recipe.data, "name": name}
    known = {each.name for each in fields(settings)}
    given: dict[str, Any] = {key: value for key, value in recorded.items() if key in known and key != "protocol"}
    for key, value in recipe.data.items():
        held = given.get(key)
        given[key] = {**held, **value} if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    given["name"] = f"{name}:PATH" if name in owner.data and owner.data[name].kind == "reader" else name
    return to_dict(from_dict(settings, given, where="data"))
