"""Scores of a model that gives a picture one label: accuracy, calibration, confusions, and its maps on the evidence.

``accuracy`` is top-1; ``top5`` is told where there are more than five classes. ``calibration_error`` is the expected
calibration error with 15 bins. The confusion matrix has a row for each true class and a column for each answer. Maps
are scored where the data knows where a label can be seen, beside HiResCAM and gradient × input of the same network
(:func:`rival_maps`). There too, answers are asked for again without the evidence, and without the rest of the picture
(:mod:`saccade.metrics.verdict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.labelled import LabelledBatch
from saccade.geometry import Size
from saccade.metrics.labels import calibration_error, details_of, top_k_correct
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.faithfulness import gradient_times_input, hirescam
from saccade.metrics.maps.points import at_points
from saccade.metrics.maps.scorer import Baseline
from saccade.metrics.result import Part, Summary
from saccade.models.base import LAST, ImageOnlyModel
from saccade.tasks.evaluate import Altered, Kept, Scoring
from saccade.tasks.forward_passes import answers_of, in_parts
from saccade.tasks.thread_map import thread_count
from saccade.trace import AttentionTrace, LabelOutput

FIRST = 5
"""How many answers ``top5`` may give."""
TOGETHER = 32
"""Pictures whose gradients are computed at once."""


class LabelSplit(Protocol):
    """Pictures with one label each, by number."""

    answers: tuple[str, ...]
    """What the labels are called."""

    def take(self, indices: Tensor) -> LabelledBatch:
        """The pictures ``indices`` (B,)."""

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of ``limit`` of them."""


