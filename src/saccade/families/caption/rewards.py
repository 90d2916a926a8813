"""Pictures whose captions the model says itself, and what people said of them, by which these are rewarded.

For self-critical training (Rennie et al. 2017, arXiv:1612.00563): the reward of a caption is CIDEr-D by the training
captions of its picture, with the document frequencies of all training captions, counted once; beside it BLEU-4 and
METEOR, as much of each as is asked for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.families.caption.data import CaptionData
from saccade.families.caption.files import CaptionFiles
from saccade.families.caption.vocabulary import END, UNKNOWN
from saccade.metrics import MeteorWords, NGramRarity, bleu_of_words, cider_of_words, meteor_of_words

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
        words, pictures = self.source.captions(torch.arange(self.size))  # (N,T), (N,)
        self.rarity = NGramRarity(words.to(self.device), pictures.to(self.device), len(data.vocabulary))
        self.words = MeteorWords(data.vocabulary.entries, end=END, unknown=UNKNOWN, device=self.device)

    def take(self, indices: Tensor, *, augment_seed: int | None = None) -> tuple[Tensor, Tensor]:
        """Pictures (B,3,H,W) of the captions ``indices`` (B,), and all that was said of each (B,R,T), on the device."""
        batch = self.data.take(indices, augment_seed=augment_seed)
        return batch.images, self.source.references_in_words(batch.picture.cpu()).to(self.device)

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
