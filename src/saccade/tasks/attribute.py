"""Query-guided attributes: a picture and a query in, one answer out ("what colour is the 7?").

The training side: batches as a function of their number alone, the loss, the quick validation, the model folder.
The scoring side is :mod:`saccade.tasks.attribute_scores`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict, to_dict
from saccade.data.attributes import SPECS, AttributeBatch, AttributeData, AttributeDataConfig
from saccade.data.glyphs import Split
from saccade.errors import ConfigError, DataError, nearest
from saccade.losses import cross_entropy, reinforce
from saccade.models.base import QueryModel
from saccade.models.catalog import model_spec
from saccade.models.folder import ModelFacts, Preprocessing, save_model
from saccade.tasks.attribute_scores import in_parts, score_attributes

Batch = dict[str, Tensor]

LOSSES = ("default", "cross_entropy", "reinforce")
ENTROPY_WEIGHT = 0.002  # λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early


class AttributeTask:
    """Trains one attribute model on generated scenes; the engine knows it as a ``Trainable``.

    Args:
        model: catalog name of the model.
        model_config: settings of the model.
        data: settings of :class:`AttributeDataConfig` (name, glyphs, seed of the scenes).
        protocol: sizes and splits; overrides that of ``data``.
        seed: of the weights, of the order of a finite training set, and of fresh training scenes. Validation and test
            scenes do not depend on it, so that runs with different seeds are scored on the same pictures.
    """

    name = "attribute"

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, Any],
        data: Mapping[str, Any],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        settings = dict(data) | ({"protocol": protocol} if protocol else {})
        self.data_config = from_dict(AttributeDataConfig, settings, where="data")
        if not 0 <= seed < 1 << 32:
            raise ConfigError(f"seed: must lie in 0 .. 2^32 - 1, found {seed}")
        self.architecture, self.model_config, self.seed = model, dict(model_config), seed
        self.model = self.new_model(seed)
        side = SPECS[self.data_config.name].size
        self.model.check_input((side, side))
        self.device = torch.device("cpu")
        self._splits: dict[str, AttributeData] = {}
        self._shuffled: tuple[int, Tensor] | None = None

    def new_model(self, seed: int) -> QueryModel:
        """A freshly initialised model, a function of ``seed`` alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = model_spec(self.architecture).build(self.model_config)
        if not isinstance(model, QueryModel):
            raise ConfigError(f"model '{self.architecture}' does not answer queries; the task 'attribute' needs that")
        return model

    def to(self, device: torch.device) -> None:
        """Make batches on ``device`` from now on."""
        self.device = torch.device(device)
        self._splits.clear()

    def split(self, name: str) -> AttributeData:
        """One split of the data, on the device."""
        if name not in self._splits:
            config = self.data_config
            if name == "train" and config.protocol == "unlimited":
                config = replace(config, seed=config.seed + self.seed)
            self._splits[name] = AttributeData(config, cast(Split, name), device=self.device)
        return self._splits[name]

    # ------------------------------------------------------------ training

    def steps_per_epoch(self, batch_size: int) -> int | None:
        """Whole batches in one pass; None when scenes are fresh without end."""
        size = self.split("train").size
        return None if size is None else size // batch_size

    def train_batches(self, start: int, *, batch_size: int, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Batches ``start``, ``start + 1``, …, each a function of its number; scenes are made in chunks behind it."""
        data = self.split("train")
        together = batch_size * world_size
        if data.size is not None and data.size < together:
            raise DataError(f"a batch of {together} is larger than the {data.size} training examples; make it smaller")
        mine = slice(rank * batch_size, (rank + 1) * batch_size)
        for number in itertools.count(start):
            made = data.take(self._triples(data, number, together)[mine])
            yield {"images": made.images, "query": made.query, "label": made.label}

    def _triples(self, data: AttributeData, number: int, together: int) -> Tensor:
        """Which triples make up global batch ``number``: (together,)."""
        if data.size is None:
            return torch.arange(number * together, (number + 1) * together)
        per_epoch = data.size // together
        epoch, place = divmod(number, per_epoch)
        return self._order(epoch, data.size)[place * together : (place + 1) * together]

    def _order(self, epoch: int, size: int) -> Tensor:
        """The triples of one epoch, shuffled by (seed, epoch) alone: (size,); the last order asked for is kept."""
        if self._shuffled is None or self._shuffled[0] != epoch:
            generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
            self._shuffled = epoch, torch.randperm(size, generator=generator)
        return self._shuffled[1]

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Keyword arguments of ``forward_raw``."""
        return {"images": batch["images"], "query": batch["query"]}

    def loss(self, raw: dict[str, Tensor], batch: Batch, phase_loss: str) -> dict[str, Tensor]:
        """Cross-entropy of the answer plus whatever penalty the model names, and the share of right answers.

        A model that draws locations in training is by default taught by REINFORCE instead.
        """
        if phase_loss not in LOSSES:
            raise ConfigError(f"loss '{phase_loss}': {nearest(phase_loss, LOSSES)}")
        draws = "sampled_logits" in raw
        if phase_loss == "reinforce" and not draws:
            raise ConfigError(
                "loss 'reinforce': this model draws no locations in training; take model 'hard' with estimator: "
                "reinforce, or the default loss"
            )
        right = (raw["logits"].argmax(-1) == batch["label"]).float().mean()
        sampled = draws and phase_loss != "cross_entropy"
        answer = sampled_loss(raw, batch["label"]) if sampled else cross_entropy(raw["logits"], batch["label"])
        found = {"loss": answer, "accuracy": right}
        if "penalty" in raw:
            found["penalty"] = raw["penalty"].mean()
            found["loss"] = found["loss"] + found["penalty"]
        return found

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split."""
        right = loss = torch.zeros((), device=self.device)
        count = 0
        for batch in in_batches(self.split("val"), 500):
            raw = in_parts(cast(QueryModel, model), batch.images, batch.query)
            right = right + (raw["logits"].argmax(-1) == batch.label).sum()
            loss = loss + cross_entropy(raw["logits"], batch.label) * len(batch)
            count += len(batch)
        return {"accuracy": float(right) / count, "loss": float(loss) / count}

    # ------------------------------------------------------------ scoring and keeping

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, Any],
        split: str,
        *,
        limit: int | None = None,
        sweeps: int = 200,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.verbs.evaluate``."""
        config = from_dict(AttributeDataConfig, data, where="data")
        device = next(model.parameters()).device
        chosen = AttributeData(config, cast(Split, split), device=device, allow_pack=allow_pack)
        if not isinstance(model, QueryModel):
            raise ConfigError("the task 'attribute' scores models that answer queries")
        scores = score_attributes(model, chosen, limit=limit, sweeps=sweeps, progress=progress)
        return {
            "data": config.name,
            "glyphs": chosen.glyphs.name,
            "backgrounds": chosen.backgrounds,
            "split": split,
            "protocol": config.protocol,
            "seed": config.seed,
            **scores.summary(),
        }

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """Write the model folder, with what this run knows of it."""
        data = self.split("val")
        save_model(
            model,
            folder,
            ModelFacts(
                architecture=self.architecture,
                model=to_dict(model.config),
                task=self.name,
                queries=data.queries,
                answers=data.answers,
                preprocessing=Preprocessing(size=(data.spec.size, data.spec.size)),
                data=to_dict(self.data_config),
                protocol=self.data_config.protocol,
                seed=self.seed,
                recipe=facts.get("recipe", {}),
                revision=facts.get("revision"),
                training={key: value for key, value in facts.items() if key not in ("recipe", "revision")},
            ),
        )


def sampled_loss(raw: dict[str, Tensor], label: Tensor) -> Tensor:
    """REINFORCE on the locations that a model drew, each rewarded with the log-probability of ``label`` (B,) there."""
    log_likelihood = raw["sampled_logits"].log_softmax(-1)  # (B,S,K)
    log_likelihood = torch.take_along_dim(log_likelihood, label[:, None, None], dim=-1).squeeze(-1)  # (B,S)
    return reinforce(
        log_likelihood, raw["sampled_log_prob"], entropy=raw["entropy"], entropy_weight=ENTROPY_WEIGHT
    )  # ()


def in_batches(data: AttributeData, batch_size: int, limit: int | None = None) -> Iterator[AttributeBatch]:
    """A finite split from beginning to end (or to ``limit``)."""
    if data.size is None:
        raise DataError(f"split '{data.split}' has no end; name a finite one (val, test)")
    end = data.size if limit is None else min(limit, data.size)
    for start in range(0, end, batch_size):
        yield data.take(torch.arange(start, min(start + batch_size, end), device=data.device))
