"""Every family by name: those of this package, and those that another package adds.

A package adds a family with an entry point of the group ``saccade.families``::

    [project.entry-points."saccade.families"]
    dots = "dots.family:FAMILY"

A family that cannot be loaded is left out with a warning; ``saccade doctor`` names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import ConfigError, DataError, nearest
from saccade.families.declaration import OWN_DATA, DataEntry, Family, ModelSpec

if TYPE_CHECKING:
    from saccade.data.tables.table import Table

BUILT_IN = ("question", "multiset", "caption", "story", "classify")  # Folders beside this file
GROUP = "saccade.families"
_broken: dict[str, str] = {}


@cache
def families() -> dict[str, Family]:
    """Every family by name; one of another package whose name is taken is left out."""
    built_in: list[Family] = [import_module(f"saccade.families.{name}").FAMILY for name in BUILT_IN]
    by_name = {family.name: family for family in built_in}
    for point in entry_points(group=GROUP):
        if (other := _loaded(point)) is not None:
            by_name.setdefault(other.name, other)
    return by_name


def broken_families() -> dict[str, str]:
    """Entry points that could not be loaded, and why."""
    families()
    return dict(_broken)


def _loaded(point: EntryPoint) -> Family | None:
    """The family of an entry point; None, with a warning, if it does not load."""
    try:
        family = point.load()
        if isinstance(family, Family):
            return family
        reason = f"expected a Family, found {type(family).__name__}"
    except Exception as error:  # another package's import may raise anything; it must not end ours
        reason = f"{type(error).__name__}: {error}"
    _broken[point.value] = reason
    warnings.warn(f"the family '{point.value}' does not load and is left out ({reason})", stacklevel=3)
    return None


def family(name: str) -> Family:
    """The family called ``name``, or a ConfigError that names the nearest."""
    if name not in families():
        raise ConfigError(f"no family '{name}': {nearest(name, families())}; is the package that adds it installed?")
    return families()[name]


def models() -> dict[str, ModelSpec]:
    """Every model by name."""
    return {name: spec for family in families().values() for name, spec in family.models.items()}


def model_spec(name: str) -> ModelSpec:
    """The model called ``name``, or a ConfigError that names the nearest."""
    if name not in models():
        raise ConfigError(f"no model '{name}': {nearest(name, models())}")
    return models()[name]


def family_of_model(name: str) -> Family:
    """The family of the model called ``name``."""
    model_spec(name)  # or an error
    return next(family for family in families().values() if name in family.models)


def recipes() -> dict[str, Path]:
    """Every packaged recipe by name."""
    return {name: file for family in families().values() for name, file in family.recipes().items()}


def data_entries() -> dict[str, list[tuple[Family, DataEntry]]]:
    """Every generator and reader by name, with the families that know it."""
    entries: dict[str, list[tuple[Family, DataEntry]]] = {}
    for family in families().values():
        for name, entry in family.data.items():
            entries.setdefault(name, []).append((family, entry))
    return entries


def family_of_data(reference: str) -> Family:
    """The family of a generator's or a collection's name, or of READER:PATH.

    Of the families that can read a table, the one whose columns fit and that needs the most of them; of those that can
    read a published collection, the first.
    """
    name, _, path = reference.partition(":")
    is_read = bool(path) and len(name) > 1
    name, kinds = (name, ("reader", "collection")) if is_read else (reference, ("generator", "collection"))
    by_name = {key: [family for family, entry in pairs if entry.kind in kinds] for key, pairs in data_entries().items()}
    if not (candidates := by_name.get(name, [])):
        names = [key for key, candidates in by_name.items() if candidates]
        raise DataError(f"no {'reader' if is_read else 'generated data'} '{name}': {nearest(name, names)}")
    if len(candidates) == 1 or name not in OWN_DATA:
        return candidates[0]
    from saccade.data.tables.readers import columns_of  # loads numpy

    columns = columns_of(name, Path(path).expanduser())
    fits = [max((len(needed) for needed in family.columns if needed <= columns), default=0) for family in candidates]
    if not max(fits):
        wanted = "; ".join(
            f"{candidate.name}: {', '.join(sorted(candidate.columns[0]))}"
            for candidate in candidates
            if candidate.columns
        )
        present = ", ".join(sorted(columns)) or "(none)"
        raise DataError(f"{path}: its columns {present} fit no family; needed are {wanted}")
    return candidates[fits.index(max(fits))]


def read_table(reference: str, family_name: str = "classify", **options: object) -> Table:
    """The table ``reference`` (READER:PATH) as a family reads it, with ``options`` of the reader.

    >>> table = read_table("csv:my.csv", "question")  # doctest: +SKIP
    >>> print(table.summary())  # doctest: +SKIP
    """
    from saccade.data.tables.readers import read_reference

    return read_reference(reference, family(family_name).task().readers, options)


def headline(family_name: str, metrics: Mapping[str, object]) -> tuple[str, float] | None:
    """The headline metric of a model of a family, and its value; None if it was not measured."""
    owner = families().get(family_name)
    names = owner.headline if owner is not None else tuple(metrics)  # of a family that is not installed: any number
    values = ((name, metrics.get(name)) for name in names)
    return next(((name, float(value)) for name, value in values if isinstance(value, (int, float))), None)