class LabelScoring(Scoring):
    """Measures a model on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        limit: at most this many pictures: of files a sample, else the first.
    """

    def __init__(self, model: ImageOnlyModel, data: LabelSplit, limit: int | None) -> None:
        self.model, self.data = model, data
        self.numbers = data.sampled(limit)
        height, width = data.take(self.numbers[:1]).images.shape[-2:]
        self.size: Size = (height, width)

    def seen(self, images: Tensor, evidence: Tensor | None) -> LabelOutput:
        """What the model makes of pictures (B,3,H,W), a few at a time."""
        return cast(LabelOutput, in_parts(self.model, images, threads=thread_count(images.device)))

    def measure(self, numbers: Tensor, before: int) -> Kept:
        """Whether the pictures ``numbers`` (B,) are answered right, how surely, and where the model looked."""
        kept, batch = self.kept(), self.data.take(numbers).in_float()
        raw = self.seen(batch.images, batch.evidence)
        output = self.model.wrap(raw, self.size)
        shares = self.model.probabilities(output.logits.float())  # (B,K)
        answer, label = answers_of(output.trace), batch.label  # (B,) each
        kept.answers.add_values({"accuracy": answer == label})
        if len(self.data.answers) > FIRST:
            kept.answers.add_values({"top5": top_k_correct(output.logits, label, FIRST)})
        confidence, of_true = (shares.gather(1, each[:, None])[:, 0] for each in (answer, label))  # (B,) each
        kept.columns.append(answer=answer, label=label, picture=numbers, confidence=confidence, of_true=of_true)
        if batch.evidence is not None and output.trace.looks_of_total:
            beside = rival_maps(self.model, batch.images, answer) | self._box_centres(numbers, output.trace)
            kept.maps.add_trace(output.trace, batch.evidence, groups=numbers, beside=beside)
        self.measure_further(kept, raw, batch, numbers, before)
        return kept

    def measure_further(self, kept: Kept, raw: LabelOutput, batch: LabelledBatch, numbers: Tensor, before: int) -> None:
        """What a family measures beside."""

    def guesses(self, kept: Kept) -> dict[str, Tensor]:
        """Always answering the commonest label of the scored pictures."""
        label = kept.columns["label"]
        return {"commonest_label": (label == commonest(label)).double()}

    def altered(self, numbers: Tensor, kept: Kept) -> Altered | None:
        """The pictures ``numbers`` (B,) with their evidence, where that is known."""
        batch = self.data.take(numbers).in_float()
        evidence, label = batch.evidence, batch.label
        if evidence is None:
            return None

        def right(images: Tensor, rows: Tensor) -> Tensor:
            return self.model.logits_and_answer(self.seen(images, evidence[rows]))[1] == label[rows]

        guessed = label == commonest(kept.columns["label"])
        return Altered(batch.images, evidence, right, label, numbers.to(label.device), guessed)

    def scores(self, kept: Kept) -> dict[str, Any]:
        """Accuracy, calibration, and the maps."""
        right, picture = kept.columns["answer"] == kept.columns["label"], kept.columns["picture"]  # (N,) each
        guessed = self.guesses(kept)["commonest_label"]
        return {
            "n": len(picture),
            "metrics": {
                **kept.answers.means(),
                "calibration_error": calibration_error(kept.columns["confidence"], right),
                **kept.causal.means(),
            },
            "maps": kept.maps,
            "measured": [(kept.answers, picture), (kept.causal, picture)],
            "baselines": {"commonest_label": {"accuracy": float(guessed.mean())}},
            "counts": {"skipped_pictures": len(self.data.skipped)} if isinstance(self.data, ImageSplit) else {},
        }

    def details(self, kept: Kept, found: Summary) -> Mapping[str, Any]:
        """What was taken for what, class by class, and the worst mistakes."""
        said, label, confidence, of_true = (kept.columns[name] for name in ("answer", "label", "confidence", "of_true"))
        rows = self.data.rows if isinstance(self.data, ImageSplit) else ()

        def place(number: int) -> Part:
            return {"picture": str(rows[int(kept.columns["picture"][number])].image)}

        told = details_of(said, label, confidence, of_true, self.data.answers)
        return {**told.to_json(place if rows else None)}

    def _box_centres(self, numbers: Tensor, trace: AttentionTrace) -> dict[str, Baseline]:
        """``box_centre``: the middle of the box round each mask, on the model's grids, where both are known."""
        grids = grids_of(trace, self.size)
        if not isinstance(self.data, ImageSplit) or grids is None:
            return {}
        box = self.data.boxes_of_objects(numbers)  # (B,4)
        centre = (box[:, :2] + box[:, 2:]) / 2  # (B,2)
        known = ~centre.isnan().any(1)  # (B,)
        if not bool(known.any()):
            return {}
        grids = grids.to(centre.device)
        laid = grids.through(lambda frame, cells: at_points(centre, frame, cells, self.size))
        return {"box_centre": Baseline(laid, known)}


def commonest(labels: Tensor) -> int:
    """The commonest of the labels (N,)."""
    return int(torch.bincount(labels).argmax())


def rival_maps(model: ImageOnlyModel, images: Tensor, answer: Tensor) -> dict[str, Baseline]:
    """HiResCAM and gradient × input of the answers (B,) to pictures (B,3,H,W), by name; none of a model without a map.

    A map that is zero all over says nothing, and is undefined.
    """
    if model.last_frame is None:
        return {}
    frame = model.last_frame
    parts = [
        _of_some(model, frame, *each) for each in zip(torch.split(images, TOGETHER), torch.split(answer, TOGETHER))
    ]
    laid = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}  # (B,H,W) each
    return {name: Baseline(maps, maps.flatten(1).amax(1) > 0) for name, maps in laid.items()}


@torch.enable_grad()
def _of_some(model: ImageOnlyModel, frame: Tensor, images: Tensor, answer: Tensor) -> dict[str, Tensor]:
    images = images.detach().requires_grad_()
    raw = model.forward_raw(images)
    features = raw.acts[LAST].values  # (B,C,h,w)
    logit = raw.logits.gather(1, answer[:, None]).sum()
    by_features, by_pixels = torch.autograd.grad(logit, (features, images))
    size = (images.shape[-2], images.shape[-1])
    cells = hirescam(features.detach(), by_features)  # (B,h,w)
    return {
        "hirescam": geometry.project(cells, frame, size),
        "gradient_times_input": gradient_times_input(images.detach(), by_pixels),
    }
