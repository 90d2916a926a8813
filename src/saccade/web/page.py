"""The page: what a family declares for it, and the page as one text that needs no server.

``Family.panel`` names an ES module with controls of the family's own, in its folder: ``families/NAME/FILE.js`` for the
page. It exports ``function panel(place, page)``, which the page calls when a model of the family is chosen; models of
one family that are compared share it:

=======================  ===========================================================================================
``place``                an empty element to be filled: of the side panel, or, for models that take JSON, in the middle
``page.model``           the model as in ``/api/models``: ``name, queries, answers, scenes, panel_facts …``
``page.element``         makes elements, as ``element("button", {text: "7", onclick: …}, child, …)``; text stays text
``page.ask``             asks another question, as ``ask("7")``
``page.show``            shows a model that takes JSON an input and asks about it, as ``show(["Mary left."], "Who?")``;
                         a third argument says why nothing can be asked yet
``page.shown``           what was shown last, ``{input, question}``, when the panel was open before; otherwise null
``page.acts``            the looks of a view, step by step, with their weights as numbers: ``acts(view)``
``page.heat``            writes a weight into an element and colours it, as ``heat(cell, value, peak)``
=======================  ===========================================================================================

A style sheet of the same name beside it, ``FILE.css``, is added to the page. ``panel`` may return an object of
functions, which are called: ``models(list)`` with the shown models of the family, whenever they change;
``answered(view)`` with every answer (:mod:`saccade.web.views`), and when the colours change; ``unanswered(name)`` with
a model that could not answer; ``act(key)`` with the chosen look; ``closed()`` when no model of the family is shown any
more. With ``showsLooks: true``, cards leave looks over slots and notes to the panel.

``Family.runtime`` names an ES module that computes the family's models in a worker of the page. It exports
``function network(weights, tools)``, called with what ``page_model`` made, which returns an object with
``answer(input, question)``. That gives ``{question, answers, looks, notes}``: answers with their shares, likeliest
first, and for each of the facts' ``looks`` its ``weights`` and ``slots``. ``tools`` are ``matrix``, which reads what
:func:`saccade.families.page.matrix` wrote, and ``softmax``.

A page without models shows the views that it carries, and opens saved records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families.page import TrainedScenes
from saccade.families.registry import Family, family
from saccade.models.facts import ModelFacts
from saccade.predict import Predictor
from saccade.show.overlay import data_url
from saccade.show.report import Live, live_page, policy

STATIC = Path(__file__).parent / "static"
_STYLESHEET = re.compile(r'<link rel="stylesheet" href="(css/[\w.-]+)">')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_SPARE = re.compile(r"^[ \t]*//.*\n|^[ \t]*/\*\*(?:.|\n)*?\*/\n|^[ \t]+|^\n", re.MULTILINE)
_UNFIT = re.compile(r"^\s*(?:import\b(?!\()|export\b)|</script|<!--", re.MULTILINE)
_BLANK = re.compile(r"\s*\n\s*")


@dataclass(frozen=True, kw_only=True)
class PageEntry:
    """What the page shows of a model and offers for it, besides its name and its score."""

    family: str  # To be shown; the page never asks for it.
    reads: str  # What it reads, in a word: picture, story.
    takes: Literal["picture", "json"] | None  # How that is sent; None: not at all.
    asks: Literal["choice", "text", "none"]  # How it is asked: one question of its list, any text, or nothing.
    prompt: str | None = None  # How a question begins that its queries end.
    scenes: TrainedScenes | None = None  # What it learned from, where those are scenes like ours.
    example: str | None = None  # The shipped picture that it is shown first, as its data declares; None: a scene.
    panel: str | None = None  # Address of the ES module with controls that no other family has.
    panel_style: str | None = None  # Address of its style sheet.
    panel_facts: dict[str, Any] | None = None  # What those controls need to know of it.
    architecture: str
    summary: str
    queries: tuple[str, ...]
    answers: tuple[str, ...]  # Empty where it says sentences.
    sentences: bool
    size: tuple[int, int] | None  # Height and width of its input; None where it reads no pictures.
    parameters: int


def page_entry(facts: ModelFacts) -> PageEntry:
    """What the page knows of the model with these facts, without loading the model."""
    owner = family(facts.family)
    reader = owner.reads()
    data, spec = owner.data.get(str(facts.data.get("name"))), owner.models.get(facts.architecture)
    return PageEntry(
        family=facts.family,
        architecture=facts.architecture,
        summary=facts.architecture if spec is None else spec.summary,
        reads=reader.thing,
        takes="picture" if facts.preprocessing else "json" if reader.takes_json else None,
        asks="text" if owner.asks_text else "choice" if facts.queries else "none",
        queries=facts.queries,
        answers=() if facts.sentences else facts.answers,
        sentences=facts.sentences,
        size=None if facts.preprocessing is None else facts.preprocessing.size,
        parameters=facts.parameters,
        example=(data.example or None) if data else None,
        panel=address_of(owner, owner.panel),
        panel_style=address_of(owner, style_sheet(owner)),
        prompt=owner.prompt(facts),
        scenes=owner.trained_scenes(facts),
        panel_facts=owner.panel_facts(facts),
    )


def address_of(family: Family, file: str | Path | None) -> str | None:
    """Where the page finds a file of the family, from the root of the server; the same in a page without one."""
    return None if file is None else f"families/{quote(family.name, safe='')}/{Path(file).name}"


def style_sheet(family: Family) -> Path | None:
    """The style sheet of the family's panel, where it has one."""
    sheet = None if family.panel is None else (family.folder / family.panel).with_suffix(".css")
    return sheet if sheet is not None and sheet.is_file() else None


