"""A part of a report that runs: its own markup, style, script and data, allowed by their digests and nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Live:
    """What is put into a page; all of it comes from the package, none of it from a user."""

    markup: str
    style: str
    script: str
    data: str
    """JSON that the script reads; it must not hold ``<``, so that it cannot leave its element."""

    @property
    def head(self) -> str:
        """What goes into the head."""
        return f'<style id="saccade-style">{self.style}</style>'

    @property
    def end(self) -> str:
        """What goes behind everything else, when all that the script wants to find is there."""
        return (
            f'<script type="application/json" id="saccade-data">{self.data}</script>\n'
            f'<script id="saccade-script">{self.script}</script>'
        )


def policy(*styles: str, script: str | None = None) -> str:
    """A content security policy: these styles, this script with a worker of its own, pictures inside the file."""
    runs = "" if script is None else f"; script-src {_digest(script)}; worker-src blob:"
    pictures = "data:" if script is None else "data: blob:"
    return (
        f"default-src 'none'; img-src {pictures}; style-src {' '.join(map(_digest, styles))}{runs}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
