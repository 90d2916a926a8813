"""Captions: a picture in, a sentence out, with a look at the picture for every word.

This is training; scoring is in :mod:`saccade.families.caption.scores`, and the losses are in
:mod:`saccade.families.caption.losses`.

A phase learns from pictures and their captions. With ``features: kept`` it learns from what the frozen encoder makes of
picture files, which is computed once and kept on disk (see the module ``features``); with ``auto`` nothing is kept.
With ``data: own_words`` it is trained on the model's own captions (see ``rewards``). Pictures are augmented as
``data.augment`` says.

Batches have captions of (nearly) one length, as in Section 4.3. A model is chosen by its greedy captions: by BLEU-4 on
pictures, by exact match on generated scenes, each of which has one true sentence; the log-likelihood is logged beside.
Deviation: BLEU for choosing is that with the brevity penalty, as without it the shortest captions would win.

Captions for pictures whose features a frozen encoder has already computed and stored.

Xu et al. (2015, arXiv:1502.03044, Section 4.3) do not train the encoder: with stored features, a step costs only the
decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import check_named, check_trainable
from saccade.data.tables.references import read_reference, split_reference
from saccade.data.tables.splits import Split
from saccade.errors import ConfigError, DataError
from saccade.families.caption.batch import bucketed_order
from saccade.families.caption.data import CaptionBatch, CaptionData, CaptionDataConfig, CaptionFiles, vocabulary_of
from saccade.families.caption.losses import LOSSES, ONE_TRUTH, Default, Hard, JudgedPictures, Loss, SelfCritical, Soft
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scores import captions_of, score_captions, sentences
from saccade.families.caption.table import summary_of
from saccade.families.caption.vocabulary import Vocabulary
from saccade.losses import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
    self_critical_loss,
    smoothed_cross_entropy,
    word_log_likelihood,
)
from saccade.metrics import bleu, same_caption
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.facts import ModelFacts
from saccade.models.sat import SatModel
from saccade.outputs import CaptionOutput
from saccade.tasks.cached_features import CachedFeatures
from saccade.tasks.data_parts import LEARNED, Entries, glyph_entries, picture_entries, row_entries, word_entries
from saccade.tasks.eval_request import EvalRequest, requested_settings
from saccade.tasks.forward_passes import encoded, numbers_in_batches
from saccade.tasks.held_out import HeldOut, evenly_spaced
from saccade.tasks.losses import loss_name
from saccade.tasks.picture_task import PictureTask
from saccade.tasks.task import Batch


class CaptionFeatures:
    """One split of captions with the annotation vectors of their pictures, by the number of the caption.

    Args:
        data: the captions, of files.
        model: its encoder as it is now; what later becomes of it is not noticed.
        on_progress: as in :class:`CachedFeatures`.
    """

    def __init__(
        self,
        data: CaptionData,
        model: SatModel,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        if not isinstance(data.source, CaptionFiles):
            raise DataError("features can be stored for files only: generated scenes are new each time")
        self.source = source = data.source
        self.split, self.device, self.size, self.lengths = data.split, data.device, data.size, source.lengths
        self._features = CachedFeatures(
            [row.image for row in source.rows],
            lambda numbers: source.of_pictures(numbers).images,
            model,
            limit_mb=data.config.features_mb,
            on_progress=on_progress,
        )

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The captions ``indices`` (B,): features (B,L,D) and words (B,T), on the device."""
        words, pictures = self.source.captions(indices.long().cpu())
        return self._features.take(pictures), words.to(self.device)


OWN_WORDS = "own_words"
"""The material of a phase that learns from what the model says."""
DRAWS = 5
"""Captions of each picture that the model then says, judged by one another."""
JUDGED = "train/judged"
"""The split that it then learns from: pictures with all that people said of them."""
Material: TypeAlias = CaptionData | CaptionFeatures | JudgedPictures
"""What a phase may learn from."""
BEAM = 5
VALIDATION_BATCH, VALIDATION_PICTURES = 100, 1000


