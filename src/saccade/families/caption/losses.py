"""What a captioner is trained on: the loss of its words, and the reward of captions it draws.

The losses of captions: one dataclass for each, by the name that a recipe uses.

Papers: Xu et al. 2015, arXiv:1502.03044 (soft and hard attention), and Rennie et al. 2017, arXiv:1612.00563
(self-critical).

Training on the model's own captions: each is rewarded by how well it matches the reference captions of its picture.

For self-critical training (Rennie et al. 2017, arXiv:1612.00563): the reward of a caption is CIDEr-D by the training
captions of its picture, with the document frequencies of all training captions, counted once; beside it BLEU-4 and
METEOR, as much of each as is asked for.

References are cut into words as the scores cut them (:mod:`saccade.metrics.text.tokens`), so that a reward is
what the score of the same words would be. A word outside the model's vocabulary counts as the unknown word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from saccade.config import Weight
from saccade.families.caption.data import CaptionFiles
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.losses.captions import ENTROPY_WEIGHT
from saccade.metrics.text.meteor import MeteorWords, meteor_of_words
from saccade.metrics.text.ngrams import NGramRarity, bleu_of_words, cider_of_words
from saccade.metrics.text.tokens import ptb_tokens


@dataclass(frozen=True)
class Default:
    """`Soft` or `Hard`, as the model is; `SelfCritical` where the model learns from its own words."""


@dataclass(frozen=True)
class Soft:
    """Eq. (14): cross-entropy of the words, and the doubly stochastic penalty."""

    penalty: Weight = 1.0
    """λ, the weight of the penalty."""


@dataclass(frozen=True)
class Hard:
    """Eq. (10-12): cross-entropy, REINFORCE on the cells that were drawn, and an entropy bonus."""

    entropy: Weight = ENTROPY_WEIGHT
    """λ_e, the weight of the bonus; by default that of the released code."""
    judged: ClassVar[dict[str, Any]] = {}
    """How a draw is judged: options of :func:`~saccade.losses.captions.hard_attention_loss`."""


@dataclass(frozen=True)
class HardToGo(Hard):
    """As `Hard`, a draw judged by the words from it on: the same gradient on average, with less noise."""

    judged: ClassVar[dict[str, Any]] = {"to_go": True}


@dataclass(frozen=True)
class HardCode(Hard):
    """As `Hard`, judged as the released code does: by a tenth of the mean of the words."""

    judged: ClassVar[dict[str, Any]] = {"reward_weight": 0.1, "per_word": True}


@dataclass(frozen=True)
class SelfCritical:
    """The model draws five captions of each picture; each is judged beside the other four. For ``data: own_words``.

    The reward is a tenth of CIDEr-D + ``bleu`` × BLEU-4 + ``meteor`` × METEOR
    (:mod:`saccade.metrics.text.meteor`).
    """

    bleu: Weight = 0.0
    """Weight of BLEU-4."""
    meteor: Weight = 0.0
    """Weight of METEOR."""


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
    """The pictures of one split by the numbers of their captions, so that an epoch is as long as any other.

    Args:
        data: the captions, of files.
    """

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
        """Pictures (B,3,H,W) of the captions ``indices`` (B,), and all that was said of each (B,R,T), on the device."""
        batch = self.data.take(indices, vary=vary)
        return batch.images, self.references(batch.picture.cpu()).to(self.device)

    def references(self, pictures: Tensor) -> Tensor:
        """What people said of ``pictures`` (B,), as numbers of words: (B,R,T), no larger than they need."""
        found = self._references[pictures]  # (B,R,T)
        there = found != NO_WORD
        return found[:, : int(there.any(2).sum(1).max()), : int(there.sum(2).max())]

    def rewards(self, said: Tensor, references: Tensor, loss: SelfCritical) -> Tensor:
        """What captions (B,K,T) of pictures with these ``references`` (B,R,T) earn, their ends counted as words.

        CIDEr-D as a fraction in 0..1, the smoothed BLEU-4 of each, and its METEOR, for which an end is no word.
        """
        earned = cider_of_words(said, references, self.rarity)  # (B,K)
        if loss.bleu:
            earned = earned + loss.bleu * bleu_of_words(said, references, self.rarity.vocabulary)
        if loss.meteor:
            earned = earned + loss.meteor * meteor_of_words(said, references, self.words)
        return earned


def _in_words(captions: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """What was said of P pictures, as numbers of the words that scores compare, each with its end: (P,R,T).

    −1 where a picture has fewer captions than another, or a caption fewer words.
    """
    ids = [[[*map(vocabulary.number, words), END] for words in map(ptb_tokens, said) if words] for said in captions]
    most, longest = max(map(len, ids)), max((len(each) for said in ids for each in said), default=0)
    found = torch.full((len(ids), most, longest), NO_WORD)  # (P,R,T)
    for picture, said in enumerate(ids):
        for turn, each in enumerate(said):
            found[picture, turn, : len(each)] = torch.tensor(each)
    return found
