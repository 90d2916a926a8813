"""Multisets: a picture in, the labels of everything on it out, each as often as it occurs and in no order.

The training side; the scoring side is in ``scores``. A recipe has two phases, as the paper has
(Welleck et al. 2017, arXiv:1711.05165, Sections 4.2 and 5): the first, with ``data: objects``, teaches the backbone and
its classifier of single objects, then everything else learns on the frozen backbone; perhaps a third, in which both
learn together (ours). What teaches is named in :mod:`saccade.families.multiset.losses`.

With ``data: objects`` nothing is read: the model is asked about single objects alone. Generated scenes are then scenes
of one object (mnist-single), or with the option ``among`` of different ones (mnist-set); given pictures are the same
ones as in the other phases. Deviation from the paper: a few per cent of the training scenes are empty (``data.empty``),
so that the empty multiset can be answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import check_named, check_trainable
from saccade.data.tables.references import read_reference, split_reference
from saccade.data.tables.splits import Split
from saccade.errors import ConfigError
from saccade.families.multiset.batch import at_size, boxes_at_size, read_all, read_objects
from saccade.families.multiset.data import (
    ALONE,
    DIGITS,
    PROTOCOLS,
    SCENES,
    MultisetData,
    MultisetDataConfig,
    MultisetScenes,
)
from saccade.families.multiset.losses import (
    LOSSES,
    OF_OBJECTS,
    Counts,
    CrossEntropy,
    CrossEntropyOrdered,
    EachObject,
    Loss,
    MultisetLoss,
    Reinforce,
    ReinforceExpected,
    ReinforceToGo,
    SingleObject,
)
from saccade.families.multiset.readers import MULTISET_READERS, commonest_multiset
from saccade.families.multiset.scores import MultisetScores, add_answers, add_glimpses, score_multisets
from saccade.losses import (
    LookedRewards,
    count_loss,
    hsal_expected_loss,
    hsal_loss,
    list_reward,
    list_rewards,
    looked_rewards,
    multiset_loss,
    multiset_reward,
    multiset_rewards,
    object_loss,
    sequence_cross_entropy,
    single_object_loss,
)
from saccade.losses.multiset import label_steps, names_each, names_one
from saccade.metrics import at_glimpses
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.models.multiset_reader import MultisetCountsModel, MultisetModel
from saccade.outputs import MultisetOutput
from saccade.tasks.data_parts import LEARNED, Entries, glyph_entries, picture_entries, row_entries, word_entries
from saccade.tasks.eval_request import EvalRequest, requested_settings
from saccade.tasks.forward_passes import answers_of
from saccade.tasks.held_out import HeldOut
from saccade.tasks.losses import loss_name
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import Batch, in_batches

OBJECTS = "objects"
"""The material of a phase that learns single objects."""
ANSWERS = ("macro_f1", "exact_match", "overall_precision", "overall_recall")
"""What validation tells of the answers."""
VALIDATION_BATCH = 500


class MultisetTask(PictureTask):
    """Trains one model that reads multisets.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model; ``classes`` and ``most`` come from the data, as does ``input_size`` unless
            it is given: pictures are then resized to it.
        data: settings of :class:`MultisetDataConfig`.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of training pictures and labels, and of fresh training scenes.
    """

    name = "multiset"
    data_settings = MultisetDataConfig
    model_kind = ImageOnlyModel
    model_description = "says by itself what it sees"
    readers = MULTISET_READERS
    losses = LOSSES
    data_choices = ("default", OBJECTS)

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        check_named(data, MULTISET_READERS, "pictures")
        finite = {"protocol": protocol} if data.get("name") in SCENES and protocol in PROTOCOLS else {}
        self.data_config = from_dict(MultisetDataConfig, {**data, **finite}, where="data")
        config = self.data_config
        self.table = None if config.is_generated else read_reference(config.name, MULTISET_READERS, config.options)
        if self.table is not None:
            check_trainable(self.table, "picture")
        self.classes = DIGITS if self.table is None else self.table.answers
        most = config.scenes("train").slots if self.table is None else self.table.most
        settings = {"input_size": (config.size, config.size), **_filled_in(model_config, len(self.classes), most)}
        height, width = settings["input_size"]
        super().__init__(model=model, model_config=settings, size=(height, width), protocol=protocol, seed=seed)
        self.elsewhere = 1.0
        """The least ``elsewhere`` of the losses asked for; below 1, boxes teach where to look."""

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; what can be on a picture."""
        return (), self.classes

    def summary(self) -> str:
        """What the table holds, in one line, and what looks wrong with it; nothing of scenes."""
        if self.table is None:
            return ""
        return self.table.summary()

    def training_notes(self) -> dict[str, str]:
        """That boxes taught where to look, where they did."""
        if self.elsewhere == 1:
            return super().training_notes()
        return {"maps_supervised": f"by boxes: a look beside the label that is said counts {self.elsewhere:g}, not 1"}

    def extra_data_parts(self) -> dict[str, Entries]:
        """The labels of train and val with their pictures, or the glyphs of scenes; and the words."""
        words = {"vocabulary": word_entries(label=self.classes)}
        if self.table is None:
            return {"glyphs": glyph_entries(self.data_config.glyphs), **words}
        rows = [row for row in self.table.rows if row.split in LEARNED]
        return {
            "rows": row_entries((row.image, "", (row.split, row.labels, row.boxes, row.crop)) for row in rows),
            "pictures": picture_entries((row.image for row in rows), self.on_progress),
            **words,
        }

    def make_split(self, name: str) -> MultisetData:
        """One split of the pictures, or SPLIT/SCENES: that of other generated scenes."""
        split, _, other = name.partition("/")
        config = self.data_config
        if config.is_generated:
            fresh = split == "train" and config.protocol == "unlimited"  # a finite set is the same for every seed
            seed = config.seed + (self.seed if fresh else 0)
            config = replace(config, name=other or config.name, seed=seed)
        return MultisetData(config, cast(Split, split), self.device, self.table)

    def training_split(self, data: str = "default", features: str = "auto") -> MultisetData:
        """For ``objects`` what teaches objects, perhaps other scenes; else the pictures themselves."""
        config = self.data_config
        other = data == OBJECTS and config.teaches_objects != config.name
        found: MultisetData = self.split(f"train/{config.teaches_objects}" if other else "train")
        return found

    def batch(self, data: MultisetData, indices: Tensor, number: int) -> Batch:
        """Pictures with their labels in reading order and ``shuffled``, anew for each batch; a list keeps its order."""
        drawn = derive_seed(self.seed, number)
        made = data.take(indices, augment_seed=drawn)
        mixed = made if data.kind == "list" else made.shuffled(drawn)
        return {"images": made.images, "labels": made.labels, "shuffled": mixed.labels, "boxes": made.boxes}

    def train_batches(
        self,
        start: int,
        *,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        data: str = "default",
        features: str = "auto",
    ) -> Iterator[Batch]:
        """Batches of a phase; those of ``objects`` say that only single objects are asked about."""
        share = {"batch_size": batch_size, "rank": rank, "world_size": world_size}
        for batch in super().train_batches(start, **share, data=data, features=features):
            yield {**batch, "single": data == OBJECTS}

    def held_out_batch(self, data: MultisetData, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,), as the network sees them."""
        return HeldOut(at_size(data.take(numbers).images, self.size))

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``; where single objects are learned, nothing is read."""
        images = at_size(batch["images"], self.size)
        if not batch["single"]:
            return {"images": images}
        return {"images": images, "single": True, "boxes": boxes_at_size(batch["boxes"], batch["images"], self.size)}

    def checked_loss(self, loss: Loss, data: str) -> Loss:
        """Refuse a loss that the material, the model or the data is not made for."""
        name = loss_name(loss, LOSSES)
        if data == OBJECTS and name not in OF_OBJECTS:
            raise ConfigError(f"loss '{name}': data '{OBJECTS}' is taught by {' or '.join(OF_OBJECTS)}")
        if isinstance(loss, EachObject) and data != OBJECTS:
            raise ConfigError(f"loss '{name}' belongs to data '{OBJECTS}'; choose another, or set data: {OBJECTS}")
        looks = isinstance(loss, Reinforce) and loss.elsewhere < 1
        if (isinstance(loss, EachObject) or looks) and not self._has_boxes("train"):
            other = "leave 'elsewhere' out" if looks else "take the loss 'single_object'"
            raise ConfigError(
                f"loss '{name}' learns from boxes, and no training picture of {self.data_config.name} has one; give "
                f"them in a column 'boxes', or {other}"
            )
        if looks and self.is_list:
            raise ConfigError(f"loss '{name}': 'elsewhere' is for labels in any order, these are lists; leave it out")
        if isinstance(loss, Reinforce):
            self.elsewhere = min(self.elsewhere, loss.elsewhere)
        if name not in OF_OBJECTS and isinstance(loss, Counts) != self._counts:
            other = "hsal" if self._counts else "multiset-counts"
            raise ConfigError(f"loss '{name}' cannot teach this model; take model '{other}', or another loss")
        return loss

    @property
    def _counts(self) -> bool:
        """Whether the model counts labels, and glimpses nowhere."""
        return isinstance(self.model, MultisetCountsModel)

    def _has_boxes(self, split: str) -> bool:
        """Whether some label in ``split`` has a box; of generated scenes all have."""
        rows = () if self.table is None else self.table.rows
        return self.table is None or any(any(row.boxes) for row in rows if row.split == split)

    def loss(self, raw: MultisetOutput, batch: Batch, loss: Loss) -> dict[str, Tensor]:
        """The value of ``loss``, its parts, and what tells how training goes."""
        labels, mixed = batch["labels"], batch["shuffled"]  # (B,M)
        match loss:
            case SingleObject():
                return single_object_loss(raw["single_logits"], mixed)
            case EachObject():
                alone = single_object_loss(raw["single_logits"], mixed)
                own = object_loss(raw["object_logits"], labels, batch["boxes"])
                return {**alone, **own, "loss": alone["loss"] + own["object_loss"]}
            case Counts():
                return {"loss": count_loss(raw["count_logits"], labels)}
            case ReinforceExpected(entropy=weight):
                rewards = list_rewards if self.is_list else multiset_rewards
                looked = self._looked(raw, batch, loss.elsewhere)
                found = hsal_expected_loss(
                    raw,
                    labels,
                    rewards=rewards,
                    entropy_weight=weight,
                    looked=looked,
                    log_glimpses=loss.log_glimpses,
                )
            case Reinforce(entropy=weight):
                reward = list_reward if self.is_list else multiset_reward
                to_go, looked = isinstance(loss, ReinforceToGo), self._looked(raw, batch, loss.elsewhere)
                found = hsal_loss(raw, labels, reward=reward, entropy_weight=weight, to_go=to_go, looked=looked)
            case MultisetLoss():
                found = {"loss": multiset_loss(raw["class_logits"], raw["said"], labels)}
            case CrossEntropy():
                found = {"loss": sequence_cross_entropy(raw["class_logits"], mixed)}
            case CrossEntropyOrdered():
                found = {"loss": sequence_cross_entropy(raw["class_logits"], labels)}
        return found | {"attn_saliency": _saliency_at_glimpses(raw, labels)}

    def _looked(self, raw: MultisetOutput, batch: Batch, elsewhere: float) -> LookedRewards | None:
        """The rewards of saying what is looked at; None where they are the published ones."""
        if elsewhere == 1:
            return None
        model = cast(MultisetModel, self.model)
        inside = model.cells_in(boxes_at_size(batch["boxes"], batch["images"], self.size))  # (B,M,h,w)
        return looked_rewards(
            raw["said"],
            raw["location"],
            batch["labels"],
            inside,
            classes=raw["class_logits"].shape[-1],
            elsewhere=elsewhere,
        )

    @property
    def is_list(self) -> bool:
        """Whether the order of the labels is part of the answer."""
        return self.table is not None and self.table.kind == "list"

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells; of glimpses only where some were made for a label."""
        places = ("glimpse_in_evidence", "glimpse_on_label") if self._has_boxes("val") else ()
        glimpses = () if self._counts else ("attn_saliency", "attn_saliency_raw", *places)
        objects = ("object_accuracy",) if self._has_boxes("val") else ()
        return (*ANSWERS, *glimpses, "single_accuracy", *objects)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """The scores of the answers on the validation split, and the saliency at glimpses.

        Of the classifier of single objects ``single_accuracy``, how often it names one that is there, and, where boxes
        are known, ``object_accuracy``: how often it names an object from the cells under its box.
        """
        reader = cast(MultisetModel, model)
        scores = MultisetScores(len(self.classes), self.is_list)
        for batch in in_batches(self.split("val"), VALIDATION_BATCH):
            raw, trace = read_all(reader, batch.images, self.size)
            add_answers(scores, answers_of(trace), batch)
            add_glimpses(scores, raw, trace, batch)
        measured = scores.metrics()
        told = {name: measured[name] for name in ANSWERS if name in measured}
        return {**told, **scores.attention(), **self._objects_named(reader)}

    def _objects_named(self, model: MultisetModel) -> dict[str, float]:
        alone = self.split(f"val/{ALONE}" if self.data_config.is_generated else "val")
        single, objects = [], []
        for batch in in_batches(alone, VALIDATION_BATCH):
            raw = read_objects(model, batch.images, batch.boxes, self.size)
            single.append(names_one(raw["single_logits"], batch.labels)[batch.present.any(1)])  # (B',)
            right, known = names_each(raw["object_logits"], batch.labels, batch.boxes)  # (B,M) each
            objects.append(right[known])  # (N,)
        told = {"single_accuracy": torch.cat(single), "object_accuracy": torch.cat(objects)}
        return {name: float(right.float().mean()) for name, right in told.items() if len(right)}

    @classmethod
    def eval_kwargs(cls, facts: ModelFacts, request: EvalRequest) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` as ``request`` asks."""
        settings = requested_settings(facts, request, MULTISET_READERS)
        return {"data": settings, "classes": facts.answers, "allow_pack": request.allow_pack}

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
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        ``classes`` are the model's words. There is no deletion or insertion of a multiset, so ``sweeps`` must be 0.
        """
        if sweeps:
            raise ConfigError(
                f"sweeps: deletion and insertion are about one answer, not about multisets; found {sweeps}"
            )
        config = from_dict(MultisetDataConfig, data, where="data")
        model = cast(ImageOnlyModel, model)
        device, sizes = next(model.parameters()).device, model.config
        chosen = MultisetData(
            config, cast(Split, split), device, classes=classes, most=sizes.most, allow_pack=allow_pack
        )
        source = chosen.source
        habit = None if isinstance(source, MultisetScenes) else commonest_multiset(source.table, classes)
        scores = score_multisets(
            model, chosen, tuple(sizes.input_size), habit=habit, limit=limit, progress=progress
        ).summary()
        if isinstance(source, MultisetScenes):
            glyphs = source.glyphs.name
            return evaluation(scores, data=config.name, split=split, glyphs=glyphs, seed=config.seed)
        scores["counts"] |= {"skipped_rows": len(source.skipped), "beyond_most": source.beyond}
        reader = split_reference(config.name, MULTISET_READERS)[0]
        if reader == "svhn" and split == "test" and source.rows[0].image.parent.name == "train":
            scores["note"] = "test is a held-out part of the training pictures, not the official one"
            return evaluation(scores, data=reader, split=split, scored_part="held-out training pictures")
        return evaluation(scores, data=reader, split=split)


def _filled_in(model_config: Mapping[str, object], classes: int, most: int) -> dict[str, Any]:
    """The model's settings with what the data decides; a setting that says otherwise is an error."""
    decided = {"classes": classes, "most": most}
    for name, value in decided.items():
        if model_config.get(name, value) != value:
            found = model_config[name]
            raise ConfigError(f"model.config.{name}: found {found}, but the data has {value}; leave it out")
    return {**model_config, **decided}


def _saliency_at_glimpses(raw: MultisetOutput, labels: Tensor) -> Tensor:
    """Mean saliency, between 0 and 1, at the glimpses of the steps that have a label to say; a scalar."""
    steps = label_steps(labels, raw["location"].shape[1])  # (B,T)
    there = at_glimpses(raw["saliency.weights"].detach(), raw["location"]).to(raw["class_logits"].dtype)  # (B,T)
    return (there * steps).sum() / steps.sum().clamp(min=1)
