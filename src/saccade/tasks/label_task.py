"""A picture in, one label out: the task that trains, scores and shows it, whatever the pictures are.

A family of generated pictures subclasses :class:`LabelTask` and names its pictures, a
:class:`~saccade.data.pictures.labelled.DrawnPictures`; all else is written here.
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
from saccade.data.pictures.labelled import DrawnPictures, DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import as_float
from saccade.data.tables.splits import Split, checked_split
from saccade.errors import ConfigError
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.losses import cross_entropy
from saccade.metrics.intervals import Values
from saccade.metrics.labels import top_k_correct
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.outputs import LabelOutput
from saccade.tasks.evaluate import evaluate
from saccade.tasks.forward_passes import in_parts
from saccade.tasks.held_out import HeldOut
from saccade.tasks.label_scores import FIRST, LabelScoring
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import Batch, in_batches

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
    scoring: ClassVar[type[LabelScoring]] = LabelScoring

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        self.read(data)
        labels = len(self.answers)
        if (found := model_config.get("answers", labels)) != labels:
            raise ConfigError(f"model.config.answers: found {found}, but the data has {labels}; leave it out")
        super().__init__(
            model=model,
            model_config={**model_config, "answers": labels},
            size=self.data_config.size,
            protocol=protocol,
            seed=seed,
        )

    def read(self, data: Mapping[str, object]) -> None:
        """Set ``data_config`` and ``answers``, what the labels are called, from the settings of the data."""
        self.data_config = from_dict(self.pictures, data, where="data")
        self.answers: tuple[str, ...] = self.data_config.answers

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; what the labels are called."""
        return (), self.answers

    def make_split(self, name: str) -> Any:
        """One split of the pictures, on the device; training pictures are drawn anew for each seed."""
        config = self.data_config
        if name == "train":
            config = replace(config, seed=config.seed + self.seed)
        return DrawnSplit(config, cast(Split, name), self.device)

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
        made = data.take(numbers)
        return HeldOut(made.images, label=made.label)

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
            scores.add_values(self.values(cast(ImageOnlyModel, model), batch))
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
    def open(
        cls,
        settings: Mapping[str, object],
        split: Split,
        device: torch.device | str = "cpu",
        *,
        answers: tuple[str, ...] | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Any, str]:
        """A split of the data that ``settings`` describe, and what is to be known of it, in words.

        Args:
            settings: of the data, as a recipe has them.
            split: train, val or test.
            device: where batches are made.
            answers: the labels of a trained model, in its order.
            count: read at most so many pictures of files.
            progress: called while files are read.
        """
        return DrawnSplit(config_of(cls.pictures, settings), checked_split(split), device), ""

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        answers: tuple[str, ...] | None = None,
        limit: int | None = None,
        sweeps: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        ``answers`` are the model's words.
        """
        if sweeps:
            raise ConfigError(f"sweeps: the family '{cls.name}' has no deletion and insertion; found {sweeps}")
        model = cast(ImageOnlyModel, model)
        chosen, _ = cls.open(data, checked_split(split), next(model.parameters()).device, answers=answers)
        example = chosen.take(torch.arange(1)).images
        size = (example.shape[-2], example.shape[-1])
        scores = evaluate(cls.scoring(model, chosen, size, limit), progress)
        if isinstance(chosen, DrawnSplit):
            return evaluation(scores, data=chosen.pictures.name, split=split, seed=chosen.pictures.seed)
        return evaluation(scores, data=chosen.config.name.partition(":")[0], split=split)

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
        words = None if facts is None else facts.answers
        chosen, summary = cls.open(settings, split, answers=words, count=count, progress=progress)
        return OpenedSplit(lambda many: label_examples(chosen, many), summary)

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


def label_examples(data: Any, count: int) -> list[Example]:
    """The first ``count`` pictures with their labels."""
    made = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    masks = [()] * len(made) if made.evidence is None else [seen_masks(mask[None]) for mask in made.evidence]
    truths = [data.answers[label] for label in made.label.tolist()]
    return [Example(*each) for each in zip(made.images, truths, masks)]
