"""What the verbs that are still here print with."""

from typing import Any

from saccade.commands.terminal import print_json, print_table, progress, remark, warn

__all__ = ["bar", "print_json", "print_table", "remark", "stages", "warn"]


def bar(what: str, total: int | None, *, shown: bool) -> Any:
    """A progress bar."""
    return progress(what, shown=shown)


def stages(*, shown: bool) -> Any:
    """Progress through one thing after the other."""
    return progress("", shown=shown)
