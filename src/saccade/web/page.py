"""The live page as one self-contained file: modules, styles, digits and trained models inside it, no server behind it.

The same parts make a page of its own (:func:`offline_page`) and the living part of a report (:func:`live_part`). A page
without models is a viewer: it shows the views that it carries, and opens saved records.

A family may bring controls of its own: ``Family.panel`` names an ES module in its folder. The server gives it to the
page as ``families/NAME/panel.js``, and a page without a server has it inside. The module is one file that imports
nothing and exports ``function panel(place, page)``, which the page calls when a model of the family is chosen:

=====================  =============================================================================================
``place``              an empty element of the side panel, to be filled
``page.model``         the model as ``/api/models`` tells it: ``name, family, queries, answers, scenes …``
``page.element``       makes elements, as ``element("button", {text: "7", onclick: …}, child, …)``; text stays text
``page.ask``           asks another question, as ``ask("7")``
=====================  =============================================================================================

It may return an object with two functions: ``answered(view)`` is called with every answer of the model, as
``saccade.view/1`` (see :mod:`saccade.web.views`), and ``closed()`` when the model is no longer shown. The page removes
``place`` itself. In a page without a server a module may use the forms of export that :mod:`saccade.web.bundle` knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from saccade import __version__
from saccade.errors import ConfigError
from saccade.predict import Predictor
from saccade.show.png import data_url
from saccade.show.report_live import Live, policy
from saccade.web.bundle import bundle
from saccade.web.family_page import page_model, panel_address, panel_file

STATIC = Path(__file__).parent / "static"
MAIN = STATIC / "js" / "main.js"
_STYLESHEET = re.compile(r'<link rel="stylesheet" href="(css/[\w.-]+)">')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BLANK = re.compile(r"\s*\n\s*")
_JOINED = re.compile(r"(?<=[{};,])\n")  # elsewhere a line end parts two selectors
_SPARE = re.compile(r";(?=\})| (?=\{)")
_BODY = re.compile(r"<body>\n(.*)\n</body>", re.DOTALL)


def live_part(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, Any]] = ()) -> Live:
    """The page as a part of another one.

    Args:
        predictors: models to carry; those that cannot run inside a page are a ConfigError.
        views: shown when the page opens, in place of a scene.
    """
    script = _script(predictors)
    data = {
        "policy": policy(_style(), script=script),
        "weights": [page_model(predictor) for predictor in predictors],
        "worker": _worker() if predictors else None,
        "glyphs": _glyphs() if predictors else None,
        "views": list(views),
    }
    return Live(_markup(), _style(), script, _inside_script(data))


def offline_page(predictors: Sequence[Predictor] = (), views: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page as one HTML file; arguments as in :func:`live_part`."""
    live = live_part(predictors, views)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(live.style, script=live.script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="saccade {__version__}">
<title>saccade: watch a model look</title>
{live.head}
</head>
<body>
{live.markup}
{live.end}
</body>
</html>
"""


# ---------------------------------------------------------------- parts


@lru_cache
def _index() -> str:
    return (STATIC / "index.html").read_text(encoding="utf-8")


def _markup() -> str:
    """What stands in the body of the served page, without indentation."""
    found = _BODY.search(_index())
    if found is None:
        raise ConfigError(f"{STATIC / 'index.html'}: no body to take the page from")
    return _BLANK.sub("\n", found.group(1))


@lru_cache
def _style() -> str:
    """The stylesheets of the served page, in their order, without what only a reader needs: a page is to stay small."""
    sheets = "".join((STATIC / sheet).read_text(encoding="utf-8") for sheet in _STYLESHEET.findall(_index()))
    return _SPARE.sub("", _JOINED.sub("", _BLANK.sub("\n", _COMMENT.sub("", sheets))))


def _script(predictors: Sequence[Predictor]) -> str:
    """The page's modules and the panels of the models' families."""
    declared = {panel_address(each.family): panel_file(each.family) for each in predictors}
    panels = {address: file for address, file in declared.items() if file is not None}
    return bundle(MAIN, panels) if panels else _plain_script()


@lru_cache
def _plain_script() -> str:
    return bundle(MAIN)


@lru_cache
def _worker() -> str:
    return bundle(STATIC / "js" / "engine" / "worker.js")


def _glyphs() -> str:
    return data_url((STATIC / "glyphs.png").read_bytes())


def _inside_script(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element whatever it says."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
