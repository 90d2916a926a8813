"""Causal sets drawn and put on disk: pictures and masks as PNG, truth as JSON lines, and a data card; whole or not.

A scene is used if at least two of its objects have a free place to be moved to; other scenes are skipped. The target is
drawn from these objects by the number of the scene. One thread draws, others encode and write. At most :data:`_AHEAD`
batches are in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

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
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout, SceneSpec, join_layouts
from saccade.data.scenes.render import InkedPixels, inked_pixels, render
from saccade.data.scenes.sampler import sample_layout
from saccade.data.scenes.twins import (
    OTHER_COLOUR,
    TARGET_COLOUR,
    Places,
    drawn_bits,
    free_places,
    move_to,
    on_other_background,
    other_colour,
)
from saccade.files import folder_in_place, make_folder

AT_ONCE = 128
"""Scenes drawn together; their pictures take 37 MB. What is drawn does not depend on it."""

_TARGET = 106  # a draw on top of those that make a scene and its twins


@dataclass(frozen=True, eq=False)
class CausalBatch:
    """B scenes with their twins."""

    layouts: dict[str, SceneLayout]  # by SCENE and TWINS
    target: Tensor  # (B,) slot of the object asked about
    other: Tensor  # (B,) slot of the other object that is changed
    images: dict[str, Pixels]  # (B, 3, H, W) by SCENE and TWINS
    masks: dict[str, Pixels]  # (B, H, W) by MASKED: 0 is background, k + 1 is the object in slot k

    def __len__(self) -> int:
        return len(self.target)


def causal_batches(spec: SceneSpec, glyphs: GlyphSet, seed: int, start: int, count: int) -> Iterator[CausalBatch]:
    """The first ``count`` usable scenes from number ``start`` on, some at a time."""
    kept: list[tuple[SceneLayout, Places, Tensor]] = []
    ready, made, number = 0, 0, start
    while made < count:
        while ready < min(AT_ONCE, count - made):
            layout = sample_layout(spec, glyphs, seed, torch.arange(number, number + AT_ONCE))
            number += AT_ONCE
            places, areas = free_places(layout), _areas(layout, inked_pixels(layout))
            usable = (places.found.sum(1) >= 2).nonzero().squeeze(1)
            kept.append((layout[usable], places.of(usable), areas[usable]))
            ready += len(usable)
        layout = join_layouts([part[0] for part in kept])
        places = Places(*map(torch.cat, zip(*(part[1] for part in kept))))
        areas = torch.cat([part[2] for part in kept])
        now = min(AT_ONCE, count - made)
        yield _drawn(layout[:now], places.of(slice(0, now)), areas[:now])
        rest = slice(now, None)
        kept, ready, made = [(layout[rest], places.of(rest), areas[rest])], ready - now, made + now


def _drawn(layout: SceneLayout, places: Places, areas: Tensor) -> CausalBatch:
    """All pictures of some usable scenes; ``areas`` (B, N) in pixels."""
    bits = hash_u32(layout.seed, layout.index, _TARGET)
    wanted = uniform_below(bits, places.found.sum(1))  # (B,) the how-manieth of those that can be moved
    target = (places.found.cumsum(1) <= wanted[:, None]).sum(1)  # (B,)
    others = places.found.scatter(1, target[:, None], False)  # (B, N)
    unlike = (areas - areas.gather(1, target[:, None])).abs()
    other = torch.where(others, unlike, torch.iinfo(torch.int64).max).argmin(1)  # (B,)

    def recoloured(obj: Tensor, draw: int) -> SceneLayout:
        return layout.recolour(obj, other_colour(layout, obj, drawn_bits(layout, target, draw)))

    layouts = {
        SCENE: layout,
        "target_recoloured": recoloured(target, TARGET_COLOUR),
        "target_moved": move_to(layout, target, places),
        "target_removed": layout.remove(target),
        "other_recoloured": recoloured(other, OTHER_COLOUR),
        "other_moved": move_to(layout, other, places),
        "other_removed": layout.remove(other),
        "background_changed": on_other_background(layout),
    }
    images, masks = _pictures(layouts, {"target": target, "other": other})
    return CausalBatch(layouts, target, other, images, masks)


def _pictures(layouts: dict[str, SceneLayout], changed: dict[str, Tensor]) -> tuple[dict[str, Pixels], ...]:
    """Pictures and masks of scenes and twins; those of twins are the scene's, with one object painted anew.

    Objects share no pixel, so this gives the bytes that rendering the whole twin gives, at a third of the cost.

    Args:
        layouts: by SCENE and TWINS.
        changed: (B,) the ``target`` and the ``other`` object.
    """
    layout = layouts[SCENE]
    behind = layout.spec.background(layout.glyphs, layout.seed, layout.index, layout.spec.size)  # (B, 3, H, W)
    images = {SCENE: render(_on(layout, behind)), "background_changed": render(layouts["background_changed"])}
    masks = {SCENE: _label_maps(layout)}
    for whose, obj in changed.items():
        there = masks[SCENE] == obj[:, None, None] + 1  # (B, H, W)
        without = torch.where(there[:, None], behind, images[SCENE])  # (B, 3, H, W)
        images[f"{whose}_removed"] = without
        masks[f"{whose}_removed"] = masks[SCENE].masked_fill(there, 0)
        for way in ("recoloured", "moved"):
            twin = layouts[f"{whose}_{way}"]
            alone = replace(twin, present=torch.zeros_like(twin.present).scatter(1, obj[:, None], True))
            images[f"{whose}_{way}"] = render(_on(alone, without))
            if way == "moved":
                masks[f"{whose}_moved"] = masks[f"{whose}_removed"] + _label_maps(alone)
    return {name: images[name].numpy() for name in (SCENE, *TWINS)}, {name: masks[name].numpy() for name in MASKED}


@dataclass(frozen=True, eq=False)
class _Given:
    """A background of pictures (B, 3, H, W) that are there already."""

    images: Tensor
    name: str = "given"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """A copy."""
        return self.images.clone()


def _on(layout: SceneLayout, behind: Tensor) -> SceneLayout:
    return replace(layout, spec=replace(layout.spec, background=_Given(behind)))


def _areas(layout: SceneLayout, pixels: InkedPixels) -> Tensor:
    """(B, N) inked pixels of each object."""
    return torch.bincount(pixels.obj, minlength=layout.present.numel()).view(layout.present.shape)


def _label_maps(layout: SceneLayout) -> Tensor:
    """(B, H, W) uint8: 0 is background, k + 1 the object in slot k."""
    pixels, size = inked_pixels(layout), layout.spec.size
    maps = torch.zeros(len(layout) * size * size, dtype=torch.uint8)
    maps[pixels.position] = (pixels.obj % layout.present.shape[1] + 1).to(torch.uint8)
    return maps.view(len(layout), size, size)


def rows_of(batch: CausalBatch) -> list[Row]:
    """The lines of a batch, without their digests."""
    facts = {
        name: layout.facts()
        for name, layout in batch.layouts.items()
        if name == SCENE or name.endswith(("_recoloured", "_moved"))
    }
    asked = zip(batch.target.tolist(), batch.other.tolist())
    scenes = zip(batch.layouts[SCENE].index.tolist(), asked)
    return [
        _row(number, pair, {name: objects[at] for name, objects in facts.items()})
        for at, (number, pair) in enumerate(scenes)
    ]


def _row(number: int, asked: tuple[int, int], facts: dict[str, list[Row]]) -> Row:
    """The line of one scene; ``facts`` are those of its objects in the scene and in twins that keep all of them."""
    scene, objects = f"{number:08d}", facts[SCENE]
    questions = [
        {"query": str(objects[obj]["class"]), "object": obj, "answer": objects[obj]["colour"]} for obj in asked
    ]
    twins: Row = {}
    for name in TWINS:
        masked = picture_name(scene, name if name in MASKED else SCENE)
        twin: Row = {"image": f"images/{picture_name(scene, name)}.png", "mask": f"masks/{masked}.png", "object": None}
        twins[name] = twin
        answers = [question["answer"] for question in questions]
        whose, _, what = name.partition("_")
        if whose in ("target", "other"):
            about = ("target", "other").index(whose)
            twin["object"] = asked[about]
            if what == "moved":
                twin["box"] = facts[name][asked[about]]["box"]
            else:
                answers[about] = facts[name][asked[about]]["colour"] if what == "recoloured" else None
            if what == "recoloured":
                twin["colour"] = answers[about]
        twin["answers"] = answers
    return {
        "id": scene,
        "image": f"images/{scene}.png",
        "mask": f"masks/{scene}.png",
        "objects": objects,
        "target": asked[0],
        "other": asked[1],
        "questions": questions,
        "twins": twins,
    }


_AHEAD = 2
_TOGETHER = 16  # scenes that one task encodes
_LEVEL = 3  # of a PNG's compression


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
        (place / FACTS).write_text(json.dumps(asdict(whole), indent=2) + "\n", encoding="utf-8")
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
            file = f"{place}/{folder}/{picture_name(row['id'], name)}.png"
            Image.fromarray(pixels).save(file, format="PNG", compress_level=_LEVEL)
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
