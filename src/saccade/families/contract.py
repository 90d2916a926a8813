"""What a family declares: one kind of question, with its models, data, task, losses and metrics.

A family is one folder. Its ``family.py`` holds one :class:`Family`; everything that needs torch is named as
``module:attribute`` and imported on first use, so that listing families costs no import of torch.

==============  ==================================================================================================
required        ``name, title, reads, models, data, task, headline, folder``
with a default  ``decode`` (one label), ``splits`` (the task has them), ``responder`` (one pass to an answer)
optional        ``options, columns, probing, featured, live, page, panel, runtime``
==============  ==================================================================================================

How an answer is drawn and exported follows from its trace and from :class:`~saccade.answer.Answer`, so a record can be
shown where its family is not installed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from saccade.config import from_dict
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn

RECIPES = "recipes"
"""The folder of a family that holds its recipes."""


def load_target(target: str) -> Any:
    """Imports the object that ``module:attribute``, or ``module`` alone, names."""
    module, _, name = target.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


@dataclass(frozen=True)
class ModelSpec:
    """A model of the catalog: its class, summary, paper and default settings."""

    target: str
    """``module:Class``; the class has ``Config``, and for saccade's own tests ``tiny()`` and ``example_batch``."""
    summary: str
    paper: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the defaults of its class; settings from the user override them."""

    def resolve(self) -> Any:
        """The model class."""
        return load_target(self.target)

    def build(self, config: Mapping[str, Any] | None = None, *, where: str = "model") -> nn.Module:
        """Builds the model from a dictionary of settings; error messages name ``where`` the settings are."""
        cls = self.resolve()
        settings = from_dict(cls.Config, {**self.defaults, **(config or {})}, where=where)
        try:
            model: nn.Module = cls(settings)
        except (ValueError, RuntimeError, ArithmeticError) as error:  # sizes that no layer can have
            raise ConfigError(f"a model of these settings cannot be built: {error}; found {settings}") from error
        return model

    def tiny(self) -> Any:
        """The configuration of a size for tests."""
        return replace(self.resolve().tiny(), **self.defaults)


@dataclass(frozen=True)
class DataEntry:
    """One data set as users see it: a generator, a reader of files named READER:PATH, or a known collection.

    A collection is called by its name where it lies in the cache (``saccade data get NAME``), else NAME:PATH.
    """

    kind: Literal["generator", "reader", "collection"]
    description: str
    licence: str
    get: str
    """How to get it."""
    splits: tuple[str, ...] = ("train", "val", "test")
    download: str | None = None
    """Name to pass to ``saccade data get``, where there is something to fetch."""
    shows: str = ""
    """What its pictures show, in a few words that follow "trained on"; empty: not known."""
    research_only: bool = False
    """Whether it may be used for research only, or states no licence; models that are trained on it say so."""
    example: str = ""
    """The shipped picture (``saccade.example``) that the live page shows first to a model trained on it; empty: none is
    of its kind, and the page starts with a scene of digits."""


LABEL_COLUMNS = frozenset({"image", "label"})
"""What a table of labelled pictures has at least; folders of classes are read as such a table."""


def class_folders() -> dict[str, DataEntry]:
    """The reader of folders of pictures, one for each class, for a family that takes labels."""
    text = "pictures in folders by class, CLASS/xxx.jpg, with or without train, val and test above"
    return {"folder": DataEntry("reader", text, "yours", "name it folder:PATH")}


def own_tables(columns: str) -> dict[str, DataEntry]:
    """The readers of the user's CSV and JSON-lines tables, for a family whose tables have these ``columns``."""
    get = "name it {}:PATH; pictures are found from the table's folder"
    described = {"csv": f"a CSV with {columns}", "jsonl": "the same as csv with one JSON object in each line"}
    return {name: DataEntry("reader", text, "yours", get.format(name)) for name, text in described.items()}


