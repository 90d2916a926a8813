"""The log of requests: one line each, in one form, whoever refused or answered them.

``127.0.0.1 "POST /api/ask" 200 5120 B 0.031 s``: who, what, status, bytes of the body, time. Queries are left out, as a
token may stand there. 499 says that the client hung up before there was an answer.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("saccade.access")
GONE = 499
_LONGEST = 200  # characters of a path


def log_request(client: str, method: str, path: str, status: int, length: int, seconds: float) -> None:
    """Write the line of one request; what a client chose freely cannot begin a line of its own."""
    if LOG.isEnabledFor(logging.INFO):
        asked = ascii(f"{method} {path}"[:_LONGEST])[1:-1]
        LOG.info('%s "%s" %d %d B %.3f s', client or "-", asked.replace('"', '\\"'), status, length, seconds)


def show_log() -> None:
    """Print the log to stderr from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
