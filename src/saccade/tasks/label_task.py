"""A picture in, one label out: the task that trains, scores and shows it, whatever the pictures are.

A family of generated pictures subclasses :class:`LabelTask` and names its pictures, a
:class:`~saccade.data.pictures.labelled.DrawnPictures`; all else is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight
from saccade.data.pictures.labelled import DrawnPictures, DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import as_float
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.losses import cross_entropy
from saccade.metrics.intervals import Values
from saccade.metrics.labels import top_k_correct
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.tasks.examples import AS_IS, HeldOut, Opening
from saccade.tasks.forward_passes import in_parts
from saccade.tasks.label_scores import FIRST, LabelScoring
from saccade.tasks.picture_task import PictureTask, filled_in
from saccade.tasks.task import Batch, in_batches
from saccade.trace import LabelOutput

VALIDATION_BATCH = 1000
VALIDATION_PIXELS = 10_000_000
"""Most pixels of pictures that are scored together during training: 199 pictures of 224 × 224."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the label; with ``evidence_weight``, maps are taught to lie on the evidence."""

    evidence_weight: Weight = 0.0
    """Weight of the loss that trains maps to lie on the evidence, :mod:`saccade.losses.maps`; 0: no such loss."""


class LabelTask(PictureTask):
    """Trains one model that gives a picture one label.

    Its model is an ``ImageOnlyModel`` whose Config has ``answers``, how many labels there are; the data decides it.
    """

    pictures: ClassVar[type[DrawnPictures]]
    """The settings of the data, which say how pictures are drawn."""
    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    losses: ClassVar[Mapping[str, type]] = {"default": CrossEntropy, "cross_entropy": CrossEntropy}
    scores: ClassVar[type[LabelScoring]] = LabelScoring
    answers: tuple[str, ...]
    """What the labels are called."""

    def __init_subclass__(cls) -> None:
        cls.data_settings = cls.__dict__.get("pictures", cls.data_settings)

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """``answers`` comes from the data."""
        self.answers = self.data_config.answers if self.table is None else self.table.answers
        return filled_in(model_config, {"answers": len(self.answers)}, "the data")

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; what the labels are called."""
        return (), self.answers

    @classmethod
    def open(cls, config: Any, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS) -> Any:
        """The pictures of a split."""
        return with_labels_of(DrawnSplit(config, split, device), how.facts)

    def taken(self, data: Any, indices: Tensor, number: int) -> LabelledBatch:
        """The pictures ``indices`` (B,) for training; ``number`` is that of the batch."""
        batch: LabelledBatch = data.take(indices)
        return batch

    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The pictures ``indices`` (B,) with their labels; bytes stay bytes."""
        made = self.taken(data, indices, number)
        evidence = {"evidence": made.evidence} if self.evidence_weight else {}
        return {"images": made.images, "label": made.label, **evidence}

    @property
    def has_evidence(self) -> bool:
        """Whether the data knows where labels can be seen."""
        return self.split("val").take(torch.arange(1)).evidence is not None

    def checked_loss(self, loss: Any, data: str) -> object:
        """``loss``, once it is clear that the pictures have the evidence that it needs."""
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
        """A step whose loss reads the logits alone leaves out the masks, where the model can."""
        model = self.model
        can = isinstance(model, ImageOnlyModel) and model.can_skip_looks and not getattr(loss, "evidence_weight", 0)
        return {"logits_only": True} if can else {}

    def loss(self, raw: LabelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and the share of right answers."""
        logits, label = raw.logits, batch["label"]  # (B,K), (B,)
        found = {"loss": cross_entropy(logits, label), "accuracy": (logits.argmax(-1) == label).float().mean()}
        return self.with_evidence(found, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        return ("accuracy", "loss", *(("top5",) if len(self.answers) > FIRST else ()))

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy, loss, and of many classes top-5, on the validation split."""
        scores = Values()
        height, width = self.size
        together = max(1, min(VALIDATION_BATCH, VALIDATION_PIXELS // (height * width)))
        for batch in in_batches(self.split("val"), together):
            scores.add_values(self.values(cast(ImageOnlyModel, model), batch.in_float()))
        return scores.means()

    def values(self, model: ImageOnlyModel, batch: LabelledBatch) -> dict[str, Tensor]:
        """What validation tells of each picture of a batch, (B,)."""
        return self.values_of(in_parts(model, batch.images).logits, batch.label)

    def values_of(self, logits: Tensor, label: Tensor) -> dict[str, Tensor]:
        """The same (B,) of logits (B,K) and labels (B,)."""
        logits = logits.float()
        surprise = nn.functional.cross_entropy(logits, label, reduction="none")  # (B,)
        found = {"accuracy": logits.argmax(-1) == label, "loss": surprise}
        return found | ({"top5": top_k_correct(logits, label, FIRST)} if len(self.answers) > FIRST else {})

    @classmethod
    def scoring(cls, model: Any, examples: Any, *, limit: int | None, **options: Any) -> LabelScoring:
        """Answers, and maps where the evidence is known."""
        return cls.scores(model, examples, limit)


def with_labels_of(examples: Any, facts: ModelFacts | None) -> Any:
    """``examples``, if they have the labels of a trained model, in its order."""
    if facts is not None and examples.answers != facts.answers:
        own, theirs = (", ".join(words[:5]) for words in (examples.answers, facts.answers))
        name = examples.described()["data"]
        raise DataError(f"{name}: its labels are {own}, …; those of the model are {theirs}, …; name other data")
    return examples
