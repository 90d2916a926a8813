"""METEOR of single captions that are numbers of words, for a whole batch on its device: a reward in training.

Denkowski and Lavie, "Meteor Universal", WMT 2014, by exact words and stems as in :mod:`.caption_meteor`, and as METEOR
1.5 has it a content word weighs δ and a function word 1 − δ. With W the weight of all words of a caption, M that of the
m pairs (times 1 for the same word, 0.6 for the same stem), in ch chunks,

    P = M / W said    R = M / W of the reference    F = P R / (α P + (1 − α) R) = M / (α W reference + (1 − α) W said)
    score = F · (1 − γ (ch / m)^β)                   α = 0.85, β = 0.2, γ = 0.6, δ = 0.75

of the reference that fits best. It differs from the score of sentences in this:

- Nothing is aligned. Pairs are clipped counts, which is how many the best alignment has; a pair goes on with the chunk
  of the one before where a run of two stems is in both captions, by clipped counts too. So ch = m − such runs, at least
  1: too few where a run is met across pairs that exclude each other.
- Whether a word is a function word goes by its stem, so that both words of a pair weigh the same.
- A caption that is its reference has one chunk, not none. METEOR lifts such a caption from about 0.6 to 1, which the
  score of a set hardly feels; as a reward it would be the price for learning training captions by heart.
- The end is no word: every caption has one, and all would be flattered alike. So that a caption gains nothing by
  breaking off ("a man in a"), last words that lead up to another one count as unknown. An unknown word is a content
  word that has no partner, not even another unknown one.

Axes: B pictures, K captions said of each, R references, T places for words, of which −1 holds none, V words, 3 things
to meet in: the word, its stem, and its stem with the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.text.alignment import EXACT, STEM
from saccade.metrics.text.cider_ids import ngram_counts
from saccade.metrics.text.meteor import ALPHA, BETA, GAMMA
from saccade.metrics.text.stems import stem

DELTA = 0.75

_OFTEN_LEADING = frozenset({
    "a", "an", "the", "this", "that", "my", "your", "his", "its", "our", "their", "some", "all",
    "of", "in", "on", "at", "with", "for", "from", "to", "into", "by", "about", "over", "after",
    "and", "or", "but", "as", "than", "if", "which", "who", "when", "what",
    "is", "are", "was", "were", "be", "been", "am", "has", "have", "had", "can", "could", "will", "would",
})  # fmt: skip
_SELDOM_LEADING = frozenset({
    "each", "every", "these", "those", "whose", "where", "while", "because",
    "onto", "through", "under", "between", "near", "beside", "against", "across", "above", "toward", "towards",
})  # fmt: skip
LEADING_WORDS = _OFTEN_LEADING | _SELDOM_LEADING
"""Words that lead up to another word: a caption that ends with one has broken off."""
FUNCTION_WORDS = _OFTEN_LEADING | {
    "i", "you", "he", "she", "it", "we", "they", "me", "him", "her", "us", "them",
    "there", "not", "no", "so", "also", "then", "up", "out", "one", "two", "other",
}  # fmt: skip
"""Words of any sentence, whatever it is about. METEOR's list too is one of frequent words: "across" is not on it."""


class MeteorWords:
    """What METEOR asks of each word of a vocabulary: its stem, its weight, and whether it leads up to another one.

    Args:
        entries: all that has a number, at the place of its number.
        end: the number that ends a caption.
        unknown: the number of all words that have none.
        device: where captions will be judged.
        delta: δ, 0..1; 0.5 lets all words weigh the same.
    """

    def __init__(
        self,
        entries: Sequence[str],
        *,
        end: int,
        unknown: int,
        device: torch.device | str | None = None,
        delta: float = DELTA,
    ) -> None:
        stems = [stem(entry) for entry in entries]
        place = {each: number for number, each in enumerate(dict.fromkeys(stems), start=1)}
        function_stems = {stem(word) for word in FUNCTION_WORDS}
        weights = torch.tensor([0.0, *(1 - delta if each in function_stems else delta for each in stems)])  # (1+V,)
        weights[1 + end] = 0
        partners = torch.tensor([range(1 + len(entries)), [0, *map(place.__getitem__, stems)]])  # (2,1+V)
        partners[:, [1 + end, 1 + unknown]] = 0
        leads = torch.tensor([True, *(entry in LEADING_WORDS for entry in entries)])  # (1+V,)
        leads[1 + end] = True  # nothing stands behind the words before it
        # tables (…,1+V), the first entry that of a place without a word
        self._weights, self._partners, self._leads = (table.to(device) for table in (weights, partners, leads))
        self._unknown, self._stems = unknown, len(place)

    def weights(self, words: Tensor) -> Tensor:
        """What each of ``words`` (…) weighs; 0 where there is none."""
        return self._weights[words + 1]

    def keys(self, words: Tensor) -> Tensor:
        """The numbers by which words (…,T) meet: (…,3,T), 0 where they cannot."""
        word, its_stem = self._partners[:, words + 1]  # (…,T) each
        following = F.pad(its_stem[..., 1:], (0, min(1, words.shape[-1])))  # (…,T)
        both = (its_stem * (self._stems + 1) + following) * ((its_stem > 0) & (following > 0))  # (…,T)
        return torch.stack((word, its_stem, both), dim=-2)

    def without_loose_end(self, words: Tensor) -> Tensor:
        """Captions (…,T) in which last words that lead up to another one are unknown words."""
        loose = self._leads[words + 1].long().flip(-1).cumprod(-1).flip(-1) > 0  # (…,T)
        return torch.where(loose & (self.weights(words) > 0), self._unknown, words)


def meteor_of_words(said: Tensor, references: Tensor, words: MeteorWords) -> Tensor:
    """METEOR, 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    A reference without a word counts for nothing; where a picture has no other, or a caption no word, it is 0.
    """
    if said.dim() != 3 or references.dim() != 3 or len(said) != len(references):
        raise ShapeError("references", f"({len(said)},R,T), beside captions (B,K,T)", references.shape)
    said = words.without_loose_end(said)  # (B,K,T)
    mine, theirs = words.keys(said), words.keys(references)  # (B,K,3,T), (B,R,3,T')
    in_each = (mine[:, :, None, ..., None] == theirs[:, None, ..., None, :]).sum(-1)  # (B,K,R,3,T)
    clipped = torch.minimum(ngram_counts(mine)[:, :, None], in_each)  # (B,K,R,3,T)
    weights = words.weights(said)  # (B,K,T)
    same_word, same_stem, _ = (clipped * weights[:, :, None, None]).sum(-1).unbind(-1)  # (B,K,R) each
    matched = STEM * same_stem + (EXACT - STEM) * same_word  # M: the same word has the same stem too
    there, known = weights.sum(-1)[:, :, None], words.weights(references).sum(-1)[:, None]  # (B,K,1), (B,1,R)
    mean = matched / (ALPHA * known + (1 - ALPHA) * there).clamp_min(1e-12)  # (B,K,R)
    _, pairs, joined = clipped.sum(-1).unbind(-1)  # (B,K,R) each
    chunks = (pairs - joined).clamp_min(1)
    return (mean * (1 - GAMMA * (chunks / pairs.clamp_min(1)) ** BETA)).amax(-1)  # (B,K)
