"""Training of classification: a picture in, one label out. Scoring is in ``scores``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.answer import Answer
from saccade.config import from_dict
from saccade.data.pictures.reading import as_float
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import check_named, check_trainable, warn_of_one_answer
from saccade.errors import ConfigError, DataError
from saccade.families.classify.cifar import part_digest
from saccade.families.classify.data import LabelData, LabelDataConfig, read_table
from saccade.families.classify.readers import LABEL_READERS
from saccade.families.classify.scores import score_labels
from saccade.families.classify.zoom_scores import zoom_metric_names, zoom_values
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
from saccade.families.labels import decode as decode_labels
from saccade.losses import cross_entropy
from saccade.metrics.intervals import Values
from saccade.metrics.labels import top_k_correct
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import AttentionModel, ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.racnn import CROPS, SCALES
from saccade.outputs import ModelOutput
from saccade.tasks.data_parts import LEARNED, Entries, picture_entries, row_entries, word_entries
from saccade.tasks.eval_request import EvalRequest, requested_settings
from saccade.tasks.held_out import HeldOut
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import Batch, in_batches
from saccade.trace import Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K) and, where there are scales, ``scale_logits`` (B,S,K)."""
    answers = decode_labels(model, output, facts)
    if "scale_logits" not in output.aux:
        return answers
    best = model.probabilities(output.aux["scale_logits"].float()).cpu().max(-1)  # (B,S) shares and numbers
    rows = zip(best.values.tolist(), best.indices.tolist())
    told = [
        tuple((name, facts.answers[number], share) for name, share, number in zip(SCALES, shares, numbers))
        for shares, numbers in rows
    ]
    return [replace(answer, on_the_way=way) for answer, way in zip(answers, told)]


VALIDATION_BATCH = 1000
VALIDATION_PIXELS = 10_000_000
"""Most pixels of pictures that are scored together during training: 199 pictures of 224 × 224."""


