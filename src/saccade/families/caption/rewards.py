"""Training on the model's own captions: each is rewarded by how well it matches the reference captions of its picture.

For self-critical training (Rennie et al. 2017, arXiv:1612.00563): the reward of a caption is CIDEr-D by the training
captions of its picture, with the document frequencies of all training captions, counted once; beside it BLEU-4 and
METEOR, as much of each as is asked for.

References are cut into words as the scores cut them (:mod:`saccade.metrics.text.tokens`), so that a reward is
what the score of the same words would be. A word outside the model's vocabulary counts as the unknown word.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.families.caption.data import CaptionData
from saccade.families.caption.files import CaptionFiles
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.metrics import MeteorWords, NGramRarity, bleu_of_words, cider_of_words, meteor_of_words
from saccade.metrics.text.tokens import ptb_tokens

ONE_TRUTH = (
    "loss 'self_critical': a generated scene has one true sentence and no others to agree with; "
    "take pictures of files, or the loss 'soft' or 'hard'"
)


class JudgedPictures:
    """The pictures of one split by the numbers of their captions, so that an epoch is as long as any other.

    Args:
        data: the captions, of files.
    """

    lengths = None  # the captions of a batch are not said side by side, so they need not be of one length

    def __init__(self, data: CaptionData) -> None:
        if not isinstance(data.source, CaptionFiles):
            raise ConfigError(ONE_TRUTH)
        self.data, self.source, self.split, self.device = data, data.source, data.split, data.device
        self.size = self.source.size
        self._references = _in_words([row.captions for row in self.source.rows], data.vocabulary)  # (P,R,T)
        there = self._references[..., 0] != NO_WORD  # (P,R)
        words, pictures = self._references[there].to(self.device), there.nonzero()[:, 0].to(self.device)  # (N,T), (N,)
        self.rarity = NGramRarity(words, pictures, len(data.vocabulary))
        self.words = MeteorWords(data.vocabulary.entries, end=END, unknown=UNKNOWN, device=self.device)

    def take(self, indices: Tensor, *, augment_seed: int | None = None) -> tuple[Tensor, Tensor]:
        """Pictures (B,3,H,W) of the captions ``indices`` (B,), and all that was said of each (B,R,T), on the device."""
        batch = self.data.take(indices, augment_seed=augment_seed)
        return batch.images, self.references(batch.picture.cpu()).to(self.device)

    def references(self, pictures: Tensor) -> Tensor:
        """What people said of ``pictures`` (B,), as numbers of words: (B,R,T), no larger than they need."""
        found = self._references[pictures]  # (B,R,T)
        there = found != NO_WORD
        return found[:, : int(there.any(2).sum(1).max()), : int(there.sum(2).max())]

    def rewards(
        self, said: Tensor, references: Tensor, *, bleu_weight: float = 0.0, meteor_weight: float = 0.0
    ) -> Tensor:
        """What captions (B,K,T) of pictures with these ``references`` (B,R,T) earn, their ends counted as words.

        CIDEr-D as a fraction in 0..1, ``bleu_weight`` times the smoothed BLEU-4 of each, and ``meteor_weight`` times
        its METEOR, for which an end is no word.
        """
        earned = cider_of_words(said, references, self.rarity)  # (B,K)
        if bleu_weight:
            earned = earned + bleu_weight * bleu_of_words(said, references, self.rarity.vocabulary)
        if meteor_weight:
            earned = earned + meteor_weight * meteor_of_words(said, references, self.words)
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
