"""Classification: a picture in, one label out. What it has beside :class:`LabelTask`: tables, CIFAR-10, and zooming.

The losses ``scales``, ``proposals`` and ``rank`` are for a model that zooms (:mod:`saccade.losses.maps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention.zoom import clamped_box
from saccade.config import Portion, Weight, Within
from saccade.data.details import SIZE
from saccade.data.examples import Split
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.table import Table
from saccade.errors import ConfigError
from saccade.families.answering import decode_labels
from saccade.families.classify.cifar import LEARNS_VAL, CifarPictures, part_digest
from saccade.families.classify.data import DETAILS, LABEL_READERS, LabelDataConfig, LabelFiles, varied
from saccade.families.classify.zoom_scores import (
    ClassifyScoring,
    crops_of,
    crops_round,
    needs_evidence,
    run_model,
    scale_values,
    sides_of,
)
from saccade.losses.maps import MARGIN, proposal_loss, rank_loss, scale_losses, true_class_probability
from saccade.metrics.maps.edits import covers_evidence
from saccade.models.base import AttentionModel, ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.racnn import CROPS, SCALES, RacnnModel
from saccade.tasks.data_parts import Entries
from saccade.tasks.label_task import CrossEntropy, LabelTask
from saccade.tasks.rivals import Asked
from saccade.tasks.task import Batch
from saccade.trace import Answer, LabelOutput, Output

USUAL_SIDE = 0.5  # Side of the first regions for proposals as a share of the parent's, as in the paper
Scale = Literal["scale1", "scale2", "scale3"]


@dataclass(frozen=True)
class Scales:
    """Cross-entropy of every scale up to ``last``, and with the finest one also of the joint answer."""

    last: Scale = "scale3"


@dataclass(frozen=True)
class Proposals:
    """Smooth L1 between proposals and regions of strong responses."""

    of: Literal["scale2", "scale3", "both"] = "both"  # The taught proposals.
    target: Literal["strongest", "responses"] = "strongest"
    """``strongest``: a region of ``side`` around the strongest response, as in the paper. ``responses``: the square in
    which the network of the taught scale responds above average, times ``grow``."""
    side: Portion = USUAL_SIDE  # Side of the region round the strongest response, as a share of its parent's.
    grow: Annotated[float, Within(0, above=True)] = 1.0
    """Side of the region of ``responses``, as a multiple of the square's."""


@dataclass(frozen=True)
class Rank:
    """Each scale should be surer of the true class than the one before it, by ``margin``."""

    margin: Weight = MARGIN


ZoomLoss = Scales | Proposals | Rank
LOSSES: dict[str, type] = {
    "default": CrossEntropy,
    "cross_entropy": CrossEntropy,
    "scales": Scales,
    "proposals": Proposals,
    "rank": Rank,
}


def zoom_loss(raw: LabelOutput, label: Tensor, loss: ZoomLoss, smallest: float) -> dict[str, Tensor]:
    """``loss`` of a result of ``forward_raw`` and labels (B,): scalars by name.

    ``smallest`` is the side of the smallest region that the model can propose.
    """
    logits = raw.scale_logits  # (B,S,K)
    right = (logits.argmax(-1) == label[:, None]).float().mean(0)  # (S,)
    shares = {f"{name}_accuracy": share for name, share in zip(SCALES, right)}
    if isinstance(loss, Scales):
        total = scale_losses(logits, label).sum()
        if raw.logits is not None:
            total = total + F.cross_entropy(raw.logits, label)
            shares["accuracy"] = (raw.logits.argmax(-1) == label).float().mean()
        return {"loss": total, **shares}
    if isinstance(loss, Proposals):
        which = slice(None) if loss.of == "both" else slice(CROPS.index(loss.of), CROPS.index(loss.of) + 1)
        return {"loss": proposal_loss(raw.boxes[:, which], taught_regions(raw, loss, smallest)[:, which]), **shares}
    return {"loss": rank_loss(true_class_probability(logits, label), loss.margin), **shares}