def picture_tables() -> dict[str, DataEntry]:
    """The readers of tables that come with their pictures, for a family whose tables are about pictures."""
    coco = "annotations as COCO has them: pictures of one category, boxes and masks as evidence"
    described = {
        "coco": (coco, "name it coco:FILE.json"),
        "metadata": ("pictures with metadata.csv or metadata.jsonl beside them", "name it metadata:FOLDER"),
        "parquet": ("a Parquet file, or a folder of them, with a column image", "name it parquet:PATH"),
    }
    return {name: DataEntry("reader", text, "yours", get) for name, (text, get) in described.items()}


@dataclass(frozen=True)
class Probing:
    """How ``saccade probe`` reads the pictures of a family, and which of its models carries the result."""

    model: str
    """Name of a model of the family: a :class:`saccade.models.probe.HeadOnBackbone`."""
    asks: bool = False
    """Whether the rows of the table have questions."""


@dataclass(frozen=True)
class Family:
    """One kind of question; see the module for what is required."""

    name: str
    title: str
    """What goes in and what comes out, in a few words."""
    folder: Path
    """Where the family lies: its recipes are ``recipes/*.yaml`` there."""
    reads: str
    """``module:object``, a :class:`saccade.families.reading.InputReader`: how files and Python values become inputs."""
    models: Mapping[str, ModelSpec]
    data: Mapping[str, DataEntry]
    """Generators and readers by name. A reader such as ``csv`` may belong to several families: see ``columns``."""
    task: str
    """``module:Class``, a :class:`saccade.tasks.task.Task`: trains and scores a model. Its ``losses`` are the names
    that a phase may be taught by, each with the dataclass of its numbers."""
    headline: tuple[str, ...]
    """Metrics that a model may be known by: the first of these that its score has."""
    splits: str | None = None
    """``module`` with ``open_split``, and ``write_split`` where it has generators (``families/splits.py``); None: the
    task has them."""
    decode: str = "saccade.families.labels:decode"
    """``module:function`` (model, output, facts) → an :class:`~saccade.answer.Answer` for each example."""
    responder: str = "saccade.families.responder:Responder"
    """``module:Class``, a :class:`saccade.families.responder.Responder`."""
    options: tuple[str, ...] = ()
    """Names of the options of ``look`` and ``evaluate`` that this family understands."""
    columns: tuple[frozenset[str], ...] = ()
    """Columns that a CSV or JSON-lines table of this family has: one of these sets."""
    probing: Probing | None = None
    """How ``saccade probe`` uses a family of pictures with labels or questions."""
    featured: tuple[str, ...] = ()
    """Shipped models that come first: a quick tour stops at them, and the page opens with them."""
    live: tuple[str, ...] = ()
    """Shipped models that run inside the tour's page, without a server."""
    page: str | None = None
    """``module`` with facts for the live page, such as the training scenes of its models."""
    panel: str | None = None
    """An ES module in ``folder`` that the page loads, for controls that no other family has."""
    runtime: str | None = None
    """An ES module in ``folder`` that computes its models inside a page, where the page's engine does not."""

    def licence_of_weights(self, data: str) -> tuple[str, bool]:
        """What the card of a model says that was trained on ``data``, and whether that is for research only."""
        entry = self.data.get(data)
        if entry is None or entry.licence == "yours":
            return "Code: Apache-2.0. Weights: yours, like the data they were trained on.", False
        return f"Code: Apache-2.0. Weights: trained on {data} ({entry.licence}).", entry.research_only

    def load_splits(self) -> Any:
        """What has ``open_split``, and ``write_split`` where there are generators."""
        return load_target(self.splits or self.task)

    def recipes(self) -> dict[str, Path]:
        """Its recipes by name, with the file of each; a file also holds the variants that it lists."""
        found: dict[str, Path] = {}
        for file in sorted((self.folder / RECIPES).glob("*.yaml")):
            variants = file.read_text(encoding="utf-8").partition("\nvariants:\n")[2]
            found |= dict.fromkeys([file.stem, *re.findall(r"^  ([\w-]+):", variants, re.MULTILINE)], file)
        return found
