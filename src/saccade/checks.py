"""Checks of arguments that are the same from Python and from the command line; nothing here imports torch."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

from saccade.errors import ConfigError, shown_value


def check_numbers(*, least: int, most: int | None = None, **given: int | None) -> None:
    """Refuse what is no whole number, and numbers that are too small or too large; None is not given at all.

    >>> check_numbers(least=1, limit=None, steps=3)
    >>> check_numbers(least=1, limit=0)
    Traceback (most recent call last):
    saccade.errors.ConfigError: limit: expected 1 or more, found 0
    >>> check_numbers(least=1, steps="3")
    Traceback (most recent call last):
    saccade.errors.ConfigError: steps: expected a whole number, found the text '3'; leave out the quotes: steps=3
    """
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):  # arrays and tensors are none
            raise _no_number(name, value, "a whole number")
        if not value >= least or (most is not None and value > most):
            bounds = f"{least} or more" if most is None else f"{least} to {most}"
            raise ConfigError(f"{name}: expected {bounds}, found {value}")


def check_reals(**given: float | None) -> None:
    """Refuse what is no number; None is not given at all.

    >>> check_reals(lr=0.1, max_minutes=None)
    >>> check_reals(lr="fast")
    Traceback (most recent call last):
    saccade.errors.ConfigError: lr: expected a number, found the text 'fast'; give a number, as in lr=1
    """
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
            raise _no_number(name, value, "a number")


def _no_number(name: str, value: object, wanted: Literal["a number", "a whole number"]) -> ConfigError:
    """The error for a value that is not the number it should be."""
    kind = int if wanted == "a whole number" else float
    if isinstance(value, str):
        try:
            cure = f"leave out the quotes: {name}={kind(value)}"
        except ValueError:
            cure = f"give a number, as in {name}=1"
        return ConfigError(f"{name}: expected {wanted}, found the text '{value}'; {cure}")
    return ConfigError(f"{name}: expected {wanted}, found {shown_value(value)}; give a number, as in {name}=1")
