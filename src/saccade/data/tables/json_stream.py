"""Large JSON files element by element: only a window of the text is ever in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from saccade.errors import DataError

_CHUNK = 1 << 20  # characters read at a time
_SPACE = " \t\r\n"


def list_elements(path: Path) -> Iterator[Any]:
    """The elements of the JSON list in ``path``, one after another."""
    with _Window(path) as window:
        if window.next_mark() != "[":
            raise DataError(f"{path}: not a JSON list; download it again")
        yield from window.elements()


def member_elements(path: Path, *members: str) -> Iterator[tuple[str, object]]:
    """The elements of the lists that the JSON object in ``path`` has under ``members``, with the member of each.

    They come in the order of the file. What else the object holds is passed over, and so is a member that is no list.
    """
    with _Window(path) as window:
        if window.next_mark() != "{":
            raise DataError(f"{path}: not a JSON object; download it again")
        while window.peek() != "}":
            name = window.value()
            if window.next_mark() != ":":
                raise window.damaged("':' expected")
            if window.peek() == "[":
                window.next_mark()
                for element in window.elements():
                    if name in members:
                        yield name, element
            else:
                window.value()
            window.pass_comma()


class _Window:
    """A part of a text file in which JSON values are read from left to right; what is wrong with it is a DataError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._decoder = json.JSONDecoder()
        self._text, self._at = "", 0

    def __enter__(self) -> _Window:
        try:
            self._file: TextIO = self.path.open(encoding="utf-8-sig")
        except OSError as error:
            raise self._unreadable(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def peek(self) -> str:
        """The next character that is no space; empty at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def next_mark(self) -> str:
        """The next character that is no space, passed over."""
        mark = self.peek()
        self._at += len(mark)
        return mark

    def pass_comma(self) -> None:
        """Go past the comma that stands here, if there is one."""
        if self.peek() == ",":
            self._at += 1

    def value(self) -> Any:
        """The JSON value that stands here."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:  # as a rule the window ends inside the value
                if not self._read_on():
                    raise self.damaged(getattr(error, "msg", type(error).__name__)) from error
                continue
            if end == len(self._text) and self._read_on():
                continue  # a number may go on
            self._at = end
            return value

    def elements(self) -> Iterator[object]:
        """The elements of the list whose bracket was just passed, up to its end."""
        while self.peek() != "]":
            yield self.value()
            self.pass_comma()
        self._at += 1

    def damaged(self, why: str) -> DataError:
        """The error for text that is not JSON."""
        return DataError(f"{self.path}: damaged or cut short ({why}); download it again")

    def _read_on(self) -> bool:
        """Drop what is behind, read a chunk more; whether there was one."""
        try:
            more = self._file.read(max(_CHUNK, len(self._text) - self._at))  # a long value is parsed a few times only
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: cannot be read ({error}); download it, and unpack it there")
