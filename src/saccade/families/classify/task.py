"""Classification: a picture in, one label out. What it has beside :class:`LabelTask`: tables, CIFAR-10, and zooming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from saccade.answer import Answer
from saccade.data.examples import Split
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import warn_of_one_answer
from saccade.data.tables.table import Table
from saccade.errors import ConfigError
from saccade.families.classify.cifar import CifarPictures, part_digest
from saccade.families.classify.data import GENERATORS, LabelDataConfig, LabelFiles, varied
from saccade.families.classify.readers import LABEL_READERS
from saccade.families.classify.zoom_scores import ClassifyScoring, zoom_metric_names, zoom_values
from saccade.families.classify.zooming import (
    LOSSES,
    Proposals,
    ZoomLoss,
    check_zoom_loss,
    crops_round,
    needs_evidence,
    seen,
    zoom_loss,
    zoom_options,
)
from saccade.families.responder import decode_labels
from saccade.models.base import AttentionModel, ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.racnn import CROPS, SCALES
from saccade.tasks.data_parts import Entries
from saccade.tasks.label_task import LabelTask
from saccade.tasks.picture_task import with_labels_of
from saccade.tasks.task import AS_IS, Batch, Opening
from saccade.trace import LabelOutput, Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K) and, where there are scales, ``scale_logits`` (B,S,K)."""
    answers = decode_labels(model, output, facts)
    scales = getattr(output.aux, "scale_logits", None)
    if scales is None:
        return answers
    best = model.probabilities(scales.float()).cpu().max(-1)  # (B,S) shares and numbers
    rows = zip(best.values.tolist(), best.indices.tolist())
    told = [
        tuple((name, facts.answers[number], share) for name, share, number in zip(SCALES, shares, numbers))
        for shares, numbers in rows
    ]
    return [replace(answer, on_the_way=way) for answer, way in zip(answers, told)]


class ClassifyTask(LabelTask):
    """Trains one model that gives a picture one label; ``seed`` also decides how training pictures are varied."""

    name = "classify"
    data_settings = LabelDataConfig
    data_config: LabelDataConfig
    readers = LABEL_READERS
    losses = LOSSES
    scores = ClassifyScoring

    @classmethod
    def read(cls, config: LabelDataConfig) -> Table | None:
        """The rows of a table; CIFAR-10 is none."""
        return None if config.is_cifar else super().read(config)

    @classmethod
    def open(
        cls, config: LabelDataConfig, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS
    ) -> LabelFiles | DrawnSplit | CifarPictures:
        """Files, drawn pictures, or CIFAR-10."""
        table = cls.read(config) if how.table is None else how.table
        examples: Any
        if table is not None:
            words = None if how.facts is None else how.facts.answers
            more: dict[str, Any] = {"cache_mb": config.cache_mb, "progress": how.progress}
            examples = LabelFiles(table, split, config.size, device, answers=words, **more)
        elif config.is_generated:
            examples = DrawnSplit(config.drawn(), split, device)
        else:
            examples = CifarPictures(config.name, split, config.size, torch.device(device), hold_out=config.hold_out)
        return cast("LabelFiles | DrawnSplit | CifarPictures", with_labels_of(examples, how.facts))

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """``answers`` comes from the data."""
        self.taught: dict[str, Proposals] = {}  # what teaches the proposals of a scale, as far as phases say
        if self.table is not None:
            learned = (row.label for row in self.table.rows if row.split == "train")
            warn_of_one_answer(self.table.name, learned, things="pictures", word="label")
        return super().model_settings(model_config)

    @property
    def learns_val(self) -> bool:
        """Whether val is a part of the pictures that are learned from."""
        return self.data_config.learns_val

    def summary(self) -> str:
        """What the data holds, in one line, and what looks wrong with it; nothing of pictures that are drawn."""
        return self.data_config.remark if self.table is None else self.table.summary()

    def extra_data_parts(self) -> dict[str, Entries]:
        """The labels of train and val with their pictures; and the words."""
        digest = f"#{part_digest(self.data_config.name, 'train')}" if self.data_config.is_cifar else ""
        return ({"pictures": [("train", digest)]} if digest else {}) | super().extra_data_parts()

    def taken(self, data: Any, indices: Tensor, number: int) -> LabelledBatch:
        """The pictures ``indices`` (B,), varied anew for each batch."""
        return varied(data.take(indices), self.data_config, derive_seed(self.seed, number))

    def beside(self, batch: LabelledBatch) -> dict[str, Any]:
        """Also the crops round the evidence, for a model that needs them."""
        crops = crops_round(self.model, batch.evidence) if needs_evidence(self.model) else {}
        return super().beside(batch) | crops

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``."""
        crops = {"attention": {name: batch[name] for name in CROPS}} if CROPS[0] in batch else {}
        return super().inputs(batch) | crops

    def checked_loss(self, loss: Any, data: str) -> object:
        """``loss``, once it is clear that the model can be taught by it."""
        check_zoom_loss(self.model, loss)
        if isinstance(loss, Proposals):
            self.taught |= dict.fromkeys(CROPS if loss.of == "both" else (loss.of,), loss)
        if getattr(loss, "evidence_weight", 0.0) and self.data_config.shift is not None:
            raise ConfigError(
                "loss: evidence_weight: data.shift moves pictures without their evidence; take data.augment, or "
                "data.shift=null"
            )
        return super().checked_loss(loss, data)

    def forward_options(self, loss: Any) -> dict[str, object]:
        """What a step leaves out: scales that a loss does not need; masks, where it reads the logits alone."""
        return zoom_options(loss) if isinstance(loss, ZoomLoss) else super().forward_options(loss)

    def loss(self, raw: LabelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and the share of right answers; a model that zooms has losses of its own."""
        if isinstance(loss, ZoomLoss):
            return zoom_loss(raw, batch["label"], loss, self.model.config.smallest)
        return super().loss(raw, batch, loss)

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        return (*super().metric_names(), *zoom_metric_names(self.model, self.has_evidence, self.taught))

    @property
    def has_evidence(self) -> bool:
        """Whether the data knows where labels can be seen."""
        if self.table is None:
            return self.data_config.is_generated
        return any(row.box is not None or row.mask is not None for row in self.table.rows)

    def values(self, model: ImageOnlyModel, batch: LabelledBatch) -> dict[str, Tensor]:
        """Of a model that zooms also what each scale says."""
        raw = seen(model, batch.images, batch.evidence)
        return self.values_of(raw.logits, batch.label) | zoom_values(model, raw, batch, self.taught)

    @classmethod
    def settings_to_show(cls, settings: Mapping[str, Any], facts: ModelFacts | None) -> Mapping[str, Any]:
        """Generated pictures have a side of their own; files are shown larger than a network of CIFAR-10 sees them."""
        name = str(settings.get("name", ""))
        if (drawn := GENERATORS.get(name)) is not None:
            return {"size": (drawn.side, drawn.side), **settings}
        is_file = ":" in name and not LabelDataConfig(name=name).is_cifar
        return {"size": (224, 224), **settings} if is_file and facts is None else settings
