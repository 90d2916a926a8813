"""Fit what the inputs of shipped models look like, and the temperature of their confidences; measure both.

::

    python tools/fit_depth.py --all --photographs BSDS             # every model that learned from generated scenes
    python tools/fit_depth.py crown-cub --data cub:CUB_200_2011 --photographs FLICKR
    python tools/fit_depth.py ran-56-cifar10 --data cifar10 --test test
    python tools/fit_depth.py soft-mref --device cuda --foreign 1000

Held-out inputs of generated sets are scenes of the shipped digits, which are test digits of MNIST: no shipped model
learned from them. Statistics and temperature use their ``train`` share, false alarms and calibration errors their
``test`` share. Of files and of other generated pictures it is ``val``, and where there is one ``test``. A model that
learned from val too (``hold_out: false``) has one half of test for the former and the other for the latter. What is
found stands in the model folder and is printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import foreign_kinds as foreign
import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.errors import SaccadeError
from saccade.families import family
from saccade.families.contract import load_target
from saccade.likeness import ALPHA, Likeness
from saccade.models.base import AttentionModel
from saccade.models.input_features import input_features
from saccade.models.io.facts import InputsNote, ModelFacts, read_facts
from saccade.models.io.folder import load_model, note_inputs
from saccade.tasks.describing import calibration_of, halves, likeness_of, measured, shown_by
from saccade.tasks.held_out import HeldOut
from saccade.tasks.picture_task import PictureTask
from saccade.zoo import shipped

HELD_OUT, TESTED, ANSWERS, AT_ONCE = 2000, 1000, 3000, 50
PHOTOGRAPHED = ("flickr", "svhn", "coco")  # they learned from photographs of all kinds, so none are foreign


def task_of(facts: ModelFacts, changes: dict[str, Any]) -> PictureTask:
    """The task of a model, on its own data or on ``changes`` of it."""
    data = {**facts.data, **changes}
    kind = load_target(family(facts.family).task).for_data(str(data["name"]))
    settings = {key: value for key, value in facts.model.items() if key != "pretrained"}
    task: PictureTask = kind(
        model=facts.architecture, model_config=settings, data=data, protocol=facts.protocol, seed=1000
    )
    return task


def examples(task: PictureTask, split: str, numbers: Tensor) -> list[HeldOut]:
    """The examples of a split with these ``numbers`` (N,)."""
    data = task.split(split)
    return [task.held_out_batch(data, part) for part in numbers.split(AT_ONCE)]


def answered(task: PictureTask, split: str) -> list[HeldOut]:
    """The first examples of a split, several about one picture: calibration errors need many."""
    return examples(task, split, torch.arange(min(ANSWERS, task.split(split).size)))


class Examples(NamedTuple):
    """What a model is measured on."""

    data: str
    """What the held-out ones are called."""
    held_out: list[HeldOut]
    """For statistics and temperature."""
    tests: list[HeldOut]
    """For false alarms and, as pictures, for foreign kinds that are made of the model's own."""
    answers: list[HeldOut]
    """For calibration errors."""


def examples_for(task: PictureTask, facts: ModelFacts, given: argparse.Namespace, *, has_glyphs: bool) -> Examples:
    """Held-out inputs of the kind that the model learned from."""
    name = str(facts.data["name"])
    if task.learns_val:  # nothing but test is held out: even numbers describe, odd ones test
        half = task.split("test").size // 2
        own, other = 2 * torch.arange(min(HELD_OUT, half)), 2 * torch.arange(half) + 1
        tests = examples(task, "test", other[:TESTED])
        return Examples(
            f"half of {name} test", examples(task, "test", own), tests, examples(task, "test", other[:ANSWERS])
        )
    is_drawn = has_glyphs or not given.data
    held, tested = ("train", "test") if has_glyphs else ("val", "test" if is_drawn else given.test)
    told = "scenes of shipped digits" if has_glyphs else f"{name} {held}"
    tests = list(task.held_out(tested, TESTED)) if tested else []
    return Examples(told, list(task.held_out(held, HELD_OUT)), tests, answered(task, tested) if tested else [])


