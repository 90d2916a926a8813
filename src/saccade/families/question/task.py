"""Training of models that answer queries: the part that generated scenes and your own tables share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight
from saccade.errors import ConfigError
from saccade.families.question.readers import READERS
from saccade.families.question.scores import right_answers
from saccade.losses.likelihood import binary_cross_entropy, cross_entropy, log_likelihood_of_set
from saccade.losses.policy import reinforce
from saccade.metrics.sets import weighted_map
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import in_parts
from saccade.tasks.picture_task import OverlapTerm, PictureTask
from saccade.tasks.task import Batch, HeldOut, in_batches
from saccade.trace import QuestionOutput

ENTROPY_WEIGHT = 0.002
"""λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early."""


@dataclass(frozen=True)
class Default:
    """Cross-entropy of the answer; REINFORCE where the model draws locations in training."""

    entropy: Weight = ENTROPY_WEIGHT
    """λ of the entropy bonus of REINFORCE."""
    evidence_weight: Weight = 0.0
    """Weight of the loss that trains the map to lie on the evidence, :mod:`saccade.losses.maps`; 0: no such
    loss."""
    overlap_weight: Weight = 0.0
    """Weight of the loss on what maps of different questions about one picture share, :mod:`saccade.losses.maps`."""


@dataclass(frozen=True)
class Reinforce(Default):
    """REINFORCE on the locations that the model draws in training; a model that draws none is refused."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the answer, whether or not the model draws locations."""

    evidence_weight: Weight = 0.0
    """As in :class:`Default`."""
    overlap_weight: Weight = 0.0
    """As in :class:`Default`."""


Loss = Default | Reinforce | CrossEntropy
LOSSES: dict[str, type] = {"default": Default, "cross_entropy": CrossEntropy, "reinforce": Reinforce}


VALIDATION_BATCH = 500


class QueryBatch(Protocol):
    """Questions about pictures, with their answers."""

    @property
    def images(self) -> Tensor:
        """(B,3,H,W) float in 0..1."""

    @property
    def query(self) -> Tensor:
        """(B,)."""

    @property
    def label(self) -> Tensor:
        """(B,) ids, or (B,K) floats when several answers may hold."""

    def evidence(self) -> Tensor:
        """(B,H,W) bool: where the answer can be seen."""

    def __len__(self) -> int: ...


