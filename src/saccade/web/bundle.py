"""Modules of the page as one classic script, for files that are opened without a server, where modules cannot load.

Each module becomes a function that is called once and returns what the module exports, dependencies first. The page's
own modules keep to three forms, and anything else is refused: ``import { a, b as c } from "./file.js";`` at the start
of a line, ``export`` before a function, class or const, and no circle of imports. A page with two models in it is to
stay small, so comments, indentation, blank lines and line ends behind ``;``, ``{`` and ``,`` stay behind, in texts
between backticks too. A comment behind code stays where it holds a quotation mark, because it could be part of a text.
Spaces around signs stay behind in lines that hold no text and no regular expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from saccade.errors import ConfigError

_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:.|\n)*?\*/)\n", re.MULTILINE)
_ASIDE = re.compile(r"[ \t]+// [^\"'`\n]*$", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+|^\n", re.MULTILINE)
_LINE_END = re.compile(r"^((?:(?!//).)*[;{,])\n", re.MULTILINE)  # not behind a comment, which would go on
_PLAIN_LINE = re.compile(r"^[^\"'`/\n]+$", re.MULTILINE)
_SPACES = re.compile(r" (?=[{}])|(?<=\bif) (?=\()|(?<=\bfor) (?=\()|(?<=[{,:]) | (=>|[!=]==|=|&&|\|\||\?\?|[?:]) ")
_LEFT_OVER = re.compile(r"^\s*(?:import\b(?!\()|export\b)", re.MULTILINE)


def bundle(entry: Path, carried: Mapping[str, Path] | None = None) -> str:
    """The module ``entry`` and all that it imports, as the text of one script.

    Args:
        entry: what is run.
        carried: modules by the address from which ``entry`` would load them later, on a server; what they export lies
            in ``globalThis.saccadeModules`` by that address before ``entry`` is run.

    Raises:
        ConfigError: a module is missing, imports in a circle, or is written in a way that cannot be bundled.
    """
    names: dict[Path, str] = {}
    written: list[str] = []
    found = {address: _add(file.resolve(), names, written, ()) for address, file in (carried or {}).items()}
    if found:
        listed = ", ".join(f"{json.dumps(address)}: {name}" for address, name in found.items())
        written.append(f"globalThis.saccadeModules = {{ {listed} }};")
    _add(entry.resolve(), names, written, ())
    return "\n".join(['"use strict";', *written, ""])


def _add(file: Path, names: dict[Path, str], written: list[str], above: tuple[Path, ...]) -> str:
    """Append the module in ``file`` and what it needs to ``written``; returns the name of what it exports."""
    if file in above:
        raise ConfigError(f"{file.name}: imports itself by way of {' → '.join(path.name for path in above)}")
    if file in names:
        return names[file]
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: the page needs this module ({error.strerror})") from error
    taken = []
    for wanted, path in _IMPORT.findall(text):
        source = _add((file.parent / path).resolve(), names, written, (*above, file))
        taken.append(f"const {{ {' '.join(wanted.split()).replace(' as ', ': ')} }} = {source};")
    exported = [name for _, name in _EXPORT.findall(text)]
    body = _INDENT.sub("", _ASIDE.sub("", _COMMENT.sub("", _EXPORT.sub(r"\1", _IMPORT.sub("", text)))))
    _check(file, body)
    names[file] = f"module{len(names)}"
    body = _PLAIN_LINE.sub(lambda line: _SPACES.sub(lambda found: found[1] or "", line[0]), body)
    inside = "\n".join([*taken, _LINE_END.sub(r"\1", body).strip(), f"return {{ {', '.join(exported)} }};"])
    written.append(f"const {names[file]} = (() => {{\n{inside}\n}})();")
    return names[file]


def _check(file: Path, body: str) -> None:
    """Refuse what would not survive: other forms of import and export, and what would end the script element."""
    if found := _LEFT_OVER.search(body):
        line = body[found.start() :].strip().splitlines()[0]
        raise ConfigError(f"{file.name}: cannot bundle the line '{line}'; import and export by name, at its start")
    if "</script" in body or "<!--" in body:
        raise ConfigError(f"{file.name}: '</script' or '<!--' would end the page's script; write '<\\/script'")
