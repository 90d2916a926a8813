"""A picture in, one label out: the task that trains, scores and shows it, whatever the pictures are.

A family of generated pictures subclasses :class:`LabelTask` and names their settings (``data_settings``), a
:class:`~saccade.data.pictures.labelled.DrawnPictures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.config import Weight
from saccade.data.examples import Split
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import as_float
from saccade.geometry import Size
from saccade.metrics.intervals import Values
from saccade.metrics.labels import calibration_error, details_of, top_k_correct
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.faithfulness import gradient_times_input, hirescam
from saccade.metrics.maps.scorer import Baseline, at_places
from saccade.metrics.result import Part, Summary
from saccade.metrics.verdict import Altered
from saccade.models.base import LAST, ImageOnlyModel, LabelModel
from saccade.tasks.evaluate import Measurements, Scoring, answers_of, in_parts, thread_count
from saccade.tasks.picture_task import PictureTask, filled_in
from saccade.tasks.task import Batch, HeldOut, in_batches
from saccade.trace import LabelOutput

FIRST = 5  # How many answers ``top5`` may give
TOGETHER = 32  # Pictures whose gradients are computed at once


class LabelScoring(Scoring):
    """Measures a model, in eval mode, on at most ``limit`` pictures of a split: of files a sample, else the first."""

    def __init__(self, model: ImageOnlyModel, data: Any, limit: int | None) -> None:
        self.model, self.data = model, data
        self.numbers = data.sampled(limit)
        first = data.take(self.numbers[:1])
        height, width = first.images.shape[-2:]
        self.size: Size = (height, width)
        self.has_evidence = first.evidence is not None or not model.look_specs

    def run_model(self, images: Tensor, evidence: Tensor | None) -> LabelOutput:
        """The model's outputs for pictures (B,3,H,W), a few at a time."""
        return cast(LabelOutput, in_parts(self.model, images, threads=thread_count(images.device)))

    def measure(self, numbers: Tensor, before: int) -> Measurements:
        """Whether the pictures ``numbers`` (B,) are answered right, how surely, and where the model looked."""
        measured, batch = self.measurements(), self.data.take(numbers).in_float()
        raw = self.run_model(batch.images, batch.evidence)
        output = self.model.wrap(raw, self.size)
        shares = self.model.probabilities(output.logits.float())  # (B,K)
        answer, label = answers_of(output.trace), batch.label  # (B,) each
        measured.answers.add_values({"accuracy": answer == label})
        if len(self.data.answers) > FIRST:
            measured.answers.add_values({"top5": top_k_correct(output.logits, label, FIRST)})
        confidence, of_true = (shares.gather(1, ids[:, None])[:, 0] for ids in (answer, label))  # (B,) each
        measured.columns.append(answer=answer, label=label, picture=numbers, confidence=confidence, of_true=of_true)
        if batch.evidence is not None and output.trace.looks_of_total:
            beside = rival_maps(self.model, batch.images, answer)
            if isinstance(self.data, ImageSplit):
                box = self.data.boxes_of_objects(numbers)  # (B,4) round each mask
                places = {"box_centre": (box[:, :2] + box[:, 2:]) / 2}
                beside |= at_places(places, grids_of(output.trace, self.size), self.size)
            measured.maps.add_trace(output.trace, batch.evidence, groups=numbers, beside=beside)
        self.measure_further(measured, raw, batch, numbers, before)
        return measured

    def measure_further(
        self, measured: Measurements, raw: LabelOutput, batch: LabelledBatch, numbers: Tensor, before: int
    ) -> None:
        """Measurements that a family adds."""

    def guesses(self, measured: Measurements) -> dict[str, Tensor]:
        """Always answering the commonest label of the scored pictures."""
        label = measured.columns["label"]
        return {"commonest_label": (label == commonest(label)).double()}

    def altered(self, numbers: Tensor, measured: Measurements) -> Altered | None:
        """The pictures ``numbers`` (B,) with their evidence, if that is known."""
        batch = self.data.take(numbers).in_float()
        evidence, label = batch.evidence, batch.label
        if evidence is None:
            return None

        def right(images: Tensor, rows: Tensor) -> Tensor:
            answer = self.model.logits_and_answer(self.run_model(images, evidence[rows]))[1]
            return cast(Tensor, answer == label[rows])

        guessed = label == commonest(measured.columns["label"])
        return Altered(batch.images, evidence, right, label, numbers.to(label.device), guessed)

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Accuracy, calibration, and the maps."""
        columns = measured.columns
        right, picture = columns["answer"] == columns["label"], columns["picture"]  # (N,) each
        guessed = self.guesses(measured)["commonest_label"]
        return {
            "n": len(picture),
            "metrics": {
                **measured.answers.means(),
                "calibration_error": calibration_error(columns["confidence"], right),
                **measured.causal.means(),
            },
            "maps": measured.maps,
            "measured": [(measured.answers, picture), (measured.causal, picture)],
            "baselines": {"commonest_label": {"accuracy": float(guessed.mean())}},
            "counts": {"skipped_pictures": len(self.data.skipped)} if isinstance(self.data, ImageSplit) else {},
        }

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """Confusions, scores by class, and the worst mistakes."""
        answer, label, confidence, of_true = (
            measured.columns[name] for name in ("answer", "label", "confidence", "of_true")
        )
        rows = self.data.rows if isinstance(self.data, ImageSplit) else ()

        def place(number: int) -> Part:
            return {"picture": str(rows[int(measured.columns["picture"][number])].image)}

        return details_of(answer, label, confidence, of_true, self.data.answers, place if rows else None)


def commonest(labels: Tensor) -> int:
    """The commonest of the labels (N,)."""
    return int(torch.bincount(labels).argmax())


def rival_maps(model: ImageOnlyModel, images: Tensor, answer: Tensor) -> dict[str, Baseline]:
    """HiResCAM and gradient × input of the answers (B,) to pictures (B,3,H,W); none for a model without a map."""
    if model.last_frame is None:
        return {}
    frame = model.last_frame
    parts = [
        _of_some(model, frame, *part) for part in zip(torch.split(images, TOGETHER), torch.split(answer, TOGETHER))
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


VALIDATION_BATCH = 1000
# Most pixels of pictures that are scored together during training: 199 pictures of 224 × 224.
VALIDATION_PIXELS = 10_000_000


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the label, and with ``evidence_weight`` the loss of maps."""

    evidence_weight: Weight = 0.0
    """Weight of the loss that trains maps to lie on the evidence (:mod:`saccade.losses.maps`)."""


