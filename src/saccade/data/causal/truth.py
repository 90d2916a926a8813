"""One line of ``truth.jsonl``: the truth about a scene and its twins; and the digests of scenes and sets.

==========  ============================================================================================================
id           eight digits, the number of the scene in its stream; also the name of its picture
image        path of the picture from the folder of the set
mask         path of its mask: 0 is background, k + 1 is object k
objects      class, colour, rgb, box (x0 y0 x1 y1 in pixels, right and lower edge excluded) and scale of each object
target       which object the first question asks about
other        which object the second question asks about; the one that is changed in the ``other`` twins
questions    two: query (a digit), object, answer (a colour)
twins        by name: image and mask; ``object``, the one that was changed (null for the background); ``colour`` or
             ``box``, what it has now; ``answers`` to both questions, null where the object asked about is gone
digest       blake2b (16 bytes, in hex) over the pixels, the masks and this line without its digest
==========  ============================================================================================================

The digest of a scene takes in the eight pictures (RGB bytes, row by row; the scene, then the twins in the order above),
the five masks that have a file of their own (the scene, target moved, target removed, other moved, other removed), and
the line as JSON with sorted keys and without spaces. That of a set is blake2b (32 bytes) over those of its scenes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

SCENE = "scene"
"""Stands for the scene itself among the names of its twins."""
TWINS = (
    "target_recoloured",
    "target_moved",
    "target_removed",
    "other_recoloured",
    "other_moved",
    "other_removed",
    "background_changed",
)
MASKED = (SCENE, "target_moved", "target_removed", "other_moved", "other_removed")
"""Pictures with a mask of their own; the others have that of the scene."""
Pixels = npt.NDArray[np.uint8]
Row = dict[str, Any]
SEPARATOR = "__"
"""Between the picture and the query in the name of a map."""


def picture_name(scene: str, picture: str) -> str:
    """The name of a scene's picture or of that of a twin, without its suffix.

    >>> picture_name("00000012", "scene"), picture_name("00000012", "target_moved")
    ('00000012', '00000012-target_moved')
    """
    return scene if picture == SCENE else f"{scene}-{picture}"


def map_name(scene: str, picture: str, query: str) -> str:
    """What a map of a picture for a question is called.

    >>> map_name("00000012", "target_moved", "7")
    '00000012-target_moved__7'
    """
    return f"{picture_name(scene, picture)}{SEPARATOR}{query}"


def scene_digest(row: Mapping[str, object], images: Mapping[str, Pixels], masks: Mapping[str, Pixels]) -> str:
    """The digest of one scene; ``images`` (H,W,3) by SCENE and TWINS, ``masks`` (H,W) by MASKED."""
    found = hashlib.blake2b(digest_size=16)
    for name in (SCENE, *TWINS):
        found.update(images[name].data)
    for name in MASKED:
        found.update(masks[name].data)
    line = {key: value for key, value in row.items() if key != "digest"}
    found.update(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
    return found.hexdigest()


class SetDigest:
    """The digest of a set, scene by scene."""

    def __init__(self, scenes: Iterable[str] = ()) -> None:
        self._found = hashlib.blake2b(digest_size=32)
        for scene in scenes:
            self.add(scene)

    def add(self, scene: str) -> None:
        """Take in the digest of the next scene."""
        self._found.update(bytes.fromhex(scene))

    def hex(self) -> str:
        """Digest of the scenes so far."""
        return self._found.hexdigest()
