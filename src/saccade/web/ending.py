"""How the server ends: Ctrl-C lets open requests end, a second Ctrl-C does not wait for them.

When it has ended, uvicorn raises every signal that it caught once more. The first ends the event loop. A second
one would interrupt that and print a traceback, so only the first is kept.
"""

from __future__ import annotations

import signal
from types import FrameType

import uvicorn


class EndedServer(uvicorn.Server):
    """A server that can be told to end more than once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after the requests under way; with a second Ctrl-C at once."""
        if not self.should_exit:
            super().handle_exit(sig, frame)
        elif sig == signal.SIGINT:
            self.force_exit = True
