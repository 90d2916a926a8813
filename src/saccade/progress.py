"""How long work says how far it is: one kind of callback for all of saccade."""

from __future__ import annotations

from collections.abc import Callable

OnProgress = Callable[[str, float, float | None], None]
"""Called with what is going on, how far it is, and how far it goes: None if that is not known."""


def no_progress(what: str, done: float, total: float | None) -> None:
    """Shows nothing."""
