"""Recipes of earlier versions, read as recipes of today.

Schema 1 differed from schema 2 in three ways:

- ``task`` stood where ``family`` stands now, and questions about scenes had a task of their own, ``attribute``.
- A loss was a text with its numbers behind colons, ``self_critical:0.2:0.3``. Now it is a mapping,
  ``{name: self_critical, bleu: 0.2, meteor: 0.3}``.
- The name of a phase decided what it learned from. Now its keys ``data``, ``features`` and ``freeze`` say so.

The tables below say what recipes of schema 1 meant. They are history: a new loss or phase is not added to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from saccade.config import Migration, migrate
from saccade.errors import ConfigError

SCHEMA_VERSION = 2
Settings = dict[str, Any]

_NUMBERS: dict[str, tuple[str, ...]] = {
    "soft": ("penalty", "smoothing"),
    "hard": ("entropy", "smoothing"),
    "hard_to_go": ("entropy", "smoothing"),
    "hard_code": ("entropy", "smoothing"),
    "self_critical": ("bleu", "meteor"),
    "reinforce": ("entropy",),
    "reinforce_to_go": ("entropy",),
    "reinforce_expected": ("entropy",),
}
"""What the numbers behind the colons of a loss are called now."""

_MEANINGS: dict[tuple[str, str], Settings] = {
    ("multiset", "activation"): {"data": "objects"},
    ("caption", "self_critical"): {"data": "own_words"},
    ("caption", "decoder"): {"features": "kept"},
}
"""(family, name of a phase) → what that name meant."""
_PLAIN = {"data": "default", "features": "auto"}
"""What a phase of any other name learned from."""
_ENCODER = "backbone.*"
"""What a phase that learned from kept features left as it was, whatever it said about freezing."""


def migrate_recipe(
    values: Mapping[str, object], *, what: str, extended: Mapping[str, object] | None = None
) -> Settings:
    """A recipe as today's schema has it, a loss always as a mapping.

    Args:
        values: what a file or record holds; protocols and dotted keys such as ``phases.0.loss`` may be in it.
        what: how messages call it.
        extended: the recipe that it extends, as today's schema has it; None where it extends none.

    Raises:
        ConfigError: a version that this saccade does not read, or an old loss that cannot be read.
    """
    check_groups(values, what)
    table: dict[int, Migration] = {1: partial(_from_schema_1, extended=extended or {})}
    return spell_out_losses(migrate(dict(values), table, SCHEMA_VERSION, what=what))


def check_groups(values: Mapping[str, Any], what: str) -> None:
    """Refuse a recipe with a list where settings belong, or the other way round.

    Args:
        values: a recipe of any version, or a part of one.
        what: how messages call it.

    Raises:
        ConfigError: names the key.
    """
    for key in ("data", "protocols"):
        _refuse_unless(isinstance(values.get(key, {}), Mapping | None), what, key, "a mapping")
    _refuse_unless(isinstance(values.get("phases", []), list | None), what, "phases", "a list")
    for number, phase in enumerate(values.get("phases") or ()):
        _refuse_unless(isinstance(phase, Mapping), what, f"phases.{number}", "a mapping")
        frozen = phase.get("freeze") or []
        _refuse_unless(isinstance(frozen, list | tuple), what, f"phases.{number}.freeze", "a list")
    for name, overrides in (values.get("protocols") or {}).items():
        for each in overrides if isinstance(overrides, list) else [overrides]:
            _refuse_unless(isinstance(each, Mapping | None), what, f"protocols.{name}", "a mapping")


def _refuse_unless(is_right: bool, what: str, key: str, expected: str) -> None:
    if not is_right:
        raise ConfigError(f"{what}: {key}: expected {expected} of settings")


def spell_out_losses(settings: Mapping[str, object], *, colons: bool = False) -> Settings:
    """``settings`` with every loss that is a bare name as a mapping, so that ``phases.0.loss.entropy`` reaches into it.

    With ``colons`` the texts of schema 1 are read too: recorded commands have them behind ``--set``.

    >>> spell_out_losses({"phases.1.loss": "counts"})
    {'phases.1.loss': {'name': 'counts'}}
    >>> spell_out_losses({"phases.2.loss": "self_critical:0.5:0.8"}, colons=True)
    {'phases.2.loss': {'name': 'self_critical', 'bleu': 0.5, 'meteor': 0.8}}
    """

    def spelt_out(phase: Mapping[str, object]) -> Settings:
        loss = phase.get("loss")
        if not isinstance(loss, str):
            return dict(phase)
        return {**phase, "loss": _loss_of_schema_1(loss) if colons else {"name": loss}}

    return _with_phases(settings, spelt_out)


def _from_schema_1(values: Settings, *, extended: Mapping[str, Any]) -> Settings:
    """``values`` as schema 2 has them."""
    rest = {key: value for key, value in values.items() if key != "task"}
    task = values.get("task")
    family = extended.get("family") if task is None else "question" if task == "attribute" else task
    if task is not None:
        rest["family"] = family
    data = {**(extended.get("data") or {}), **(values.get("data") or {})}
    return _with_phases(spell_out_losses(rest, colons=True), partial(_phase_of_schema_1, family=str(family), data=data))


def _phase_of_schema_1(phase: Mapping[str, Any], *, family: str, data: Mapping[str, Any]) -> Settings:
    """A phase, or some of its keys, with what its name meant as keys of its own."""
    if "name" not in phase:
        return dict(phase)
    meaning = _MEANINGS.get((family, str(phase["name"])), {})
    if meaning.get("features") == "kept" and (data.get("name") == "scenes" or data.get("features_mb") == 0):
        meaning = {}  # of these nothing was kept, so such a phase learned like any other
    if list(phase) == ["name"]:  # an extension that renames a phase of another recipe
        return {**phase, **_PLAIN, **meaning}
    freeze = list(phase.get("freeze") or ())
    if meaning.get("features") == "kept" and _ENCODER not in freeze:
        meaning = {**meaning, "freeze": [*freeze, _ENCODER]}
    return {**phase, **meaning}


def _loss_of_schema_1(text: str) -> Settings:
    """The mapping that a loss of schema 1 is now: its name, and each number behind a colon by its own name."""
    name, *numbers = text.split(":")
    known = _NUMBERS.get(name, ())
    if name in _NUMBERS and len(numbers) > len(known):
        raise ConfigError(f"loss '{text}': '{name}' takes at most {len(known)}, found {len(numbers)} numbers")
    if len(numbers) > len(known):  # no loss of this name had numbers: whoever builds it says what there is
        return {"name": text}
    try:
        return {"name": name, **dict(zip(known, map(float, numbers)))}
    except ValueError as error:
        raise ConfigError(f"loss '{text}': expected numbers after ':', found {numbers}") from error


def _with_phases(settings: Mapping[str, object], change: Callable[[Mapping[str, object]], Settings]) -> Settings:
    """``settings`` with ``change`` applied to all they say of phases: in a list, by dotted keys, and in protocols."""
    found: Settings = {}
    for key, value in settings.items():
        if key == "phases" and isinstance(value, list):
            found[key] = [change(phase) if isinstance(phase, Mapping) else phase for phase in value]
        elif re.fullmatch(r"phases\.-?\d+", str(key)) and isinstance(value, Mapping):
            found[key] = change(value)
        elif one := re.fullmatch(r"(phases\.-?\d+)\.(\w+)", str(key)):
            found |= {f"{one[1]}.{name}": item for name, item in change({one[2]: value}).items()}
        elif key == "protocols" and isinstance(value, Mapping):
            found[key] = {name: _of_protocol(overrides, change) for name, overrides in value.items()}
        else:
            found[key] = value
    return found


def _of_protocol(overrides: object, change: Callable[[Mapping[str, object]], Settings]) -> object:
    """The overrides of a protocol: one mapping, or several on top of each other."""
    if isinstance(overrides, list):
        return [_of_protocol(each, change) for each in overrides]
    return _with_phases(overrides, change) if isinstance(overrides, Mapping) else overrides
