"""The cache folder: downloaded files, each known by its digest.

``data`` downloads weights and METEOR; ``backbones`` loads the weights and ``metrics`` runs METEOR. None of them imports
another, so the names, addresses and digests that they share are here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


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


WEIGHTS: dict[str, RemoteFile] = {
    "mobilenetv2-imagenet": RemoteFile(
        "mobilenet_v2-b0353104.pth",
        14_212_972,
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
    ),
    "efficientnet-lite0-imagenet": RemoteFile(
        "efficientnet-lite0-57934424.pth",
        18_826_032,
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite1-imagenet": RemoteFile(
        "efficientnet-lite1-77cc7160.pth",
        21_946_926,
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    "efficientnet-lite2-imagenet": RemoteFile(
        "efficientnet-lite2-9656183e.pth",
        24_666_229,
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
    "vgg19-imagenet": RemoteFile(
        "vgg_normalized.pth",
        80_102_481,
        "804ca2835ecf7539f0cd2a7ac3c18ce81e6f8468969ae7117ac0c148d286bb4a",
    ),
}
"""Weights that ``saccade data get NAME`` brings, by that name, which is also their folder in the cache."""

METEOR = "meteor"
"""What ``saccade data get`` calls the program METEOR 1.5, and its folder in the cache."""
METEOR_JAR = RemoteFile(
    "meteor-1.5.jar",
    6_318_693,
    "1e57b4c72c0830ebe68558f1c799a624e96cbc1b6045c9f6330e26dcff6eafc2",
)
METEOR_PARAPHRASES = RemoteFile(
    "paraphrase-en.gz",
    61_813_011,
    "c147ac7d2c91f2fbb3ad31e4b352235061eb83145e0434daf217ee9ca5975f48",
)
