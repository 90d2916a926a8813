"""Links of pages to files beside ``docs``, such as ``CONTRIBUTING.md``, lead to the repository on the web."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1].resolve()
_ROOT = DOCS.parent


def repository() -> str:
    """The address of the repository's files, from ``pyproject.toml``."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Documentation"]).removesuffix("/docs").replace("/tree/", "/blob/")


def _outward(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the links of one page before it is parsed."""
    folder = Path(app.env.doc2path(docname)).parent

    def link(found: re.Match[str]) -> str:
        place = (folder / found[1]).resolve()
        if place.is_relative_to(DOCS) or not place.exists():
            return found[0]
        return f"]({repository()}/{place.relative_to(_ROOT).as_posix()})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]+)\)", link, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _outward)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
