"""``reproduce``: a published table, measured beside published."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.papers.tables import Reproduction


def reproduce(table: str) -> Reproduction:
    """Make a paper's table from the results that come with saccade.

    Each cell has its mean over seeds, the number of seeds, n and protocol, and each row the command that trains it.

    Args:
        table: name of a table. 'saccade reproduce' lists them.

    Returns:
        The tables, every cell as plain values, and the commands that draw the paper's figures.

    Raises:
        ConfigError: there is no such table.

    Example:
        >>> saccade.reproduce("racnn-table").tables  # doctest: +SKIP
    """
    from saccade.papers.tables import reproduction

    return reproduction(table)
