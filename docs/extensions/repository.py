"""Links to the source: the ``[source]`` of the reference, code literals that name a file, names without a page.

They lead to the repository on the web, whose address ``pyproject.toml`` has.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "saccade"
_URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
SOURCE = f"{_URLS['Source']}/blob/main/src/saccade"


def address(target: str) -> str | None:
    """Where ``saccade.trace.Look.rebuild`` and the like is written; None where there is no such thing."""
    parts = target.split(".")
    if parts[0] != "saccade":
        return None
    for cut in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        file = Path(thing.__file__)
        try:
            for part in parts[cut:]:
                thing = getattr(thing, part)
        except AttributeError:
            return None
        return _address(thing.fget if isinstance(thing, property) else thing, file)
    return None


def _address(thing: Any, module: Path) -> str:
    """The file and line of a class or function; the file of its module for anything else."""
    try:
        file, line = Path(inspect.getsourcefile(inspect.unwrap(thing)) or module), inspect.getsourcelines(thing)[1]
    except (TypeError, OSError):
        file, line = module, 0
    if not file.is_relative_to(PACKAGE):
        file, line = module, 0
    return f"{SOURCE}/{file.relative_to(PACKAGE).as_posix()}" + (f"#L{line}" if line else "")


def linkcode(domain: str, info: dict[str, str]) -> str | None:
    """For ``sphinx.ext.linkcode``."""
    return address(f"{info['module']}.{info['fullname']}") if domain == "py" else None


def _link_literals(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn code literals that name files, as ``attention/soft.py``, into links."""
    for literal in [*doctree.findall(nodes.literal)]:
        text = literal.astext()
        is_file = re.fullmatch(r"[\w/]+\.py", text) and (PACKAGE / text).is_file()
        if is_file and not isinstance(literal.parent, nodes.reference):
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=f"{SOURCE}/{text}"))


def _missing(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.reference | None:
    """A name of the package without a page of its own leads to its source."""
    if node.get("refdomain") != "py":
        return None
    target, module = str(node.get("reftarget", "")), node.get("py:module") or ""
    homes = [target]
    if module:
        documented = getattr(importlib.import_module(module), target.split(".")[0], None)
        homes += [f"{home}.{target}" for home in (module, getattr(documented, "__module__", None)) if home]
    found = next(filter(None, map(address, homes)), None)
    return None if found is None else nodes.reference("", "", content, refuri=found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.config.linkcode_resolve = linkcode
    app.connect("doctree-resolved", _link_literals)
    app.connect("missing-reference", _missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
