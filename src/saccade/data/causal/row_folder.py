"""The folder of a causal set: its facts, a line of ``truth.jsonl`` for each scene or photograph, and the pictures.

What drawn scenes (:mod:`saccade.data.causal.scenes`) and photographs (:mod:`saccade.data.causal.photographs.format`)
have in common. Files are untrusted: every line is checked, pictures are opened only inside the folder.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.errors import DataError
from saccade.files import open_regular

Masks = npt.NDArray[np.bool_]
Pixels = npt.NDArray[np.uint8]
TruthLine = dict[str, Any]  # What ``truth.jsonl`` says of a scene or photograph
SCENE = "scene"  # Stands for the scene itself among the names of its twins
FACTS = "causal.json"
ROWS = "truth.jsonl"
CARD = "README.md"
FORMAT = 1  # Version of the folder's layout
REST = 255  # Grey of a thing that no twin changes, in sets of photographs
_AGAIN = "make or copy the set again"


def picture_name(scene: str, picture: str) -> str:
    """The name of a scene's picture or of that of a twin, without its suffix.

    >>> picture_name("00000012", "scene"), picture_name("00000012", "target_moved")
    ('00000012', '00000012-target_moved')
    """
    return scene if picture == SCENE else f"{scene}-{picture}"


class CausalPicture:
    """A picture of a set, the first of its kind or a twin: ``row`` is what ``truth.jsonl`` says of it."""

    kind: ClassVar[str] = "PNG"

    def __init__(self, folder: Path, size: tuple[int, int], objects: int, row: Mapping[str, Any]) -> None:
        self.folder, self.size, self.row = folder, size, row  # size: (height, width)
        self.image_path: Path = folder / row["image"]
        self.mask_path: Path = folder / row["mask"]
        self._count = objects

    @property
    def image(self) -> Pixels:
        """(H, W, 3) uint8, read now."""
        return decoded(self.image_path, "RGB", self.size, self.kind)

    @property
    def label_map(self) -> Pixels:
        """(H, W) uint8, read now: 0 is ground, k + 1 is object k, 255 (of photographs) a thing that no twin changes."""
        labels = decoded(self.mask_path, "L", self.size)
        strange = labels[(labels > self._count) & (labels != REST)]
        if strange.size:
            raise DataError(f"{self.mask_path}: marks object {strange[0] - 1} of {self._count}; {_AGAIN}")
        return labels

    @property
    def masks(self) -> Masks:
        """(N, H, W) bool: the visible pixels of each object; empty for one that was removed."""
        masks: Masks = self.label_map == np.arange(1, self._count + 1, dtype=np.uint8)[:, None, None]
        return masks


class RowFolder(ABC):
    """A folder with facts, and with ``truth.jsonl``, which has a line for each ``thing``."""

    thing: ClassVar[str]

    def __init__(self, folder: Path, facts: Any) -> None:
        self.folder, self.facts = folder, facts

    def __len__(self) -> int:
        return int(self.facts.count)

    @staticmethod
    @abstractmethod
    def checks(row: Any) -> dict[str, bool]:
        """Whether each part of a line is as it should be; what is not there raises a KeyError or the like."""

    def rows(self) -> Iterator[TruthLine]:
        """The lines in their order, each checked; of a long set only one is in memory."""
        path, digest, count = self.folder / ROWS, hashlib.blake2b(digest_size=32), 0
        with path.open(encoding="utf-8", errors="replace") as lines:
            for count, line in enumerate(lines, start=1):
                try:
                    row = json.loads(line)
                    wrong = [what for what, is_right in self.checks(row).items() if not is_right]
                    why = wrong[0] if wrong else ""
                except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
                    why = f"{type(error).__name__}: {error}"
                if why:
                    raise DataError(f"{path}: line {count} is not a {self.thing} ({why}); {_AGAIN}")
                digest.update(bytes.fromhex(row["digest"]))
                yield row
        if (count, digest.hexdigest()) != (self.facts.count, self.facts.digest):
            raise DataError(
                f"{path}: {count} {self.thing}s of digest {digest.hexdigest()}, but {FACTS} says {self.facts.count} of "
                f"{self.facts.digest}; {_AGAIN}"
            )

    @abstractmethod
    def digest_of(self, row: Mapping[str, Any]) -> str:
        """The digest of a line, computed from its files."""

    def verify(self) -> None:
        """Read every file and check every digest."""
        for row in self.rows():
            self.check_files(row)

    def check_files(self, row: Mapping[str, Any]) -> None:
        """Refuse a line whose digest is not that of its files."""
        if (digest := self.digest_of(row)) != row["digest"]:
            raise DataError(
                f"{self.folder}: {self.thing} {row['id']} is not as it was written (digest {digest}, its line says "
                f"{row['digest']}); {_AGAIN}"
            )


def leads_out(paths: Iterable[str]) -> bool:
    """Whether one of the ``paths`` leads out of the folder that it is taken from."""
    return any((path := PurePosixPath(text)).is_absolute() or ".." in path.parts or "\\" in text for text in paths)


def decoded(path: Path, mode: str, size: tuple[int, int], kind: str = "PNG") -> Pixels:
    """A picture file of this mode, size (height, width) and kind."""
    height, width = size
    try:
        with open_regular(path) as file, Image.open(file, formats=(kind,)) as picture:
            if picture.mode != mode or picture.size != (width, height):
                raise ValueError(f"{picture.mode} {picture.width}×{picture.height}, not {mode} {width}×{height}")
            return np.asarray(picture)
    except Exception as error:  # a decoder may raise anything on damaged bytes
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read ({why}); {_AGAIN}") from error
