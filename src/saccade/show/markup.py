"""Text into safe HTML, and the footnotes that say where each number came from."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CODE = re.compile("`([^`]+)`")


def escaped(text: object) -> str:
    """``text`` so that it can stand anywhere in a page, inside quotes too; control characters become �."""
    return html.escape(_UNWANTED.sub("\ufffd", str(text)), quote=True)


def inline(text: str) -> str:
    """Escaped text in which `back-quoted` parts become code."""
    return _CODE.sub(r"<code>\1</code>", escaped(text))


def paragraphs(text: str) -> str:
    """Escaped paragraphs, split at blank lines."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{inline(part)}</p>" for part in parts if part)


class Notes:
    """The footnotes of one page, numbered as they first appear; equal notes share a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def reference(self, note: str) -> str:
        """The raised number that leads to ``note``; nothing for an empty one."""
        if not note.strip():
            return ""
        first_time = note not in self._numbers
        number = self._numbers.setdefault(note, len(self._numbers) + 1)
        anchor = f' id="ref-{number}"' if first_time else ""
        return f'<sup><a class="ref"{anchor} href="#note-{number}" title="{escaped(note)}">{number}</a></sup>'

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter((number, note) for note, number in self._numbers.items())

    def __len__(self) -> int:
        return len(self._numbers)
