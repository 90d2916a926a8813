"""After training, measures on held-out examples what a model's inputs look like and how its confidences must be scaled.

Half of the examples (:meth:`~saccade.tasks.picture_task.PictureTask.held_out`) give the statistics of features, the
other half the scores for p-values. The features (:mod:`saccade.models.likeness`) are those that detect most foreign
pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families.registry import family
from saccade.metrics.labels import helpful_temperature
from saccade.models.base import AttentionModel
from saccade.models.facts import Calibration, InputsNote, ModelFacts
from saccade.models.folder import load_model, note_inputs
from saccade.models.likeness import ALPHA, FEWEST, Likeness, fit_likeness, input_feature_names, input_features
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import HeldOut
from saccade.trace import ModelOutput

HELD_OUT = 1000  # Most examples used after a training
FOREIGN = 100  # Foreign pictures of each kind by which features are chosen
TOGETHER = 50
MIN_ANSWERS = 100  # Fewest answers for fitting a temperature


def gradients(images: Tensor, generator: torch.Generator) -> Tensor:
    """Colour gradients, left to right or top to bottom."""
    count, _, height, width = images.shape
    first, last = torch.rand(2, count, 3, 1, 1, generator=generator)
    across = torch.linspace(0, 1, width).expand(height, width)
    down = torch.linspace(0, 1, height)[:, None].expand(height, width)
    is_across = torch.rand(count, 1, 1, 1, generator=generator) < 0.5
    blend: Tensor = first + (last - first) * torch.where(is_across, across, down)
    return blend


Maker = Callable[[Tensor, torch.Generator], Tensor]
# Foreign pictures by which features are chosen.
CHOOSING: dict[str, Maker] = {
    "noise": lambda images, generator: torch.rand(images.shape, generator=generator),
    "gradients": gradients,
    "grey copies": lambda images, generator: images.mean(1, keepdim=True).expand_as(images).contiguous(),
}


@dataclass(frozen=True, eq=False)
class Outputs:
    """Features and answers of examples."""

    features: dict[str, Tensor]  # By name: (N,D)
    logits: Tensor | None  # (N,K)
    labels: Tensor | None  # (N,) or (N,K)

    def __len__(self) -> int:
        return len(next(iter(self.features.values()), self.logits if self.logits is not None else ()))


@torch.no_grad()
def measured(model: AttentionModel, examples: Iterable[HeldOut]) -> Outputs:
    """Run ``model``, in eval mode, over ``examples``."""
    features: dict[str, list[Tensor]] = {}
    logits, labels = [], []
    device = next(model.parameters()).device
    for images, query, label in (part for batch in examples for part in _in_parts(batch)):
        images = images.to(device)
        encoding = model.encode(images)
        for name in input_feature_names(model, encoding):
            features.setdefault(name, []).append(input_features(model, name, images, encoding).cpu())
        if label is not None:
            raw: ModelOutput = model.respond(encoding, None if query is None else query.to(device))
            logits.append(raw.logits.float().cpu())
            labels.append(label.cpu())
    joined = {name: torch.cat(parts) for name, parts in features.items()}
    return Outputs(joined, torch.cat(logits) if logits else None, torch.cat(labels) if labels else None)


def _in_parts(batch: HeldOut) -> Iterator[HeldOut]:
    parts = [[None] * len(batch.images) if tensor is None else torch.split(tensor, TOGETHER) for tensor in batch]
    yield from (HeldOut(*fields) for fields in zip(*parts))


def halves(count: int) -> tuple[Tensor, Tensor]:
    """Random halves of the examples: for statistics, and for scores."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return order[: count // 2], order[count // 2 :]


def likeness_of(model: AttentionModel, outputs: Outputs, images: Tensor) -> tuple[str, Likeness]:
    """The features that detect foreign pictures best, and their statistics; grey copies are made of ``images``."""
    fitting, comparing = halves(len(outputs))
    fitted = {name: fit_likeness(values[fitting], values[comparing]) for name, values in outputs.features.items()}
    if len(fitted) == 1:
        return next(iter(fitted.items()))
    generator = torch.Generator().manual_seed(0)
    some = images[:FOREIGN].cpu().float()
    foreign = [measured(model, [HeldOut(make(some, generator))]).features for make in CHOOSING.values()]
    caught = {
        name: sum(float((likeness.p_values(kind[name]) <= ALPHA).double().mean()) for kind in foreign)
        for name, likeness in fitted.items()
    }
    best = max(caught, key=lambda name: caught[name])  # of equals the first, which costs nothing
    return best, fitted[best]


def calibration_of(outputs: Outputs, data: str) -> Calibration | None:
    """The temperature of held-out answers, 1 if none helps; None if there are too few."""
    logits, labels = outputs.logits, outputs.labels
    if logits is None or labels is None or len(labels) < MIN_ANSWERS or logits.dim() != 2:
        return None
    return Calibration(round(helpful_temperature(logits, labels), 4), data, len(labels))


def shown_by(facts: ModelFacts) -> str:
    """What the data of a model shows, as it follows "trained on"."""
    entry = family(facts.family).data.get(str(facts.data.get("name", "")).partition(":")[0])
    return (entry.shows if entry is not None else "") or "other pictures"


def describe_inputs(folder: Path, examples: Iterable[HeldOut], data: str, device: str | torch.device = "cpu") -> str:
    """Writes what held-out ``examples``, called ``data``, show into the model ``folder``; returns it in one line."""
    model, facts = load_model(folder, device)
    batches = list(examples)
    outputs = measured(model, batches)
    calibration = calibration_of(outputs, data)
    if calibration is not None:
        scaled = f"; confidences have temperature {calibration.temperature:g}"
    elif outputs.labels is not None and len(outputs.labels) < MIN_ANSWERS:
        scaled = f"; confidences are not calibrated, which takes {MIN_ANSWERS} held-out answers"
    else:
        scaled = ""
    if len(outputs) < 2 * FEWEST or not outputs.features:
        note_inputs(folder, None, None, calibration)
        few = f"{len(outputs)} held-out examples are too few ({2 * FEWEST} are needed)"
        return f"fit: not available, {few}{scaled}"
    name, likeness = likeness_of(model, outputs, batches[0].images)
    fitting, comparing = map(len, halves(len(outputs)))
    note = InputsNote(name, shown_by(facts), data, fitted=fitting, compared=comparing, sha256="")
    note_inputs(folder, likeness, note, calibration)
    return f"fit: measured by '{name}' features of {len(outputs):,} held-out examples{scaled}"


def describe_trained(task: object, folder: Path) -> str:
    """:func:`describe_inputs` with the validation split of ``task``, unless the model was trained on that split."""
    if not isinstance(task, PictureTask):
        return "fit: not available, the model reads no pictures"
    if task.learns_val:
        return "fit: not available, no picture was held out of the training"
    try:
        return describe_inputs(folder, task.held_out("val", HELD_OUT), "validation split", task.device)
    except DataError as error:
        return f"fit: not available ({error})"
