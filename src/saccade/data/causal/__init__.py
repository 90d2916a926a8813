"""Causal sets: scenes with their twins, drawn, written to disk and read back, to score maps from any tool.

This is the format of drawn scenes; sets of photographs have one like it, :mod:`saccade.data.causal.photographs`.

``saccade data make causal --count 10000 --out DIR`` writes such a set, :func:`read_causal_set` reads it:

>>> from saccade.data import read_causal_set                   # doctest: +SKIP
>>> for scene in read_causal_set("DIR"):                       # doctest: +SKIP
...     scene.image, scene.question, scene.answer, scene.masks, scene.twins["target_moved"].image

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

Files are untrusted: every line is checked, pictures are opened only inside the folder.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.config import from_dict
from saccade.data.maps import SEPARATOR
from saccade.errors import DataError
from saccade.files import open_regular, read_json

if TYPE_CHECKING:
    from saccade.data.causal.photographs import PhotographSet

Masks = npt.NDArray[np.bool_]
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
# Twins whose maps are scored: the target in another colour has the same place.
READ = tuple(name for name in TWINS if name != "target_recoloured")
# Pictures with a mask of their own; the others have that of the scene.
MASKED = (SCENE, "target_moved", "target_removed", "other_moved", "other_removed")
Pixels = npt.NDArray[np.uint8]
Row = dict[str, Any]


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
    digest = hashlib.blake2b(digest_size=16)
    for name in (SCENE, *TWINS):
        digest.update(images[name].data)
    for name in MASKED:
        digest.update(masks[name].data)
    line = {key: value for key, value in row.items() if key != "digest"}
    digest.update(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
    return digest.hexdigest()


FACTS = "causal.json"
ROWS = "truth.jsonl"
CARD = "README.md"
FORMAT = 1  # Version of the folder's layout
REST = 255  # Grey of a thing that no twin changes, in sets of photographs
_AGAIN = "make or copy the set again"

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

    def rows(self) -> Iterator[Row]:
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
    if facts.get("kind") == "photographs":
        from saccade.data.causal.photographs import PhotographFacts, PhotographSet  # they import this module

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