def panel_files(family: Family) -> dict[str, Path]:
    """The family's panel, the modules beside it that it imports, and its style sheet, by file name."""
    wanted = [] if family.panel is None else [family.folder / family.panel]
    modules: dict[str, Path] = {}
    while wanted:
        file = wanted.pop().resolve()
        modules[file.name] = file
        imported = [file.parent / path for _, path in _IMPORT.findall(file.read_text(encoding="utf-8"))]
        wanted += [path for path in imported if path.parent == file.parent and path.name not in modules]
    sheet = style_sheet(family)
    return modules if sheet is None else {**modules, sheet.name: sheet}


def live_part(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, object]] = ()) -> Live:
    """The page as a part of another one, with models that it carries, and views that it shows first."""

    def declared(what: Literal["panel", "runtime"]) -> dict[str, Path]:
        files = [(one, getattr(one, what)) for one in families]
        return {str(address_of(one, file)): one.folder / file for one, file in files if file is not None}

    families = [predictor.family for predictor in predictors]
    markup, style = _markup_and_style(*dict.fromkeys(filter(None, map(style_sheet, families))))
    script = bundle(STATIC / "js" / "main.js", declared("panel"))
    worker = bundle(STATIC / "js" / "engine" / "worker.js", declared("runtime")) if predictors else None
    holes = Live("%markup%", "%style%", "%script%", "%data%")
    data = {
        "document": live_page("saccade: where the model looked", holes, policy(style, script=script)),
        "weights": [page_model(predictor) for predictor in predictors],
        "worker": worker,
        "glyphs": data_url((STATIC / "glyphs.png").read_bytes()) if predictors else None,
        "views": list(views),
    }
    # a script element can hold JSON without "<" whatever it says
    return Live(markup, style, script, json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def offline_page(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, object]] = ()) -> str:
    """The page as one HTML file; arguments as in :func:`live_part`."""
    live = live_part(predictors, views)
    return live_page("saccade: watch a model look", live, policy(live.style, script=live.script))


@lru_cache
def _markup_and_style(*further: Path) -> tuple[str, str]:
    """The body of the served page and its style sheets, without what only a reader needs: a page is to stay small."""
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    own = (STATIC / sheet for sheet in _STYLESHEET.findall(index))
    sheets = "".join(sheet.read_text(encoding="utf-8") for sheet in (*own, *further))
    body = index.partition("<body>\n")[2].partition("\n</body>")[0]
    return _BLANK.sub("\n", body), _BLANK.sub("\n", _COMMENT.sub("", sheets))


def bundle(entry: Path, carried: Mapping[str, Path] | None = None) -> str:
    """The module ``entry`` and all that it imports, as the text of one script without comments and indentation.

    Modules import by name at the start of a line, write ``export`` before a function, class or const, and import in no
    circle; others are a ConfigError. ``carried`` are modules by their address on a server: their exports lie in
    ``globalThis.saccadeModules``.
    """
    names: dict[Path, str] = {}
    written: list[str] = []
    carriers = {address: _add(file.resolve(), names, written) for address, file in (carried or {}).items()}
    if carriers:
        listed = ", ".join(f"{json.dumps(address)}: {name}" for address, name in carriers.items())
        written.append(f"globalThis.saccadeModules = {{ {listed} }};")
    _add(entry.resolve(), names, written)
    return "\n".join(['"use strict";', *written, ""])


def _add(file: Path, names: dict[Path, str], written: list[str]) -> str:
    """Append the module in ``file`` and what it needs to ``written``; returns the name of what it exports."""
    if file in names:
        return names[file]
    text = file.read_text(encoding="utf-8")
    taken = []
    for wanted, path in _IMPORT.findall(text):
        source = _add((file.parent / path).resolve(), names, written)
        taken.append(f"const {{ {' '.join(wanted.split()).replace(' as ', ': ')} }} = {source};")
    exported = [name for _, name in _EXPORT.findall(text)]
    body = _SPARE.sub("", _EXPORT.sub(r"\1", _IMPORT.sub("", text)))
    if match := _UNFIT.search(body):
        line = body[match.start() :].strip().splitlines()[0]
        raise ConfigError(
            f"{file.name}: cannot bundle '{line}'; import and export by name at the start of a line, and write "
            "'<\\/script' for what would end the page's script"
        )
    names[file] = f"module{len(names)}"
    inside = "\n".join([*taken, body.strip(), f"return {{ {', '.join(exported)} }};"])
    written.append(f"const {names[file]} = (() => {{\n{inside}\n}})();")
    return names[file]


def page_model(predictor: Predictor) -> dict[str, object]:
    """Facts and layers of a model, for ``load`` of the page's engine or ``network`` of the family's runtime."""
    family, facts = predictor.family, predictor.facts
    kind, layers, trace = family.page_model(predictor.model, facts, predictor.name)
    looks = []
    for look in trace.looks:
        entry: dict[str, object] = {"name": look.name, "kind": look.kind, "role": look.role, "norm": look.norm}
        if look.is_spatial:
            if look.weights is None or look.frame is None:
                raise ConfigError(f"look '{look.name}' has no weights on a grid, which the page cannot draw")
            entry |= {"grid": list(look.weights.shape[-2:]), "frame": look.frame.tolist()}
        looks.append(entry)
    return {
        "schema": "saccade.page-weights/1",
        "model": predictor.name,
        "kind": kind,
        **to_dict(page_entry(facts)),
        "runtime": address_of(family, family.runtime),
        "temperature": None if facts.calibration is None else facts.calibration.temperature,
        "sha256": facts.sha256,
        "looks": looks,
        "total": trace.total,
        **layers,
    }
