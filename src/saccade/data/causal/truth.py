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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from saccade.config import from_dict
from saccade.errors import DataError

SCENE = "scene"  # Stands for the scene itself among the names of its twins
TWINS = (
    "target_recoloured",
    "target_moved",
    "target_removed",
    "other_recoloured",
    "other_moved",
    "other_removed",
    "background_changed",
)
# Pictures with a mask of their own; the others have that of the scene.
MASKED = (SCENE, "target_moved", "target_removed", "other_moved", "other_removed")
Pixels = npt.NDArray[np.uint8]
Row = dict[str, Any]
SEPARATOR = "__"  # Between the picture and the query in the name of a map


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


FACTS = "causal.json"
ROWS = "truth.jsonl"
CARD = "README.md"
FORMAT = 1  # Version of the folder's layout

V1 = "causal-v1"
V1_COUNT = 10_000
V1_SETTINGS = {
    "background": "black",
    "split": "test",
    "seed": 0,
    "start": 0,
    "glyphs": "pack-test-600",
    "drawing": "blend",
}
# Number of scenes from the first on → digest.
V1_DIGESTS = {
    32: "54f8f645900b60b59364ae1ffac568a9751a50777c5084af800d5a642ccb518f",
    V1_COUNT: "f69133d299b71eb1c1f89849e0db2cd1c4a1b2d2a2847aa5f2afd39e40c24cdc",
}


@dataclass(frozen=True)
class CausalFacts:
    """What is known of a set without reading its scenes."""

    scenes: str  # mref, mdist or mbg: what lies behind the digits
    split: str
    seed: int
    start: int  # number of the first scene that was looked at; those that cannot be used are passed over
    glyphs: str  # name of the glyphs, which says how many there are
    drawing: str
    background: str
    other_background: str  # what lies behind the digits in the twin ``background_changed``
    count: int
    last: int  # number of the last scene
    digest: str
    licence: str
    pictures: bool = True  # sets of earlier versions could be without PNG files
    size: int = 100
    format: int = FORMAT
    version: str | None = None  # ``causal-v1``, where it is that
    queries: tuple[str, ...] = field(default_factory=lambda: tuple(map(str, range(10))))
    answers: tuple[str, ...] = ()


def facts_of(told: Mapping[str, object], where: str) -> CausalFacts:
    """The facts in a file, checked.

    Raises:
        DataError: it is not what saccade writes, or its layout is of a later version.
    """
    version = told.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise DataError(f"{where}: format {version} is newer than {FORMAT}, which this saccade reads; update it")
    facts = from_dict(CausalFacts, dict(told), where=where)
    if facts.version is not None:
        check_frozen(facts, where)
    return facts


def is_frozen(facts: CausalFacts) -> bool:
    """Whether a set has the settings of ``causal-v1``, with as many scenes or fewer."""
    same = all(getattr(facts, name) == value for name, value in V1_SETTINGS.items())
    return same and facts.count <= V1_COUNT


def check_frozen(facts: CausalFacts, where: str) -> None:
    """Refuse a set that says or should be a part of ``causal-v1`` with a known digest, and has another one.

    Raises:
        DataError: names both digests.
    """
    pinned = V1_DIGESTS.get(facts.count)
    if facts.version not in (None, V1 if is_frozen(facts) and facts.count == V1_COUNT else None):
        raise DataError(f"{where}: its settings or its number of scenes are not those of {facts.version}")
    if pinned is not None and is_frozen(facts) and facts.digest != pinned:
        raise DataError(
            f"{where}: the digest of the first {facts.count} scenes of {V1} is {pinned}, found {facts.digest}; "
            "the set is damaged, or this version of saccade draws other scenes"
        )
