"""Training a model that answers queries, whatever its pictures: what the tasks of this kind share.

Batches are a function of their number alone, which is what makes resuming exact: a finite split is visited in an order
that (seed, epoch) decides, and only in whole batches, so that every step has the same shapes.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import Tensor, nn

from saccade.config import to_dict
from saccade.errors import ConfigError, DataError, nearest
from saccade.geometry import Size
from saccade.losses import binary_cross_entropy, cross_entropy, log_likelihood_of_set, reinforce
from saccade.metrics import weighted_map
from saccade.models.base import QueryModel
from saccade.models.catalog import model_spec
from saccade.models.folder import ModelFacts, Preprocessing, save_model
from saccade.tasks.query_scores import in_parts

Batch = dict[str, Tensor]

LOSSES = ("default", "cross_entropy", "reinforce")
ENTROPY_WEIGHT = 0.002  # λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early
VALIDATION_BATCH = 500


@dataclass(frozen=True)
class Wanted:
    """What an evaluation is asked to be made on; None: as the model was trained."""

    data: str | None = None
    protocol: str | None = None
    glyphs: str | None = None
    seed: int = 0
    allow_pack: bool = True


class QueryBatch(Protocol):
    """Questions about pictures, with their answers."""

    @property
    def images(self) -> Tensor:
        """(B,3,H,W) float in 0..1."""

    @property
    def query(self) -> Tensor:
        """(B,)."""

    @property
    def label(self) -> Tensor:
        """(B,) ids, or (B,K) floats when several answers may hold."""

    def __len__(self) -> int: ...


class QueryData(Protocol):
    """One split: numbers of questions to batches."""

    size: int | None
    """None when it has no end."""
    split: str

    @property
    def queries(self) -> tuple[str, ...]:
        """What is asked, in the order of the ids."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What is answered, in the order of the ids."""

    @property
    def device(self) -> torch.device:
        """Where batches are made."""

    def take(self, indices: Tensor) -> QueryBatch:
        """The questions ``indices`` (B,), in that order."""


