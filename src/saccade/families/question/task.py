"""Query-guided attributes: a picture and a query in, an answer out, on generated scenes or a table of your own.

The training side: batches as a function of their number alone, the loss, the quick validation. Scoring is in
:mod:`saccade.families.question.scores`.

Of a table, the sizes of the model's query and answer are filled in from its words. A phase that leaves the backbone as
it is learns from its features, which are computed once and kept on disk (:mod:`saccade.tasks.cached_features`). With
``features: auto`` this needs pictures that are not varied (``data.augment: null``) and a model that sees the whole
backbone before it is asked, as SOFT does and HAttNet does not. ``kept`` leaves pictures unvaried, whatever
``data.augment`` says; ``fresh`` keeps nothing. Validation in such a phase reads them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.examples import Split
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.kernels import renderer_description
from saccade.data.tables.doubts import warn_of_one_answer
from saccade.errors import ConfigError, DataError
from saccade.families.question.causal import CausalConfig, write_causal
from saccade.families.question.losses import LOSSES, CrossEntropy, Default, Reinforce, answer_loss, sampled_loss
from saccade.families.question.readers import READERS
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import QuestionScoring, SceneScoring
from saccade.families.question.table_scores import TableScoring
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.metrics.labels import right_answers
from saccade.metrics.sets import weighted_map
from saccade.models.base import QueryModel
from saccade.tasks.cached_features import is_frozen, with_features
from saccade.tasks.data_parts import LEARNED, Entries, photograph_entries
from saccade.tasks.evaluate import distinct, in_parts
from saccade.tasks.picture_task import OverlapTerm, PictureTask, filled_in, with_labels_of
from saccade.tasks.task import AS_IS, Batch, HeldOut, Opening, evenly_spaced, in_batches
from saccade.trace import QuestionOutput

VALIDATION_BATCH = 500
TWINS = 100
"""Questions whose scenes are rendered again for an evaluation, if it does not say how many."""
KEPT = "/kept"
"""Behind the name of a split: the questions with the features of their pictures."""
KEPT_AT_ONCE = 64  # questions with their features in validation: as many as commonly learn together
FEW = "the nine photographs that ship: enough to try things out, too few to compare with any table"
"""Said of a run on MBG that had no others, in its log, its card and the tables."""


class QuestionTask(PictureTask):
    """Trains one query model.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model; of a table ``queries``, ``answers`` and ``multi_label`` come from it.
        data: settings of :class:`SceneDataConfig` or :class:`TableDataConfig`.
        protocol: sizes and splits; overrides that of ``data``.
        seed: of the weights, of the order of a finite training set and of what augments it, and of fresh training
            scenes. Validation and test scenes do not depend on it, so that runs with different seeds are scored on the
            same pictures.
    """

    name = "question"
    model_kind = QueryModel
    model_description = "answers queries"
    readers = READERS
    losses = LOSSES
    caches_features = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._overlap_term = OverlapTerm()
        if self.table is None:
            self.protocol = self.data_config.protocol

    @classmethod
    def settings_of(cls, name: str) -> type:
        """Those of a table (READER:PATH, or its reader alone), or of generated scenes."""
        return TableDataConfig if not name or ":" in name or name in READERS else SceneDataConfig

    @classmethod
    def configure(cls, settings: Mapping[str, Any], protocol: str | None = None) -> SceneDataConfig | TableDataConfig:
        """The protocol of a recipe overrides that of its scenes."""
        if settings.get("name") == "causal":
            raise DataError("'causal' is drawn by `saccade data make causal --out DIR`; then name it causal:DIR")
        kind = cls.settings_of(str(settings.get("name", "")))
        if protocol and kind is SceneDataConfig:
            settings = {**settings, "protocol": protocol}
        return cast("SceneDataConfig | TableDataConfig", from_dict(kind, settings, where="data"))

    @classmethod
    def open(
        cls, config: Any, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS
    ) -> SceneData | TableData:
        """Generated scenes, or a table in the words of the model."""
        if isinstance(config, SceneDataConfig):
            scenes = SceneData(config, split, device, allow_pack=how.allow_pack)
            return cast(SceneData, with_labels_of(scenes, how.facts))
        words: dict[str, Any] = {}
        if how.facts is not None:
            words = {"queries": how.facts.queries, "answers": how.facts.answers}
        return TableData(config, split, device, how.table, progress=how.progress, **words)

    @classmethod
    def scoring(cls, model: Any, examples: Any, *, limit: int | None, **options: Any) -> QuestionScoring:
        """Answers and maps; of scenes also what becomes of them when one thing is changed."""
        if isinstance(examples, SceneData):
            return SceneScoring(model, examples, limit=limit, **{"twins": TWINS, **options})
        return TableScoring(model, examples, limit=limit, **options)

    @classmethod
    def write_split(cls, settings: Mapping[str, Any], split: Split, count: int, out: Path, **how: Any) -> Path:
        """Write scenes as PNGs and ``scenes.jsonl``, or a causal set."""
        if settings["name"] != "causal":
            return super().write_split(settings, split, count, out, **how)
        return write_causal(from_dict(CausalConfig, settings, where="data"), split, count, Path(out), **how)

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """What a table asks and answers decides sizes; questions for digits that are absent have one answer more."""
        table = self.table
        words = table or self.data_config
        self.queries, self.answers = words.queries, words.answers
        if table is None:
            decided = {"answers": len(self.data_config.answers)} if self.data_config.absent else {}
            return filled_in(model_config, decided, "the data")
        learned = (", ".join(row.labels) for row in table.rows if row.split == "train")
        warn_of_one_answer(table.name, learned, things="questions", word="answer")
        decided = {"queries": len(table.queries), "answers": len(table.answers), "multi_label": table.several}
        return filled_in(model_config, decided, table.name)

    def summary(self) -> str:
        """What the table holds; of scenes the photographs, the drawing if not saccade's own, what makes them on a GPU.

        The photographs that ship are too few to conclude anything from. A first scene shows whether the kernels build.
        """
        if self.table is not None:
            return self.table.summary()
        lines = [f"{name}: {value}" for name, value in self.training_notes().items()]
        if self.data_config.drawing != "blend":
            lines.append(f"drawing: {self.data_config.drawing}")
        if self.device.type == "cuda":
            self.split("train").stream.scenes(torch.zeros(1, dtype=torch.int64))
            lines.append(f"scenes are made on {self.device} by {renderer_description(self.device, self.size[0])}")
        return "; ".join(lines)

    def training_notes(self) -> dict[str, str]:
        """The photographs behind the training scenes, by name."""
        notes = super().training_notes()
        if self.data_config.name != "mbg":
            return notes
        name = str(self.split("train").backgrounds)
        return {"photographs": f"{name} ({FEW})" if name.startswith("shipped-") else name, **notes}

    def extra_data_parts(self) -> dict[str, Entries]:
        """The questions of a table, their pictures and the words; or the glyphs of scenes, and the photographs."""
        parts, config = super().extra_data_parts(), self.data_config
        if config.name == "mbg":
            parts["backgrounds"] = photograph_entries(config.backgrounds, self.on_progress)
        return parts

    def learned_words(self) -> dict[str, Sequence[str]]:
        """What a table asks and answers; the words of scenes are always the same."""
        return {} if self.table is None else {"query": self.queries, "answer": self.answers}

    def make_split(self, name: str, /, **changes: Any) -> SceneData | TableData:
        """One split of the data, on the device; or SPLIT/kept: with the features of its pictures."""
        if name.endswith(KEPT):
            return cast(TableData, with_features(self.split(name.removesuffix(KEPT)), self.model, self.on_progress))
        return cast("SceneData | TableData", super().make_split(name))

    def training_split(self, data: str = "default", features: str = "auto") -> SceneData | TableData:
        """Questions with their pictures, or with what is kept of these while the backbone is frozen."""
        for name in LEARNED:  # what was kept is of a backbone that may have learned since
            self._splits.pop(f"{name}{KEPT}", None)
        return cast("SceneData | TableData", self.split(f"train{KEPT}" if self._keeps(features) else "train"))

    def _keeps(self, features: str) -> bool:
        """Whether the phase that begins learns from kept features: its weights and modes are set by now."""
        config, encoder = self.data_config, self.model.encoder
        if self.table is None or features == "fresh" or not config.features_mb:
            return False
        is_still = encoder is not None and is_frozen(encoder)
        if features == "kept" and not is_still:
            raise ConfigError(
                "features 'kept': the weights or statistics of the encoder change in this phase, or it has replicas; "
                "freeze it, or take features: fresh"
            )
        return is_still and (features == "kept" or config.augment is None)

    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The questions ``indices`` (B,) with their answers, and with their pictures or the features of those."""
        if isinstance(data, TableData) and data.features is not None:
            query, label, _ = data.questions(indices)
            evidence = {"evidence": data.evidence(indices)} if self.evidence_weight else {}
            return {"encoding": data.features.take(indices), "query": query, "label": label, **evidence}
        batch = data.training_batch(indices, derive_seed(self.seed, number), masks=bool(self.evidence_weight))
        evidence = {"evidence": batch.evidence()} if self.evidence_weight else {}
        return {"images": batch.images, "query": batch.query, "label": batch.label, **evidence}

    def distinct_numbers(self, data: Any, count: int) -> Tensor:
        """One question about each picture, of as many pictures."""
        if isinstance(data, SceneData):
            return data.one_per_scene(count)
        order = torch.randperm(data.size, generator=torch.Generator().manual_seed(0))  # or all would ask the same
        first, _ = distinct(data.picture[order.to(data.device)].cpu())
        return order[first][evenly_spaced(len(first), count)]

    def held_out_batch(self, data: Any, numbers: Tensor) -> HeldOut:
        """The questions ``numbers`` (B,) with their pictures and answers."""
        batch = data.take(numbers)
        return HeldOut(batch.images, batch.query, batch.label)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``; of a picture that is asked several times there is one copy."""
        if "encoding" in batch:
            return {"images": None, "query": batch["query"], "encoding": batch["encoding"]}
        images, query = batch["images"], batch["query"]
        return {"images": images, "query": query, "asks": len(query) // len(images)}

    def checked_loss(self, loss: CrossEntropy, data: str) -> CrossEntropy:
        """Any loss whose evidence is there; whether the model draws what it needs is seen when it does."""
        config, table = self.data_config, self.table
        if loss.evidence_weight and table is None and config.augment is not None:
            raise ConfigError(
                "loss: evidence_weight: the evidence of scenes is not varied with them; data.augment=null"
            )
        if loss.overlap_weight and (table is not None or config.protocol != "unlimited" or config.asks < 2):
            raise ConfigError(
                "loss: overlap_weight compares questions about one picture, and training has one for each; take "
                "generated scenes with data.asks of 2 or more and `protocol=unlimited`, or leave it out"
            )
        rows = () if table is None else table.rows
        marked = any(row.split == "train" and (row.box or row.point or row.mask) for row in rows)
        self.require_evidence(loss.evidence_weight, table is None or marked)
        return loss

    def loss(self, raw: QuestionOutput, batch: Batch, loss: CrossEntropy) -> dict[str, Tensor]:
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
        for logits, label in self.answered(cast(QueryModel, model)):
            loss = loss + answer_loss(logits, label) * len(label)
            all_logits.append(logits)
            all_labels.append(label)
        logits, label = torch.cat(all_logits), torch.cat(all_labels)
        right = float(right_answers(logits, label).sum()) / len(label)
        several = label.dim() == 2
        scores = {"weighted_map": weighted_map(logits, label), "top1": right} if several else {"accuracy": right}
        return {**scores, "loss": float(loss) / len(label)}

    def answered(self, model: QueryModel) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits (B,K) and labels of the validation split; from kept features where the phase learns from such."""
        if f"train{KEPT}" not in self._splits or model is not self.model:
            for batch in in_batches(self.split("val"), VALIDATION_BATCH):
                yield in_parts(model, batch.images, batch.query).logits, batch.label
            return
        data = self.split(f"val{KEPT}")
        for numbers in torch.split(torch.arange(data.size, device=data.device), KEPT_AT_ONCE):
            query, label, _ = data.questions(numbers)
            yield model.ask(data.features.take(numbers), query).logits, label
