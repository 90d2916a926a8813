"""CIDEr-D of captions that are numbers of words, for a whole batch on its device: the reward in training.

A tenth of the score in :mod:`.caption_cider`, without a string or a dictionary: a run of words is one number, and runs
are counted and met by comparing all with all, so that a batch is judged on the device that said it, without waiting for
it.

It differs in what the caller decides: document frequencies are those of other captions than the judged ones (the
training captions, counted once); a word outside the vocabulary is the one unknown word; and the end is a word like
others where it is given, so that a caption which breaks off in the middle of a phrase loses by it.

Axes: B pictures, K captions said of each, R references, T places for words, of which −1 holds none, G = 4 lengths of
n-grams.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.text.cider import ORDERS, SIGMA

MAX_WORDS = math.isqrt(math.isqrt(2**63 - 1)) - 1
"""Words of a vocabulary whose runs of four still have numbers of their own: 55,107."""


class NGramRarity:
    """log(pictures / pictures with the n-gram in a reference), of n-grams as :func:`ngram_keys` numbers them.

    Args:
        words: the references (N,T) of all pictures, on the device where captions will be judged.
        picture: (N,) which picture each is about; a picture may have several.
        vocabulary: how many numbers words have.
    """

    def __init__(self, words: Tensor, picture: Tensor, vocabulary: int) -> None:
        if words.dim() != 2 or picture.shape != words.shape[:1]:
            raise ShapeError("picture", f"({words.shape[0]},), one for each of the references (N,T)", picture.shape)
        if vocabulary > MAX_WORDS:
            raise DataError(f"CIDEr-D of numbers: at most {MAX_WORDS:,} words, found {vocabulary:,}; take fewer")
        self.vocabulary = vocabulary
        pictures = torch.unique(picture)
        self.unseen = math.log(len(pictures)) if len(pictures) else 0.0
        """The weight of an n-gram that no reference has: as if one picture had it."""
        keys = ngram_keys(words, vocabulary)  # (N,G,T)
        there = keys > 0
        self._keys, which = torch.unique(keys[there], return_inverse=True)  # (M,), (all,)
        about = torch.searchsorted(pictures, picture)[:, None, None].expand_as(keys)[there]  # (all,)
        pairs = torch.unique(which * len(pictures) + about)  # an n-gram and a picture that has it
        counts = torch.bincount(pairs // max(1, len(pictures)), minlength=len(self._keys))  # (M,)
        self._rarity = (self.unseen - counts.double().log()).float()  # (M,)

    def __call__(self, keys: Tensor) -> Tensor:
        """The rarity of each of the n-grams ``keys`` (…): (…)."""
        if not len(self._keys):
            return torch.full_like(keys, self.unseen, dtype=torch.float32)
        place = torch.searchsorted(self._keys, keys.contiguous()).clamp(max=len(self._keys) - 1)  # (…)
        return torch.where(self._keys[place] == keys, self._rarity[place], self.unseen)


def ngram_keys(words: Tensor, vocabulary: int) -> Tensor:
    """A number for each run of one to four words that begins at a place: (…,T) → (…,G,T), 0 where none does.

    Two runs have the same number only if they are the same words; the words of a caption stand before its −1.
    """
    digits = words + 1  # (…,T), 0 where there is no word
    keys = [digits]
    for order in range(1, ORDERS):
        last = F.pad(digits[..., order:], (0, min(order, digits.shape[-1])))  # (…,T)
        keys.append((keys[-1] * (vocabulary + 1) + last) * (last > 0))
    return torch.stack(keys, dim=-2)


def cider_of_words(said: Tensor, references: Tensor, rarity: NGramRarity) -> Tensor:
    """A tenth of CIDEr-D, in 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    A reference without a word counts for nothing; where a picture has no other, or a caption no word, it is 0.
    """
    if said.dim() != 3 or references.dim() != 3 or len(said) != len(references):
        raise ShapeError("references", f"({len(said)},R,T), beside captions (B,K,T)", references.shape)
    mine, theirs = (ngram_keys(words, rarity.vocabulary) for words in (said, references))  # (B,K,G,T), (B,R,G,T')
    entries, other = _vector(mine, rarity)[:, :, None], _vector(theirs, rarity)[:, None]  # (B,K,1,G,T), (B,1,R,G,T')
    norms = entries.square().sum(-1).sqrt() * other.square().sum(-1).sqrt()  # ‖g(c)‖ ‖g(s)‖: (B,K,R,G)
    same = mine[:, :, None, ..., None] == theirs[:, None, ..., None, :]  # (B,K,R,G,T,T')
    clipped = torch.minimum(entries[..., None], other[..., None, :]) * same  # (B,K,R,G,T,T')
    shared = torch.einsum("bkrgst,brgt->bkrg", clipped, other[:, 0])  # (B,K,R,G)
    likeness = torch.where(norms > 0, shared / norms.clamp_min(1e-12), 0).mean(-1)  # (B,K,R)
    bigrams, those = ((keys[..., 1, :] > 0).sum(-1) for keys in (mine, theirs))  # (B,K), (B,R)
    likeness = likeness * torch.exp(-(bigrams[:, :, None] - those[:, None]).float().square() / (2 * SIGMA**2))
    counts = (references >= 0).any(-1)  # (B,R)
    return (likeness * counts[:, None]).sum(-1) / counts.sum(-1, keepdim=True).clamp_min(1)


def ngram_counts(keys: Tensor) -> Tensor:
    """How often each n-gram (…,G,T) is in its caption, at the first place that it has there; 0 elsewhere."""
    same = keys[..., :, None] == keys[..., None, :]  # (…,G,T,T)
    is_first = ~same.tril(-1).any(-1) & (keys > 0)  # (…,G,T)
    return same.sum(-1) * is_first


def _vector(keys: Tensor, rarity: NGramRarity) -> Tensor:
    """The entry g of each n-gram (…,G,T), where it is counted; 0 elsewhere."""
    return ngram_counts(keys) * rarity(keys)
