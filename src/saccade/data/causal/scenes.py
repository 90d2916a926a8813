"""Causal scenes as pixels: which object is asked about, which other one is changed, and all twins rendered.

A scene is used if at least two of its objects have a free place to be moved to; other scenes are skipped. The
target is drawn from these objects by the number of the scene.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.causal.truth import MASKED, SCENE, TWINS, Pixels, Row, picture_name
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.export import objects_facts
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

AT_ONCE = 128
"""Scenes drawn together; their pictures take 37 MB. What is drawn does not depend on it."""

_TARGET = 106  # a draw on top of those that make a scene and its twins


@dataclass(frozen=True, eq=False)
class CausalBatch:
    """B scenes with their twins."""

    layouts: dict[str, SceneLayout]
    """By SCENE and TWINS."""
    target: Tensor
    """(B,) slot of the object asked about."""
    other: Tensor
    """(B,) slot of the other object that is changed."""
    images: dict[str, Pixels]
    """(B, 3, H, W) by SCENE and TWINS."""
    masks: dict[str, Pixels]
    """(B, H, W) by MASKED: 0 is background, k + 1 is the object in slot k."""

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
            kept.append((layout[usable], _rows(places, usable), areas[usable]))
            ready += len(usable)
        layout = join_layouts([part[0] for part in kept])
        places = Places(*(torch.cat([getattr(part[1], name) for part in kept]) for name in ("x", "y", "found")))
        areas = torch.cat([part[2] for part in kept])
        now = min(AT_ONCE, count - made)
        yield _drawn(layout[:now], _rows(places, slice(0, now)), areas[:now])
        rest = slice(now, None)
        kept, ready, made = [(layout[rest], _rows(places, rest), areas[rest])], ready - now, made + now


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
    """A background of pictures that are there already."""

    images: Tensor
    """(B, 3, H, W) uint8, one for each scene that is rendered."""
    name: str = "given"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """A copy."""
        return self.images.clone()


def _on(layout: SceneLayout, behind: Tensor) -> SceneLayout:
    return replace(layout, spec=replace(layout.spec, background=_Given(behind)))


def _rows(places: Places, rows: Tensor | slice) -> Places:
    return Places(places.x[rows], places.y[rows], places.found[rows])


def _areas(layout: SceneLayout, pixels: InkedPixels) -> Tensor:
    """(B, N) inked pixels of each object."""
    return torch.bincount(pixels.obj, minlength=layout.present.numel()).view(layout.present.shape)


def _label_maps(layout: SceneLayout) -> Tensor:
    """(B, H, W) uint8: 0 is background, k + 1 the object in slot k."""
    pixels, size = inked_pixels(layout), layout.spec.size
    maps = torch.zeros(len(layout) * size * size, dtype=torch.uint8)
    maps[pixels.position] = (pixels.obj % layout.present.shape[1] + 1).to(torch.uint8)
    return maps.view(len(layout), size, size)


class _Change(NamedTuple):
    """What becomes of an object in the twins that change it."""

    object: int
    colour: str
    box: list[int]


def rows_of(batch: CausalBatch) -> list[Row]:
    """The lines of a batch, without their digests."""
    asked = {"target": batch.target, "other": batch.other}
    changes = {whose: _changes(batch, whose, obj) for whose, obj in asked.items()}
    layout = batch.layouts[SCENE]
    return [
        _row(objects, index, pair, {whose: each[at] for whose, each in changes.items()})
        for at, (objects, index, pair) in enumerate(
            zip(objects_facts(layout), layout.index.tolist(), zip(batch.target.tolist(), batch.other.tolist()))
        )
    ]


def _changes(batch: CausalBatch, whose: str, obj: Tensor) -> list[_Change]:
    """What the twins give the objects ``obj`` (B,), one for each scene."""
    rows = torch.arange(len(batch))
    colours = batch.layouts[f"{whose}_recoloured"].colour[rows, obj].tolist()
    boxes = batch.layouts[f"{whose}_moved"].boxes[rows, obj].tolist()
    return [_Change(*each) for each in zip(obj.tolist(), (COLOURS[colour] for colour in colours), boxes)]


def _row(objects: list[Row], index: int, asked: tuple[int, int], changes: dict[str, _Change]) -> Row:
    scene = f"{index:08d}"
    questions = [
        {"query": str(objects[obj]["class"]), "object": obj, "answer": objects[obj]["colour"]} for obj in asked
    ]
    return {
        "id": scene,
        "image": f"images/{scene}.png",
        "mask": f"masks/{scene}.png",
        "objects": objects,
        "target": asked[0],
        "other": asked[1],
        "questions": questions,
        "twins": {name: _twin(scene, name, [each["answer"] for each in questions], changes) for name in TWINS},
    }


def _twin(scene: str, name: str, answers: list[str | None], changes: dict[str, _Change]) -> Row:
    """What is true of a twin; ``answers`` are those of the scene."""
    masked = picture_name(scene, name if name in MASKED else SCENE)
    told: Row = {"image": f"images/{picture_name(scene, name)}.png", "mask": f"masks/{masked}.png"}
    whose, _, what = name.partition("_")
    if whose not in changes:
        return {**told, "object": None, "answers": answers}
    change, about = changes[whose], list(changes).index(whose)
    told["object"] = change.object
    if what == "recoloured":
        told["colour"], answers[about] = change.colour, change.colour
    elif what == "moved":
        told["box"] = change.box
    else:
        answers[about] = None
    return {**told, "answers": answers}
