"""The cache folder: downloaded files, each known by its digest.

``data`` downloads weights and METEOR; ``backbones`` loads the weights and ``metrics`` runs METEOR. None of them imports
another, so the names, addresses and digests that they share are here.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def cache_home() -> Path:
    """Where downloads live: the environment's ``SACCADE_HOME``, else ``~/.cache/saccade``."""
    return Path(os.environ.get("SACCADE_HOME") or Path.home() / ".cache" / "saccade").expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file of others, known by its decompressed content."""

    name: str
    size: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Whether ``path`` is this file, to the last byte; False also for a file that may not be read."""
        try:
            return path.is_file() and path.stat().st_size == self.size and file_digest(path) == self.sha256
        except OSError:
            return False


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


REGISTERED: dict[str, Any] = json.loads(Path(__file__).with_name("downloads.json").read_text(encoding="utf-8"))
FILES = {name: tuple(RemoteFile(**file) for file in entry["files"]) for name, entry in REGISTERED.items()}
"""What ``saccade data get NAME`` brings, by that name, which is also their folder in the cache."""
WEIGHTS = {name: files[0] for name, files in FILES.items() if name.endswith("-imagenet")}
METEOR = "meteor"
"""What ``saccade data get`` calls the program METEOR 1.5, and its folder in the cache."""
METEOR_JAR, METEOR_PARAPHRASES = FILES[METEOR]
