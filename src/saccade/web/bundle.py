"""Modules of the page as one classic script, for files that are opened without a server, where modules cannot load.

Each module becomes a function that is called once and returns what the module exports, dependencies first. The page's
own modules keep to three forms: ``import { a, b as c } from "./file.js";`` at the start of a line, ``export`` before a
function, class or const, and no circle of imports. Lines of comments and indentation stay behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from saccade.errors import ConfigError

_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_SPARE = re.compile(r"^[ \t]*//.*\n|^[ \t]*/\*\*(?:.|\n)*?\*/\n|^[ \t]+|^\n", re.MULTILINE)
_UNFIT = re.compile(r"^\s*(?:import\b(?!\()|export\b)|</script|<!--", re.MULTILINE)


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
