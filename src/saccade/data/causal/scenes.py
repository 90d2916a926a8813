"""Causal sets of drawn scenes: scenes with their twins, to score maps from any tool.

This is the format of drawn scenes; sets of photographs have one like it, :mod:`saccade.data.causal.photographs.format`.

``saccade data make causal --count 10000 --out DIR`` writes such a set, :func:`read_causal_set` reads it.

One question asks for the colour of a digit, the *target*. A second one asks for the *other* object: among those that
can be moved, the one whose area is nearest to the target's. Each scene has seven twins, see
:mod:`saccade.data.scenes.layout`: target and other are recoloured, moved and removed; the background is changed.

The folder:

=================  =====================================================================================================
causal.json         facts of the set: format, version, settings, counts, digest
truth.jsonl         one scene a line
images/ID.png       the scene; ``images/ID-TWIN.png`` its twins
masks/ID.png        grey values: 0 is background, k + 1 is object k of the scene; ``masks/ID-TWIN.png`` for twins in
                    which an object was moved or removed. ``truth.jsonl`` names the mask of every picture
README.md           the data card
=================  =====================================================================================================

A map is called ``PICTURE__QUERY``, as in ``00000012__7.npy`` or ``00000012-target_moved__7.npy``.

One line of ``truth.jsonl``:

==========  ============================================================================================================
id           eight digits, the number of the scene in its stream; also the name of its picture
image, mask  paths from the folder of the set
objects      class, colour, rgb, box (x0 y0 x1 y1 in pixels, right and lower edge excluded) and scale of each object
target       which object the first question asks about
other        which object the second question asks about; the one that is changed in the ``other`` twins
questions    two: query (a digit), object, answer (a colour)
twins        by name: image and mask; ``object``, the one that was changed (null for the background); ``colour`` or
             ``box``, what it has now; ``answers`` to both questions, null where the object asked about is gone
digest       blake2b (16 bytes, in hex) over the pixels, the masks and this line without its digest
==========  ============================================================================================================

The digest of a scene takes in the eight pictures (RGB bytes, row by row; the scene, then the twins in the order of
:data:`TWINS`), the masks of :data:`MASKED`, and the line as JSON with sorted keys and without spaces. That of a set is
blake2b (32 bytes) over those of its scenes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.causal.photographs.format import KIND, PhotographFacts, PhotographSet
from saccade.data.causal.row_folder import (
    FACTS,
    FORMAT,
    SCENE,
    CausalPicture,
    Pixels,
    RowFolder,
    leads_out,
    picture_name,
)
from saccade.data.maps import SEPARATOR
from saccade.errors import DataError
from saccade.files import read_json

TWINS = (
    "target_recoloured",
    "target_moved",
    "target_removed",
    "other_recoloured",
    "other_moved",
    "other_removed",
    "background_changed",
)
# Twins whose maps are scored: the target in another colour has the same place.
READ = tuple(name for name in TWINS if name != "target_recoloured")
# Pictures with a mask of their own; the others have that of the scene.
MASKED = (SCENE, "target_moved", "target_removed", "other_moved", "other_removed")

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


def is_frozen(facts: CausalFacts) -> bool:
    """Whether a set has the settings of ``causal-v1``, with as many scenes or fewer."""
    same = all(getattr(facts, name) == value for name, value in V1_SETTINGS.items())
    return same and facts.count <= V1_COUNT


def check_frozen(facts: CausalFacts, where: str) -> None:
    """Refuse a set that says or should be a part of ``causal-v1`` with a known digest, and has another one."""
    pinned = V1_DIGESTS.get(facts.count)
    if facts.version not in (None, V1 if is_frozen(facts) and facts.count == V1_COUNT else None):
        raise DataError(f"{where}: its settings or its number of scenes are not those of {facts.version}")
    if pinned is not None and is_frozen(facts) and facts.digest != pinned:
        raise DataError(
            f"{where}: the digest of the first {facts.count} scenes of {V1} is {pinned}, found {facts.digest}; "
            "the set is damaged, or this version of saccade draws other scenes"
        )


def map_name(scene: str, picture: str, query: str) -> str:
    """What a map of a picture for a question is called.

    >>> map_name("00000012", "target_moved", "7")
    '00000012-target_moved__7'
    """
    return f"{picture_name(scene, picture)}{SEPARATOR}{query}"


def scene_digest(row: Mapping[str, object], images: Mapping[str, Pixels], masks: Mapping[str, Pixels]) -> str:
    """The digest of one scene; ``images`` (H,W,3) by SCENE and TWINS, ``masks`` (H,W) by MASKED."""
    digest = hashlib.blake2b(digest_size=16)
    for name in (SCENE, *TWINS):
        digest.update(images[name].data)
    for name in MASKED:
        digest.update(masks[name].data)
    line = {key: value for key, value in row.items() if key != "digest"}
    digest.update(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
    return digest.hexdigest()


class CausalTwin(CausalPicture):
    """A scene with one thing changed: ``object``, None for the background.

    ``answer`` and ``other_answer`` are those to both questions, None where the object is gone.
    """

    def __init__(self, folder: Path, size: tuple[int, int], objects: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, size, objects, row)
        self.object: int | None = row["object"]
        self.answer: str | None
        self.other_answer: str | None
        self.answer, self.other_answer = row["answers"]


class CausalScene(CausalPicture):
    """A scene with its twins by name, and two questions: about the object ``target``, and about ``other``."""

    def __init__(self, folder: Path, side: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, (side, side), len(row["objects"]), row)
        self.id: str = row["id"]
        self.target: int = row["target"]
        self.other: int = row["other"]
        self.question, self.other_question = (str(question["query"]) for question in row["questions"])
        self.answer, self.other_answer = (str(question["answer"]) for question in row["questions"])
        self.twins = {name: CausalTwin(folder, self.size, self._count, twin) for name, twin in row["twins"].items()}

    def maps(self) -> dict[str, tuple[str, str]]:
        """Every map that a score reads, by its name: its picture (``scene`` or a twin) and its query."""
        maps = [(SCENE, self.question), (SCENE, self.other_question), *((name, self.question) for name in READ)]
        return {map_name(self.id, picture, query): (picture, query) for picture, query in maps}


class CausalSet(RowFolder):
    """A folder that ``saccade data make causal`` wrote."""

    thing = "scene"
    facts: CausalFacts

    @staticmethod
    def checks(row: Any) -> dict[str, bool]:
        """What a line must have."""
        objects, questions = row["objects"], row["questions"]
        pair = (row["target"], row["other"])
        shown = [row, *(row["twins"][name] for name in TWINS)]
        return {
            "id": isinstance(row["id"], str),
            "digest": len(bytes.fromhex(row["digest"])) == 16,
            "target or other": all(type(at) is int and 0 <= at < len(objects) for at in pair),
            "questions": len(questions) == 2
            and tuple(question["object"] for question in questions) == pair
            and all(isinstance(question[key], str) for question in questions for key in ("query", "answer")),
            "twins": len(row["twins"]) == len(TWINS)
            and all(len(twin["answers"]) == 2 and "object" in twin for twin in shown[1:]),
            "image or mask, which leads out of the folder": not leads_out(
                picture[key] for picture in shown for key in ("image", "mask")
            ),
        }

    def __iter__(self) -> Iterator[CausalScene]:
        """The scenes in their order; of a long set only one is in memory."""
        return (CausalScene(self.folder, self.facts.size, row) for row in self.rows())

    def digest_of(self, row: Mapping[str, Any]) -> str:
        """See :func:`scene_digest`."""
        scene = CausalScene(self.folder, self.facts.size, row)
        pictures: dict[str, CausalPicture] = {SCENE: scene, **scene.twins}
        images = {name: picture.image for name, picture in pictures.items()}
        return scene_digest(row, images, {name: pictures[name].label_map for name in MASKED})


def read_causal_set(folder: str | Path) -> CausalSet | PhotographSet:
    """The causal set in ``folder``, to be iterated: each scene or photograph has image, masks and twins."""
    folder = Path(folder).expanduser()
    path = folder / FACTS
    if not path.is_file():
        raise DataError(
            f"{folder}: no causal set, as {FACTS} is not there; `saccade data make causal --out DIR` writes one"
        )
    facts = read_json(path)
    version = facts.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise DataError(f"{path}: format {version} is newer than {FORMAT}, which this saccade reads; update it")
    if facts.get("kind") == KIND:
        return PhotographSet(folder, from_dict(PhotographFacts, facts, where=str(path)))
    causal = CausalSet(folder, from_dict(CausalFacts, facts, where=str(path)))
    if causal.facts.version is not None:
        check_frozen(causal.facts, str(path))
    return causal


def read_drawn_set(folder: str | Path) -> CausalSet:
    """The causal set of drawn scenes in ``folder``; one of photographs is refused."""
    causal = read_causal_set(folder)
    if not isinstance(causal, CausalSet):
        raise DataError(f"{folder}: a causal set of photographs, where one of drawn scenes is needed")
    return causal
