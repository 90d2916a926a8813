"""Multisets: a picture in, the labels of everything on it out, each as often as it occurs and in no order.

A recipe has two phases, as the paper has (Welleck et al. 2017, arXiv:1711.05165, Sections 4.2 and 5): the first, with
``data: objects``, teaches the backbone and its classifier of single objects, then everything else learns on the frozen
backbone; perhaps a third, in which both learn together (ours).

With ``data: objects`` generated scenes have one object (mnist-single), or with the option ``among`` different ones
(mnist-set); files are the same as in the other phases. Deviation from the paper: a few per cent of the training scenes
are empty (``data.empty``), so that the empty multiset can be answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight, Within
from saccade.data.scenes.hashing import derive_seed
from saccade.errors import ConfigError
from saccade.families.multiset import scores as multiset_scores
from saccade.families.multiset.data import (
    ALONE,
    DIGITS,
    MultisetDataConfig,
    MultisetFiles,
    MultisetScenes,
    MultisetSplit,
    at_size,
    boxes_at_size,
)
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.geometry import Size
from saccade.losses import multiset as multiset_losses
from saccade.metrics.result import only_defined
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.multiset_reader import MultisetCountsModel, MultisetModel
from saccade.tasks.evaluate import Measurements, answers_of
from saccade.tasks.picture_task import PictureTask, filled_in
from saccade.tasks.task import Batch, HeldOut, in_batches, loss_name
from saccade.trace import Answer, MultisetOutput, Output

OBJECTS = "objects"  # the data of a phase that learns single objects
ANSWERS = ("macro_f1", "exact_match", "overall_precision", "overall_recall")  # what validation tells of the answers


@dataclass(frozen=True)
class SingleObject:
    """Cross-entropy of the one object, or of one label of the picture, drawn anew each time (Section 4.2)."""


@dataclass(frozen=True)
class EachObject:
    """As `SingleObject`, and cross-entropy of each label from the cells under its box (not in the paper)."""


@dataclass(frozen=True)
class Reinforce:
    """Myopic REINFORCE with a learned baseline, and cross-entropy of the stop: the paper's loss."""

    entropy: Weight = 0.0  # Weight of an entropy bonus; the paper mentions none.
    elsewhere: Annotated[float, Within(-1, 1)] = 1.0
    """Reward of naming a label that is not looked at, and factor on the reward of a glimpse beside the label then
    named. 1: as published. Below 1 it needs boxes."""


@dataclass(frozen=True)
class ReinforceToGo(Reinforce):
    """As `Reinforce`, with the rewards of later actions too."""


@dataclass(frozen=True)
class ReinforceExpected(Reinforce):
    """As `Reinforce`, by the mean over all possible draws; needs no baseline."""

    log_glimpses: bool = False
    """Whether to maximise the log of a glimpse's mean reward, which still learns where the right cells have become
    unlikely."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the labels in a random order: the paper's baseline."""


@dataclass(frozen=True)
class CrossEntropyOrdered:
    """Cross-entropy of the labels in reading order."""


@dataclass(frozen=True)
class MultisetLoss:
    """The authors' later loss (Welleck et al. 2018, arXiv:1711.05246)."""


@dataclass(frozen=True)
class Counts:
    """Cross-entropy of how often each label occurs, for the model ``multiset-counts``."""


Loss = SingleObject | EachObject | Reinforce | CrossEntropy | CrossEntropyOrdered | MultisetLoss | Counts
LOSSES: dict[str, type] = {
    "single_object": SingleObject,
    "each_object": EachObject,
    "reinforce": Reinforce,
    "reinforce_to_go": ReinforceToGo,
    "reinforce_expected": ReinforceExpected,
    "cross_entropy": CrossEntropy,
    "cross_entropy_ordered": CrossEntropyOrdered,
    "multiset_loss": MultisetLoss,
    "counts": Counts,
}
OF_OBJECTS = ("single_object", "each_object")  # losses that single objects teach by


