"""How Python's names read on a command line: ``out`` is ``--out``, and ``resume=True`` is ``--resume``.

Errors of the Python functions speak of their parameters, in backquotes: "is not empty; go on with `resume=True`, or
choose another `out`". A user of the command reads "go on with --resume, or choose another --out".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

_QUOTED = re.compile(r"(`{1,2})(\w+)(?:=([^`]*))?\1")
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
_FIRST = re.compile(r"^(\w+)(?=: )")


def typed_as(text: str, names: Mapping[str, str], *, leads: bool = True) -> str:
    """``text`` with the parameters in it as they are typed.

    Args:
        text: a docstring or the message of an error.
        names: parameter → its option, such as ``--out``, or the name of an argument, such as ``MODEL``. A switch of two
            options has ``filmstrip=False`` too.
        leads: a first word before a colon is a parameter; not where it may be a path.

    >>> typed_as("go on with `resume=True`, or choose another `out`", {"resume": "--resume", "out": "--out"})
    'go on with --resume, or choose another --out'
    >>> typed_as("try `overrides=['batch_size=8']`", {"overrides": "--set"})
    'try --set batch_size=8'
    >>> typed_as("limit: expected 1 or more, found 0", {"limit": "--limit"})
    '--limit: expected 1 or more, found 0'
    """

    def one(match: re.Match[str]) -> str:
        quotes, name, value = match.groups()
        if f"{name}={value}" in names:
            return names[f"{name}={value}"]
        if name not in names:
            return match.group(0) if quotes == "`" else match.group(0)[2:-2]
        return names[name] if value is None or value == "True" else _with_value(names[name], value)

    text = _ROLE.sub(r"\1", text)
    if leads:
        text = _FIRST.sub(lambda match: names.get(match.group(1), match.group(1)), text)
    return _QUOTED.sub(one, text)


def _with_value(option: str, value: str) -> str:
    """An option and its value; once for each of a list."""
    try:
        read = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        read = value  # such as DIR or READER:PATH
    each = read if isinstance(read, (list, tuple)) else [read]
    return " ".join(f"{option} {entry}" for entry in each)