class LabelTask(PictureTask):
    """Trains one model that gives a picture one label.

    The model is an ``ImageOnlyModel`` whose Config has ``answers``, the number of labels, which the data decides.
    """

    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    losses: ClassVar[Mapping[str, type]] = {"default": CrossEntropy, "cross_entropy": CrossEntropy}
    scores = LabelScoring

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """``answers`` comes from the data."""
        self.answers = self.data_config.answers if self.table is None else self.table.answers
        return filled_in(model_config, {"answers": len(self.answers)}, "the data")

    @staticmethod
    def generated(config: Any, split: Split, device: torch.device | str, *, allow_pack: bool) -> Any:
        """The drawn pictures of a split."""
        return DrawnSplit(config, split, device)

    def taken(self, data: Any, indices: Tensor, number: int) -> LabelledBatch:
        """The pictures ``indices`` (B,) for training; ``number`` is that of the batch."""
        batch: LabelledBatch = data.take(indices)
        return batch

    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The pictures ``indices`` (B,) with their labels; bytes stay bytes."""
        batch = self.taken(data, indices, number)
        return {"images": batch.images, "label": batch.label, **self.beside(batch)}

    def beside(self, batch: LabelledBatch) -> dict[str, Any]:
        """Further entries of a batch: the evidence, if a loss needs it."""
        return {"evidence": batch.evidence} if self.evidence_weight else {}

    @property
    def has_evidence(self) -> bool:
        """Whether the data knows where labels can be seen."""
        return self.split("val").take(torch.arange(1)).evidence is not None

    def checked_loss(self, loss: Any, data: str) -> object:
        """``loss``; a ConfigError if the pictures lack the evidence that it needs."""
        if weight := getattr(loss, "evidence_weight", 0.0):
            self.require_evidence(weight, self.has_evidence)
        return loss

    def held_out_batch(self, data: Any, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,) with their labels."""
        batch = data.take(numbers).in_float()
        return HeldOut(batch.images, label=batch.label)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``."""
        images = batch["images"]
        return {"images": images if images.is_floating_point() else as_float(images)}

    def forward_options(self, loss: Any) -> dict[str, object]:
        """Skips the masks if the loss reads the logits alone and the model can."""
        model = self.model
        can = isinstance(model, LabelModel) and not getattr(loss, "evidence_weight", 0)
        return {"logits_only": True} if can else {}

    def loss(self, raw: LabelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and the share of right answers."""
        logits, label = raw.logits, batch["label"]  # (B,K), (B,)
        scalars = {
            "loss": nn.functional.cross_entropy(logits, label),
            "accuracy": (logits.argmax(-1) == label).float().mean(),
        }
        return self.with_evidence(scalars, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
        """Names of what :meth:`validate` returns."""
        return ("accuracy", "loss", *(("top5",) if len(self.answers) > FIRST else ()))

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split, and top-5 if there are many classes."""
        scores = Values()
        height, width = self.size
        together = max(1, min(VALIDATION_BATCH, VALIDATION_PIXELS // (height * width)))
        for batch in in_batches(self.split("val"), together):
            scores.add_values(self.values(cast(ImageOnlyModel, model), batch.in_float()))
        return scores.means()

    def values(self, model: ImageOnlyModel, batch: LabelledBatch) -> dict[str, Tensor]:
        """Validation scores (B,) of a batch."""
        return self.values_of(in_parts(model, batch.images).logits, batch.label)

    def values_of(self, logits: Tensor, label: Tensor) -> dict[str, Tensor]:
        """The same (B,) of logits (B,K) and labels (B,)."""
        logits = logits.float()
        surprise = nn.functional.cross_entropy(logits, label, reduction="none")  # (B,)
        values = {"accuracy": logits.argmax(-1) == label, "loss": surprise}
        return values | ({"top5": top_k_correct(logits, label, FIRST)} if len(self.answers) > FIRST else {})