class ClassifyTask(PictureTask):
    """Trains one model that gives a picture one label.

    Args:
        model: name of the model, a ``ImageOnlyModel`` whose Config has ``answers``, how many labels there are.
        model_config: settings of the model; ``answers`` comes from the data.
        data: settings of :class:`LabelDataConfig`.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of training pictures and of how they are varied.
    """

    name = "classify"
    data_settings = LabelDataConfig
    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    losses = LOSSES

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        check_named(data, LABEL_READERS, "pictures")
        self.taught: dict[str, Proposals] = {}  # what teaches the proposals of a scale, as far as phases say
        self.data_config: LabelDataConfig = from_dict(LabelDataConfig, data, where="data")
        self.table = read_table(self.data_config)
        if self.table is not None:
            check_trainable(self.table, "picture")
            learned = (row.label for row in self.table.rows if row.split == "train")
            warn_of_one_answer(self.table.name, learned, things="pictures", word="label")
            self.classes = self.table.classes
        else:
            self.classes = self.data_config.classes
        if (found := model_config.get("answers", len(self.classes))) != len(self.classes):
            raise ConfigError(
                f"model.config.answers: found {found}, but the data has {len(self.classes)}; leave it out"
            )
        super().__init__(
            model=model,
            model_config={**model_config, "answers": len(self.classes)},
            size=self.data_config.size,
            protocol=protocol,
            seed=seed,
        )

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; what the labels are called."""
        return (), self.classes

    @property
    def learns_val(self) -> bool:
        """Whether val is a part of the pictures that are learned from."""
        return self.data_config.learns_val

    def summary(self) -> str:
        """What the data holds, in one line, and what looks wrong with it; nothing of pictures that are drawn."""
        if self.table is None:
            return self.data_config.remark
        return self.table.summary()

    def extra_data_parts(self) -> dict[str, Entries]:
        """The labels of train and val with their pictures; and the words."""
        words = {"vocabulary": word_entries(label=self.classes)}
        if self.data_config.is_cifar:
            return {"pictures": [("train", f"#{part_digest(self.data_config.name, 'train')}")], **words}
        if self.table is None:
            return words
        rows = [row for row in self.table.rows if row.split in LEARNED]
        return {
            "rows": row_entries((row.image, "", (row.split, row.label)) for row in rows),
            "pictures": picture_entries((row.image for row in rows), self.on_progress),
            **words,
        }

    def make_split(self, name: str) -> LabelData:
        """One split of the pictures, on the device; generated training pictures are drawn anew for each seed."""
        config = self.data_config
        if name == "train" and config.is_generated:
            config = replace(config, seed=config.seed + self.seed)
        return LabelData(config, name, self.device, self.table)

    def batch(self, data: LabelData, indices: Tensor, number: int) -> Batch:
        """The pictures ``indices`` (B,), varied anew for each batch, with their labels; bytes stay bytes."""
        varied = derive_seed(self.seed, number)
        made = data.take(indices, varied) if data.config.augment is not None else data.as_kept(indices, varied)
        crops = crops_round(self.model, made.evidence) if needs_evidence(self.model) else {}
        evidence = {"evidence": made.evidence} if self.evidence_weight else {}
        return {"images": made.images, "label": made.label, **crops, **evidence}

    def held_out_batch(self, data: LabelData, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,) with their labels."""
        made = data.take(numbers)
        return HeldOut(made.images, label=made.label)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``."""
        images = batch["images"]
        told = {"images": images if images.is_floating_point() else as_float(images)}
        return told | ({"attention": {name: batch[name] for name in CROPS}} if CROPS[0] in batch else {})

    def checked_loss(self, loss: object, data: str) -> object:
        """``loss``, once it is clear that the model can be taught by it."""
        check_zoom_loss(self.model, loss)
        if isinstance(loss, Proposals):
            self.taught |= dict.fromkeys(CROPS if loss.of == "both" else (loss.of,), loss)
        if weight := getattr(loss, "evidence_weight", 0.0):
            if self.data_config.shift is not None:
                raise ConfigError(
                    "loss: evidence_weight: data.shift moves pictures without their evidence; take data.augment, or "
                    "data.shift=null"
                )
            self.require_evidence(weight, self.has_evidence)
        return loss

    def forward_options(self, loss: object) -> dict[str, object]:
        """What a step leaves out: scales that a loss does not need; masks, where it reads the logits alone."""
        if isinstance(loss, ZoomLoss):
            return zoom_options(loss)
        can = (
            isinstance(self.model, ImageOnlyModel)
            and self.model.can_skip_looks
            and not getattr(loss, "evidence_weight", 0)
        )
        return {"logits_only": True} if can else {}

    def loss(self, raw: ModelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and the share of right answers; a model that zooms has losses of its own."""
        if isinstance(loss, ZoomLoss):
            return zoom_loss(raw, batch["label"], loss, self.model.config.smallest)
        logits, label = raw["logits"], batch["label"]  # (B,K), (B,)
        found = {"loss": cross_entropy(logits, label), "accuracy": (logits.argmax(-1) == label).float().mean()}
        return self.with_evidence(found, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        top5 = ("top5",) if len(self.classes) > 5 else ()
        return ("accuracy", "loss", *top5, *zoom_metric_names(self.model, self.has_evidence, self.taught))

    @property
    def has_evidence(self) -> bool:
        """Whether the data knows where labels can be seen."""
        if self.table is None:
            return self.data_config.is_generated
        return any(row.box is not None or row.mask is not None for row in self.table.rows)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy, loss, of many classes top-5, and of a model that zooms each scale, on the validation split."""
        model = cast(ImageOnlyModel, model)
        scores = Values()
        height, width = self.data_config.size
        together = max(1, min(VALIDATION_BATCH, VALIDATION_PIXELS // (height * width)))
        for batch in in_batches(self.split("val"), together):
            raw = seen(model, batch.images, batch.evidence)
            logits = raw["logits"].float()  # (B,K)
            surprise = nn.functional.cross_entropy(logits, batch.label, reduction="none")  # (B,)
            found = {"accuracy": logits.argmax(-1) == batch.label, "loss": surprise}
            if len(self.classes) > 5:
                found["top5"] = top_k_correct(logits, batch.label, 5)
            scores.add_values(found | zoom_values(model, raw, batch, self.taught))
        return scores.means()

    @classmethod
    def eval_kwargs(cls, facts: ModelFacts, request: EvalRequest) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` as ``request`` asks."""
        return {"data": requested_settings(facts, request, LABEL_READERS), "classes": facts.answers}

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        classes: tuple[str, ...],
        limit: int | None = None,
        sweeps: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        ``classes`` are the model's words.
        """
        if sweeps:
            raise ConfigError(f"sweeps: the family '{cls.name}' has no deletion and insertion; found {sweeps}")
        model = cast(ImageOnlyModel, model)
        config = from_dict(LabelDataConfig, data, where="data")
        chosen = LabelData(config, split, next(model.parameters()).device, classes=classes)
        if chosen.size is None:
            raise DataError(f"split '{split}' has no end; score val or test")
        scores = score_labels(model, chosen, config.size, limit=limit, progress=progress).summary()
        if config.is_table:
            scores["counts"]["skipped_pictures"] = len(chosen.skipped)
        if config.remark and split == "val":
            scores["note"] = config.remark
        return evaluation(scores, data=config.name.partition(":")[0], split=split)
