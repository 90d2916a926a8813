"""Causal sets of photographs: pictures with marked objects, each with twins in which one thing is changed.

``saccade data make causal --pictures DIR --masks DIR --out SET`` writes such a set, :func:`read_causal_set` reads it.
The folder:

=====================  =================================================================================================
causal.json             facts of the set, the fields of :class:`PhotographFacts`; ``"kind": "photographs"``
truth.jsonl             one photograph a line
images/ID.jpg           the photograph; ``images/ID-TWIN.jpg`` its twins, of the same size
masks/ID.png            grey values: 0 is ground, k + 1 is object k, 255 is a thing that no twin changes (too large, too
                        small, or beyond the four largest); ``masks/ID-TWIN.png`` for twins in which an object was
                        removed or moved. ``truth.jsonl`` names the mask of every picture
changed/ID-TWIN.png     255 where the pixels of a twin were replaced, else 0
README.md               the data card
=====================  =================================================================================================

The twins of a photograph, by name. Only ``removed-K`` is there for every photograph; others may be left out:

================  ======================================================================================================
``removed-K``     object K is gone: filled in from around it, or, in a composed set, not drawn
``moved``         the target lies elsewhere on free ground of the same picture; where no other place is free, up to
                  half of it lies where it was
``background``    all objects, and the things of grey 255, lie at their places on the ground of another photograph
``empty-J``       a patch of the target's shape, J = 0 or 1, was filled in where nothing lies: what the filling alone
                  does to a model. Where there is no room, the patch is smaller. Composed sets have none
================  ======================================================================================================

One line of ``truth.jsonl``:

==========  ============================================================================================================
id           eight digits, the number of the photograph in the set; also the name of its picture
name         path of the picture it was made from, from the folder of the pictures; ``scene 7`` where it was composed
sources      files it was made from: the picture; or the background, then the cut-out of each object
image, mask  paths from the folder of the set
size         height and width in pixels
label        what the photograph shows, null where that is not known
objects      one to four, largest first: ``name`` (null where it is not known), ``box`` (x0 y0 x1 y1 in pixels, right
             and lower edge excluded) and ``share`` of the picture
target       which object the label is about
rest         share of the picture that things of grey 255 have
twins        by name: ``image``, ``mask``, ``changed``; ``change``: removed, moved, background or empty; ``object``, the
             one that was changed, else null; ``label``, what is true of the twin: null where nothing that bears the
             label is left; ``box`` of the object or patch, where it is now (null for removed and background);
             ``ground``, the name of the photograph that gave the ground (of background alone); ``scale``, how long the
             sides of a patch are, in those of the target (of empty alone)
left_out     what could not be made or used of this photograph, in words
digest       blake2b (16 bytes, in hex) over the files of the photograph and this line without its digest
==========  ============================================================================================================

The digest of a photograph takes in the bytes of the files that its line names (image and mask, then image, mask and
changed of the twins in their order), then the line as JSON in ASCII with sorted keys and without spaces. That of a set
is blake2b (32 bytes) over those of its photographs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.causal.row_folder import CausalPicture, Masks, RowFolder, decoded, leads_out
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, read_regular

KIND = "photographs"
FORMAT = 1  # Version of the folder's layout
CHANGES = ("removed", "moved", "background", "empty")
MOST_OBJECTS = 4


@dataclass(frozen=True)
class PhotographFacts:
    """What is known of a set without reading its photographs."""

    count: int
    pictures: str  # name of the folder that they come from
    masks: str  # how masks were read: binary, labels, trimaps, grey, coco or cut-outs
    fill: str  # what filled removed objects in: migan, smooth, or exact where scenes are composed without them
    seed: int
    size: int  # longest side at most, in pixels
    max_share: float  # share of the picture of an object at most
    twins: Mapping[str, int]  # how many there are of each of CHANGES
    left_out: Mapping[str, int]  # how many pictures, objects and twins, by reason
    labels: tuple[str, ...]  # every label once, in alphabetical order
    digest: str
    kind: str = KIND
    format: int = FORMAT


class PhotographObject(NamedTuple):
    """One object of a photograph."""

    name: str | None
    box: tuple[int, int, int, int]  # x0 y0 x1 y1
    share: float


class PhotographPicture(CausalPicture):
    """A photograph or a twin of it."""

    kind = "JPEG"

    def __init__(self, folder: Path, size: tuple[int, int], objects: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, size, objects, row)
        self.label: str | None = row["label"]


class PhotographTwin(PhotographPicture):
    """A photograph with one thing changed: ``change`` says what, ``object`` which object, None for none."""

    def __init__(self, folder: Path, size: tuple[int, int], objects: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, size, objects, row)
        self.change: str = row["change"]
        self.object: int | None = row["object"]
        self.changed_path: Path = folder / row["changed"]

    @property
    def changed(self) -> Masks:
        """(H, W) bool, read now: the pixels that were replaced. Of a JPEG, whole blocks of 8 × 8 around them differ."""
        return decoded(self.changed_path, "L", self.size) > 0


class Photograph(PhotographPicture):
    """A photograph with its objects, and its twins by name."""

    def __init__(self, folder: Path, row: Mapping[str, Any]) -> None:
        height, width = row["size"]
        super().__init__(folder, (height, width), len(row["objects"]), row)
        self.id: str = row["id"]
        self.name: str = row["name"]
        self.target: int = row["target"]
        self.objects = [PhotographObject(one["name"], tuple(one["box"]), one["share"]) for one in row["objects"]]
        self.twins = {
            name: PhotographTwin(folder, self.size, len(self.objects), twin) for name, twin in row["twins"].items()
        }


class PhotographSet(RowFolder):
    """A folder that ``saccade data make causal --pictures`` or ``--cutouts`` wrote."""

    thing = "photograph"
    facts: PhotographFacts

    @staticmethod
    def checks(row: Any) -> dict[str, bool]:
        """What a line must have."""
        objects, sides, twins = row["objects"], row["size"], row["twins"]
        count, shown = len(objects), [row, *twins.values()]
        boxes, grounds, scales = (
            [twin[key] for twin in shown[1:] if twin.get(key) is not None] for key in ("box", "ground", "scale")
        )
        return {
            "id or name": isinstance(row["id"], str) and isinstance(row["name"], str),
            "digest": len(bytes.fromhex(row["digest"])) == 16,
            "size": len(sides) == 2
            and all(type(side) is int and side > 0 for side in sides)
            and sides[0] * sides[1] <= MAX_PIXELS,
            "sources": _are_texts(row.get("sources", [])),
            "objects": 1 <= count <= MOST_OBJECTS
            and all(_is_box(one["box"]) and isinstance(one["share"], float) for one in objects)
            and _are_texts(one["name"] for one in objects if one["name"] is not None),
            "target": type(row["target"]) is int and 0 <= row["target"] < count,
            "label": _are_texts(picture["label"] for picture in shown if picture["label"] is not None),
            "twins": all(twin["change"] in CHANGES and twin["object"] in (None, *range(count)) for twin in shown[1:])
            and all(twins[f"removed-{number}"]["object"] == number for number in range(count)),
            "box, ground or scale of a twin": all(map(_is_box, boxes))
            and _are_texts(grounds)
            and all(isinstance(scale, int | float) and 0 < scale < math.inf for scale in scales),
            "path, which leads out of the folder": not leads_out(_paths(row)),
        }

    def __iter__(self) -> Iterator[Photograph]:
        """The photographs in their order; of a long set only one is in memory."""
        return (Photograph(self.folder, row) for row in self.rows())

    def digest_of(self, row: Mapping[str, Any]) -> str:
        """See :func:`photograph_digest`."""
        return photograph_digest(self.folder, row)


def photograph_digest(folder: Path, row: Mapping[str, Any]) -> str:
    """The digest of the photograph of a line."""
    digest = hashlib.blake2b(digest_size=16)
    for path in _paths(row):
        try:
            digest.update(read_regular(folder / path, 4 * MAX_PIXELS))
        except OSError as error:
            raise DataError(
                f"{folder / path}: cannot be read ({error.strerror or error}); make or copy the set again"
            ) from error
    line = {key: value for key, value in row.items() if key != "digest"}
    digest.update(json.dumps(line, sort_keys=True, separators=(",", ":")).encode())
    return digest.hexdigest()


def _is_box(box: Any) -> bool:
    return len(box) == 4 and all(type(edge) is int for edge in box)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _paths(row: Mapping[str, Any]) -> list[str]:
    twins = [twin[key] for twin in row["twins"].values() for key in ("image", "mask", "changed")]
    return [row["image"], row["mask"], *twins]