def taught_regions(raw: LabelOutput, loss: Proposals, smallest: float) -> Tensor:
    """Target boxes (B,2,3) of ``loss``, without gradients."""
    if loss.target == "strongest":
        centre = raw.strongest.detach()  # (B,2,2)
        region = torch.cat([centre, torch.full_like(centre[..., :1], loss.side / 2)], dim=-1)  # (B,2,3)
    else:
        square = raw.responses.detach()  # (B,2,3)
        region = torch.cat([square[..., :2], loss.grow * square[..., 2:]], dim=-1)  # (B,2,3)
    return clamped_box(region.to(raw.boxes.dtype), smallest)


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K) and, where there are scales, ``scale_logits`` (B,S,K)."""
    answers = decode_labels(model, output, facts)
    scales = getattr(output.aux, "scale_logits", None)
    if scales is None:
        return answers
    best = model.probabilities(scales.float()).cpu().max(-1)  # (B,S) shares and numbers
    rows = zip(best.values.tolist(), best.indices.tolist())
    by_scale = [
        tuple((name, facts.answers[number], share) for name, share, number in zip(SCALES, shares, numbers))
        for shares, numbers in rows
    ]
    return [replace(answer, on_the_way=scales_of_one) for answer, scales_of_one in zip(answers, by_scale)]


class ClassifyTask(LabelTask):
    """Trains one model that gives a picture one label; ``seed`` also decides how training pictures are varied."""

    name = "classify"
    data_settings = LabelDataConfig
    data_config: LabelDataConfig
    readers = LABEL_READERS
    losses = LOSSES
    scores = ClassifyScoring
    files = LabelFiles

    @classmethod
    def read(cls, config: LabelDataConfig) -> Table | None:
        """The rows of a table; CIFAR-10 is none."""
        return None if config.is_cifar else super().read(config)

    @staticmethod
    def generated(config: LabelDataConfig, split: Split, device: torch.device | str, *, allow_pack: bool) -> Any:
        """Drawn pictures, or CIFAR-10."""
        if config.is_generated:
            return DrawnSplit(config.drawn(), split, device)
        return CifarPictures(config.name, split, config.size, torch.device(device), hold_out=config.hold_out)

    @classmethod
    def asked(cls, examples: LabelFiles | DrawnSplit | CifarPictures) -> Asked | None:
        """The labels of files; nothing is asked."""
        if not isinstance(examples, LabelFiles):
            return None
        return Asked(torch.zeros_like(examples.label), examples.label)

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """``answers`` comes from the data."""
        self.taught: dict[str, Proposals] = {}  # what teaches the proposals of a scale, as far as phases say
        if self.table is not None:
            self.table.check_answers()
        return super().model_settings(model_config)

    @property
    def learns_val(self) -> bool:
        return self.data_config.learns_val

    def summary(self) -> str:
        if self.table is not None:
            return self.table.summary()
        return LEARNS_VAL if self.learns_val else ""

    def data_parts(self) -> dict[str, Entries]:
        """Also the pictures of CIFAR-10, which are no table."""
        digest = f"#{part_digest(self.data_config.name, 'train')}" if self.data_config.is_cifar else ""
        return super().data_parts() | ({"pictures": [("train", digest)]} if digest else {})

    def taken(self, data: Any, indices: Tensor, number: int) -> LabelledBatch:
        return varied(data.take(indices), self.data_config, derive_seed(self.seed, number))

    def beside(self, batch: LabelledBatch) -> dict[str, Any]:
        """Also the crops round the evidence, for a model that needs them."""
        crops = crops_round(self.model, batch.evidence) if needs_evidence(self.model) else {}
        return super().beside(batch) | crops

    def inputs(self, batch: Batch) -> dict[str, object]:
        crops = {"attention": {name: batch[name] for name in CROPS}} if CROPS[0] in batch else {}
        return super().inputs(batch) | crops

    def checked_loss(self, loss: Any, data: str) -> object:
        is_racnn, model = isinstance(self.model, RacnnModel), cast(RacnnModel, self.model)
        if isinstance(loss, ZoomLoss) != is_racnn:
            fitting = "scales, proposals or rank" if is_racnn else "cross_entropy"
            raise ConfigError(f"loss: this model is taught by {fitting}, found {type(loss).__name__}")
        if isinstance(loss, Proposals | Rank) and not model.proposals:
            raise ConfigError(
                f"loss: a model with crops '{model.config.crops}' proposes no crops; take the loss scales"
            )
        if isinstance(loss, Proposals):
            self.taught |= dict.fromkeys(CROPS if loss.of == "both" else (loss.of,), loss)
        if getattr(loss, "evidence_weight", 0.0) and self.data_config.shift is not None:
            raise ConfigError(
                "loss: evidence_weight: data.shift moves pictures without their evidence; data.shift=null"
            )
        return super().checked_loss(loss, data)

    def forward_options(self, loss: Any) -> dict[str, object]:
        """Skips scales that the loss does not need, or masks if it reads the logits alone."""
        match loss:
            case Scales():
                return {"last": loss.last}
            case Proposals():
                return {"last": SCALES[loss.of != "scale2"], "responses": loss.target == "responses"}
        return super().forward_options(loss)

    def loss(self, raw: LabelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and accuracy; a zooming model has its own losses."""
        if isinstance(loss, ZoomLoss):
            return zoom_loss(raw, batch["label"], loss, self.model.config.smallest)
        return super().loss(raw, batch, loss)

    def metric_names(self) -> tuple[str, ...]:
        """Validation scores, for a zooming model also of its scales and crops."""
        names = super().metric_names()
        if not isinstance(self.model, RacnnModel):
            return names
        scores = ("side", "covers_evidence") if self.has_evidence else ("side",)
        crops = [f"{name}_{score}" for score in scores for name in CROPS]
        errors = [f"{name}_proposal_error" for name in self._learned_regions(self.model)]
        return (*names, *(f"{name}_accuracy" for name in SCALES), *crops, *errors)

    def _learned_regions(self, model: RacnnModel) -> dict[str, Proposals]:
        """The proposal losses by scale, of those taught the region around the strongest response.

        For these, validation has ``scale2_proposal_error``: the distance from the taught region, in shares of the
        parent's sides.
        """
        losses = {name: self.taught.get(name, Proposals()) for name in model.proposals}
        return {name: loss for name, loss in losses.items() if loss.target == "strongest"}

    @property
    def has_evidence(self) -> bool:
        if self.table is None:
            return self.data_config.is_generated
        return any(row.box is not None or row.mask is not None for row in self.table.rows)

    def values(self, model: ImageOnlyModel, batch: LabelledBatch) -> dict[str, Tensor]:
        raw = run_model(model, batch.images, batch.evidence)
        values = self.values_of(raw.logits, batch.label)
        return values | self.zoom_values(model, raw, batch) if isinstance(model, RacnnModel) else values

    def zoom_values(self, model: RacnnModel, raw: LabelOutput, batch: LabelledBatch) -> dict[str, Tensor]:
        """Validation scores (B,) of scales and crops."""
        values = scale_values(raw, batch.label)
        for name, loss in self._learned_regions(model).items():
            wanted = taught_regions(raw, loss, model.config.smallest)  # (B,2,3)
            values[f"{name}_proposal_error"] = (raw.boxes - wanted)[:, CROPS.index(name)].abs().sum(-1)
        for name, crops in crops_of(model, raw).items():
            values[f"{name}_side"] = sides_of(raw, name)
            if batch.evidence is not None:
                values[f"{name}_covers_evidence"] = covers_evidence(crops, batch.evidence)
        return values

    @classmethod
    def settings_to_show(cls, settings: Mapping[str, Any], facts: ModelFacts | None) -> Mapping[str, Any]:
        """Generated pictures keep their size; files are shown larger than CIFAR-10."""
        name = str(settings.get("name", ""))
        if name == DETAILS:
            return {"size": (SIZE, SIZE), **settings}
        is_file = ":" in name and not LabelDataConfig(name=name).is_cifar
        return {"size": (224, 224), **settings} if is_file and facts is None else settings
