"""Writes one page for each public module into ``reference/api`` before the site is read.

A module is public if ``public_modules`` says so. Its page has its docstring and every name of its ``__all__``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

FOLDER = Path(__file__).parents[1] / "reference" / "api"
MODULES = (
    "saccade",
    "saccade.attention",
    "saccade.backbones",
    "saccade.data",
    "saccade.families",
    "saccade.metrics",
    "saccade.models",
    "saccade.scale",
)
"""The public modules."""


def homes() -> dict[int, str]:
    """The module whose page describes a thing, by its id: the innermost of those that export it."""
    found: dict[int, str] = {}
    for module in sorted(MODULES, key=lambda name: name.count(".")):
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
            how = {"Functions": "autofunction", "Other": "autodata"}.get(heading, "autoclass")
            lines += [f".. {how}:: {module}.{name}"]
            lines += ["   :members:", "   :undoc-members:"] if heading == "Classes" else []
            lines += [""]
    return "\n".join(lines) + "\n"


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Read the Google style of docstrings; texts of attributes are sentences, in which a colon is a colon.

    Absolute values are written as |x|, which reStructuredText would take for a substitution.
    """
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, thing, options).lines()
    lines[:] = [line if "``" in line else re.sub(r"\|(?=\S)", r"\\|", line) for line in lines]


def write(app: Sphinx) -> None:
    """Write the pages that changed, and take away those of modules that are gone."""
    FOLDER.mkdir(exist_ok=True)
    known = homes()
    wanted = {FOLDER / f"{module}.rst": page(module, known) for module in MODULES}
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
