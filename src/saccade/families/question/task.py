"""Query-guided attributes: a picture and a query in, an answer out, on generated scenes or a table of your own.

A phase that freezes the backbone learns from its features, which are computed once and kept on disk
(:mod:`saccade.tasks.cached_features`), and validates on them. With ``features: auto`` this needs pictures that are not
varied (``data.augment: null``) and a model that runs the whole backbone before it is asked, as SOFT does and HAttNet
does not. ``kept`` leaves pictures unvaried, whatever ``data.augment`` says; ``fresh`` keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import Weight, from_dict
from saccade.data.examples import Split
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.kernels import renderer_description
from saccade.errors import ConfigError, DataError
from saccade.families.question.readers import READERS, CausalConfig, write_causal
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import QuestionScoring, SceneScoring
from saccade.families.question.table_scores import TableScoring, another_head
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.losses.policy import reinforce
from saccade.metrics.labels import right_answers
from saccade.metrics.sets import weighted_map
from saccade.metrics.verdict import Answered, against_rivals
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts
from saccade.models.question_head import QuestionHeadModel
from saccade.tasks.cached_features import is_frozen, with_features
from saccade.tasks.data_parts import LEARNED, Entries, photograph_entries
from saccade.tasks.evaluate import distinct, encoded, in_parts
from saccade.tasks.picture_task import PictureTask, filled_in
from saccade.tasks.refit import MOST, fitted
from saccade.tasks.rivals import Asked, shares_features
from saccade.tasks.task import Batch, HeldOut, evenly_spaced, in_batches
from saccade.trace import QuestionOutput

# λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early.
ENTROPY_WEIGHT = 0.002
VALIDATION_BATCH = 500
TWINS = 100  # Questions whose scenes are rendered again for an evaluation, if it does not say how many
KEPT = "/kept"  # Behind the name of a split: the questions with the features of their pictures
KEPT_AT_ONCE = 64  # questions with their features in validation: as many as commonly learn together
# Said of a run on MBG that had no others, in its log, its card and the tables.
FEW = "the nine photographs that ship: enough to try things out, too few to compare with any table"


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the answer, whether or not the model draws locations."""

    evidence_weight: Weight = 0.0
    """Weight of the loss that trains the map to lie on the evidence, :mod:`saccade.losses.maps`; 0: none."""
    overlap_weight: Weight = 0.0
    """Weight of the loss on what maps of different questions about one picture share, :mod:`saccade.losses.maps`."""


@dataclass(frozen=True)
class Default(CrossEntropy):
    """Cross-entropy of the answer; REINFORCE where the model draws locations in training."""

    entropy: Weight = ENTROPY_WEIGHT  # λ of the entropy bonus of REINFORCE.


@dataclass(frozen=True)
class Reinforce(Default):
    """REINFORCE on the locations that the model draws in training; a model that draws none is refused."""