class MultisetTask(PictureTask):
    """Trains one model that reads multisets; the data set its ``classes`` and ``most``."""

    name = "multiset"
    data_settings = MultisetDataConfig
    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    readers = MULTISET_READERS
    losses = LOSSES
    scores = multiset_scores.MultisetScoring
    generated = MultisetScenes
    files = MultisetFiles
    data_choices = ("default", OBJECTS)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Whether the order of the labels is part of the answer.
        self.is_list = self.table is not None and self.table.kind == "list"
        self._counts = isinstance(self.model, MultisetCountsModel)  # and glimpses nowhere
        self.elsewhere = 1.0  # the least ``elsewhere`` of the losses asked for; below 1, boxes teach where to look

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """The data sets the number of labels, in all and per picture."""
        config = self.data_config
        self.answers = DIGITS if self.table is None else self.table.answers
        most = config.scenes("train").slots if self.table is None else self.table.most
        decided = {"classes": len(self.answers), "most": most}
        return {"input_size": (config.size, config.size), **filled_in(model_config, decided, "the data")}

    def network_size(self) -> Size:
        """The model's input size: pictures are enlarged for it."""
        height, width = self.model_config["input_size"]
        return height, width

    def training_notes(self) -> dict[str, str]:
        if self.elsewhere == 1:
            return super().training_notes()
        return {"maps_supervised": f"by boxes: a look beside the label that is said counts {self.elsewhere:g}, not 1"}

    @classmethod
    def words_of(cls, facts: ModelFacts) -> dict[str, Any]:
        """Also how many labels the model reads at most."""
        return {"answers": facts.answers, "most": facts.model.get("most")}

    def make_split(self, name: str, /, **changes: Any) -> MultisetSplit:
        """A split, or SPLIT/SCENES: that of other generated scenes."""
        split, _, other = name.partition("/")
        return cast("MultisetSplit", super().make_split(split, **({"name": other} if other else {})))

    def training_split(self, data: str = "default", features: str = "auto") -> MultisetSplit:
        """The pictures; for ``objects`` those that teach objects, perhaps other scenes."""
        teaches = self.data_config.teaches_objects
        other = data == OBJECTS and teaches != self.data_config.name
        examples: MultisetSplit = copy(self.split(f"train/{teaches}" if other else "train"))
        examples.asks_objects = data == OBJECTS
        return examples

    def batch(self, data: MultisetSplit, indices: Tensor, number: int) -> Batch:
        """Pictures with their labels in reading order and ``shuffled`` anew (lists keep their order).

        ``single`` asks for single objects alone.
        """
        drawn = derive_seed(self.seed, number)
        batch = data.take(indices, vary=drawn)
        mixed = batch if data.is_list else batch.shuffled(drawn)
        labels = {"labels": batch.labels, "shuffled": mixed.labels, "boxes": batch.boxes}
        return {"images": batch.images, **labels, "single": data.asks_objects}

    def held_out_batch(self, data: MultisetSplit, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,), as the network sees them."""
        return HeldOut(at_size(data.take(numbers).images, self.size))

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``; for single objects nothing is read."""
        images = at_size(batch["images"], self.size)
        if not batch["single"]:
            return {"images": images}
        return {"images": images, "single": True, "boxes": boxes_at_size(batch["boxes"], batch["images"], self.size)}

    def checked_loss(self, loss: Loss, data: str) -> Loss:
        name = loss_name(loss, LOSSES)
        if data == OBJECTS and name not in OF_OBJECTS:
            raise ConfigError(f"loss '{name}': data '{OBJECTS}' is taught by {' or '.join(OF_OBJECTS)}")
        if isinstance(loss, EachObject) and data != OBJECTS:
            raise ConfigError(f"loss '{name}' belongs to data '{OBJECTS}'; choose another, or set data: {OBJECTS}")
        looks = isinstance(loss, Reinforce) and loss.elsewhere < 1
        if (isinstance(loss, EachObject) or looks) and not self._has_boxes("train"):
            what = "elsewhere" if looks else name
            raise ConfigError(f"loss: '{what}' learns from boxes, and no picture has one; add a column 'boxes'")
        if looks and self.is_list:
            raise ConfigError(f"loss '{name}': 'elsewhere' is for labels in any order, these are lists; leave it out")
        if isinstance(loss, Reinforce):
            self.elsewhere = min(self.elsewhere, loss.elsewhere)
        if name not in OF_OBJECTS and isinstance(loss, Counts) != self._counts:
            other = "hsal" if self._counts else "multiset-counts"
            raise ConfigError(f"loss '{name}' cannot teach this model; take model '{other}', or another loss")
        return loss

    def _has_boxes(self, split: str) -> bool:
        rows = () if self.table is None else self.table.rows
        return self.table is None or any(any(row.boxes) for row in rows if row.split == split)

    def loss(self, output: MultisetOutput, batch: Batch, loss: Loss) -> dict[str, Tensor]:
        labels, mixed, predicted = batch["labels"], batch["shuffled"], output.said  # (B,M), (B,M), (B,T)
        match loss:
            case SingleObject():
                return multiset_losses.single_object_loss(output.single_logits, mixed)
            case EachObject():
                alone = multiset_losses.single_object_loss(output.single_logits, mixed)
                objects = multiset_losses.object_loss(output.object_logits, labels, batch["boxes"])
                return {**alone, **objects, "loss": alone["loss"] + objects["object_loss"]}
            case Counts():
                return {"loss": multiset_losses.count_loss(output.count_logits, labels)}
            case Reinforce():
                rewards = multiset_losses.list_rewards if self.is_list else multiset_losses.multiset_rewards
                how: dict[str, Any] = {"rewards": rewards, "entropy_weight": loss.entropy}
                if loss.elsewhere != 1:
                    boxes = boxes_at_size(batch["boxes"], batch["images"], self.size)  # (B,M,4)
                    inside = cast(MultisetModel, self.model).cells_in(boxes)  # (B,M,h,w)
                    reach: Any = {"classes": output.logits.shape[-1], "elsewhere": loss.elsewhere}
                    how["looked"] = multiset_losses.looked_rewards(
                        output.said, output.location, labels, inside, **reach
                    )
                if isinstance(loss, ReinforceExpected):
                    scalars = multiset_losses.hsal_expected_loss(output, labels, log_glimpses=loss.log_glimpses, **how)
                else:
                    scalars = multiset_losses.hsal_loss(output, labels, to_go=isinstance(loss, ReinforceToGo), **how)
            case MultisetLoss():
                scalars = {"loss": multiset_losses.multiset_loss(output.logits, predicted, labels)}
            case CrossEntropy():
                scalars = {"loss": multiset_losses.sequence_cross_entropy(output.logits, mixed)}
            case CrossEntropyOrdered():
                scalars = {"loss": multiset_losses.sequence_cross_entropy(output.logits, labels)}
        return scalars | {"attn_saliency": multiset_scores.saliency_at_glimpses(output, labels)}

    def metric_names(self) -> tuple[str, ...]:
        has_boxes = self._has_boxes("val")
        places = ("glimpse_in_evidence", "glimpse_on_label") if has_boxes else ()
        glimpses = () if self._counts else ("attn_saliency", "attn_saliency_raw", *places)
        return (*ANSWERS, *glimpses, "single_accuracy", *(("object_accuracy",) if has_boxes else ()))

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Scores of answers and the saliency at glimpses on the validation split.

        ``single_accuracy`` and, with boxes, ``object_accuracy`` are those of the single-object classifier.
        """
        reader = cast(MultisetModel, model)
        measured, stop = Measurements(), len(self.answers)
        for batch in in_batches(self.split("val"), multiset_scores.VALIDATION_BATCH):
            output, trace = multiset_scores.read_all(reader, batch.images, self.size)
            multiset_scores.add_answers(measured, answers_of(trace), batch, stop, self.is_list)
            multiset_scores.add_glimpses(measured, output, trace, batch, stop)
        columns = measured.columns
        answers = multiset_scores.answer_scores(columns["predicted"], columns["truth"]) | measured.answers.means()
        scores = {name: answers[name] for name in ANSWERS if name in answers}
        alone = self.split(f"val/{ALONE}" if self.data_config.is_generated else "val")
        named = multiset_scores.objects_named(reader, alone, self.size)
        return {**scores, **only_defined(measured.acts.means()), **named}


def decode(model: ImageOnlyModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answers from logits (B,T,K+1) and labels (B,T) up to the first stop, id K.

    The confidence is the product of the probabilities of all labels and of the stop.
    """
    predicted, words = cast(Tensor, output.trace.answer), facts.answers
    every_share = output.logits.float().softmax(-1)  # (B,T,K+1)
    shares = torch.take_along_dim(every_share, predicted[..., None], dim=-1)[..., 0].cpu()  # (B,T)
    answers = []
    for ids, share in zip(predicted.tolist(), shares):
        end = ids.index(len(words)) if len(words) in ids else len(ids)
        labels = tuple((words[label], float(probability)) for label, probability in zip(ids[:end], share))
        listed = ", ".join(words[label] for label in sorted(ids[:end]))
        confidence = float(share[: end + 1].double().prod())
        answers.append(Answer(f"{{{listed}}}", confidence, kind="labels", parts=labels))
    return answers
