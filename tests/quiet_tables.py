"""Tables read without the warnings about what they left out."""

from __future__ import annotations

import warnings

from saccade.data import Table, read_table


def read_quietly(reference: str, family: str = "classify", **options: object) -> Table:
    """The table that ``reference`` (READER:PATH) names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(reference, family, **options)
