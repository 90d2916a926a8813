"""What the page is told of a model by its family: the only place where ``web`` asks a family for anything.

``Family.panel`` and ``Family.runtime`` name ES modules in the family's folder; :mod:`saccade.web.page` says what they
must export. They may import modules that lie beside them, in the form that :mod:`saccade.web.page` knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from saccade.data.scenes.drawing import COLOURS
from saccade.families import Family, family
from saccade.models.facts import ModelFacts

CANVAS = 100
"""Side of a composed scene in pixels, as the models of digits were trained."""
Behind = Literal["black", "distractors", "clutter", "photo"]


@dataclass(frozen=True)
class TrainedScenes:
    """What the scenes of a model's training have in common."""

    digits: tuple[int, int]
    """Fewest and most."""
    sizes: tuple[tuple[int, int], ...]
    """Ranges of the sides of their boxes in pixels."""
    background: Behind
    colours: tuple[str, ...] = COLOURS
    repeats: bool = False
    """Whether a digit may be there twice."""


Takes = Literal["picture", "json"] | None
"""How a model is sent what it reads: as a picture, as JSON, or not at all."""
_BESIDE = re.compile(r'^import \{[^{}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class PageEntry:
    """What the page shows of a model and offers for it, besides its name and its score."""

    family: str
    """Name of its family, to be shown; the page never asks for it."""
    reads: str
    """What it reads, in a word: picture, story."""
    takes: Takes
    """How that is sent."""
    asks: Literal["choice", "text", "none"]
    """How it is asked: one question of its list, any text, or nothing."""
    prompt: str | None = None
    """How a question begins that its queries end."""
    scenes: TrainedScenes | None = None
    """What it learned from, where those are scenes like ours."""
    example: str | None = None
    """The shipped picture that it is shown first, as its data declares; None: a scene."""
    panel: str | None = None
    """Address of the ES module with controls that no other family has."""
    told: dict[str, Any] | None = None
    """What those controls are told of it."""
    architecture: str
    summary: str
    queries: tuple[str, ...]
    answers: tuple[str, ...]
    """Empty where it says sentences."""
    sentences: bool
    size: tuple[int, int] | None
    """Height and width of its input; None where it reads no pictures."""
    parameters: int


def page_entry(facts: ModelFacts) -> PageEntry:
    """What the page is told of the model with these facts, without loading the model."""
    known = family(facts.family)
    reader = known.reads()
    data, spec = known.data.get(str(facts.data.get("name"))), known.models.get(facts.architecture)
    takes: Takes = "json" if reader.takes_json else None
    return PageEntry(
        family=facts.family,
        architecture=facts.architecture,
        summary=facts.architecture if spec is None else spec.summary,
        reads=reader.thing,
        takes="picture" if facts.preprocessing else takes,
        asks="text" if known.asks_text else "choice" if facts.queries else "none",
        queries=facts.queries,
        answers=() if facts.sentences else facts.answers,
        sentences=facts.sentences,
        size=None if facts.preprocessing is None else facts.preprocessing.size,
        parameters=facts.parameters,
        example=(data.example or None) if data else None,
        panel=address_of(known, "panel") if family_modules(known, "panel") else None,
        prompt=known.prompt(facts),
        scenes=known.trained_scenes(facts),
        told=known.panel_facts(facts),
    )


def address_of(family: Family, what: Literal["panel", "runtime"]) -> str:
    """Where the page finds a module of the family, from the root of the server; the same in a page without one."""
    return f"families/{quote(family.name, safe='')}/{Path(str(getattr(family, what))).name}"


def family_modules(family: Family, what: Literal["panel", "runtime"]) -> dict[str, Path]:
    """The family's panel or runtime and the modules that it imports, by file name, itself first."""
    declared = getattr(family, what)
    wanted, modules = [] if declared is None else [family.folder / declared], dict[str, Path]()
    while wanted:
        file = wanted.pop().resolve()
        modules[file.name] = file
        beside = _BESIDE.findall(file.read_text(encoding="utf-8"))
        wanted += [file.parent / name for name in beside if name not in modules]
    return modules
