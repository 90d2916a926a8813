"""Writes one page for each public module into ``reference/api`` before the site is read.

A module is public if ``public_modules`` says so. Its page has its docstring and every name of its ``__all__``.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "reference" / "api"
MODULES = ("saccade", "saccade.attention", "saccade.backbones", "saccade.losses", "saccade.metrics", "saccade.scale")
"""The public modules."""


def page(module: str) -> str:
    """The page of a module, as reStructuredText."""
    found = importlib.import_module(module)
    title = f"``{module}``"
    lines = [title, "=" * len(title), "", f".. automodule:: {module}", "   :no-members:", ""]
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": [], "Other": []}
    for name in sorted(found.__all__, key=str.lower):
        thing = getattr(found, name)
        if inspect.ismodule(thing):
            continue
        if inspect.isclass(thing):
            kinds["Errors" if issubclass(thing, Exception) else "Classes"].append(name)
        else:
            kinds["Functions" if callable(thing) else "Other"].append(name)
    for heading, names in kinds.items():
        if names:
            lines += [heading, "-" * len(heading), ""]
        for name in names:
            thing = getattr(found, name)
            how = "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) else "autodata"
            lines += [f".. {how}:: {module}.{name}"]
            lines += ["   :members:", "   :undoc-members:"] if how == "autoclass" and heading == "Classes" else []
            lines += [""]
    return "\n".join(lines)


def write(app: Sphinx) -> None:
    """Write the pages that changed, and take away those of modules that are gone."""
    FOLDER.mkdir(exist_ok=True)
    wanted = {FOLDER / f"{module}.rst": page(module) for module in MODULES}
    for file in set(FOLDER.glob("*.rst")) - set(wanted):
        file.unlink()
    for file, text in wanted.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
