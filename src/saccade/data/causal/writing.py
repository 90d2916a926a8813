"""A causal set on disk: pictures and masks as PNG, truth as JSON lines, and a data card; whole or not at all.

One thread draws, others encode and write. At most :data:`_AHEAD` batches are in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from saccade.atomic import folder_in_place, make_folder
from saccade.data.causal.scenes import CausalBatch, rows_of
from saccade.data.causal.truth import (
    CARD,
    FACTS,
    MASKED,
    ROWS,
    SCENE,
    TWINS,
    V1,
    V1_COUNT,
    CausalFacts,
    Pixels,
    Row,
    check_frozen,
    is_frozen,
    map_name,
    picture_name,
    scene_digest,
)

_AHEAD = 2
_TOGETHER = 16  # scenes that one task encodes


def write_set(
    batches: Iterator[CausalBatch],
    facts: CausalFacts,
    out: Path,
    progress: Callable[[int, int], None] | None = None,
) -> CausalFacts:
    """Write the scenes of ``batches``; returns their facts with what is known now.

    Args:
        batches: as many scenes as the facts say.
        facts: all but ``digest``, ``last`` and ``version``.
        out: a new or empty folder.
        progress: called with (scenes written, scenes in all).
    """
    digest, done, last = hashlib.blake2b(digest_size=32), 0, 0
    with folder_in_place(out, durable=False) as place:
        make_folder(place / "images")
        make_folder(place / "masks")
        with _one_core_to_draw(), (place / ROWS).open("w", encoding="utf-8") as lines:
            for row in _written(batches, place):
                lines.write(json.dumps(row) + "\n")
                digest.update(bytes.fromhex(row["digest"]))
                last, done = int(row["id"]), done + 1
                if progress is not None and (done % _TOGETHER == 0 or done == facts.count):
                    progress(done, facts.count)
        whole = replace(facts, digest=digest.hexdigest(), last=last)
        whole = replace(whole, version=V1 if is_frozen(whole) and whole.count == V1_COUNT else None)
        check_frozen(whole, str(out))
        (place / FACTS).write_text(json.dumps(whole.to_json(), indent=2) + "\n", encoding="utf-8")
        (place / CARD).write_text(card(whole), encoding="utf-8")
    return whole


@contextmanager
def _one_core_to_draw() -> Iterator[None]:
    """Torch draws with one thread meanwhile: its operations are small, and the other cores encode."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _written(batches: Iterator[CausalBatch], place: Path) -> Iterator[Row]:
    """The lines of the scenes in their order; several threads encode and write their pictures meanwhile."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as threads:
        waiting: deque[list[Future[list[Row]]]] = deque()
        try:
            for batch in batches:
                rows = rows_of(batch)
                parts = range(0, len(batch), _TOGETHER)
                waiting.append([threads.submit(_write_some, batch, rows, first, place) for first in parts])
                if len(waiting) >= _AHEAD:
                    for part in waiting.popleft():
                        yield from part.result()
            for held in waiting:
                for part in held:
                    yield from part.result()
        finally:
            threads.shutdown(cancel_futures=True)  # after an error nobody waits for the rest


def _write_some(batch: CausalBatch, rows: list[Row], first: int, place: Path) -> list[Row]:
    return [_write(batch, rows[at], at, place) for at in range(first, min(first + _TOGETHER, len(batch)))]


def _write(batch: CausalBatch, row: Row, at: int, place: Path) -> Row:
    images = {name: np.stack(list(batch.images[name][at]), -1) for name in (SCENE, *TWINS)}  # (H,W,3) each
    masks = {name: batch.masks[name][at] for name in MASKED}  # (H,W) each
    for folder, pictures in (("images", images), ("masks", masks)):
        for name, pixels in pictures.items():
            with open(f"{place}/{folder}/{picture_name(row['id'], name)}.png", "wb", buffering=0) as file:
                file.write(png(pixels))
    return {**row, "digest": scene_digest(row, images, masks)}


_CHANGES = {
    "target_recoloured": "the target has another colour, drawn by the seed from the other four",
    "target_moved": "the target lies on free ground, 16 px or more away along x or y, clear of all ink of the scene",
    "target_removed": "the target is gone",
    "other_recoloured": "as target_recoloured, for the other object",
    "other_moved": "as target_moved, for the other object",
    "other_removed": "as target_removed, for the other object",
    "background_changed": "the objects stay; what lies behind them is {}",
}


def card(facts: CausalFacts) -> str:
    """The text of the card ``README.md``: licence, seed, digest, counts, schema and how to hand in maps."""
    pictures = facts.count * (1 + len(TWINS))
    name = facts.version or "causal set"
    return f"""---
