"""Every family by name: those of this package, and those that another package adds.

A package adds a family with an entry point of the group ``saccade.families``::

    [project.entry-points."saccade.families"]
    dots = "dots.family:FAMILY"

Its models, data and recipes are then found like those of this package. A family that cannot be loaded is left out with
a warning; ``saccade doctor`` names it. What a family is made of, such as ``InputReader``, ``LabelTask`` and
``Responder``, is imported on first use: nothing here imports torch.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import ConfigError, DataError, nearest
from saccade.families.contract import (
    LABEL_COLUMNS,
    DataEntry,
    Family,
    ModelSpec,
    class_folders,
    load_target,
    own_tables,
    picture_tables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from saccade.data.tables.table import Table
    from saccade.families.contract import Probing
    from saccade.families.labels import decode as decode_labels
    from saccade.families.pictures import Pictures
    from saccade.families.reading import InputReader, Item, Prepared, ReadItem
    from saccade.families.responder import Responder, Response
    from saccade.families.splits import OpenedSplit
    from saccade.tasks.label_task import LabelTask
    from saccade.tasks.picture_task import PictureTask
    from saccade.tasks.task import Task
else:
    from saccade.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = [
    "DataEntry",
    "Family",
    "InputReader",
    "Item",
    "LabelTask",
    "ModelSpec",
    "OpenedSplit",
    "PictureTask",
    "Pictures",
    "Prepared",
    "Probing",
    "ReadItem",
    "Responder",
    "Response",
    "Task",
    "broken_families",
    "data_entries",
    "decode_labels",
    "families",
    "family",
    "family_of_data",
    "family_of_model",
    "headline",
    "model_spec",
    "models",
    "read_table",
    "recipes",
]

GROUP = "saccade.families"
FAMILIES: dict[str, str] = {
    "question": "saccade.families.question.family:FAMILY",
    "multiset": "saccade.families.multiset.family:FAMILY",
    "caption": "saccade.families.caption.family:FAMILY",
    "story": "saccade.families.story.family:FAMILY",
    "classify": "saccade.families.classify.family:FAMILY",
}
"""The families of this package."""

_broken: dict[str, str] = {}


@cache
def families() -> dict[str, Family]:
    """Every family by name; one of another package whose names are taken is left out, with a warning."""
    found: dict[str, Family] = {name: load_target(target) for name, target in FAMILIES.items()}
    for point in entry_points(group=GROUP):
        family = _loaded(point, found)
        if family is not None:
            found[family.name] = family
    return found


def broken_families() -> dict[str, str]:
    """Entry points that could not be loaded, and why."""
    families()
    return dict(_broken)


def family(name: str) -> Family:
    """The family called ``name``, or a ConfigError that names the nearest."""
    if name not in families():
        raise ConfigError(f"no family '{name}': {nearest(name, families())}; is the package that adds it installed?")
    return families()[name]


def models() -> dict[str, ModelSpec]:
    """Every model by name."""
    return {name: spec for each in families().values() for name, spec in each.models.items()}


def model_spec(name: str) -> ModelSpec:
    """The model called ``name``, or a ConfigError that names the nearest."""
    if name not in models():
        raise ConfigError(f"no model '{name}': {nearest(name, models())}")
    return models()[name]


def family_of_model(name: str) -> Family:
    """The family of the model called ``name``."""
    model_spec(name)
    return next(each for each in families().values() if name in each.models)


def recipes() -> dict[str, Path]:
    """Every packaged recipe by name."""
    return {name: file for each in families().values() for name, file in each.recipes().items()}


def data_entries() -> dict[str, list[tuple[Family, DataEntry]]]:
    """Every generator and reader by name, with the families that know it."""
    found: dict[str, list[tuple[Family, DataEntry]]] = {}
    for each in families().values():
        for name, entry in each.data.items():
            found.setdefault(name, []).append((each, entry))
    return found


def family_of_data(reference: str) -> Family:
    """The family of a generator's or a collection's name, or of READER:PATH.

    A table that several families can read tells by its columns. A published collection in its own layout, such as the
    birds, belongs to the first family that reads it; a recipe or a trained model says of itself which one it means.

    Raises:
        DataError: no family knows it.
    """
    entries = data_entries()
    name, colon, path = reference.partition(":")
    kind = "reader" if colon and path and len(name) > 1 else "generator"
    kinds = (kind, "collection")  # which is called by its name alone, or with a path
    of_kind = {key: [pair for pair in held if pair[1].kind in kinds] for key, held in entries.items()}
    known = {key: held for key, held in of_kind.items() if held}
    name = name if kind == "reader" else reference
    if name not in known:
        what = "reader" if kind == "reader" else "generated data"
        raise DataError(f"no {what} '{name}': {nearest(name, known)}")
    candidates = [each for each, _ in known[name]]
    if len(candidates) == 1 or name not in {**own_tables(""), **class_folders(), **picture_tables()}:
        return candidates[0]
    return _by_columns(name, Path(path).expanduser(), candidates)


def _by_columns(reader: str, path: Path, candidates: list[Family]) -> Family:
    """The family whose columns are in the table: of several, the one that asks for the most."""
    found = _columns(reader, path)
    fits = {
        each.name: max((len(needed) for needed in each.columns if needed <= found), default=0) for each in candidates
    }
    best = max(fits.values())
    if not best:
        wanted = "; ".join(f"{each.name}: {', '.join(sorted(each.columns[0]))}" for each in candidates if each.columns)
        raise DataError(
            f"{path}: its columns {', '.join(sorted(found)) or '(none)'} fit no family; needed are {wanted}"
        )
    return next(each for each in candidates if fits[each.name] == best)


def _columns(reader: str, path: Path) -> frozenset[str]:
    """The columns of a table in any form."""
    if reader == "metadata":
        from saccade.data.tables.metadata import metadata_columns

        return metadata_columns(path)
    if reader == "parquet":
        from saccade.data.tables.metadata import parquet_columns

        return parquet_columns(path)
    if path.is_dir() or reader == "coco":
        return LABEL_COLUMNS  # a folder has its classes' names as labels
    from saccade.data.tables.rows import columns_of

    return columns_of(reader, path)


def _loaded(point: EntryPoint, others: dict[str, Family]) -> Family | None:
    """The family that an entry point names; None, with a warning, where it does not load or its names are taken."""
    try:
        family = point.load()
    except Exception as error:  # another package's import may raise anything; it must not end ours
        reason = f"{type(error).__name__}: {error}"
    else:
        if isinstance(family, Family):
            clashes = ((kind, sorted(mine & known)) for kind, mine, known in _names(family, others))
            taken = next(((kind, names[0]) for kind, names in clashes if names), None)
            if taken is None:
                return family
            reason = f"its {taken[0]} '{taken[1]}' is there already; rename it"
        else:
            reason = f"expected a Family, found {type(family).__name__}"
    _broken[point.value] = reason
    warnings.warn(f"the family '{point.value}' does not load and is left out ({reason})", stacklevel=3)
    return None


def _names(mine: Family, others: dict[str, Family]) -> Iterator[tuple[str, set[str], set[str]]]:
    """Names that must be unique over all families; a reader such as ``csv`` may belong to several."""
    yield "name", {mine.name}, set(others)
    yield "model", set(mine.models), {name for each in others.values() for name in each.models}
    yield "recipe", set(mine.recipes()), {name for each in others.values() for name in each.recipes()}
    yield "generator", _generators(mine), {name for each in others.values() for name in _generators(each)}


def _generators(family: Family) -> set[str]:
    return {name for name, entry in family.data.items() if entry.kind != "reader"}


def read_table(reference: str, family_name: str = "classify", **options: object) -> Table:
    """The table that ``reference`` (READER:PATH) names, as a family reads it; ``options`` are those of the reader.

    >>> table = read_table("csv:my.csv", "question")  # doctest: +SKIP
    >>> print(table.summary())  # doctest: +SKIP
    """
    from saccade.data.tables.references import read_reference

    return read_reference(reference, load_target(family(family_name).task).readers, options)


def headline(family_name: str, metrics: Mapping[str, object]) -> tuple[str, float] | None:
    """The metric that a model of a family is known by, and its value; None where it was not measured."""
    known = families().get(family_name)
    names = known.headline if known is not None else tuple(metrics)  # of a family that is not installed: any number
    found = ((name, metrics.get(name)) for name in names)
    return next(((name, float(value)) for name, value in found if isinstance(value, (int, float))), None)
