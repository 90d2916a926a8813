"""The lines of ``truth.jsonl`` from scenes that were drawn; what they hold is in :mod:`saccade.data.causal.truth`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.causal.scenes import CausalBatch
from saccade.data.causal.truth import MASKED, SCENE, TWINS, Row, picture_name
from saccade.data.scenes.export import objects_facts
from saccade.data.scenes.palette import COLOURS


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