class QuestionTask(PictureTask):
    """Trains one query model."""

    name = "question"
    model_kind = QueryModel
    model_description = "answers queries"
    readers = READERS
    losses = LOSSES
    caches_features = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._overlap_term = OverlapTerm()

    @classmethod
    def for_data(cls, name: str) -> type[QuestionTask]:
        """The task for the data called ``name``: a table (READER:PATH, or its reader alone), or generated scenes."""
        from saccade.families.question.scene_task import SceneTask
        from saccade.families.question.table_task import TableTask

        is_table = not name or ":" in name or name in READERS
        return TableTask if is_table else SceneTask

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is asked and what is answered."""
        data = self.split("val")
        return data.queries, data.answers

    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The questions ``indices`` (B,) with their pictures and answers."""
        made = self.training_batch(data, indices, number)
        evidence = {"evidence": made.evidence()} if self.evidence_weight else {}
        return {"images": made.images, "query": made.query, "label": made.label, **evidence}

    def training_batch(self, data: Any, indices: Tensor, number: int) -> QueryBatch:
        """The questions ``indices`` (B,) for training; ``number`` is that of this batch among those of all ranks."""
        batch: QueryBatch = data.take(indices)
        return batch

    def held_out_batch(self, data: Any, numbers: Tensor) -> HeldOut:
        """The questions ``numbers`` (B,) with their pictures and answers."""
        made: QueryBatch = data.take(numbers)
        return HeldOut(made.images, made.query, made.label)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``; of a picture that is asked several times there is one copy."""
        if "encoding" in batch:
            return {"images": None, "query": batch["query"], "encoding": batch["encoding"]}
        images, query = batch["images"], batch["query"]
        return {"images": images, "query": query, "asks": len(query) // len(images)}

    def checked_loss(self, loss: Loss, data: str) -> Loss:
        """Any loss whose evidence is there; whether the model draws what it needs is seen when it does."""
        if loss.overlap_weight and self.asks < 2:
            raise ConfigError(
                "loss: overlap_weight compares questions about one picture, and training has one for each; take "
                "generated scenes with data.asks of 2 or more and `protocol=unlimited`, or leave it out"
            )
        self.require_evidence(loss.evidence_weight, self.has_evidence)
        return loss

    @property
    def asks(self) -> int:
        """How many training questions in a row are about one picture."""
        return 1

    @property
    def has_evidence(self) -> bool:
        """Whether training pictures say where answers can be seen."""
        return True

    def loss(self, raw: QuestionOutput, batch: Batch, loss: Loss) -> dict[str, Tensor]:
        """Cross-entropy of the answer plus whatever penalty the model names, and the share of right answers.

        What a part of a model answers by itself (``helper_logits``), for training alone, is taught the same answer.
        Where several answers may hold, each has a cross-entropy of its own, and the likeliest is right if it holds. A
        model that draws locations in training is by default taught by REINFORCE instead.
        """
        draws = raw.sampled_logits is not None
        if isinstance(loss, Reinforce) and not draws:
            raise ConfigError(
                "loss 'reinforce': this model draws no locations in training; take model 'hard' with estimator: "
                "reinforce, or the default loss"
            )
        logits, label = raw.logits, batch["label"]
        if draws and isinstance(loss, Default):
            taught = sampled_loss(raw, label, loss.entropy)
        else:
            taught = answer_loss(logits, label)
        found = {
            "loss": taught,
            ("top1" if label.dim() == 2 else "accuracy"): right_answers(logits, label).float().mean(),
        }
        if raw.helper_logits is not None:
            found["helper_loss"] = answer_loss(raw.helper_logits, label)
            found["loss"] = found["loss"] + found["helper_loss"]
        if raw.penalty is not None:
            found["penalty"] = raw.penalty.mean()
            found["loss"] = found["loss"] + found["penalty"]
        if loss.overlap_weight:
            found["overlap"] = self._overlap_term(self.model, raw, self.size, len(label) // len(batch["images"]))
            found["loss"] = found["loss"] + loss.overlap_weight * found["overlap"]
        return self.with_evidence(found, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        return ("weighted_map", "top1", "loss") if self.model.multi_label else ("accuracy", "loss")

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split; with several answers at once weighted mAP (11-point) and loss."""
        loss = torch.zeros((), device=self.device)
        all_logits, all_labels = [], []
        for logits, label in self.answers(cast(QueryModel, model)):
            loss = loss + answer_loss(logits, label) * len(label)
            all_logits.append(logits)
            all_labels.append(label)
        logits, label = torch.cat(all_logits), torch.cat(all_labels)
        right = float(right_answers(logits, label).sum()) / len(label)
        several = label.dim() == 2
        scores = {"weighted_map": weighted_map(logits, label), "top1": right} if several else {"accuracy": right}
        return {**scores, "loss": float(loss) / len(label)}

    def answers(self, model: QueryModel) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits (B,K) and labels (B,) or (B,K) of the validation split, batch by batch."""
        for batch in in_batches(self.split("val"), VALIDATION_BATCH):
            yield in_parts(model, batch.images, batch.query).logits, batch.label


def answer_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy of one answer (B,), or of the set of answers (B,K) that hold."""
    return cross_entropy(logits, label) if label.dim() == 1 else binary_cross_entropy(logits, label)


def sampled_loss(raw: QuestionOutput, label: Tensor, entropy_weight: float) -> Tensor:
    """REINFORCE on the locations that a model drew, each rewarded with the log-probability of ``label`` there.

    The label is one answer (B,), or a set of answers (B,K).
    """
    logits = raw.sampled_logits  # (B,S,K)
    if label.dim() == 1:
        log_likelihood = torch.take_along_dim(logits.log_softmax(-1), label[:, None, None], dim=-1).squeeze(-1)  # (B,S)
    else:
        log_likelihood = log_likelihood_of_set(logits, label[:, None])  # (B,S)
    return reinforce(log_likelihood, raw.sampled_log_prob, entropy=raw.entropy, entropy_weight=entropy_weight)  # ()
