"""Classification: a picture in, one label out. What it has beside :class:`LabelTask`: tables, CIFAR-10, and zooming."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.answer import Answer
from saccade.config import from_dict
from saccade.data.pictures.export import write_drawn
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import check_named, check_trainable, warn_of_one_answer
from saccade.data.tables.splits import Split
from saccade.errors import ConfigError, DataError
from saccade.families.classify.cifar import part_digest
from saccade.families.classify.data import GENERATORS, LabelData, LabelDataConfig, read_table
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
from saccade.families.splits import Progress, config_of
from saccade.metrics.result import Evaluation
from saccade.models.base import AttentionModel, ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.racnn import CROPS, SCALES
from saccade.outputs import LabelOutput
from saccade.tasks.data_parts import LEARNED, Entries, picture_entries, row_entries, word_entries
from saccade.tasks.eval_request import EvalRequest, requested_settings
from saccade.tasks.label_task import LabelTask
from saccade.tasks.task import Batch
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


class ClassifyTask(LabelTask):
    """Trains one model that gives a picture one label; arguments as of :class:`LabelTask`.

    ``data`` are settings of :class:`LabelDataConfig`; ``seed`` also decides how training pictures are varied.
    """

    name = "classify"
    data_settings = LabelDataConfig
    data_config: LabelDataConfig
    readers = LABEL_READERS
    losses = LOSSES
    scoring = ClassifyScoring

    def read(self, data: Mapping[str, object]) -> None:
        """Read the settings and, of files, the table, which says what the labels are called."""
        check_named(data, LABEL_READERS, "pictures")
        self.taught: dict[str, Proposals] = {}  # what teaches the proposals of a scale, as far as phases say
        self.data_config = from_dict(LabelDataConfig, data, where="data")
        self.table = read_table(self.data_config)
        if self.table is None:
            self.answers = self.data_config.answers
            return
        check_trainable(self.table, "picture")
        learned = (row.label for row in self.table.rows if row.split == "train")
        warn_of_one_answer(self.table.name, learned, things="pictures", word="label")
        self.answers = self.table.answers

    @property
    def learns_val(self) -> bool:
        """Whether val is a part of the pictures that are learned from."""
        return self.data_config.learns_val

    def summary(self) -> str:
        """What the data holds, in one line, and what looks wrong with it; nothing of pictures that are drawn."""
        return self.data_config.remark if self.table is None else self.table.summary()

    def extra_data_parts(self) -> dict[str, Entries]:
        """The labels of train and val with their pictures; and the words."""
        words = {"vocabulary": word_entries(label=self.answers)}
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
        return LabelData(config, cast(Split, name), self.device, self.table)

    def taken(self, data: LabelData, indices: Tensor, number: int) -> LabelledBatch:
        """The pictures ``indices`` (B,), varied anew for each batch."""
        varied = derive_seed(self.seed, number)
        return data.take(indices, varied) if data.config.augment is not None else data.as_kept(indices, varied)

    def batch(self, data: LabelData, indices: Tensor, number: int) -> Batch:
        """The pictures ``indices`` (B,) with their labels, and crops round the evidence for a model that needs them."""
        made = self.taken(data, indices, number)
        crops = crops_round(self.model, made.evidence) if needs_evidence(self.model) else {}
        evidence = {"evidence": made.evidence} if self.evidence_weight else {}
        return {"images": made.images, "label": made.label, **crops, **evidence}

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
    def eval_kwargs(cls, facts: ModelFacts, request: EvalRequest) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` as ``request`` asks."""
        return {"data": requested_settings(facts, request, LABEL_READERS), "answers": facts.answers}

    @classmethod
    def open(
        cls,
        settings: Mapping[str, object],
        split: Split,
        device: torch.device | str = "cpu",
        *,
        answers: tuple[str, ...] | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[LabelData, str]:
        """A split of the data; for a person, files are opened at a size to be seen."""
        config = config_of(LabelDataConfig, {**_seen_well(settings, answers is not None), **settings})
        table = read_table(config)
        shown = table if table is None or count is None else table.first(split, count)
        data = LabelData(config, split, device, shown, answers, progress=progress)
        return data, config.remark if table is None else table.summary()

    @classmethod
    def evaluate(cls, model: nn.Module, data: Mapping[str, object], split: str, **options: Any) -> Evaluation:
        """As :meth:`LabelTask.evaluate`; of CIFAR-10 with what must be known of its val."""
        found = super().evaluate(model, data, split, **options)
        config = from_dict(LabelDataConfig, data, where="data")
        if config.remark and split == "val":
            found["note"] = config.remark
        return found

    @classmethod
    def write_split(
        cls,
        settings: Mapping[str, object],
        split: Split,
        count: int,
        out: Path,
        *,
        start: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write generated pictures as PNGs, and ``scenes.jsonl``, which ``jsonl:`` reads again."""
        config = config_of(LabelDataConfig, {**_seen_well(settings, False), **settings})
        if not config.is_generated:
            raise DataError(f"{config.name} is read, not generated; it cannot be made")
        return write_drawn(DrawnSplit(config.drawn(), split), count, out, start=start, progress=progress)


def _seen_well(settings: Mapping[str, object], has_model: bool) -> dict[str, object]:
    """A size at which a person can see pictures, where nobody says one: generated ones have a side of their own."""
    name = str(settings.get("name", ""))
    if (drawn := GENERATORS.get(name)) is not None:
        return {"size": (drawn.side, drawn.side)}
    is_file = ":" in name and not LabelDataConfig(name=name).is_cifar
    return {"size": (224, 224)} if is_file and not has_model else {}
