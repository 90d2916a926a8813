"""Checks of arguments that are the same from Python and from the command line; nothing here imports torch."""

from __future__ import annotations

from saccade.errors import ConfigError


def check_numbers(*, least: float, most: float | None = None, **given: float | None) -> None:
    """Refuse numbers that are too small or too large; None is not given at all.

    >>> check_numbers(least=1, limit=None, steps=3)
    >>> check_numbers(least=1, limit=0)
    Traceback (most recent call last):
    saccade.errors.ConfigError: limit: expected 1 or more, found 0
    """
    for name, value in given.items():
        if value is None:
            continue
        if not value >= least or (most is not None and value > most):
            bounds = f"{least} or more" if most is None else f"{least} to {most}"
            raise ConfigError(f"{name}: expected {bounds}, found {value}")
