"""The verbs: one file each, with the Python function, which the command line calls, and how its result is printed."""

from __future__ import annotations


def main() -> None:
    """The command ``saccade``."""
    from saccade.commands.door import main as run

    run()
