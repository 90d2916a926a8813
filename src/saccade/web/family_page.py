"""What the page is told of a model by its family: the only place where ``web`` asks a family for anything.

``Family.page`` names a module. It may have any of these functions; one that is missing has nothing to tell.

=============================  =====================================================================================
``prompt(facts)``              how a question begins that the model's queries end, such as "What colour is the …"
``trained_scenes(facts)``      the scenes of the model's training, as :class:`~saccade.web.scene_kinds.TrainedScenes`
``page_model(predictor)``      the model for the engine of the page; see :mod:`saccade.web.weights`
=============================  =====================================================================================

``Family.panel`` names an ES module in the family's folder; :mod:`saccade.web.page` says what it must export.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from saccade.errors import ConfigError
from saccade.families import families
from saccade.families.contract import Family, load_target
from saccade.families.responder import Asks, Responder
from saccade.models.io.facts import ModelFacts
from saccade.predict import Predictor
from saccade.web.scene_kinds import TrainedScenes

_HOOK = re.compile(r"^export (?:async )?function panel\(", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\b", re.MULTILINE)


@dataclass(frozen=True)
class PageEntry:
    """What the page shows of a model and offers for it, besides its name and its numbers."""

    family: str
    """Name of its family, to be shown; the page never asks for it."""
    reads: str
    """What it reads, in a word: picture, story."""
    asks: Asks
    """How it is asked: one question of its list, any text, or nothing."""
    prompt: str | None = None
    """How a question begins that its queries end."""
    scenes: TrainedScenes | None = None
    """What it learned from, where those are scenes like ours."""
    panel: str | None = None
    """Address of the ES module with controls that no other family has."""


def page_entry(facts: ModelFacts) -> PageEntry:
    """What the page is told of the model with these facts, without loading the model.

    Raises:
        ConfigError: the family's page module or its panel is not as it must be.
    """
    family = families().get(facts.family)
    if family is None:  # not installed: that is said when the model is loaded
        return PageEntry(facts.family, "picture" if facts.preprocessing else "input", Responder.asks(facts))
    module = _page_module(family)
    return PageEntry(
        family=family.name,
        reads=load_target(family.reads).thing,
        asks=load_target(family.responder).asks(facts),
        prompt=module.prompt(facts) if hasattr(module, "prompt") else None,
        scenes=module.trained_scenes(facts) if hasattr(module, "trained_scenes") else None,
        panel=None if panel_file(family) is None else panel_address(family),
    )


def page_model(predictor: Predictor) -> dict[str, Any]:
    """The facts and weights of ``predictor``'s model as plain values, which ``load`` of the engine takes.

    Raises:
        ConfigError: for a model that the engine cannot compute.
    """
    module = _page_module(predictor.family)
    if not hasattr(module, "page_model"):
        raise ConfigError(
            f"'{predictor.name}' does not run inside a page: the family '{predictor.family.name}' has no models for "
            "the page's engine; use 'saccade serve'"
        )
    made: dict[str, Any] = module.page_model(predictor)
    return made


def _page_module(family: Family) -> Any:
    """The module that ``Family.page`` names; None for a family that has nothing to tell the page."""
    if family.page is None:
        return None
    try:
        return importlib.import_module(family.page)
    except ImportError as error:
        raise ConfigError(f"family '{family.name}': its page module '{family.page}' does not load ({error})") from error


# ---------------------------------------------------------------- panels


def panel_address(family: Family) -> str:
    """Where the page finds the family's panel, from the root of the server; the same in a page without one."""
    return f"families/{quote(family.name, safe='')}/panel.js"


def panel_file(family: Family) -> Path | None:
    """The family's panel, once it is known to work served and inside a file; None where it declares none.

    Raises:
        ConfigError: it is not there, lies outside the family's folder, imports something, or has no hook.
    """
    if family.panel is None:
        return None
    folder = family.folder.resolve()
    file = (folder / family.panel).resolve()
    what = f"family '{family.name}': its panel '{family.panel}'"
    if not file.is_relative_to(folder) or not file.is_file():
        raise ConfigError(f"{what} is no file of the family's folder; name one that is")
    text = file.read_text(encoding="utf-8")
    if _IMPORT.search(text):
        raise ConfigError(f"{what} imports something; a panel is one file, and what it needs is given to its function")
    if not _HOOK.search(text):
        raise ConfigError(f"{what} has no 'export function panel(place, page)'; the page would not know what to call")
    return file
