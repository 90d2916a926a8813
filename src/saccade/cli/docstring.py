"""What a docstring says: its summary, its description, and a text for each argument.

Docstrings are in Google style. The text of an argument has three parts::

    limit: score at most this many examples. Of a table, a sample of its pictures. None: all of them.

The first sentence is the help of the option, the rest is for those who want to know all of it, and ``None: …`` says
in words what happens without the argument.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from inspect import cleandoc

_SECTIONS = ("Args:", "Returns:", "Yields:", "Raises:", "Example:", "Examples:", "Note:")
_ARGUMENT = re.compile(r"^\*{0,2}(\w+): ?(.*)$")
_DEFAULT = re.compile(r"(?:^|(?<=[.;]) )None: (.*)$")
_SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z`'0-9])")


@dataclass(frozen=True)
class Said:
    """What a docstring says of one argument."""

    short: str
    """The first sentence, without its full stop."""
    more: str = ""
    """The sentences after it."""
    default: str = ""
    """What None stands for."""


@dataclass(frozen=True)
class Docstring:
    """A docstring in its parts."""

    summary: str
    """The first paragraph, in one line."""
    description: tuple[str, ...] = ()
    """The paragraphs before the first section."""
    arguments: dict[str, Said] = field(default_factory=dict)


def parse_docstring(text: str) -> Docstring:
    r"""Take ``text`` apart.

    >>> parse_docstring("Score it.\n\nArgs:\n    limit: at most so many. Of a table, some. None: all.").arguments
    {'limit': Said(short='At most so many', more='Of a table, some.', default='all')}
    """
    lines = cleandoc(text).splitlines()
    ends = [number for number, line in enumerate(lines) if line in _SECTIONS]
    head = "\n".join(lines[: ends[0] if ends else None])
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", head) if part.strip()]
    paragraphs = [part for part in paragraphs if not part.startswith(">>>")]
    arguments: dict[str, Said] = {}
    if "Args:" in lines:
        begin = lines.index("Args:")
        end = next((number for number in ends if number > begin), len(lines))
        arguments = {name: _said(" ".join(words)) for name, words in _entries(lines[begin + 1 : end]).items()}
    return Docstring(paragraphs[0] if paragraphs else "", tuple(paragraphs[1:]), arguments)


def _entries(lines: list[str]) -> dict[str, list[str]]:
    """The lines of each argument; those further in belong to the one before."""
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        match = _ARGUMENT.match(line.strip()) if indent == 4 else None
        if match is not None:
            last = found.setdefault(match.group(1), [])
            last.append(match.group(2))
        elif line.strip():
            last.append(line.strip())
    return found


def _said(text: str) -> Said:
    default = _DEFAULT.search(text)
    words, *after = _SENTENCE.split(default.group(1)) if default is not None else [""]
    first, *rest = _SENTENCE.split((text if default is None else text[: default.start()]).strip())
    return Said(_begin(first.rstrip(".;")), " ".join([*rest, *after]), words.rstrip("."))


def _begin(sentence: str) -> str:
    """The sentence with a capital letter, unless it begins with a name."""
    is_name = not sentence[:1].isalpha() or not sentence.split(" ")[0].rstrip(",;:").isalpha()
    return sentence if is_name else sentence[:1].upper() + sentence[1:]
