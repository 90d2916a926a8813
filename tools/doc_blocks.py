"""The code blocks of the documentation, found and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = {"docs/results.md", "docs/benchmarks.md", "docs/reliability.md"}
"""Pages of recorded numbers: their commands take hours."""
RUN = {"look", "compare", "score", "report", "list", "data make", "data show"}
"""Verbs that take a second. Commands of other verbs are read as the verb reads them, and not run."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def pages() -> list[str]:
    """Every page that a person wrote, by its path in the repository."""
    found = (path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
    return sorted(set(found) - GENERATED)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order; those of directives, as ``{fields}``, are not code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [Block(each[2], _dedented(each[3], each[1]), text[: each.start()].count("\n") + 2) for each in found]


def _dedented(text: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in text.splitlines()) + "\n"


def commands(text: str) -> Iterator[list[str]]:
    """What stands behind ``saccade`` in a shell block, one command at a time."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in " ".join(shlex.quote(word) for word in shlex.split(line, comments=True)).split(" '&&' "):
            words = shlex.split(command.split(" '>' ")[0])
            if words[:1] == ["saccade"]:
                yield words[1:]


def is_run(words: list[str]) -> bool:
    """Whether a command is quick enough to be run."""
    return " ".join(words[:2]) in RUN or words[0] in RUN


def images(page: str) -> dict[str, Path]:
    """Pictures of a page that lie in ``docs/images/tutorials``, by name: its own code makes them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"\]\(\S*?(images/tutorials/([\w-]+\.png))\)", text)
    return {name: DOCS / path for path, name in named}


def run_python(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block with the names of the blocks before it; errors name the page and its line."""
    code = "\n" * (block.line - 1) + block.text
    exec(compile(code, page, "exec"), names)
