"""Writes one page for each public module into ``reference/api`` before the site is read.

A page has the docstring of the module and every name of its ``__all__``.
"""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from pathlib import Path
from typing import Any, get_origin

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

FOLDER = Path(__file__).parents[1] / "reference" / "api"
PACKAGES = ("attention", "backbones", "data", "families", "metrics", "models")
"""What may have public names, beside ``saccade`` itself: a package has them if it has ``__all__``."""


def modules() -> list[str]:
    """The public modules."""
    named = ["saccade", *(f"saccade.{name}" for name in PACKAGES)]
    return [name for name in named if hasattr(importlib.import_module(name), "__all__")]


def homes() -> dict[int, str]:
    """The module whose page describes a thing, by its id: the innermost of those that export it."""
    found: dict[int, str] = {}
    for module in modules():  # saccade comes first
        held = importlib.import_module(module)
        found |= {id(getattr(held, name)): module for name in held.__all__}
    return found


def page(module: str, homes: dict[int, str]) -> str:
    """The page of a module, as reStructuredText."""
    found = importlib.import_module(module)
    title = f"``{module}``"
    lines = [title, "=" * len(title), "", f".. automodule:: {module}", "   :no-members:", ""]
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": [], "Other": [], "Described elsewhere": []}
    for name in sorted(found.__all__, key=str.lower):
        thing = getattr(found, name)
        if inspect.ismodule(thing):
            continue
        if homes[id(thing)] != module:
            kinds["Described elsewhere"].append(name)
        elif inspect.isclass(thing):
            kinds["Errors" if issubclass(thing, Exception) else "Classes"].append(name)
        else:
            kinds["Functions" if inspect.isroutine(thing) else "Other"].append(name)
    for heading, names in kinds.items():
        if names:
            lines += [heading, "-" * len(heading), ""]
        for name in names:
            thing = getattr(found, name)
            if heading == "Described elsewhere":
                lines += [f"* ``{name}``: :py:obj:`{homes[id(thing)]}.{name}`"]
                continue
            if typing.get_origin(thing) is not None:  # an alias has the docstring of what it stands for
                lines += [f"* ``{name}`` is ``{thing}``", ""]
                continue
            how = {"Functions": "autofunction", "Other": "autodata"}.get(heading, "autoclass")
            lines += [f".. {how}:: {module}.{name}"]
            lines += ["   :members:", "   :undoc-members:"] if heading == "Classes" else []
            lines += [""]
    return "\n".join(lines) + "\n"


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Read the Google style of docstrings; texts of attributes are sentences, in which a colon is a colon.

    Absolute values are written as |x| and shapes as (b,*shape), which reStructuredText would take for markup. A
    constant without a text of its own has the docstring of its type, which says nothing about it.
    """
    kind = get_origin(thing) or type(thing)
    if what == "data" and [line.strip() for line in lines if line] == _lines_of(kind):
        lines.clear()
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, thing, options).lines()
    lines[:] = [line if "``" in line else re.sub(r"\|(?=\S)|(?<=[(,])\*", r"\\\g<0>", line) for line in lines]


def _lines_of(kind: Any) -> list[str]:
    """The docstring of a type, line by line."""
    return [line.strip() for line in (inspect.getdoc(kind) or "").splitlines() if line.strip()]


def write(app: Sphinx) -> None:
    """Write the pages that changed, and take away those of modules that are gone."""
    FOLDER.mkdir(exist_ok=True)
    known = homes()
    wanted = {FOLDER / f"{module}.rst": page(module, known) for module in modules()}
    for file in set(FOLDER.glob("*.rst")) - set(wanted):
        file.unlink()
    for file, text in wanted.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", _docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
