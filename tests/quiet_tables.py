"""Tables read without the warnings about what they left out."""

from __future__ import annotations

import warnings
from pathlib import Path

from saccade.data import Table, read_table


def read_quietly(reference: str, family: str = "classify", **options: object) -> Table:
    """The table that ``reference`` (READER:PATH) names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(reference, family, **options)


def pretend_pictures(folder: Path) -> Path:
    """The folder with three files that stand for pictures; a reader decodes none of them."""
    for name in ("a.png", "b.png", "c.png"):
        (folder / name).write_bytes(f"not decoded: {name}".encode())
    return folder


def table_of(file: Path, text: str, family: str, **options: object) -> Table:
    """The table that a file with this ``text`` holds; its suffix names the reader."""
    file.write_text(text, encoding="utf-8")
    return read_quietly(f"{file.suffix[1:]}:{file}", family, **options)
