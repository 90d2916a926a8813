"""Names of maps and truths, and how a map finds its truth.

A map is called after its picture, or after its picture and a question, with a separator between them: ``cat__colour``.
A file is called by its name without folders and suffix. Where two files would then have the same name, or where the
separator is ``/``, folders are part of the name. Both sides are named by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from saccade.errors import ConfigError

SEPARATOR = "__"
"""Between the picture and the question."""


def picture_of(name: str, separator: str) -> str:
    """The picture that a name is about.

    >>> picture_of("cat__colour", "__"), picture_of("cat", "__"), picture_of("a/1/tail", "/")
    ('cat', 'cat', 'a/1')
    """
    picture, _, _ = name.rpartition(separator) if separator == "/" else name.partition(separator)
    return picture or name


def checked_separator(separator: str) -> str:
    """``separator``, if it can stand between two names."""
    if not separator or separator.isspace():
        raise ConfigError("separator: what stands between picture and question must not be empty; the usual one is __")
    return separator


def short_names(sides: Sequence[Iterable[str]], separator: str) -> bool:
    """Whether the last part of a path is enough: on every side no two paths share it."""
    if separator == "/":
        return False
    for side in sides:
        paths = list(side)
        if len({PurePosixPath(path).name for path in paths}) < len(paths):
            return False
    return True


def by_short_name(paths: Iterable[str], short: bool) -> dict[str, str]:
    """Paths by the names they are called."""
    return {PurePosixPath(path).name if short else path: path for path in paths}


def truth_for(name: str, known: Mapping[str, object], separator: str) -> str | None:
    """The name of the truth about a map: its own, else that of its picture; None where there is neither."""
    if name in known:
        return name
    picture = picture_of(name, separator)
    return picture if picture in known else None
