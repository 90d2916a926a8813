"""Causal sets drawn and put on disk: pictures and masks as PNG, truth as JSON lines, and a data card; whole or not.

A scene is used if at least two of its objects have a free place to be moved to; other scenes are skipped. The target is
drawn from these objects by the number of the scene.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.causal.row_folder import CARD, FACTS, ROWS, SCENE, Pixels, TruthLine, picture_name
from saccade.data.causal.scenes import (
    MASKED,
    TWINS,
    V1,
    V1_COUNT,
    CausalFacts,
    check_frozen,
    is_frozen,
    map_name,
    scene_digest,
)
from saccade.data.scenes.drawing import inked_pixels, render
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import hash_u32
from saccade.data.scenes.layout import (
    OTHER_COLOUR,
    TARGET_COLOUR,
    FreePlaces,
    SceneLayout,
    SceneSpec,
    drawn_from,
    free_places,
    move_to,
    other_background,
    other_colour,
)
from saccade.data.scenes.sampler import sample_layout
from saccade.files import folder_in_place, make_folder
from saccade.progress import OnProgress, no_progress

SCENES_AT_ONCE = 128  # Scenes drawn together; their pictures take 37 MB. What is drawn does not depend on it.

_TARGET = 106  # a draw on top of those that make a scene and its twins


@dataclass(frozen=True, eq=False)
class CausalBatch:
    """B scenes with their twins."""

    layouts: dict[str, SceneLayout]  # by SCENE and TWINS
    target: Tensor  # (B,) slot of the object asked about
    other: Tensor  # (B,) slot of the other object that is changed
    images: dict[str, Pixels]  # (B, 3, H, W) by SCENE and TWINS
    masks: dict[str, Pixels]  # (B, H, W) by MASKED: 0 is background, k + 1 is the object in slot k


def causal_batches(spec: SceneSpec, glyphs: GlyphSet, seed: int, start: int, count: int) -> Iterator[CausalBatch]:
    """The first ``count`` usable scenes from number ``start`` on, some at a time."""
    used, number = 0, start
    while used < count:
        layout = sample_layout(spec, glyphs, seed, torch.arange(number, number + SCENES_AT_ONCE))
        number += SCENES_AT_ONCE
        areas = torch.bincount(inked_pixels(layout).obj, minlength=layout.present.numel()).view(layout.present.shape)
        places = free_places(layout)
        usable = (places.found.sum(1) >= 2).nonzero().squeeze(1)[: count - used]
        if len(usable):
            yield _drawn(layout[usable], FreePlaces(*(column[usable] for column in places)), areas[usable])
        used += len(usable)


def _drawn(layout: SceneLayout, places: FreePlaces, areas: Tensor) -> CausalBatch:
    """All pictures of some usable scenes; ``areas`` (B, N) in pixels."""
    target = drawn_from(places.found, hash_u32(layout.seed, layout.index, _TARGET))  # (B,)
    others = places.found.scatter(1, target[:, None], False)  # (B, N)
    unlike = (areas - areas.gather(1, target[:, None])).abs()
    other = torch.where(others, unlike, torch.iinfo(torch.int64).max).argmin(1)  # (B,)

    spec = replace(layout.spec, background=other_background(layout.spec.background, layout.spec.drawing))
    layouts = {
        SCENE: layout,
        "target_recoloured": layout.recolour(target, other_colour(layout, target, target, TARGET_COLOUR)),
        "target_moved": move_to(layout, target, places),
        "target_removed": layout.remove(target),
        "other_recoloured": layout.recolour(other, other_colour(layout, other, target, OTHER_COLOUR)),
        "other_moved": move_to(layout, other, places),
        "other_removed": layout.remove(other),
        "background_changed": replace(layout, spec=spec),
    }
    images = {name: render(twin).numpy() for name, twin in layouts.items()}
    masks = {name: _label_maps(layouts[name]).numpy() for name in MASKED}
    return CausalBatch(layouts, target, other, images, masks)


def _label_maps(layout: SceneLayout) -> Tensor:
    """(B, H, W) uint8: 0 is background, k + 1 the object in slot k."""
    pixels, size = inked_pixels(layout), layout.spec.size
    maps = torch.zeros(len(layout) * size * size, dtype=torch.uint8)
    maps[pixels.position] = (pixels.obj % layout.present.shape[1] + 1).to(torch.uint8)
    return maps.view(len(layout), size, size)


def rows_of(batch: CausalBatch) -> list[TruthLine]:
    """The lines of a batch, without their digests."""
    facts = {name: layout.facts() for name, layout in batch.layouts.items()}
    numbers, targets, others = (column.tolist() for column in (batch.layouts[SCENE].index, batch.target, batch.other))
    return [
        _row(f"{number:08d}", {"target": target, "other": other}, {name: facts[name][at] for name in facts})
        for at, (number, target, other) in enumerate(zip(numbers, targets, others))
    ]


def _row(scene: str, asked: dict[str, int], objects: dict[str, list[TruthLine]]) -> TruthLine:
    """The line of one scene: two objects are ``asked`` about, ``objects`` says what is true of all of them."""
    whole = objects[SCENE]
    questions = [{"query": str(whole[k]["class"]), "object": k, "answer": whole[k]["colour"]} for k in asked.values()]
    twins: TruthLine = {}
    for name in TWINS:
        whose, _, what = name.partition("_")
        mask = picture_name(scene, name if name in MASKED else SCENE)
        twins[name] = {
            "image": f"images/{picture_name(scene, name)}.png",
            "mask": f"masks/{mask}.png",
            "object": asked.get(whose),
        }
        answers = {key: question["answer"] for key, question in zip(asked, questions)}
        if what == "recoloured":
            answers[whose] = twins[name]["colour"] = objects[name][asked[whose]]["colour"]
        elif what == "moved":
            twins[name]["box"] = objects[name][asked[whose]]["box"]
        elif what == "removed":
            answers[whose] = None
        twins[name]["answers"] = list(answers.values())
    return {
        "id": scene,
        "image": f"images/{scene}.png",
        "mask": f"masks/{scene}.png",
        "objects": whole,
        **asked,
        "questions": questions,
        "twins": twins,
    }


def write_set(
    batches: Iterator[CausalBatch],
    facts: CausalFacts,
    out: Path,
    on_progress: OnProgress = no_progress,
) -> CausalFacts:
    """Write the scenes of ``batches`` to the new or empty folder ``out``; returns their facts with what is known now.

    ``facts`` lack digest, last and version; ``on_progress`` is called with scenes written and in all.
    """
    digest, done, last = hashlib.blake2b(digest_size=32), 0, 0
    with folder_in_place(out, durable=False) as place:
        make_folder(place / "images")
        make_folder(place / "masks")
        with (place / ROWS).open("w", encoding="utf-8") as lines:
            for row in _written(batches, place):
                lines.write(json.dumps(row) + "\n")
                digest.update(bytes.fromhex(row["digest"]))
                last, done = int(row["id"]), done + 1
                on_progress("scenes", done, facts.count)
        whole = replace(facts, digest=digest.hexdigest(), last=last)
        whole = replace(whole, version=V1 if is_frozen(whole) and whole.count == V1_COUNT else None)
        check_frozen(whole, str(out))
        (place / FACTS).write_text(json.dumps(asdict(whole), indent=2) + "\n", encoding="utf-8")
        (place / CARD).write_text(card(whole), encoding="utf-8")
    return whole


def _written(batches: Iterator[CausalBatch], place: Path) -> Iterator[TruthLine]:
    """The lines of the scenes in their order; several threads encode and write pictures while the next are drawn."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as threads:
        before: Iterator[TruthLine] = iter(())
        for batch in batches:
            rows = rows_of(batch)
            written = threads.map(partial(_write, batch, place), rows, range(len(rows)))
            yield from before
            before = written
        yield from before


def _write(batch: CausalBatch, place: Path, row: TruthLine, at: int) -> TruthLine:
    images = {name: np.stack(list(batch.images[name][at]), -1) for name in (SCENE, *TWINS)}  # (H,W,3) each
    masks = {name: batch.masks[name][at] for name in MASKED}  # (H,W) each
    for folder, pictures in (("images", images), ("masks", masks)):
        for name, pixels in pictures.items():
            file = place / folder / f"{picture_name(row['id'], name)}.png"
            Image.fromarray(pixels).save(file, format="PNG", compress_level=3)
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
    sizes = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}  # the classes that dataset hubs know
    size = next((size for most, size in sizes.items() if facts.count < most), "100K<n<1M")
    twins = "\n".join(f"| {twin} | {change.format(facts.other_background)} |" for twin, change in _CHANGES.items())
    return f"""---
pretty_name: {name}
license: cc-by-sa-3.0
task_categories:
- visual-question-answering
size_categories:
- {size}
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
{twins}

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
