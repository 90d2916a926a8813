"""What a family declares, and every family by name: those of this package, and those that another package adds.

A family is one kind of question, with its models, data and task in one folder, whose ``__init__.py`` declares it as one
:class:`Family`. It must have ``name, title, folder, models, data, headline`` and the method ``task``. What needs torch
is imported inside a method, so that families can be listed without torch.

A package adds a family with an entry point of the group ``saccade.families``::

    [project.entry-points."saccade.families"]
    dots = "dots.family:FAMILY"

A family that cannot be loaded is left out with a warning; ``saccade doctor`` names it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from saccade.config import from_dict
from saccade.data.scenes import DOWNLOAD, GET, LICENCE
from saccade.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from torch import nn

    from saccade.data.tables.table import Table
    from saccade.families.answering import InputReader, Responder
    from saccade.families.page import PageModel, TrainedScenes
    from saccade.models.facts import ModelFacts
    from saccade.tasks.task import Task
    from saccade.trace import Answer

Decode = Callable[..., "list[Answer]"]  # (model, output, facts) → an answer for each example


@dataclass(frozen=True)
class ModelSpec:
    """A model of the catalog."""

    #: Imports the class; it has ``Config``.
    load: Callable[[], Any]
    summary: str
    paper: str
    #: Defaults that differ from those of the class.
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def build(self, config: Mapping[str, Any] | None = None, *, where: str = "model") -> nn.Module:
        """Builds the model from settings; error messages name ``where`` they are."""
        cls = self.load()
        settings = from_dict(cls.Config, {**self.defaults, **(config or {})}, where=where)
        try:
            model: nn.Module = cls(settings)
        except (ValueError, RuntimeError, ArithmeticError) as error:  # sizes that no layer can have
            raise ConfigError(f"a model of these settings cannot be built: {error}; found {settings}") from error
        return model


@dataclass(frozen=True)
class DataEntry:
    """One data set: a generator, a reader of files named READER:PATH, or a known collection.

    A collection is called by its name if it is in the cache (``saccade data get NAME``), else NAME:PATH.
    """

    kind: Literal["generator", "reader", "collection"]
    description: str
    licence: str
    #: How to get it.
    get: str
    splits: tuple[str, ...] = ("train", "val", "test")
    #: Argument of ``saccade data get``, if it can be fetched.
    download: str | None = None
    #: What its pictures show, as it follows "trained on"; empty if unknown.
    shows: str = ""
    #: Whether it is for research only, or states no licence; models trained on it say so.
    research_only: bool = False
    #: The shipped picture (``saccade.example``) with which the page opens its models; empty: a scene of digits.
    example: str = ""


# What reads data of one's own, and how it is named.
OWN_DATA = {
    "csv": ("a CSV with {}", "csv:PATH; pictures are found from the table's folder"),
    "jsonl": (
        "the same as csv with one JSON object in each line",
        "jsonl:PATH; pictures are found from the table's folder",
    ),
    "folder": ("pictures in folders by class, CLASS/xxx.jpg, with or without train, val and test above", "folder:PATH"),
    "coco": ("annotations as COCO has them: pictures of one category, boxes and masks as evidence", "coco:FILE.json"),
    "metadata": ("pictures with metadata.csv or metadata.jsonl beside them", "metadata:FOLDER"),
    "parquet": ("a Parquet file, or a folder of them, with a column image", "parquet:PATH"),
}


def own_data(columns: str) -> dict[str, DataEntry]:
    """The readers of data of one's own, of tables with these ``columns``."""
    described = {name: (text.format(columns), f"name it {named}") for name, (text, named) in OWN_DATA.items()}
    return {name: DataEntry("reader", text, "yours", get) for name, (text, get) in described.items()}


def drawn_digits(description: str, **changes: Any) -> DataEntry:
    """A generator of scenes of MNIST digits; ``changes`` set other fields."""
    entry = DataEntry("generator", description, LICENCE, GET, download=DOWNLOAD, shows="drawn digits")
    return replace(entry, **changes)


def cub_birds(question: str) -> DataEntry:
    """The reader of CUB-200-2011 for this ``question``."""
    return DataEntry(
        kind="reader",
        description=f"CUB-200-2011: {question}",
        licence="pictures for non-commercial research and education only",
        research_only=True,
        get="download CUB_200_2011.tgz from its page at Caltech, unpack it, name it cub:FOLDER",
        shows="photographs of birds",
    )


