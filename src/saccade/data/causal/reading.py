"""Reads a causal set: scene by scene, with pictures and masks loaded when they are used.

Files are untrusted: every line is checked, pictures are opened only inside the folder, and a wrong digest is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.data.causal.truth import (
    FACTS,
    MASKED,
    ROWS,
    SCENE,
    TWINS,
    CausalFacts,
    Pixels,
    Row,
    facts_of,
    map_name,
    scene_digest,
)
from saccade.errors import DataError
from saccade.files import open_regular, read_json

Masks = npt.NDArray[np.bool_]


class CausalPicture:
    """The picture of a scene or of a twin.

    Args:
        folder: of the set.
        size: side in pixels.
        objects: how many the scene has.
        row: what ``truth.jsonl`` says of it.
    """

    def __init__(self, folder: Path, size: int, objects: int, row: Mapping[str, Any]) -> None:
        self.folder, self.size, self.objects, self.row = folder, size, objects, row
        self.image_path: Path = folder / row["image"]
        self.mask_path: Path = folder / row["mask"]

    @property
    def image(self) -> Pixels:
        """(H, W, 3) uint8, read now."""
        return _decoded(self.image_path, "RGB", self.size)

    @property
    def label_map(self) -> Pixels:
        """(H, W) uint8, read now: 0 is background, k + 1 is object k."""
        labels = _decoded(self.mask_path, "L", self.size)
        if int(labels.max()) > self.objects:
            raise DataError(
                f"{self.mask_path}: marks object {int(labels.max()) - 1} of {self.objects}; make or copy the set again"
            )
        return labels

    @property
    def masks(self) -> Masks:
        """(N, H, W) bool: the visible pixels of each object; empty for one that was removed."""
        masks: Masks = self.label_map == np.arange(1, self.objects + 1, dtype=np.uint8)[:, None, None]
        return masks


class CausalTwin(CausalPicture):
    """A scene with one thing changed.

    ``object`` says which object was changed, None for the background. ``answer`` and ``other_answer`` are those to the
    first and the second question, None where the object is gone.
    """

    def __init__(self, folder: Path, size: int, objects: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, size, objects, row)
        self.object: int | None = row["object"]
        self.answer: str | None
        self.other_answer: str | None
        self.answer, self.other_answer = row["answers"]


class CausalScene(CausalPicture):
    """A scene with its twins by name, and two questions.

    ``question`` is a digit whose colour is asked for, ``answer`` the colour, ``target`` the object. The second question
    is about the object ``other``.
    """

    def __init__(self, folder: Path, size: int, row: Mapping[str, Any]) -> None:
        super().__init__(folder, size, len(row["objects"]), row)
        self.id: str = row["id"]
        self.target: int = row["target"]
        self.other: int = row["other"]
        self.question, self.other_question = (str(asked["query"]) for asked in row["questions"])
        self.answer, self.other_answer = (str(asked["answer"]) for asked in row["questions"])
        self.twins = {name: CausalTwin(folder, size, self.objects, twin) for name, twin in row["twins"].items()}

    def maps(self) -> dict[str, tuple[str, str]]:
        """Every map that can be handed in, by its name: its picture (``scene`` or a twin) and its query."""
        asked = [(SCENE, self.question), (SCENE, self.other_question), *((name, self.question) for name in TWINS)]
        return {map_name(self.id, *each): each for each in asked}

    def digest(self) -> str:
        """Computed now, from what the files hold."""
        images = {SCENE: self.image} | {name: self.twins[name].image for name in TWINS}
        masks = {name: self.label_map if name == SCENE else self.twins[name].label_map for name in MASKED}
        return scene_digest(self.row, images, masks)


class CausalSet:
    """A folder that ``saccade data make causal`` wrote."""

    def __init__(self, folder: Path, facts: CausalFacts) -> None:
        self.folder, self.facts = folder, facts

    def __len__(self) -> int:
        return self.facts.count

    def __iter__(self) -> Iterator[CausalScene]:
        """The scenes in their order; of a long set only one is in memory.

        Raises:
            DataError: a line that is none, or the wrong number of them, or digests of another set.
        """
        digest, found = hashlib.blake2b(digest_size=32), 0
        for row in self._rows():
            digest.update(bytes.fromhex(row["digest"]))
            found += 1
            yield CausalScene(self.folder, self.facts.size, row)
        where = self.folder / ROWS
        if (found, digest.hexdigest()) != (self.facts.count, self.facts.digest):
            raise DataError(
                f"{where}: {found} scenes of digest {digest.hexdigest()}, but {FACTS} says {self.facts.count} of "
                f"{self.facts.digest}; make or copy the set again"
            )

    def verify(self) -> None:
        """Read every picture and mask, and check every digest.

        Raises:
            DataError: names the first scene that is not as it was written.
        """
        for scene in self:
            if (found := scene.digest()) != scene.row["digest"]:
                raise DataError(
                    f"{self.folder}: scene {scene.id} is not as it was written (digest {found}, its line says "
                    f"{scene.row['digest']}); make or copy the set again"
                )

    def _rows(self) -> Iterator[Row]:
        path = self.folder / ROWS
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    row = json.loads(line)
                    _check(row)
                except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
                    said = f"{type(error).__name__}: {error}"
                    raise DataError(
                        f"{path}: line {number} is not a scene ({said}); make or copy the set again"
                    ) from error
                yield row


def read_causal_set(folder: str | Path) -> CausalSet:
    """The causal set in ``folder``, to be iterated: each scene has image, question, answer, masks and twins.

    Raises:
        DataError: no such set, or facts that are not those of one.
    """
    folder = Path(folder).expanduser()
    path = folder / FACTS
    if not path.is_file():
        raise DataError(
            f"{folder}: no causal set, as {FACTS} is not there; `saccade data make causal --out DIR` writes one"
        )
    return CausalSet(folder, facts_of(read_json(path), str(path)))


def _check(row: Any) -> None:
    """Refuse a line that lacks something, or that leads out of its folder."""
    objects, asked = row["objects"], row["questions"]
    pair = (row["target"], row["other"])
    shown = [row, *(row["twins"][name] for name in TWINS)]
    right = {
        "id": isinstance(row["id"], str),
        "digest": len(bytes.fromhex(row["digest"])) == 16,
        "target or other": all(type(at) is int and 0 <= at < len(objects) for at in pair),
        "questions": len(asked) == 2
        and tuple(each["object"] for each in asked) == pair
        and all(isinstance(each[key], str) for each in asked for key in ("query", "answer")),
        "twins": len(row["twins"]) == len(TWINS)
        and all(len(twin["answers"]) == 2 and "object" in twin for twin in shown[1:]),
        "image or mask, which leads out of the folder": not any(
            (named := PurePosixPath(each[key])).is_absolute() or ".." in named.parts or "\\" in each[key]
            for each in shown
            for key in ("image", "mask")
        ),
    }
    if wrong := [what for what, holds in right.items() if not holds]:
        raise ValueError(wrong[0])


def _decoded(path: Path, mode: str, size: int) -> Pixels:
    """A small PNG of that mode and size."""
    try:
        with open_regular(path) as file, Image.open(file, formats=("PNG",)) as picture:
            if picture.mode != mode or picture.size != (size, size):
                raise ValueError(f"{picture.mode} {picture.width}×{picture.height}, not {mode} {size}×{size}")
            return np.asarray(picture)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read ({why}); make or copy the set again") from error