class CaptionTask(PictureTask):
    """Trains one model that says captions.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model; ``vocabulary`` and ``input_size`` come from the data.
        data: settings of :class:`CaptionDataConfig`.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of training captions, and of fresh training scenes.
    """

    name = "caption"
    data_settings = CaptionDataConfig
    model_kind = SatModel
    model_description = "says captions"
    sentences = True
    readers = CAPTION_READERS
    losses = LOSSES
    data_choices = ("default", OWN_WORDS)
    caches_features = True

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        check_named(data, CAPTION_READERS, "captions")
        self.data_config = from_dict(CaptionDataConfig, data, where="data")
        config = self.data_config
        self.table = None if config.is_generated else read_reference(config.name, CAPTION_READERS, config.options)
        if self.table is not None:
            check_trainable(self.table, "picture")
        self.vocabulary = vocabulary_of(self.table, config)
        settings = {"input_size": config.size, **model_config}
        if settings.setdefault("vocabulary", len(self.vocabulary)) != len(self.vocabulary):
            found = f"found {settings['vocabulary']}, but the data has {len(self.vocabulary)}"
            raise ConfigError(f"model.config.vocabulary: {found}; leave it out")
        super().__init__(model=model, model_config=settings, size=config.size, protocol=protocol, seed=seed)

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing is asked; every word that can be said, by id."""
        return (), self.vocabulary.entries

    def summary(self) -> str:
        """What the table holds, in one line, and what looks wrong with it; nothing of scenes."""
        if self.table is None:
            return ""
        return summary_of(self.table, len(self.vocabulary.words))

    def extra_data_parts(self) -> dict[str, Entries]:
        """The captions of train and val with their pictures, or the glyphs of scenes; and the words."""
        words = {"vocabulary": word_entries(word=self.vocabulary.words)}
        if self.table is None:
            return {"glyphs": glyph_entries(self.data_config.glyphs), **words}
        rows = [row for row in self.table.rows if row.split in LEARNED]
        return {
            "rows": row_entries((row.image, "", (row.split, row.labels)) for row in rows),
            "pictures": picture_entries((row.image for row in rows), self.on_progress),
            **words,
        }

    def make_split(self, name: str) -> CaptionData:
        """One split of the captions."""
        config = self.data_config
        if config.is_generated and name == "train":
            config = replace(config, seed=config.seed + self.seed)
        return CaptionData(config, cast(Split, name), self.device, self.vocabulary, table=self.table)

    def training_split(self, data: str = "default", features: str = "auto") -> Material:
        """Pictures and captions; with ``kept`` what is kept of these pictures, if they are files."""
        captions: CaptionData = self.split("train")
        if data == OWN_WORDS:
            return self._judged(captions)
        if features != "kept" or self.data_config.is_generated or not self.data_config.features_mb:
            return captions
        return CaptionFeatures(captions, cast(SatModel, self.model), self.on_progress)  # of the encoder as it is now

    def _judged(self, captions: CaptionData) -> JudgedPictures:
        if JUDGED not in self._splits:
            self._splits[JUDGED] = JudgedPictures(captions)
        judged: JudgedPictures = self._splits[JUDGED]
        return judged

    def order(self, data: Material, epoch: int, together: int) -> Tensor:
        """The captions of one epoch, so that those of a batch are (nearly) of one length: (size,)."""
        if data.lengths is None:
            return super().order(data, epoch, together)
        return bucketed_order(data.lengths, together, self.seed, epoch)

    def batch(self, data: Material, indices: Tensor, number: int) -> Batch:
        """The captions ``indices`` (B,) with their pictures, or with the features of those.

        Where the model says the captions, all ``references`` of their pictures are there in their place.
        """
        if isinstance(data, CaptionFeatures):
            features, words = data.take(indices)
            return {"features": features, "words": words}
        varied = derive_seed(self.seed, number)
        if isinstance(data, JudgedPictures):
            images, references = data.take(indices, augment_seed=varied)
            return {"images": images, "references": references}
        made = data.take(indices, augment_seed=varied)
        return {"images": made.images, "words": made.words}

    def distinct_numbers(self, data: CaptionData, count: int) -> Tensor:
        """Numbers of pictures, not of captions."""
        return torch.arange(count) if data.picture_count is None else evenly_spaced(data.picture_count, count)

    def held_out_batch(self, data: CaptionData, numbers: Tensor) -> HeldOut:
        """The pictures ``numbers`` (B,)."""
        return HeldOut(data.pictures(numbers).images)

    def inputs(self, batch: Batch) -> dict[str, object]:
        """Keyword arguments of ``forward_raw``."""
        given = {"images": None, "words": None} | {name: batch[name] for name in batch if name != "references"}
        return {**given, "draws": DRAWS} if "references" in batch else given

    def checked_loss(self, loss: Loss | Default, data: str) -> Loss:
        """The loss that ``default`` stands for; refuses what the material, the model or the data is not made for."""
        draws = cast(SatModel, self.model).is_hard
        if isinstance(loss, Default):
            loss = SelfCritical() if data == OWN_WORDS else Hard() if draws else Soft()
        if isinstance(loss, SelfCritical) != (data == OWN_WORDS):
            raise ConfigError(f"the loss 'self_critical' and data '{OWN_WORDS}' go together; give both, or neither")
        if isinstance(loss, Hard) and not draws:
            name = loss_name(loss, LOSSES)
            raise ConfigError(f"loss '{name}': this model draws no cells; take model 'sat-hard', or loss 'soft'")
        if isinstance(loss, SelfCritical) and self.data_config.is_generated:
            raise ConfigError(ONE_TRUTH)
        return loss

    def loss(self, raw: CaptionOutput, batch: Batch, loss: Loss) -> dict[str, Tensor]:
        """The value of ``loss``, its parts, and the log-likelihood of a word."""
        if isinstance(loss, SelfCritical):
            return self._self_critical(raw, batch["references"], loss)
        words = batch["words"]
        if isinstance(loss, Soft):
            likelihood = caption_cross_entropy(raw["logits"], words)
            taught = smoothed_cross_entropy(raw["logits"], words, loss.smoothing) if loss.smoothing else likelihood
            penalty = doubly_stochastic(raw["word.weights"], words)
            found = {"loss": taught + loss.penalty * penalty, "cross_entropy": likelihood, "penalty": penalty}
            return found | {"gate": _mean_gate(raw, words), "log_likelihood": -likelihood * len(words) / _steps(words)}
        options: dict[str, Any] = {**loss.judged, "entropy_weight": loss.entropy, "smoothing": loss.smoothing}
        found = hard_attention_loss(raw, words, raw["baseline"], **options)
        return {**found, "gate": _mean_gate(raw, words)}

    def _self_critical(self, raw: CaptionOutput, references: Tensor, loss: SelfCritical) -> dict[str, Tensor]:
        """What drawn captions earn beyond others of their picture, by its ``references`` (B,R,T)."""
        words, log_prob = raw["word.emits"], raw["log_prob"]  # (B·K,T)
        if "expected" in raw:  # the cells were drawn too, but for the captions of which all counted
            log_prob = log_prob + raw["word.log_prob"] * (raw["word.active"] & ~raw["expected"].unsqueeze(1))
        by_picture = (references.shape[0], -1, words.shape[1])  # (B,K,T)
        judged = self._judged(self.split("train"))
        weights = {"bleu_weight": loss.bleu, "meteor_weight": loss.meteor}
        earned = judged.rewards(words.view(by_picture), references, **weights)  # (B,K)
        return {
            "loss": self_critical_loss(log_prob.view(by_picture), earned),
            "reward": earned.mean(),
            "best_reward": earned.amax(1).mean(),
            "words": (words > 0).sum(1).float().mean(),
            "gate": _mean_gate(raw, words),
        }

    def metric_names(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        told = ("bleu_4", "bleu_1", "length_ratio", "log_likelihood")
        return ("exact_match", *told) if self.data_config.is_generated else told

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
            features = encoded(captioner.encode, batch.images)  # (B,L,D)
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

    @classmethod
    def eval_kwargs(cls, facts: ModelFacts, request: EvalRequest) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` as ``request`` asks."""
        settings = requested_settings(facts, request, CAPTION_READERS)
        return {"data": settings, "words": facts.answers, "allow_pack": request.allow_pack}

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        words: tuple[str, ...],
        beam: int = BEAM,
        length_penalty: float = 0.0,
        limit: int | None = None,
        sweeps: int | None = None,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        ``words`` are the model's, by id. ``sweeps`` are photographs whose words are asked for again while parts of them
        are altered; generated scenes are rendered again instead, so of them it must be 0 or None.
        """
        model = cast(SatModel, model)
        config = from_dict(CaptionDataConfig, {**data, "size": model.config.input_size}, where="data")
        if sweeps and config.is_generated:
            raise ConfigError(f"sweeps: generated scenes are rendered again, not altered in parts; found {sweeps}")
        vocabulary = Vocabulary.of_model(words)
        device = next(model.parameters()).device
        chosen = CaptionData(config, cast(Split, split), device, vocabulary, allow_pack=allow_pack)
        altered = {} if sweeps is None else {"altered": sweeps}
        scores = score_captions(
            model, chosen, beam=beam, length_penalty=length_penalty, **altered, limit=limit, progress=progress
        ).summary()
        search: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
        if config.is_generated:
            made = {"glyphs": chosen.material, "seed": config.seed, **search}
            return evaluation(scores, data=config.name, split=split, **made)
        scores["counts"]["skipped"] = len(chosen.skipped)
        if split == "test" and config.options.get("splits") == "dev":
            search["scored_part"] = "dev pictures"
        return evaluation(scores, data=split_reference(config.name, CAPTION_READERS)[0], split=split, **search)


def _steps(words: Tensor) -> Tensor:
    """How many words captions (B,T) have together, their ends included; a scalar."""
    return (words >= 0).sum().clamp(min=1)


def _mean_gate(raw: CaptionOutput, words: Tensor) -> Tensor:
    """The mean β of the words (B,T); a scalar."""
    return (raw["word.gain"].detach() * (words >= 0)).sum() / _steps(words)
