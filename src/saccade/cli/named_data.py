"""Data given as a bare path: chooses the reader and says which one."""

from __future__ import annotations

from saccade.cli.terminal import remark


def named_data(data: str, *, quiet: bool = False) -> str:
    """``data`` as READER:PATH where it is a path alone, with a remark that says so; a name as it is."""
    from saccade.data.tables.references import with_reader
    from saccade.families import data_entries

    found = with_reader(data, data_entries())
    if found != data and not quiet:
        remark(f"{data} is read as {found}")
    return found