class QuestionTask(PictureTask):
    """Trains one query model on scenes (:class:`SceneDataConfig`) or a table (:class:`TableDataConfig`).

    The protocol of a recipe overrides that of its scenes. A table decides ``queries``, ``answers`` and ``multi_label``
    of the model.
    """

    name = "question"
    model_kind = QueryModel
    model_description = "answers queries"
    readers = READERS
    losses: ClassVar[Mapping[str, type]] = {
        "default": Default,
        "cross_entropy": CrossEntropy,
        "reinforce": Reinforce,
    }
    caches_features = True
    generated = SceneData
    files = TableData

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.table is None:
            self.protocol = self.data_config.protocol

    @classmethod
    def settings_of(cls, name: str) -> type:
        """Those of a table (READER:PATH, or its reader alone), or of generated scenes."""
        return TableDataConfig if not name or ":" in name or name in READERS else SceneDataConfig

    @classmethod
    def configure(cls, settings: Mapping[str, Any], protocol: str | None = None) -> SceneDataConfig | TableDataConfig:
        """Not of ``causal``, which is written to a folder first."""
        if settings.get("name") == "causal":
            raise DataError("'causal' is drawn by `saccade data make causal --out DIR`; then name it causal:DIR")
        return cast("SceneDataConfig | TableDataConfig", super().configure(settings, protocol))

    @classmethod
    def words_of(cls, facts: ModelFacts) -> dict[str, Any]:
        """Also the questions of the model."""
        return {"queries": facts.queries, "answers": facts.answers}

    @classmethod
    def scoring(cls, model: Any, examples: Any, *, limit: int | None, **options: Any) -> QuestionScoring:
        """Answers and maps; of scenes also what becomes of them when one thing is changed."""
        if isinstance(examples, SceneData):
            return SceneScoring(model, examples, limit=limit, **{"twins": TWINS, **options})
        return TableScoring(model, examples, limit=limit, **options)

    @classmethod
    def asked(cls, examples: SceneData | TableData) -> Asked | None:
        return Asked(*examples.questions(torch.arange(examples.size))[:2]) if isinstance(examples, TableData) else None

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
        table.check_answers()
        decided = {"queries": len(table.queries), "answers": len(table.answers), "multi_label": table.several}
        return filled_in(model_config, decided, table.name)

    def summary(self) -> str:
        """What the table holds; of scenes the photographs, the drawing, and what makes them on a GPU."""
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
        notes = super().training_notes()
        if self.data_config.name != "mbg":
            return notes
        name = str(self.split("train").backgrounds)
        return {"photographs": f"{name} ({FEW})" if name.startswith("shipped-") else name, **notes}

    def data_parts(self) -> dict[str, Entries]:
        parts, config = super().data_parts(), self.data_config
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
        for name in LEARNED:  # the backbone may have learned since
            self._splits.pop(f"{name}{KEPT}", None)
        return cast("SceneData | TableData", self.split(f"train{KEPT}" if self._keeps(features) else "train"))

    def _keeps(self, features: str) -> bool:
        """Whether the phase that begins learns from kept features: its weights and modes are set by now."""
        config, encoder = self.data_config, self.model.encoder
        if self.table is None or features == "fresh" or not config.features_mb:
            return False
        is_still = encoder is not None and is_frozen(encoder)
        if features == "kept" and not is_still:
            why = "the weights or statistics of the encoder change in this phase, or it has replicas"
            raise ConfigError(f"features 'kept': {why}; freeze it, or take features: fresh")
        return is_still and (features == "kept" or config.augment is None)

    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The questions ``indices`` (B,) with their answers, and with their pictures or the features of those."""
        if isinstance(data, TableData) and data.features is not None:
            query, label, _ = data.questions(indices)
            evidence = {"evidence": data.marks(indices.to(data.device)).evidence()} if self.evidence_weight else {}
            return {"encoding": data.features.take(indices), "query": query, "label": label, **evidence}
        vary = derive_seed(self.seed, number)
        if isinstance(data, TableData):
            batch = data.take(indices, vary, masks=bool(self.evidence_weight))
        else:
            batch = data.training_batch(indices, vary)
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
            raise ConfigError("loss: evidence_weight: evidence of scenes is not varied with them; data.augment=null")
        if loss.overlap_weight and (table is not None or config.protocol != "unlimited" or config.asks < 2):
            wanted = "generated scenes with data.asks of 2 or more and `protocol=unlimited`"
            raise ConfigError(f"loss: overlap_weight compares questions about one picture; take {wanted}")
        rows = () if table is None else table.rows
        marked = any(row.split == "train" and (row.box or row.point or row.mask) for row in rows)
        self.require_evidence(loss.evidence_weight, table is None or marked)
        return loss

    def loss(self, raw: QuestionOutput, batch: Batch, loss: CrossEntropy) -> dict[str, Tensor]:
        """Cross-entropy of the answer plus the model's penalty, and the share of right answers.

        ``helper_logits``, what a part of a model answers by itself, learn the same answer. Where several answers may
        hold, the likeliest is right if it holds.
        """
        draws = raw.sampled_logits is not None
        if isinstance(loss, Reinforce) and not draws:
            other = "model 'hard' with estimator: reinforce"
            raise ConfigError(f"loss 'reinforce': this model draws no locations; take {other}, or another loss")
        logits, label = raw.logits, batch["label"]
        if draws and isinstance(loss, Default):
            taught = sampled_loss(raw, label, loss.entropy)
        else:
            taught = answer_loss(logits, label)
        scalars = {
            "loss": taught,
            ("top1" if label.dim() == 2 else "accuracy"): right_answers(logits, label).float().mean(),
        }
        if raw.helper_logits is not None:
            scalars["helper_loss"] = answer_loss(raw.helper_logits, label)
            scalars["loss"] = scalars["loss"] + scalars["helper_loss"]
        if raw.penalty is not None:
            scalars["penalty"] = raw.penalty.mean()
            scalars["loss"] = scalars["loss"] + scalars["penalty"]
        if loss.overlap_weight:
            asks = len(label) // len(batch["images"])
            scalars["overlap"] = self._map_losses.overlap(self.model, raw, self.size, asks)
            scalars["loss"] = scalars["loss"] + loss.overlap_weight * scalars["overlap"]
        return self.with_evidence(scalars, raw, batch, loss.evidence_weight)

    def metric_names(self) -> tuple[str, ...]:
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

    @property
    def can_refit(self) -> bool:
        """That of a question head, from a table."""
        return self.table is not None and isinstance(self.model, QuestionHeadModel)

    @torch.no_grad()
    def refit(self, model: nn.Module) -> None:
        """To what its maps attend to."""
        head, kept = cast(QuestionHeadModel, model.eval()), f"train{KEPT}"
        data = self.split(kept if kept in self._splits else "train")
        rows = data.sampled(MOST)
        context = torch.cat([self._attended(head, data, part) for part in torch.split(rows, KEPT_AT_ONCE)])  # (N,C)
        query, label, _ = (column.cpu() for column in data.questions(rows))
        own = {"terms": head.terms is not None, "prior": head.prior is not None}
        head.set_classifier(*fitted(context, query, label, len(self.queries), len(self.answers), **own))

    def _attended(self, model: QuestionHeadModel, data: TableData, rows: Tensor) -> Tensor:
        """What the map of ``model`` attends to for the questions ``rows`` (B,): (B,C)."""
        if data.features is None:
            batch = data.take(rows)
            output = model.ask(encoded(model.encode, batch.images), batch.query)
        else:
            output = model.ask(data.features.take(rows), data.questions(rows)[0])
        return output.acts[model.look_name].context.float().cpu()

    @torch.no_grad()
    def compared(self) -> str:
        """From kept features of a backbone that is as it was published."""
        if f"train{KEPT}" not in self._splits or not shares_features(self.model):
            return ""
        val, model = self.split("val"), cast(QueryModel, self.model.eval())
        numbers = torch.arange(val.size)
        rivals = self.rivals(model, self.data_config, val, numbers, on_progress=self.on_progress).right
        right = torch.cat([right_answers(logits, label).double().cpu() for logits, label in self.answered(model)])
        query, _, picture = val.questions(numbers)
        instead = another_head(model, self.queries)
        answered = Answered(right, rivals, picture, query, self.queries, instead=instead)
        return str(against_rivals(answered).get("says", ""))

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


def answer_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy of one answer (B,), or of the set of answers (B,K) that hold."""
    return F.cross_entropy(logits, label) if label.dim() == 1 else -log_likelihood_of_set(logits, label).mean()


def log_likelihood_of_set(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-probability of exactly this set of independent answers, Σ_a log σ(±logit): (…,K), (…,K) → (…)."""
    return -F.binary_cross_entropy_with_logits(logits, labels.expand_as(logits), reduction="none").sum(-1)


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
