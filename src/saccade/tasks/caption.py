"""Captions: a picture in, a sentence out, with a look at the picture for every word.

The training side; the scoring side is :mod:`saccade.tasks.caption_scores`. What a phase may be taught by (Xu et al.
2015, arXiv:1502.03044):

==================== ==============================================================================================
``soft[:λ]``         Eq. (14): cross-entropy of the words + λ × the doubly stochastic penalty; λ is 1 unless given
``hard[:λ_e]``       Eq. (10-12): cross-entropy, REINFORCE on the cells that were drawn, and an entropy bonus; λ_e is
                     that of the released code, 0.002, unless given
``hard_to_go[:λ_e]`` the same, a draw judged by the words from it on: the same gradient on average, and less noise
``hard_code[:λ_e]``  as the released code has it: judged by the mean of the words, a tenth of it
``default``          soft or hard, as the model is
==================== ==============================================================================================

A phase called ``decoder`` learns from what the encoder makes of the pictures of files, which is computed once and kept
on disk (:mod:`saccade.tasks.caption_features`); whatever its recipe says, the encoder stays as it is then.

Batches have captions of (nearly) one length, as in Section 4.3. A model is chosen by its greedy captions: by BLEU-4 on
pictures, by exact match on generated scenes, each of which has one true sentence; the log-likelihood is logged beside.
Deviation: BLEU for choosing is that with the brevity penalty, as without it the shortest captions would win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.buckets import bucketed_order
from saccade.data.caption_readers import CAPTION_READERS, read_captions
from saccade.data.caption_scenes import SCENE_VOCABULARY
from saccade.data.captions import CaptionBatch, CaptionData, CaptionDataConfig, vocabulary_of
from saccade.data.glyphs import Split
from saccade.data.references import split_reference
from saccade.data.vocabulary import Vocabulary
from saccade.errors import ConfigError, nearest
from saccade.losses import caption_cross_entropy, doubly_stochastic, hard_attention_loss, word_log_likelihood
from saccade.metrics import bleu, same_caption
from saccade.models.facts import ModelFacts
from saccade.models.sat import SatModel
from saccade.tasks.caption_features import CaptionFeatures
from saccade.tasks.caption_scores import captions_of, encoded, score_captions, sentences
from saccade.tasks.picture_task import Batch, PictureTask, Wanted, settings_wanted
from saccade.tasks.query_scores import numbers_in_batches
from saccade.tasks.trainable_tables import check_named, check_trainable

DECODER = "decoder"
"""The phase that learns from kept features."""
HARD: dict[str, dict[str, Any]] = {
    "hard": {},
    "hard_to_go": {"to_go": True},
    "hard_code": {"reward_weight": 0.1, "per_word": True},
}
"""How draws are judged: options of :func:`~saccade.losses.hard_attention_loss`."""
LOSSES = ("default", "soft", *HARD)
BEAM = 5
VALIDATION_BATCH, VALIDATION_PICTURES = 100, 1000


class CaptionTask(PictureTask):
    """Trains one model that says captions.

    Args:
        model: catalog name of the model.
        model_config: settings of the model; ``vocabulary`` and ``input_size`` come from the data.
        data: settings of :class:`CaptionDataConfig`.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of training captions, and of fresh training scenes.
    """

    name = "caption"
    model_kind = SatModel
    model_does = "says captions"
    sentences = True

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, Any],
        data: Mapping[str, Any],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        check_named(data, CAPTION_READERS, "captions")
        self.data_config = from_dict(CaptionDataConfig, data, where="data")
        config = self.data_config
        self.table = None if config.is_generated else read_captions(config.name, config.options)
        if self.table is not None:
            check_trainable(self.table, "picture")
        self.vocabulary = SCENE_VOCABULARY if self.table is None else vocabulary_of(self.table, config)
        settings = {"input_size": config.size, **model_config}
        if settings.setdefault("vocabulary", len(self.vocabulary)) != len(self.vocabulary):
            found = f"found {settings['vocabulary']}, but the data has {len(self.vocabulary)}"
            raise ConfigError(f"model.vocabulary: {found}; leave it out")
        super().__init__(model=model, model_config=settings, size=config.size, protocol=protocol, seed=seed)

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; every word that can be said, by id."""
        return (), tuple(self.vocabulary[number] for number in range(len(self.vocabulary)))

    def make_split(self, name: str) -> CaptionData:
        """One split of the captions."""
        config = self.data_config
        if config.is_generated and name == "train":
            config = replace(config, seed=config.seed + self.seed)
        return CaptionData(config, cast(Split, name), self.device, self.vocabulary, table=self.table)

    # ------------------------------------------------------------ training

    def training_split(self, phase: str) -> CaptionData | CaptionFeatures:
        """The pictures, or in the phase ``decoder`` what is kept of them."""
        data: CaptionData = self.split("train")
        if phase != DECODER or self.data_config.is_generated or not self.data_config.features_mb:
            return data
        if DECODER not in self._splits:
            self._splits[DECODER] = CaptionFeatures(data, cast(SatModel, self.model))
        kept: CaptionFeatures = self._splits[DECODER]
        return kept

    def order(self, data: CaptionData | CaptionFeatures, epoch: int, together: int) -> Tensor:
        """The captions of one epoch, so that those of a batch are (nearly) of one length: (size,)."""
        if data.lengths is None:
            return super().order(data, epoch, together)
        return bucketed_order(data.lengths, together, self.seed, epoch)

    def batch(self, data: CaptionData | CaptionFeatures, indices: Tensor, number: int) -> Batch:
        """The captions ``indices`` (B,) with their pictures, or with the features of those."""
        if isinstance(data, CaptionFeatures):
            features, words = data.take(indices)
            return {"features": features, "words": words}
        made = data.take(indices)
        return {"images": made.images, "words": made.words}

    def inputs(self, batch: Batch) -> dict[str, Any]:
        """Keyword arguments of ``forward_raw``."""
        return {"images": None, **batch}

    def loss(self, raw: dict[str, Tensor], batch: Batch, phase_loss: str) -> dict[str, Tensor]:
        """The loss called ``phase_loss`` (see the module), its parts, and the log-likelihood of a word."""
        draws, words = "expected" in raw, batch["words"]
        kind, weight = _parsed(phase_loss, draws=draws)
        if kind == "soft":
            likelihood = caption_cross_entropy(raw["logits"], words)
            penalty = doubly_stochastic(raw["word.weights"], words)
            each = (1.0 if weight is None else weight) * penalty
            told = {"loss": likelihood + each, "cross_entropy": likelihood, "penalty": penalty}
            return told | {"gate": _mean_gate(raw, words), "log_likelihood": -likelihood * len(words) / _steps(words)}
        options: dict[str, Any] = {} if weight is None else {"entropy_weight": weight}
        found = hard_attention_loss(raw, words, raw["baseline"], **HARD[kind], **options)
        return {**found, "gate": _mean_gate(raw, words)}

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """BLEU-1, BLEU-4 and length ratio of greedy captions, and the log-likelihood of a word; of scenes exact match.

        Of the first pictures of the validation split; the likelihood is that of the first caption of each.
        """
        captioner, data = cast(SatModel, model), self.split("val")
        said, references, exact = list[str](), list[tuple[str, ...]](), list[Tensor]()
        likelihood, steps = 0.0, 0
        for numbers in numbers_in_batches(min(data.picture_count, VALIDATION_PICTURES), VALIDATION_BATCH):
            batch: CaptionBatch = data.pictures(numbers)
            features = encoded(captioner, batch.images)  # (B,L,D)
            logits = captioner.forward_features(features, batch.words)["logits"]  # (B,T,V)
            likelihood += float(word_log_likelihood(logits, batch.words).sum())
            steps += int(batch.lengths.sum())
            words = captions_of(captioner, features)  # (B,T)
            said += sentences(words, self.vocabulary)
            references += [data.references(number) for number in numbers.tolist()]
            exact += [same_caption(words, batch.words).cpu()] if batch.layout is not None else []
        found = bleu(said, references)
        told = {name: found[name] for name in ("bleu_1", "bleu_4", "length_ratio")}
        told |= {"exact_match": float(torch.cat(exact).mean())} if exact else {}
        return {**told, "log_likelihood": likelihood / steps}

    # ------------------------------------------------------------ scoring

    @classmethod
    def scored_on(cls, facts: ModelFacts, wanted: Wanted) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` on what is ``wanted``."""
        settings = settings_wanted(facts, wanted, CAPTION_READERS)
        return {"data": settings, "words": facts.answers, "allow_pack": wanted.allow_pack}

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, Any],
        split: str,
        *,
        words: tuple[str, ...],
        beam: int = BEAM,
        limit: int | None = None,
        sweeps: int = 0,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.verbs.evaluate``.

        ``words`` are the model's, by id. There is no deletion or insertion of a sentence, so ``sweeps`` must be 0.
        """
        if sweeps:
            raise ConfigError(f"sweeps: deletion and insertion are about one answer, not a sentence; found {sweeps}")
        if not isinstance(model, SatModel):
            raise ConfigError("the task 'caption' scores models that say captions")
        config = from_dict(CaptionDataConfig, {**data, "size": model.config.input_size}, where="data")
        vocabulary = Vocabulary.from_json({"schema_version": 1, "words": list(words)})
        device = next(model.parameters()).device
        chosen = CaptionData(config, cast(Split, split), device, vocabulary, allow_pack=allow_pack)
        scores = score_captions(model, chosen, beam=beam, limit=limit, progress=progress).summary()
        described = {"split": split, "beam": beam, **scores}
        if config.is_generated:
            return {"data": config.name, "glyphs": chosen.material, "seed": config.seed, **described}
        described["counts"] |= {"skipped": len(chosen.skipped)}
        return {"data": split_reference(config.name, CAPTION_READERS)[0], **described}


def _parsed(phase_loss: str, *, draws: bool) -> tuple[str, float | None]:
    """The name of a loss and the weight behind its colon, checked against what the model does.

    >>> _parsed("soft:0.5", draws=False), _parsed("default", draws=True)
    (('soft', 0.5), ('hard', None))
    """
    kind, sign, weight = phase_loss.partition(":")
    if kind not in LOSSES:
        raise ConfigError(f"loss '{phase_loss}': {nearest(kind, LOSSES)}")
    if kind == "default":
        kind = "hard" if draws else "soft"
    if kind in HARD and not draws:
        raise ConfigError(f"loss '{phase_loss}': this model draws no cells; take model 'sat-hard', or loss 'soft'")
    if not sign:
        return kind, None
    try:
        return kind, float(weight)
    except ValueError as error:
        raise ConfigError(f"loss '{phase_loss}': the weight after ':' is a number, found '{weight}'") from error


def _steps(words: Tensor) -> Tensor:
    """How many words captions (B,T) have together, their ends included; a scalar."""
    return (words >= 0).sum().clamp(min=1)


def _mean_gate(raw: Mapping[str, Tensor], words: Tensor) -> Tensor:
    """The mean β of the words (B,T); a scalar."""
    return (raw["word.gain"].detach() * (words >= 0)).sum() / _steps(words)
