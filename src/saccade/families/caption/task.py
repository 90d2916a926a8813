"""Captions: a picture in, a sentence out, with a look at the picture for every word.

With ``features: kept`` a phase learns from what the frozen encoder makes of picture files, computed once and kept on
disk; Xu et al. (2015, arXiv:1502.03044, Section 4.3) do not train the encoder either. Batches have captions of (nearly)
one length, as there.

With ``data: own_words`` it learns from the model's own captions (Rennie et al. 2017, arXiv:1612.00563): the reward of a
caption is CIDEr-D by the training captions of its picture, with the document frequencies of all training captions, and
as much of BLEU-4 and METEOR as is asked for.

A model is chosen by its greedy captions: by exact match on generated scenes, by BLEU-4 on files. Deviation: BLEU for
choosing is that with the brevity penalty, as without it the shortest captions would win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight
from saccade.data.examples import Split
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import pluralise
from saccade.data.tables.table import Table
from saccade.errors import ConfigError
from saccade.families.caption.data import (
    CaptionBatch,
    CaptionDataConfig,
    CaptionFiles,
    CaptionScenes,
    CaptionSplit,
    bucketed_order,
    vocabulary_of,
)
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scenes import scene_vocabulary
from saccade.families.caption.scores import CaptionScoring, captions_of, sentences
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.losses import captions as caption_losses
from saccade.losses.policy import self_critical_loss
from saccade.metrics.maps.words import same_caption
from saccade.metrics.text.meteor import MeteorWords, meteor_of_words
from saccade.metrics.text.ngrams import NGramRarity, bleu, bleu_of_words, cider_of_words
from saccade.metrics.text.tokens import ptb_tokens
from saccade.models.facts import ModelFacts
from saccade.models.sat import SatModel
from saccade.tasks.cached_features import with_features
from saccade.tasks.evaluate import encoded, numbers_in_batches
from saccade.tasks.picture_task import PictureTask, filled_in
from saccade.tasks.task import AS_IS, Batch, HeldOut, Opening, evenly_spaced, loss_name
from saccade.trace import CaptionOutput


@dataclass(frozen=True)
class Default:
    """`Soft` or `Hard`, as the model is; `SelfCritical` where the model learns from its own words."""


@dataclass(frozen=True)
class Soft:
    """Eq. (14): cross-entropy of the words, and the doubly stochastic penalty."""

    penalty: Weight = 1.0  # λ, the weight of the penalty.


@dataclass(frozen=True)
class Hard:
    """Eq. (10-12): cross-entropy, REINFORCE on the cells that were drawn, and an entropy bonus."""

    entropy: Weight = caption_losses.ENTROPY_WEIGHT
    """λ_e, the weight of the bonus; by default that of the released code."""
    judged: ClassVar[dict[str, Any]] = {}
    """How a draw is judged: options of :func:`~saccade.losses.captions.hard_attention_loss`."""


@dataclass(frozen=True)
class HardToGo(Hard):
    """As `Hard`, a draw judged by the words from it on: the same mean gradient, with less noise."""

    judged: ClassVar[dict[str, Any]] = {"to_go": True}


@dataclass(frozen=True)
class HardCode(Hard):
    """As `Hard`, judged by a tenth of the mean over words, like the released code."""

    judged: ClassVar[dict[str, Any]] = {"reward_weight": 0.1, "per_word": True}


@dataclass(frozen=True)
class SelfCritical:
    """Five drawn captions of each picture are judged against each other; for ``data: own_words``.

    The reward is a tenth of CIDEr-D + ``bleu`` × BLEU-4 + ``meteor`` × METEOR.
    """

    bleu: Weight = 0.0  # Weight of BLEU-4.
    meteor: Weight = 0.0  # Weight of METEOR.


Loss = Soft | Hard | SelfCritical  # what a phase is taught by, once `Default` is resolved
LOSSES: dict[str, type] = {
    "default": Default,
    "soft": Soft,
    "hard": Hard,
    "hard_to_go": HardToGo,
    "hard_code": HardCode,
    "self_critical": SelfCritical,
}


class JudgedPictures:
    """The pictures of one split by the numbers of their captions, so that epochs have one length."""

    lengths = None  # the captions of a batch are not said side by side, so they need not be of one length

    def __init__(self, data: CaptionFiles) -> None:
        self.data, self.split, self.device = data, data.split, data.device
        self.size = data.size
        self._references = _in_words([row.labels for row in data.rows], data.vocabulary)  # (P,R,T)
        there = self._references[..., 0] != NO_WORD  # (P,R)
        words, pictures = self._references[there].to(self.device), there.nonzero()[:, 0].to(self.device)  # (N,T), (N,)
        self.rarity = NGramRarity(words, pictures, len(data.vocabulary))
        self.words = MeteorWords(data.vocabulary.entries, end=END, unknown=UNKNOWN, device=self.device)

    def take(self, indices: Tensor, *, vary: int | None = None) -> tuple[Tensor, Tensor]:
        """Pictures (B,3,H,W) of the captions ``indices`` (B,), and all their references (B,R,T), on the device."""
        batch = self.data.take(indices, vary=vary)
        return batch.images, self.references(batch.picture.cpu()).to(self.device)

    def references(self, pictures: Tensor) -> Tensor:
        """The references of ``pictures`` (B,), as word numbers (B,R,T), no larger than needed."""
        words = self._references[pictures]  # (B,R,T)
        there = words != NO_WORD
        return words[:, : int(there.any(2).sum(1).max()), : int(there.sum(2).max())]

    def rewards(self, captions: Tensor, references: Tensor, loss: SelfCritical) -> Tensor:
        """Rewards of captions (B,K,T) by ``references`` (B,R,T), ends counted as words.

        CIDEr-D in 0..1, smoothed BLEU-4, and METEOR, for which an end is no word.
        """
        earned = cider_of_words(captions, references, self.rarity)  # (B,K)
        if loss.bleu:
            earned = earned + loss.bleu * bleu_of_words(captions, references, self.rarity.vocabulary)
        if loss.meteor:
            earned = earned + loss.meteor * meteor_of_words(captions, references, self.words)
        return earned


def _in_words(captions: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """References of P pictures as word numbers, each with its end: (P,R,T).

    −1 fills up captions and words.
    """
    ids = [[[*map(vocabulary.number, words), END] for words in map(ptb_tokens, texts) if words] for texts in captions]
    most = max(map(len, ids))
    longest = max((len(word_ids) for picture_ids in ids for word_ids in picture_ids), default=0)
    table = torch.full((len(ids), most, longest), NO_WORD)  # (P,R,T)
    for picture, picture_ids in enumerate(ids):
        for turn, word_ids in enumerate(picture_ids):
            table[picture, turn, : len(word_ids)] = torch.tensor(word_ids)
    return table


OWN_WORDS = "own_words"  # the material of a phase that learns from what the model says
DRAWS = 5  # captions of each picture that the model then says, judged by one another
JUDGED = "train/judged"  # the split that it then learns from: pictures with all that people said of them
Material: TypeAlias = CaptionSplit | JudgedPictures  # what a phase may learn from
VALIDATION_BATCH, VALIDATION_PICTURES = 100, 1000


class CaptionTask(PictureTask):
    """Trains one model that says captions; vocabulary and size of the input come from the data."""

    name = "caption"
    data_settings = CaptionDataConfig
    model_kind = SatModel
    model_description = "says captions"
    sentences = True
    readers = CAPTION_READERS
    losses = LOSSES
    scores = CaptionScoring
    data_choices = ("default", OWN_WORDS)
    caches_features = True

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """The vocabulary and the size of the pictures come from the data."""
        scenes = scene_vocabulary(empty=self.data_config.empty > 0)
        self.vocabulary = scenes if self.table is None else vocabulary_of(self.table, self.data_config)
        self.answers = self.vocabulary.entries
        settings = {"input_size": self.data_config.size, **model_config}
        return filled_in(settings, {"vocabulary": len(self.vocabulary)}, "the data")

    def summary(self) -> str:
        return "" if self.table is None else summary_of(self.table, self.vocabulary)

    def learned_words(self) -> dict[str, Sequence[str]]:
        """Every word but the end and the unknown one."""
        return {"word": self.vocabulary.words}

    @classmethod
    def open(
        cls, config: CaptionDataConfig, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS
    ) -> CaptionSplit:
        """Generated scenes, or the captions of a table, in the words of a trained model or in their own."""
        table = cls.read(config) if how.table is None else how.table
        words = None if how.facts is None else Vocabulary.of_model(how.facts.answers)
        if table is None:
            return CaptionScenes(config, split, device, words, allow_pack=how.allow_pack)
        words = words or vocabulary_of(table, config)
        return CaptionFiles(config, table, split, vocabulary=words, device=device, on_progress=how.on_progress)

    def make_split(self, name: str, /, **changes: Any) -> Material:
        if name == JUDGED:
            return JudgedPictures(self.split("train"))
        if self.table is None:
            return cast(CaptionScenes, super().make_split(name))
        return CaptionFiles(self.data_config, self.table, name, vocabulary=self.vocabulary, device=self.device)

    def training_split(self, data: str = "default", features: str = "auto") -> Material:
        """Pictures and captions; with ``kept`` the cached features of picture files."""
        captions: CaptionSplit = self.split("train")
        if data == OWN_WORDS:
            return cast(JudgedPictures, self.split(JUDGED))
        if features != "kept" or not self.data_config.features_mb or not isinstance(captions, CaptionFiles):
            return captions
        return with_features(captions, self.model, self.on_progress)

    def order(self, data: Material, epoch: int, together: int) -> Tensor:
        """The captions of one epoch (size,), batched by length."""
        if data.lengths is None:
            return super().order(data, epoch, together)
        return bucketed_order(data.lengths, together, self.seed, epoch)

    def batch(self, data: Material, indices: Tensor, number: int) -> Batch:
        """The captions ``indices`` (B,) with their pictures or features.

        In self-critical training the ``references`` of the pictures take the place of captions.
        """
        varied = derive_seed(self.seed, number)
        if isinstance(data, JudgedPictures):
            images, references = data.take(indices, vary=varied)
            return {"images": images, "references": references}
        if data.features is not None:
            words, pictures = data.captions(indices.long().cpu())
            return {"features": data.features.take(pictures), "words": words.to(data.device)}
        captions = data.take(indices, vary=varied)
        return {"images": captions.images, "words": captions.words}

    def distinct_numbers(self, data: CaptionSplit, count: int) -> Tensor:
        """Numbers of pictures, not of captions."""
        return torch.arange(count) if data.picture_count is None else evenly_spaced(data.picture_count, count)

    def held_out_batch(self, data: CaptionSplit, numbers: Tensor) -> HeldOut:
        return HeldOut(data.of_pictures(numbers).images)

    def inputs(self, batch: Batch) -> dict[str, object]:
        inputs = {"images": None, "words": None} | {name: batch[name] for name in batch if name != "references"}
        return {**inputs, "draws": DRAWS} if "references" in batch else inputs

    def checked_loss(self, loss: Loss | Default, data: str) -> Loss:
        """The loss, with ``default`` resolved; a ConfigError if it does not fit the data or the model."""
        draws = cast(SatModel, self.model).is_hard
        if isinstance(loss, Default):
            loss = SelfCritical() if data == OWN_WORDS else Hard() if draws else Soft()
        if isinstance(loss, SelfCritical) != (data == OWN_WORDS):
            raise ConfigError(f"the loss 'self_critical' and data '{OWN_WORDS}' go together; give both, or neither")
        if isinstance(loss, Hard) and not draws:
            name = loss_name(loss, LOSSES)
            raise ConfigError(f"loss '{name}': this model draws no cells; take model 'sat-hard', or loss 'soft'")
        if isinstance(loss, SelfCritical) and self.data_config.is_generated:
            raise ConfigError("loss 'self_critical': a generated scene has one true sentence; take pictures of files")
        return loss

    def loss(self, output: CaptionOutput, batch: Batch, loss: Loss) -> dict[str, Tensor]:
        """The value of ``loss``, its parts, and the log-likelihood of a word."""
        if isinstance(loss, SelfCritical):
            return self._self_critical(output, batch["references"], loss)
        words = batch["words"]
        if isinstance(loss, Soft):
            likelihood = caption_losses.caption_cross_entropy(output.logits, words)
            penalty = caption_losses.doubly_stochastic(output.acts["word"].weights, words)
            scalars = {"loss": likelihood + loss.penalty * penalty, "cross_entropy": likelihood, "penalty": penalty}
            scalars["log_likelihood"] = -likelihood * len(words) / _steps(words)
        else:
            scalars = caption_losses.hard_attention_loss(
                output, words, output.baseline, entropy_weight=loss.entropy, **loss.judged
            )
        return {**scalars, "gate": _mean_gate(output, words)}

    def _self_critical(self, output: CaptionOutput, references: Tensor, loss: SelfCritical) -> dict[str, Tensor]:
        word = output.acts["word"]
        words, log_prob = word.emits, output.log_prob  # (B·K,T)
        if output.expected is not None:  # the cells were drawn too, but for the captions of which all counted
            log_prob = log_prob + word.log_prob * (word.active & ~output.expected.unsqueeze(1))
        by_picture = (references.shape[0], -1, words.shape[1])  # (B,K,T)
        earned = self.split(JUDGED).rewards(words.view(by_picture), references, loss)  # (B,K)
        return {
            "loss": self_critical_loss(log_prob.view(by_picture), earned),
            "reward": earned.mean(),
            "best_reward": earned.amax(1).mean(),
            "words": (words > 0).sum(1).float().mean(),
            "gate": _mean_gate(output, words),
        }

    def metric_names(self) -> tuple[str, ...]:
        names = ("bleu_4", "bleu_1", "length_ratio", "log_likelihood")
        return ("exact_match", *names) if self.data_config.is_generated else names

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """BLEU-1, BLEU-4, length ratio of greedy captions, and the log-likelihood of a word; for scenes exact match."""
        captioner, data = cast(SatModel, model), self.split("val")
        captions, references, exact = list[str](), list[tuple[str, ...]](), list[Tensor]()
        likelihood, steps = 0.0, 0
        for numbers in numbers_in_batches(min(data.picture_count, VALIDATION_PICTURES), VALIDATION_BATCH):
            batch: CaptionBatch = data.of_pictures(numbers)
            features = encoded(captioner.encode, batch.images)  # (B,L,D)
            logits = captioner.teacher_force(features, batch.words).logits  # (B,T,V)
            likelihood += float(caption_losses.word_log_likelihood(logits, batch.words).sum())
            steps += int(_steps(batch.words))
            words = captions_of(captioner, features)  # (B,T)
            captions += sentences(words, self.vocabulary)
            references += [data.references(number) for number in numbers.tolist()]
            exact += [same_caption(words, batch.words).cpu()] if batch.layout is not None else []
        bleu_scores = bleu(captions, references)
        scores = {name: bleu_scores[name] for name in ("bleu_1", "bleu_4", "length_ratio")}
        scores |= {"exact_match": float(torch.cat(exact).mean())} if exact else {}
        return {**scores, "log_likelihood": likelihood / steps}

    @classmethod
    def settings_to_show(cls, settings: Mapping[str, Any], facts: ModelFacts | None) -> Mapping[str, Any]:
        """Every word of a table counts, as short tables have no frequent words."""
        return {"at_least": 1, **settings}

    @classmethod
    def summary_of(cls, table: Table | None, examples: CaptionFiles) -> str:
        """One line about a table with all its words; empty for scenes."""
        if table is None:
            return ""
        return summary_of(table, vocabulary_of(table, replace(examples.config, at_least=1)))


def summary_of(table: Table, words: Vocabulary) -> str:
    """One line about a table whose learner knows ``words``, and below it what looks wrong."""
    captions = sum(len(row.labels) for row in table.rows)
    first, *doubts = table.summary().splitlines()
    return "\n".join([f"{first}, {pluralise(captions, 'caption')}, {pluralise(len(words.words), 'word')}", *doubts])


def _steps(words: Tensor) -> Tensor:
    return (words >= 0).sum().clamp(min=1)


def _mean_gate(output: CaptionOutput, words: Tensor) -> Tensor:
    return (output.acts["word"].gain.detach() * (words >= 0)).sum() / _steps(words)