@torch.no_grad()
def caught(model: AttentionModel, name: str, likeness: Likeness, pictures: Tensor) -> int:
    """How many of the pictures (N,3,H,W) bytes are called unlike."""
    device = next(model.parameters()).device
    parts = (as_float(part.to(device)) for part in pictures.split(AT_ONCE))
    found = [likeness.p_values(input_features(model, name, part)) <= ALPHA for part in parts]
    return int(torch.cat(found).sum())


def fit(name: str, given: argparse.Namespace, known: dict[Any, dict[str, Tensor]]) -> dict[str, Any]:
    """Fit one model and write down what was found."""
    folder = shipped()[name]
    model, facts = load_model(folder, given.device)
    entry = family(facts.family).data[str(facts.data["name"]).partition(":")[0]]
    has_glyphs = "glyphs" in facts.data and entry.kind == "generator"
    changes: dict[str, Any] = (
        {"glyphs": "pack"} if has_glyphs else {} if entry.kind == "generator" else {"name": given.data}
    )
    if facts.data["name"] == "mbg" and given.photographs is not None:
        changes["backgrounds"] = str(given.photographs)
    task = task_of(facts, changes)
    data, batches, tests, asked = examples_for(task, facts, given, has_glyphs=has_glyphs)
    found, test = measured(model, batches), measured(model, tests) if tests else None
    chosen, likeness = likeness_of(model, found, batches[0].images)
    fitted, compared = map(len, halves(len(found)))
    own = torch.cat([batch.images for batch in tests or batches]).mul(255).round().to(torch.uint8)[: given.foreign]
    size = (own.shape[-2], own.shape[-1])
    kinds = foreign.alike(given.foreign, size, given.photographs, known)
    if str(facts.data["name"]).startswith(PHOTOGRAPHED):
        kinds = {kind: each for kind, each in kinds.items() if kind != "photographs"}
    kinds = {kind: each for kind, each in kinds.items() if kind != f"scenes of {facts.data['name']}"}
    kinds |= {"inverted": foreign.inverted(own), "scans": foreign.scans(own, 5)}
    shares = {kind: round(caught(model, chosen, likeness, each) / len(each), 4) for kind, each in kinds.items()}
    alarms = None
    if test is not None:
        alarms = round(float((likeness.p_values(test.features[chosen]) <= ALPHA).double().mean()), 4)
    note = InputsNote(chosen, shown_by(facts), data, fitted, compared, "", shares, alarms)
    answers = None if test is None or test.labels is None else measured(model, asked)
    calibration = calibration_of(found, data, answers)
    note_inputs(folder, likeness, note, calibration)
    told = dataclasses.asdict(read_facts(folder).inputs) | {"level": ALPHA, "test_n": len(own) if tests else 0}
    result = {"model": name, "sha256": facts.sha256, "foreign_n": given.foreign, "inputs": told}
    result["calibration"] = None if calibration is None else dataclasses.asdict(calibration)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--all", action="store_true", help="every shipped model that learned from generated scenes")
    parser.add_argument("--data", help="READER:PATH, for models that learned from files")
    parser.add_argument("--test", default="", help="the split of files for false alarms and calibration errors")
    parser.add_argument("--photographs", type=Path, help="a folder: behind the digits of MBG, and as a foreign kind")
    parser.add_argument("--foreign", type=int, default=1000, help="pictures of each foreign kind")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--again", action="store_true", help="also models that are fitted already")
    given = parser.parse_args()
    torch.set_num_threads(1)
    known: dict[Any, dict[str, Tensor]] = {}
    for name, folder in shipped().items():
        facts = read_facts(folder)
        entry = family(facts.family).data.get(str(facts.data.get("name", "")).partition(":")[0])
        is_drawn = facts.preprocessing is not None and entry is not None and entry.kind == "generator"
        if name not in given.models and not (given.all and is_drawn):
            continue
        if facts.inputs is not None and not given.again:
            continue
        try:
            found = fit(name, given, known)
        except SaccadeError as error:
            print(f"{name}: not fitted: {error}", flush=True)
            continue
        print(json.dumps({"model": name, **found["inputs"]["found"], "alarms": found["inputs"]["false_alarms"],
                          "calibration": found["calibration"]}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
