"""One label for a picture, and no question: training, scoring and showing a classifier of generated pictures.

A family declares a subclass with its name and its pictures::

    class DotsTask(LabelTask):
        name = "dots"
        pictures = Dots

The subclass can also be the family's ``splits``, for ``saccade data`` and for reports: it opens and writes them.
Pictures that are read from files need :meth:`LabelTask.make_split` and :meth:`LabelTask.evaluate` of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight, from_dict
from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import write_drawn
from saccade.data.pictures.labelled import DrawnPictures, DrawnSplit
from saccade.data.tables.splits import Split, checked_split
from saccade.errors import ConfigError, DataError
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.losses import cross_entropy
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Evaluation, evaluation, summarise
from saccade.metrics.verdict import EvidenceReliance, sampled, verdict
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.outputs import ModelOutput
from saccade.tasks.forward_passes import BATCH, answers_of, in_parts, numbers_in_batches
from saccade.tasks.held_out import HeldOut
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import Batch, in_batches

VALIDATION_BATCH = 500


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the label; with ``evidence_weight``, maps are taught to lie on the evidence."""

    evidence_weight: Weight = 0.0
    """Weight of the loss that trains maps to lie on the evidence, :mod:`saccade.losses.maps`; 0: no such loss."""


class LabelTask(PictureTask):
    """Trains one model that gives a picture one label.

    Args:
        model: name of the model, a ``ImageOnlyModel`` whose Config has ``answers``, how many labels there are.
        model_config: settings of the model; ``answers`` comes from the data.
        data: settings of :attr:`pictures`.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights and of fresh training pictures. Validation and test pictures do not depend on it.
    """

    pictures: ClassVar[type[DrawnPictures]]
    """The settings of the data, which say how pictures are drawn."""
    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    losses: ClassVar[Mapping[str, type]] = {"default": CrossEntropy, "cross_entropy": CrossEntropy}

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        self.data_config: DrawnPictures = from_dict(self.pictures, data, where="data")
        labels = len(self.data_config.answers)
        if (found := model_config.get("answers", labels)) != labels:
            raise ConfigError(f"model.config.answers: found {found}, but the data has {labels}; leave it out")
        super().__init__(
            model=model,
            model_config={**model_config, "answers": labels},
            size=self.data_config.size,
            protocol=protocol,
            seed=seed,
        )

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; what the labels are called."""
        return (), self.data_config.answers

    def make_split(self, name: str) -> DrawnSplit:
        """One split of the pictures, on the device; training pictures are drawn anew for each seed."""
        config = self.data_config
        if name == "train":
            config = replace(config, seed=config.seed + self.seed)
        return DrawnSplit(config, cast(Split, name), self.device)

    def batch(self, data: DrawnSplit, indices: Tensor, number: int) -> Batch:
        """The pictures ``indices`` (B,) with their labels."""
        made = data.take(indices)
        evidence = {"evidence": made.evidence} if self.evidence_weight else {}
        return {"images": made.images, "label": made.label, **evidence}

    def checked_loss(self, loss: Any, data: str) -> object:
        """``loss``, once it is clear that the pictures have the evidence that it needs."""
        if loss.evidence_weight:
            self.require_evidence(loss.evidence_weight, self.split("val").take(torch.arange(1)).evidence is not None)
        return loss

    def held_out_batch(self, data: DrawnSplit, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,) with their labels."""
        made = data.take(numbers)
        return HeldOut(made.images, label=made.label)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``."""
        return {"images": batch["images"]}

    def loss(self, raw: ModelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Cross-entropy of the label, and the share of right answers."""
        logits, label = raw["logits"], batch["label"]  # (B,K), (B,)
        found = {"loss": cross_entropy(logits, label), "accuracy": (logits.argmax(-1) == label).float().mean()}
        return self.with_evidence(found, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        return ("accuracy", "loss")

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split."""
        scores = Values()
        for batch in in_batches(self.split("val"), VALIDATION_BATCH):
            logits = in_parts(cast(ImageOnlyModel, model), batch.images)["logits"]  # (B,K)
            surprise = torch.nn.functional.cross_entropy(logits, batch.label, reduction="none")  # (B,)
            scores.add_values({"accuracy": logits.argmax(-1) == batch.label, "loss": surprise})
        return scores.means()

    @classmethod
    @torch.no_grad()
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        limit: int | None = None,
        sweeps: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        Beside the accuracy stands the majority-class baseline of the scored pictures.
        """
        if sweeps:
            raise ConfigError(f"sweeps: the family '{cls.name}' has no deletion and insertion; found {sweeps}")
        model, config = cast(ImageOnlyModel, model), config_of(cls.pictures, data)
        chosen = DrawnSplit(config, checked_split(split), next(model.parameters()).device)
        if chosen.size is None:
            raise DataError(f"split '{split}' has no end; score val or test")
        answers, maps, columns = Values(), MapScorer(), ColumnBuffer()
        total, done = min(limit or chosen.size, chosen.size), 0
        for numbers in numbers_in_batches(total, BATCH):
            batch = chosen.take(numbers)
            trace = model.wrap(in_parts(model, batch.images), config.size).trace
            answers.add_values({"accuracy": answers_of(trace) == batch.label})
            columns.append(label=batch.label, picture=numbers)
            if batch.evidence is not None and any(look.is_spatial for look in trace.looks):
                maps.add_trace(trace, batch.evidence, groups=numbers)
            done += len(batch)
            progress(done, total)
        label, picture = columns["label"], columns["picture"]  # (N,) each
        commonest = int(torch.bincount(label).argmax())
        guessed = (label == commonest).double()  # (N,)
        rests = _rests_on(model, chosen, sampled(total), commonest)
        scores = summarise(
            n=total,
            metrics=answers.means(),
            maps=maps,
            measured=[(answers, picture)],
            baselines={"commonest_label": {"accuracy": float(guessed.mean())}},
        )
        worth = verdict(answers["accuracy"], {"commonest_label": guessed}, picture, maps=maps, rests_on=rests)
        return evaluation({**scores, **worth}, data=config.name, split=split, seed=config.seed)

    @classmethod
    def open_split(
        cls,
        settings: Mapping[str, object],
        split: Split,
        *,
        facts: ModelFacts | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> OpenedSplit:
        """The pictures of a split with their labels, to be looked at."""
        chosen = DrawnSplit(config_of(cls.pictures, settings), split)

        def examples(many: int) -> list[Example]:
            made = chosen.take(torch.arange(many if chosen.size is None else min(many, chosen.size)))
            masks = [()] * len(made) if made.evidence is None else [seen_masks(mask[None]) for mask in made.evidence]
            truths = [chosen.pictures.answers[label] for label in made.label.tolist()]
            return [Example(*each) for each in zip(made.images, truths, masks)]

        return OpenedSplit(examples)

    @classmethod
    def write_split(
        cls,
        settings: Mapping[str, object],
        split: Split,
        count: int,
        out: Path,
        *,
        start: int = 0,
        progress: Progress | None = None,
    ) -> Path:
        """Write pictures as PNGs, and ``scenes.jsonl``: image, label, box of the evidence, seed, split and index."""
        chosen = DrawnSplit(config_of(cls.pictures, settings), split)
        return write_drawn(chosen, count, out, start=start, progress=progress)


def _rests_on(model: ImageOnlyModel, data: DrawnSplit, chosen: Tensor, commonest: int) -> EvidenceReliance:
    """Answers to the pictures ``chosen`` (n,) without their evidence, and without the rest."""
    found = EvidenceReliance()
    for places in numbers_in_batches(len(chosen), BATCH):
        batch = data.take(chosen[places])
        if batch.evidence is None:
            break
        label = batch.label

        def right(images: Tensor, rows: Tensor, label: Tensor = label) -> Tensor:
            return model.logits_and_answer(in_parts(model, images))[1] == label[rows]

        pictures = chosen[places].to(label.device)
        found.add(batch.images, batch.evidence, right, labels=label, pictures=pictures, guessed=label == commonest)
    return found