@dataclass(frozen=True)
class Probing:
    """How ``saccade probe`` uses a family."""

    #: The model that stores the result, a :class:`saccade.models.probe.HeadOnBackbone`.
    model: str
    #: Whether rows have questions.
    asks: bool = False


@dataclass(frozen=True)
class Family:
    """One kind of question, see the module."""

    name: str
    title: str
    """Input and output, in a few words."""
    folder: Path
    """Its folder, with recipes in ``recipes/*.yaml``."""
    models: Mapping[str, ModelSpec]
    data: Mapping[str, DataEntry]
    """Generators and readers by name. Several families may have a reader such as ``csv``: see ``columns``."""
    headline: tuple[str, ...]
    """The metric that a model is known by: the first of these that its score has."""
    options: tuple[str, ...] = ()
    """Options of ``look`` and ``evaluate`` that this family understands."""
    columns: tuple[frozenset[str], ...] = ()
    """Columns of its CSV or JSON-lines tables: one of these sets."""
    asks_text: bool = False
    """Whether a question is any text, rather than one of the model's queries."""
    probing: Probing | None = None
    featured: tuple[str, ...] = ()
    """Shipped models that come first in the tour and on the page."""
    live: tuple[str, ...] = ()
    """Shipped models that run in the tour's page without a server."""
    panel: str | None = None
    """An ES module in ``folder`` with the family's own page controls."""
    runtime: str | None = None
    """An ES module in ``folder`` that computes its models in a page, if the page's engine does not."""

    def task(self) -> type[Task]:
        """The class that trains and scores models and opens data."""
        raise NotImplementedError

    def reads(self) -> InputReader:
        """How files and Python values become inputs; by default pictures."""
        from saccade.families.answering import PICTURES

        return PICTURES

    def decode(self) -> Decode:
        """Decodes outputs into answers; by default one label each."""
        from saccade.families.answering import decode_labels

        return decode_labels

    def responder(self) -> type[Responder]:
        """Answers questions about encoded inputs; by default in one pass."""
        from saccade.families.answering import Responder

        return Responder

    def premise(self, facts: ModelFacts) -> str:
        """What every question takes for granted, in words; empty if the model can reject it."""
        return ""

    def prompt(self, facts: ModelFacts) -> str | None:
        """How questions begin on the page, such as "What colour is the …", before one of the model's queries."""
        return None

    def trained_scenes(self, facts: ModelFacts) -> TrainedScenes | None:
        """The scenes of a model's training; None if it learned from other pictures, or is unknown."""
        return None

    def panel_facts(self, facts: ModelFacts) -> dict[str, object] | None:
        """Plain JSON values about a model for the family's panel."""
        return None

    def page_model(self, model: nn.Module, facts: ModelFacts, name: str) -> PageModel:
        """The model called ``name`` as the page's engine computes it, or a ConfigError that says why it cannot."""
        raise ConfigError(f"'{name}' does not run inside a page; use 'saccade serve'")

    def licence_of_weights(self, data: str) -> tuple[str, bool]:
        """The licence line of a model trained on ``data``, and whether it is for research only."""
        entry = self.data.get(data)
        if entry is None or entry.licence == "yours":
            return "Code: Apache-2.0. Weights: yours, like the data they were trained on.", False
        return f"Code: Apache-2.0. Weights: trained on {data} ({entry.licence}).", entry.research_only

    def recipes(self) -> dict[str, Path]:
        """The file of each recipe by name; a file also holds variants."""
        recipes: dict[str, Path] = {}
        for file in sorted((self.folder / "recipes").glob("*.yaml")):
            variants = file.read_text(encoding="utf-8").partition("\nvariants:\n")[2]
            recipes |= dict.fromkeys([file.stem, *re.findall(r"^  ([\w-]+):", variants, re.MULTILINE)], file)
        return recipes


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

    Of the families that can read a table, the one whose columns fit and that needs the most of them.
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
        wanted = "; ".join(f"{one.name}: {', '.join(sorted(one.columns[0]))}" for one in candidates if one.columns)
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
