"""Which process made a file, and whether that process still runs.

A process is known by its number, the time at which it was started (numbers are used again), the name of its host, and
its process namespace (two containers may both have a process 7). Whether a process still runs can be checked on the
same host and in the same namespace only.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

TAG = r"\d+-\d+-[0-9a-f]{8}"
"""What :func:`own_tag` gives, as a regular expression."""

_PARTS = re.compile(r"(\d+)-(\d+)-([0-9a-f]{8})")


def own_tag() -> str:
    """This process, in a few characters that fit into the name of a file."""
    pid = os.getpid()
    return f"{pid}-{started(pid)}-{_machine()}"


def is_gone(tag: str) -> bool:
    """Whether the process with this tag has ended; False where that cannot be seen from here."""
    parts = _PARTS.fullmatch(tag)
    if parts is None or parts[3] != _machine():
        return False
    return not is_running(int(parts[1]), int(parts[2]))


def is_running(pid: int, since: int) -> bool:
    """Whether a process of this host and namespace runs that has this number and was started ``since``.

    A process whose start is hidden (``hidepid`` hides those of other users) counts as running.
    """
    if os.name == "nt":
        return True  # there os.kill would end it; it counts as running
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # overflow: no process has such a number
        return False
    except PermissionError:
        pass  # somebody else's
    return started(pid) in (0, since)


def started(pid: int) -> int:
    """When a process was started, as the system counts it; 0 where it does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


def host() -> str:
    """The name of this machine."""
    return socket.gethostname()


def boot() -> str:
    """What tells this run of the kernel from others, also of other machines; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _machine() -> str:
    """Host and process namespace as eight hexadecimal digits."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return hashlib.sha256(f"{host()} {space}".encode()).hexdigest()[:8]