pretty_name: {name}
license: cc-by-sa-3.0
task_categories:
- visual-question-answering
size_categories:
- {_size(facts.count)}
---

# {name}: scenes and their twins

{_which(facts)}

Coloured digits, and two questions about each scene: which colour has the target, which has the other object? Each scene
comes with {len(TWINS)} twins, the same scene with one thing changed. With these one can ask whether an attention or
attribution map follows the object that was asked about, and holds when something else changes.

| | |
|---|---|
| scenes | {facts.count:,} |
| pictures | {pictures:,} of {facts.size} × {facts.size} px |
| questions | {2 * facts.count:,} |
| seed, split, scene numbers | {facts.seed}, {facts.split}, {facts.start} … {facts.last} |
| glyphs | {facts.glyphs} |
| background | {facts.background} |
| drawing | {facts.drawing} |
| digest (blake2b over pixels, masks and rows) | `{facts.digest}` |
| licence | {facts.licence} |

## Twins

| name | what is changed |
|---|---|
{_twins(facts)}

Target and other object are taken from the objects that have a free place to be moved to, so large digits are rare among
them. The other object is the one whose area is nearest to the target's. Scenes with fewer than two such objects are
passed over. Removed objects and backgrounds of another kind may lie outside what a model was trained on.
Glyphs called pack-test are from the test part of MNIST: train on other digits.

## Files

- `{CARD}`: this card
- `{FACTS}`: the facts above, for programs
- `{ROWS}`: what is true of each scene and its twins
- `images/`, `masks/`: ID.png and ID-TWIN.png

`{ROWS}` has one JSON object a line: `id`; `image` and `mask`, paths from this folder; `objects`, each with class,
colour, rgb, box (x0 y0 x1 y1, right and lower edge excluded) and scale; `target` and `other`, places in `objects`;
`questions`, two, each with query, object and answer; `twins` by name, each with image, mask, the object that was
changed, its new colour or box, and the `answers` to both questions (null where the object asked about is gone);
`digest`. Masks are grey pictures: 0 is background, k + 1 is object k. {len(MASKED)} pictures of a scene have a mask of
their own.

In Python, `saccade.data.read_causal_set("THIS FOLDER")` yields the scenes; `.verify()` checks every digest.

## Handing in maps

One file for each picture and question, called `PICTURE__QUERY`: an array (H,W) of weights as .npy, or a grey .png.

| maps | called | needed for |
|---|---|---|
| the scene, first question | `{map_name("ID", "scene", "QUERY")}.npy` | every score |
| the scene, second question | `{map_name("ID", "scene", "OTHER_QUERY")}.npy` | map_turn |
| twins target_moved, other_moved, first question | `{map_name("ID", "TWIN", "QUERY")}.npy` | map_follow |
| these, target_removed and other_removed | the same | map_specific |
| other_moved, other_removed and other_recoloured | the same | map_hold |
| background_changed | the same | map_hold_background |

`saccade score MAPS --truth THIS FOLDER --out RESULTS` scores a folder of them. The results file is
`RESULTS/scores.json`; it holds the digest above. A map that is missing is counted, and the scores that need it leave
its scene out. No score reads a map of target_recoloured. Cite the name and the digest beside the scores.
"""


def _which(facts: CausalFacts) -> str:
    if facts.version == V1:
        return (
            f"This is **{V1}**, a frozen test set. `saccade data make causal --count {V1_COUNT} --out DIR` draws it "
            "anew, without a download, and checks its digest."
        )
    if is_frozen(facts):
        return f"The first {facts.count:,} scenes of {V1}, which has {V1_COUNT:,}. Cite {V1} for the whole set only."
    return f"A causal set with settings of its own; the frozen test set is {V1}."


def _twins(facts: CausalFacts) -> str:
    return "\n".join(f"| {name} | {_CHANGES[name].format(facts.other_background)} |" for name in TWINS)


def _size(count: int) -> str:
    """The class of sizes that dataset hubs know."""
    names = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
    return next((name for most, name in names.items() if count < most), "100K<n<1M")


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_LEVEL = 3


def png(pixels: Pixels) -> bytes:
    """(H,W) grey or (H,W,3) RGB, uint8."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # each row begins with its filter, 0: none
    rows[:, 1:] = pixels.reshape(height, -1)
    kind = _GREY if pixels.ndim == 2 else _RGB
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.data, _LEVEL)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
