"""The live page as one self-contained file: modules, styles, digits and trained models inside it, no server behind it.

Without a server modules cannot load, so they become one classic script: each is a function that is called once and
returns what the module exports, dependencies first. The page's own modules keep to three forms: ``import { a, b as c }
from "./file.js";`` at the start of a line, ``export`` before a function, class or const, and no circle of imports.
Lines of comments and indentation stay behind.

The same parts make a page of its own (:func:`offline_page`) and the living part of a report (:func:`live_part`). A page
without models is a viewer: it shows the views that it carries, and opens saved records.

A family may bring controls of its own: ``Family.panel`` names an ES module in its folder. The server gives it to the
page as ``families/NAME/FILE.js``, and a page without a server has it inside. The module exports ``function panel(place,
page)``, which the page calls when a model of the family is chosen; models of one family that are compared share it:

=======================  ===========================================================================================
``place``                an empty element to be filled: of the side panel, or, for models that take JSON, in the middle
``page.model``           the model as ``/api/models`` tells it: ``name, family, queries, answers, scenes, told …``
``page.element``         makes elements, as ``element("button", {text: "7", onclick: …}, child, …)``; text stays text
``page.ask``             asks another question, as ``ask("7")``
``page.show``            shows a model that takes JSON an input and asks about it, as ``show(["Mary left."], "Who?")``;
                         a third argument says why nothing can be asked yet
``page.shown``           what was shown last, ``{input, question}``, when the panel was open before; otherwise null
``page.acts``            the looks of a view, step by step, with their weights as numbers: ``acts(view)``
``page.heat``            writes a weight into an element and colours it, as ``heat(cell, value, peak)``
``page.style``           adds a style sheet of the panel's own, once, as ``style(".saccade .mine { … }")``
=======================  ===========================================================================================

It may return an object of functions. ``models(list)`` is called with the shown models of the family, now and whenever
they change; ``answered(view)`` with every answer of one of them, as ``saccade.view/1`` (see :mod:`saccade.web.views`),
and again where the colours change; ``unanswered(name)`` with the model that could not answer; ``act(key)`` with the
look that is chosen; and ``closed()`` when no model of the family is shown any more. The page removes ``place`` itself.
With ``showsLooks: true`` in that object, the cards of the models leave looks over slots and notes to the panel.

A family may also compute its models inside the page, without a server: ``Family.runtime`` names an ES module that
exports ``function network(weights, tools)``. It is called in a worker with what the family's ``page_model`` made of a
model. It returns an object with ``answer(input, question)``, which gives ``{question, answers, looks, notes}``: answers
with their shares, likeliest first, and for each of the facts' ``looks`` its ``weights`` and ``slots``. ``tools`` are
``matrix``, which reads what :func:`saccade.web.weights.matrix` wrote, and ``softmax``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from saccade.errors import ConfigError
from saccade.predict import Predictor
from saccade.show.overlay import data_url
from saccade.show.report import Live, live_page, policy
from saccade.web.family_page import address_of, family_modules

STATIC = Path(__file__).parent / "static"
MAIN = STATIC / "js" / "main.js"
WORKER = STATIC / "js" / "engine" / "worker.js"
_STYLESHEET = re.compile(r'<link rel="stylesheet" href="(css/[\w.-]+)">')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_SPARE = re.compile(r"^[ \t]*//.*\n|^[ \t]*/\*\*(?:.|\n)*?\*/\n|^[ \t]+|^\n", re.MULTILINE)
_UNFIT = re.compile(r"^\s*(?:import\b(?!\()|export\b)|</script|<!--", re.MULTILINE)
_BLANK = re.compile(r"\s*\n\s*")


def live_part(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, object]] = ()) -> Live:
    """The page as a part of another one.

    Args:
        predictors: models to carry; those that cannot run inside a page are a ConfigError.
        views: shown when the page opens, in place of a scene.
    """
    script = bundle(MAIN, _declared(predictors, "panel"))
    data = {
        "policy": policy(_style(), script=script),
        "weights": [predictor.family.page_model(predictor) for predictor in predictors],
        "worker": bundle(WORKER, _declared(predictors, "runtime")) if predictors else None,
        "glyphs": data_url((STATIC / "glyphs.png").read_bytes()) if predictors else None,
        "views": list(views),
    }
    return Live(_markup(), _style(), script, _inside_script(data))


def offline_page(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, object]] = ()) -> str:
    """The page as one HTML file; arguments as in :func:`live_part`."""
    return live_page("saccade: watch a model look", live_part(predictors, views))


@lru_cache
def _index() -> str:
    return (STATIC / "index.html").read_text(encoding="utf-8")


def _markup() -> str:
    """What stands in the body of the served page, without indentation."""
    return _BLANK.sub("\n", _index().partition("<body>\n")[2].partition("\n</body>")[0])


@lru_cache
def _style() -> str:
    """The stylesheets of the served page, in their order, without what only a reader needs: a page is to stay small."""
    sheets = "".join((STATIC / sheet).read_text(encoding="utf-8") for sheet in _STYLESHEET.findall(_index()))
    return _BLANK.sub("\n", _COMMENT.sub("", sheets))


def _declared(predictors: Sequence[Predictor], what: Literal["panel", "runtime"]) -> dict[str, Path]:
    """Modules that the models' families declare, by their addresses."""
    declared = {address_of(each.family, what): family_modules(each.family, what) for each in predictors}
    return {address: next(iter(files.values())) for address, files in declared.items() if files}


def _inside_script(data: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element whatever it says."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle(entry: Path, carried: Mapping[str, Path] | None = None) -> str:
    """The module ``entry`` and all that it imports, as the text of one script.

    Args:
        entry: what is run.
        carried: modules by the address from which ``entry`` would load them later, on a server; what they export lies
            in ``globalThis.saccadeModules`` by that address before ``entry`` is run.

    Raises:
        ConfigError: a module is written in a way that cannot be bundled.
    """
    names: dict[Path, str] = {}
    written: list[str] = []
    found = {address: _add(file.resolve(), names, written) for address, file in (carried or {}).items()}
    if found:
        listed = ", ".join(f"{json.dumps(address)}: {name}" for address, name in found.items())
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
    if found := _UNFIT.search(body):
        line = body[found.start() :].strip().splitlines()[0]
        raise ConfigError(
            f"{file.name}: cannot bundle '{line}'; import and export by name at the start of a line, and write "
            "'<\\/script' for what would end the page's script"
        )
    names[file] = f"module{len(names)}"
    inside = "\n".join([*taken, body.strip(), f"return {{ {', '.join(exported)} }};"])
    written.append(f"const {names[file]} = (() => {{\n{inside}\n}})();")
    return names[file]
