"""Pages with the source of the package, and links to them.

Four things link there: a code literal that names a file, as ``attention/soft.py``; one that names a class or function
right behind it; a name in a docstring that has no page of its own; and the ``[source]`` of everything in the reference.
Only files that something links to get a page.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "saccade"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} – saccade</title>
<link rel="stylesheet" href="source.css">
</head>
<body>
<header><a href="../index.html">saccade</a> <span>{title}</span></header>
<main>{body}</main>
</body>
</html>
"""
_STYLE = """:root { color-scheme: light dark; }
body { margin: 0; font: 15px/1.4 system-ui, sans-serif; }
body { background: light-dark(#fff, #131416); color: light-dark(#000, #d8dade); }
header { padding: 0.7em 1em; border-bottom: 1px solid light-dark(#ddd, #333); }
header a { font-weight: bold; color: light-dark(#0a4bff, #86b6ff); }
.highlight { background: none; overflow-x: auto; padding: 0 1em; }
.highlight a { text-decoration: none; }
.linenos { color: light-dark(#6b6b6b, #9a9a9a); }
:target { background: light-dark(#fff3c4, #4a3f12); }"""
_USED: set[str] = set()
"""Files that are linked to, by their path in the package."""


def page_of(file: str, line: int | None = None) -> tuple[str, str]:
    """Name of the page of a file such as ``attention/soft.py``, and the anchor of a line in it."""
    _USED.add(file)
    return f"source/{file.removesuffix('.py').replace('/', '.')}", f"line-{line}" if line else ""


@functools.cache
def lines_of(file: str) -> dict[str, int]:
    """Line of every class, function, method and constant of a file, by its dotted name."""
    found: dict[str, int] = {}

    def walk(body: list[ast.stmt], above: str) -> None:
        for each in body:
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(above + each.name, each.lineno)
                walk(each.body, f"{above}{each.name}.")
            elif isinstance(each, ast.Assign | ast.AnnAssign):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                found.update({above + name.id: each.lineno for name in targets if isinstance(name, ast.Name)})

    walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body, "")
    return found


def _file_of(module: str) -> str | None:
    """Path in the package of a module such as ``saccade.attention.soft``."""
    inside = module.split(".")[1:]
    for name in ("/".join(inside) + ".py", "/".join([*inside, "__init__.py"])):
        if (PACKAGE / name).is_file():
            return name
    return None


def resolved(target: str) -> tuple[str, int | None] | None:
    """File and line of ``saccade.trace.Look.rebuild`` and the like; None where there is no such thing."""
    if not (target == "saccade" or target.startswith("saccade.")):
        return None
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:cut]), ".".join(parts[cut:])
        file = _file_of(module)
        if file is None:
            continue
        if not rest or rest in lines_of(file):
            return file, lines_of(file).get(rest)
        return _imported(module, rest)
    return None


def _imported(module: str, name: str) -> tuple[str, int | None] | None:
    """Where a name that ``module`` takes from elsewhere is written."""
    thing: Any = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    home = getattr(inspect.unwrap(thing), "__module__", "") if callable(thing) else ""
    file = _file_of(home) if str(home).startswith("saccade") else None
    return None if file is None else (file, lines_of(file).get(thing.__qualname__))


def linkcode(domain: str, info: dict[str, str]) -> str | None:
    """For ``sphinx.ext.linkcode``: every page of the API lies in ``reference/api``."""
    found = resolved(f"{info['module']}.{info['fullname']}") if domain == "py" else None
    if found is None:
        return None
    page, anchor = page_of(*found)
    return f"../../{page}.html" + (f"#{anchor}" if anchor else "")


def _link_literals(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn code literals that name files, and names behind them, into links."""
    if docname.startswith("reference/api"):
        return
    file: str | None = None
    for literal in [*doctree.findall(nodes.literal)]:
        text = literal.astext()
        if isinstance(literal.parent, nodes.reference):
            continue
        if re.fullmatch(r"[\w/]+\.py", text):
            file = text if (PACKAGE / text).is_file() else None
            found = (file, None) if file else None
        else:
            found = _named(file, text) if file is not None and _near(literal) else None
        if found:
            page, anchor = page_of(*found)
            uri = relative_uri(app.builder.get_target_uri(docname), f"{page}.html") + (f"#{anchor}" if anchor else "")
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri, internal=True))


def _named(file: str, text: str) -> tuple[str, int | None] | None:
    """Where a name that stands behind a file is written: in it, in a class of it, or inherited by one."""
    known = lines_of(file)
    if text in known:
        return file, known[text]
    below = [line for name, line in known.items() if name.endswith(f".{text}")]
    if len(below) == 1:
        return file, below[0]
    module = f"saccade.{file.removesuffix('.py').replace('/', '.')}"
    return resolved(f"{module}.{text}") if text.partition(".")[0] in known else None


def _near(literal: nodes.literal) -> bool:
    """Whether a literal stands in a table or a list, where the file before it is the one it belongs to."""
    parent = literal.parent
    while parent is not None and not isinstance(parent, nodes.entry | nodes.list_item):
        parent = parent.parent
    return parent is not None


def _missing(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.reference | None:
    """A name of the package without a page of its own leads to its source."""
    if node.get("refdomain") != "py":
        return None
    target, module = str(node.get("reftarget", "")), node.get("py:module") or ""
    homes = [target, *(f"{module}.{target}" for _ in [0] if module)]
    documented = getattr(importlib.import_module(module), target.split(".")[0], None) if module else None
    home = str(getattr(documented, "__module__", ""))
    homes += [f"{home}.{target}"] if home.startswith("saccade") else []
    for name in homes:
        found = resolved(name)
        if found:
            page, anchor = page_of(*found)
            uri = relative_uri(app.builder.get_target_uri(node["refdoc"]), f"{page}.html")
            return nodes.reference("", "", content, refuri=uri + (f"#{anchor}" if anchor else ""), internal=True)
    return None


def _write(app: Sphinx, error: Exception | None) -> None:
    """Write the pages, and their style. They are not the theme's: its tree of pages would cost 0.1 s for each."""
    if error is not None or app.builder.format != "html":
        return
    folder, lexer = Path(app.outdir) / "source", PythonLexer()
    folder.mkdir(exist_ok=True)
    for file in sorted(_USED):
        formatter = HtmlFormatter(linenos="inline", lineanchors="line", anchorlinenos=True, wrapcode=True)
        body = highlight((PACKAGE / file).read_text(encoding="utf-8"), lexer, formatter)
        name = page_of(file)[0].removeprefix("source/")
        (folder / f"{name}.html").write_text(_PAGE.format(title=file, body=body), encoding="utf-8")
    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("tango", "monokai"))
    text = f"{_STYLE}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
    (folder / "source.css").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.config.linkcode_resolve = linkcode
    app.connect("doctree-resolved", _link_literals)
    app.connect("missing-reference", _missing)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": False, "parallel_write_safe": False}