class QueryTask(ABC):
    """Trains one query model; the engine knows it as a ``Trainable``.

    Args:
        model: catalog name of the model.
        model_config: settings of the model.
        size: (height, width) of the network input.
        seed: of the weights and of the order of a finite training set.
    """

    name: ClassVar[str]
    data_config: Any

    def __init__(self, *, model: str, model_config: Mapping[str, Any], size: Size, seed: int) -> None:
        if not 0 <= seed < 1 << 32:
            raise ConfigError(f"seed: must lie in 0 .. 2^32 - 1, found {seed}")
        self.architecture, self.model_config, self.seed, self.size = model, dict(model_config), seed, size
        self.model = self.new_model(seed)
        self.model.check_input(size)
        self.device = torch.device("cpu")
        self._splits: dict[str, Any] = {}
        self._shuffled: tuple[int, Tensor] | None = None

    @abstractmethod
    def make_split(self, name: str) -> Any:
        """A split of the data, as :class:`QueryData`, on the device."""

    @property
    @abstractmethod
    def protocol(self) -> str | None:
        """Sizes and splits by name."""

    def kept(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of the data as the model folder keeps them."""
        return dict(data)

    def new_model(self, seed: int) -> QueryModel:
        """A freshly initialised model, a function of ``seed`` and of published weights, where it starts from them."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = model_spec(self.architecture).build(self.model_config)
        if not isinstance(model, QueryModel):
            raise ConfigError(f"model '{self.architecture}' does not answer queries; the task '{self.name}' needs that")
        if getattr(model.config, "pretrained", False):
            model.start_pretrained()
        return model

    def to(self, device: torch.device) -> None:
        """Make batches on ``device`` from now on."""
        self.device = torch.device(device)
        self._splits.clear()

    def split(self, name: str) -> Any:
        """One split of the data, on the device."""
        if name not in self._splits:
            self._splits[name] = self.make_split(name)
        return self._splits[name]

    # ------------------------------------------------------------ training

    def steps_per_epoch(self, batch_size: int) -> int | None:
        """Whole batches in one pass; None when the data has no end."""
        size: int | None = self.split("train").size
        return None if size is None else size // batch_size

    def train_batches(self, start: int, *, batch_size: int, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batches ``start``, ``start + 1``, …, each a function of its number."""
        data = self.split("train")
        together = batch_size * world_size
        if data.size is not None and data.size < together:
            raise DataError(f"a batch of {together} is larger than the {data.size} training examples; make it smaller")
        mine = slice(rank * batch_size, (rank + 1) * batch_size)
        for number in itertools.count(start):
            made = self.training_batch(data, self._triples(data, number, together)[mine], number * world_size + rank)
            yield {"images": made.images, "query": made.query, "label": made.label}

    def training_batch(self, data: Any, indices: Tensor, number: int) -> QueryBatch:
        """The questions ``indices`` (B,) for training; ``number`` is that of this batch among those of all ranks."""
        batch: QueryBatch = data.take(indices)
        return batch

    def _triples(self, data: QueryData, number: int, together: int) -> Tensor:
        """Which questions make up global batch ``number``: (together,)."""
        if data.size is None:
            return torch.arange(number * together, (number + 1) * together)
        per_epoch = data.size // together
        epoch, place = divmod(number, per_epoch)
        return self._order(epoch, data.size)[place * together : (place + 1) * together]

    def _order(self, epoch: int, size: int) -> Tensor:
        """The questions of one epoch, shuffled by (seed, epoch) alone: (size,); the last order asked for is kept."""
        if self._shuffled is None or self._shuffled[0] != epoch:
            generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
            self._shuffled = epoch, torch.randperm(size, generator=generator)
        return self._shuffled[1]

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Keyword arguments of ``forward_raw``."""
        return {"images": batch["images"], "query": batch["query"]}

    def loss(self, raw: dict[str, Tensor], batch: Batch, phase_loss: str) -> dict[str, Tensor]:
        """Cross-entropy of the answer plus whatever penalty the model names, and the share of right answers.

        Where several answers may hold, each has a cross-entropy of its own, and the likeliest is right if it holds. A
        model that draws locations in training is by default taught by REINFORCE instead.
        """
        if phase_loss not in LOSSES:
            raise ConfigError(f"loss '{phase_loss}': {nearest(phase_loss, LOSSES)}")
        draws = "sampled_logits" in raw
        if phase_loss == "reinforce" and not draws:
            raise ConfigError(
                "loss 'reinforce': this model draws no locations in training; take model 'hard' with estimator: "
                "reinforce, or the default loss"
            )
        logits, label = raw["logits"], batch["label"]
        sampled = draws and phase_loss != "cross_entropy"
        found = {
            "loss": sampled_loss(raw, label) if sampled else answer_loss(logits, label),
            ("top1" if label.dim() == 2 else "accuracy"): right_answers(logits, label).float().mean(),
        }
        if "penalty" in raw:
            found["penalty"] = raw["penalty"].mean()
            found["loss"] = found["loss"] + found["penalty"]
        return found

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split; with several answers at once weighted mAP (11-point) and loss."""
        loss = torch.zeros((), device=self.device)
        all_logits, all_labels = [], []
        for batch in in_batches(self.split("val"), VALIDATION_BATCH):
            logits = in_parts(cast(QueryModel, model), batch.images, batch.query)["logits"]
            loss = loss + answer_loss(logits, batch.label) * len(batch)
            all_logits.append(logits)
            all_labels.append(batch.label)
        logits, label = torch.cat(all_logits), torch.cat(all_labels)
        right = float(right_answers(logits, label).sum()) / len(label)
        several = label.dim() == 2
        scores = {"weighted_map": weighted_map(logits, label), "top1": right} if several else {"accuracy": right}
        return {**scores, "loss": float(loss) / len(label)}

    # ------------------------------------------------------------ keeping

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """Write the model folder, with what this run knows of it."""
        data = self.split("val")
        recipe = dict(facts.get("recipe", {}))
        if "data" in recipe:
            recipe["data"] = self.kept(recipe["data"])
        save_model(
            model,
            folder,
            ModelFacts(
                architecture=self.architecture,
                model=to_dict(model.config),
                task=self.name,
                queries=data.queries,
                answers=data.answers,
                preprocessing=Preprocessing(size=self.size),
                data=self.kept(to_dict(self.data_config)),
                protocol=self.protocol,
                seed=self.seed,
                recipe=recipe,
                revision=facts.get("revision"),
                training={key: value for key, value in facts.items() if key not in ("recipe", "revision")},
            ),
        )


def answer_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy of one answer (B,), or of the set of answers (B,K) that hold."""
    return cross_entropy(logits, label) if label.dim() == 1 else binary_cross_entropy(logits, label)


def right_answers(logits: Tensor, label: Tensor) -> Tensor:
    """Whether the likeliest answer is the right one (B,), or one of those (B,K) that hold: (B,) bool."""
    answer = logits.argmax(-1)  # (B,)
    return answer == label if label.dim() == 1 else torch.take_along_dim(label, answer[:, None], 1)[:, 0] > 0


def sampled_loss(raw: dict[str, Tensor], label: Tensor) -> Tensor:
    """REINFORCE on the locations that a model drew, each rewarded with the log-probability of ``label`` there.

    The label is one answer (B,), or a set of answers (B,K).
    """
    logits = raw["sampled_logits"]  # (B,S,K)
    if label.dim() == 1:
        log_likelihood = torch.take_along_dim(logits.log_softmax(-1), label[:, None, None], dim=-1).squeeze(-1)  # (B,S)
    else:
        log_likelihood = log_likelihood_of_set(logits, label[:, None])  # (B,S)
    return reinforce(
        log_likelihood, raw["sampled_log_prob"], entropy=raw["entropy"], entropy_weight=ENTROPY_WEIGHT
    )  # ()


def in_batches(data: Any, batch_size: int, limit: int | None = None) -> Iterator[Any]:
    """A finite split from beginning to end (or to ``limit``)."""
    if data.size is None:
        raise DataError(f"split '{data.split}' has no end; name a finite one (val, test)")
    end = data.size if limit is None else min(limit, data.size)
    for start in range(0, end, batch_size):
        yield data.take(torch.arange(start, min(start + batch_size, end), device=data.device))
