"""BLEU, ROUGE-L and CIDEr-D of captions: of sentences, and of word numbers as rewards in training.

Hypotheses and references are text as people write it, cut into words by the rules of the COCO caption evaluation
(:mod:`saccade.metrics.text.tokens`).

**BLEU** (Papineni et al., ACL 2002). Everything is pooled over pictures before anything is divided:

    p_k = Σ matched k-grams / Σ k-grams said        matched: no more often than in the reference that has it most often
    BLEU-n = BP · (p_1 ⋯ p_n)^(1/n)                 BP = min(1, exp(1 − r / c))

with c words said and r words in the references, for each picture that nearest in length (the shorter of two). Show,
Attend and Tell prints its BLEU without BP, the reference evaluation with it: both are here, and the length ratio c / r.
The paper's captions and references are split at spaces, so the full stop counts as a word (:func:`split_with_stops`).
Deviation: the reference evaluation adds 1e-15 and 1e-9 to counts, so that a set without one matching 4-gram has a
BLEU-4 near 1e-4 there. Here it is 0.

**ROUGE-L** (Lin 2004), as the reference evaluation has it: precision and recall are the longest common subsequence over
the length of the caption and of the reference, each maximised over the references by itself, and
F = (1 + β²) P R / (R + β² P) with β = 1.2. The score of a set is the mean over its pictures.

**CIDEr-D** (Vedantam et al., CVPR 2015, arXiv:1411.5726, Section 6). A caption is four vectors, one for each length
k = 1 … 4 of n-grams, with entries

    g_k(ω) = count of ω · log(pictures / pictures with ω in a reference)

and CIDEr-D is ten times the mean over references s and k of

    exp(−(l_c − l_s)² / 2σ²) · Σ_ω min(g_k(ω; c), g_k(ω; s)) · g_k(ω; s) / (‖g_k(c)‖ ‖g_k(s)‖),    σ = 6.

It is 0 to 10; papers print it times 100. Document frequencies come from the references of the set that is scored:
scores of different sets do not compare. As in the reference evaluation the length l is the number of bigrams, and an
n-gram that no reference has counts as one that a single picture has.

**Rewards** are of captions that are numbers of words, for a whole batch on its device. A run of words is one number.
The end is a word like others where it is given, so that a caption which breaks off loses by it, and all words outside
the vocabulary are one. CIDEr-D there is a tenth of the score, with document frequencies of the training captions.
BLEU-4 of one caption is smoothed as by Lin and Och ("ORANGE", COLING 2004): one is added to what matched and to what
there was, for runs of two words and more.

Axes: B pictures, K captions of each, R references, T places for words, of which −1 holds none, G = 4 lengths of
n-grams.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import DataError
from saccade.metrics.intervals import SHARE, Interval, jackknife_interval
from saccade.metrics.text.tokens import ptb_tokens

Words = list[str]
NGram = tuple[str, ...]


class Judged(NamedTuple):
    """The model's caption of a picture and its references."""

    caption: Words  # may be empty
    references: list[Words]  # at least one, each with at least one word


def split_with_stops(text: str) -> Words:
    """The words of ``text`` as spaces part them, in lower case; marks that stand alone are words too.

    >>> split_with_stops("A dog runs .")
    ['a', 'dog', 'runs', '.']
    """
    return text.lower().split()


def judged_captions(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], cut: Callable[[str], Words] = ptb_tokens
) -> list[Judged]:
    """Hypotheses beside their references, ``cut`` into words.

    References without a word are left out; a hypothesis without one scores 0. A DataError names a picture without any
    reference.
    """
    pictures = []
    for index, (hypothesis, texts) in enumerate(zip(hypotheses, references, strict=True)):
        if isinstance(texts, str):
            raise DataError(f"references of picture {index}: found one string, expected several: wrap it in a tuple")
        with_words = [words for words in map(cut, texts) if words]
        if not with_words:
            raise DataError(f"picture {index} has no reference with a word in it; leave the picture out")
        pictures.append(Judged(cut(hypothesis), with_words))
    return pictures


def ngrams(words: Words, length: int) -> Counter[NGram]:
    """How often each run of ``length`` words occurs.

    >>> ngrams("a dog and a dog".split(), 2)[("a", "dog")]
    2
    """
    return Counter(zip(*(words[start:] for start in range(length))))


ORDERS = 4
NAMES = (
    *(f"bleu_{order}" for order in range(1, ORDERS + 1)),
    *(f"bleu_{order}_nobp" for order in range(1, ORDERS + 1)),
    "length_ratio",
)


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """``bleu_1`` … ``bleu_4``, the same without brevity penalty (``bleu_1_nobp`` …), and ``length_ratio``.

    NaN when there are no pictures.

    >>> scores = bleu(["a small red seven"], [("a small red seven above a two",)])
    >>> scores["bleu_4_nobp"], round(scores["bleu_4"], 4), round(scores["length_ratio"], 4)
    (1.0, 0.4724, 0.5714)
    """
    totals = _tallies(hypotheses, references).sum(0, keepdim=True)  # (1,2+2K)
    return dict(zip(NAMES, _scores(totals)[0].tolist()))


def bleu_intervals(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], cut: Callable[[str], Words] = ptb_tokens
) -> dict[str, Interval]:
    """The scores of :func:`bleu` with intervals, from leaving out one picture at a time; none for ``length_ratio``."""
    tallies = _tallies(hypotheses, references, cut)  # (B,2+2K)
    pooled, pictures = tallies.sum(0, keepdim=True), len(tallies)
    scores = _scores(pooled)[0]  # (9,)
    without = _scores(pooled - tallies)  # (B,9)
    intervals = {}
    for name, score, others in zip(NAMES, scores, without.T):
        low, high = jackknife_interval(score, others, ends=None if name == "length_ratio" else SHARE)
        intervals[name] = Interval(float(score), float(low), float(high), pictures, pictures, 0)
    return intervals


def _tallies(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], cut: Callable[[str], Words] = ptb_tokens
) -> Tensor:
    """For each picture: words of the caption and of the nearest reference, k-grams matched and in all, (B,2+2K)."""
    rows = [_tally(picture) for picture in judged_captions(hypotheses, references, cut)]
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 2 + 2 * ORDERS)  # (B,2+2K), also for B = 0


def _tally(picture: Judged) -> list[int]:
    length = len(picture.caption)
    nearest = min((abs(len(words) - length), len(words)) for words in picture.references)[1]
    matched, possible = [], []
    for order in range(1, ORDERS + 1):
        most: Counter[NGram] = Counter()
        for words in picture.references:
            most |= ngrams(words, order)  # union of counters: the larger count of each
        matched.append((ngrams(picture.caption, order) & most).total())
        possible.append(max(0, length - order + 1))
    return [length, nearest, *matched, *possible]


def _scores(totals: Tensor) -> Tensor:
    length, nearest = totals[:, 0:1], totals[:, 1:2]  # (N,1): c and r
    matched, possible = totals[:, 2:].chunk(2, dim=1)  # (N,K)
    precision = matched / possible.clamp(min=1)  # (N,K): p_k, 0 where no k-gram was said
    orders = torch.arange(1, ORDERS + 1, dtype=totals.dtype)
    geometric = (precision.log().cumsum(1) / orders).exp()  # (N,K): log 0 = −∞, and exp of it is 0 again
    brevity = (1 - nearest / length).clamp(max=0).exp()  # (N,1): BP, 0 where nothing was said
    scores = torch.cat([brevity * geometric, geometric, length / nearest], dim=1)  # (N,2K+1)
    return torch.where(nearest > 0, scores, torch.nan)


BETA = 1.2


def rouge_l(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean of :func:`rouge_l_scores`; NaN when there are no pictures."""
    return float(rouge_l_scores(hypotheses, references).mean())


def rouge_l_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Tensor:
    """ROUGE-L of each picture, (B,) in 0..1.

    >>> rouge_l_scores(["a dog runs fast", ""], [("a dog runs fast", "a cat"), ("a cat",)]).tolist()
    [1.0, 0.0]
    """
    scores = [_score(picture) for picture in judged_captions(hypotheses, references)]
    return torch.tensor(scores, dtype=torch.float64)


def _score(picture: Judged) -> float:
    if not picture.caption:
        return 0.0
    shared = _longest_common(picture.caption, picture.references)
    precision = max(shared) / len(picture.caption)
    recall = max(length / len(words) for length, words in zip(shared, picture.references))
    if not precision:  # nothing is shared, so recall is 0 as well
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _longest_common(caption: Words, references: list[Words]) -> list[int]:
    """The length of the longest common subsequence with each reference.

    One row of the usual table is one whole number (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): bit i
    is 0 where the row grows at word i of ``caption``, so the zeros count the length, and a word of the reference costs
    one addition instead of a loop.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, word in enumerate(caption):
        places[word] |= 1 << place
    everywhere = (1 << len(caption)) - 1
    lengths = []
    for words in references:
        row = everywhere
        for word in words:
            shared = row & places.get(word, 0)
            row = (row + shared) | (row - shared)
        lengths.append(len(caption) - (row & everywhere).bit_count())
    return lengths


SIGMA = 6.0
SCALE = 10.0


def cider(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean of :func:`cider_scores`, 0 to 10; NaN when there are no pictures."""
    return float(cider_scores(hypotheses, references).mean())


def cider_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Tensor:
    """CIDEr-D of each picture, (B,) in 0..10, with document frequencies from all of ``references``.

    >>> captions = ["a red seven stands here", "two white birds fly"]
    >>> cider_scores(captions, [(captions[0],), (captions[1], "one bird sits")]).tolist()
    [10.0, 5.0]
    """
    orders = range(1, ORDERS + 1)
    counted = [
        [[ngrams(words, order) for order in orders] for words in (picture.caption, *picture.references)]
        for picture in judged_captions(hypotheses, references)
    ]
    pictures_with = Counter(chain.from_iterable(set(chain(*chain(*texts))) for _, *texts in counted))
    pictures = math.log(max(1, len(counted)))
    scores = []
    for captions in counted:
        caption, *others = (_Vectors(counts, pictures_with, pictures) for counts in captions)
        scores.append(SCALE * sum(caption.likeness(reference) for reference in others) / len(others))
    return torch.tensor(scores, dtype=torch.float64)


class _Vectors:
    """The four vectors of a caption, their lengths ‖g_k‖, and the length of the caption."""

    def __init__(self, counts: list[Counter[NGram]], pictures_with: Counter[NGram], pictures: float) -> None:
        self.entries = [
            {ngram: count * (pictures - math.log(pictures_with[ngram] or 1)) for ngram, count in order.items()}
            for order in counts
        ]  # an n-gram that no reference has counts as one that a single picture has
        self.norms = [math.sqrt(sum(entry * entry for entry in order.values())) for order in self.entries]
        self.length = counts[1].total()

    def likeness(self, reference: _Vectors) -> float:
        """The clipped cosine, as a mean over the four lengths of n-grams, times the penalty on the length."""
        total = 0.0
        for mine, theirs, norm, other_norm in zip(self.entries, reference.entries, self.norms, reference.norms):
            if norm * other_norm:  # 0 where a caption is too short, or says only what is said of every picture
                shared = ((entry, theirs[ngram]) for ngram, entry in mine.items() if ngram in theirs)
                total += sum(min(entry, other) * other for entry, other in shared) / (norm * other_norm)
        return total / ORDERS * math.exp(-((self.length - reference.length) ** 2) / (2 * SIGMA**2))


MAX_WORDS = math.isqrt(math.isqrt(2**63 - 1)) - 1
"""Largest vocabulary whose runs of four words have distinct numbers: 55,107."""


class NGramRarity:
    """log(pictures / pictures with the n-gram in a reference), of n-grams as :func:`ngram_keys` numbers them.

    ``words`` are the references (N,T) of all pictures, ``picture`` (N,) is which one each is about, ``vocabulary`` how
    many numbers words have.
    """

    def __init__(self, words: Tensor, picture: Tensor, vocabulary: int) -> None:
        if vocabulary > MAX_WORDS:
            raise DataError(f"CIDEr-D of numbers: at most {MAX_WORDS:,} words, found {vocabulary:,}; take fewer")
        self.vocabulary = vocabulary
        pictures = torch.unique(picture)
        self.unseen = math.log(len(pictures)) if len(pictures) else 0.0
        """The weight of an n-gram in no reference: as if one picture had it."""
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
    """A number for each run of one to four words that begins at a place: (…,T) → (…,G,T), 0 for none.

    Equal numbers mean equal words.
    """
    digits = words + 1  # (…,T), 0 where there is no word
    keys = [digits]
    for order in range(1, ORDERS):
        last = F.pad(digits[..., order:], (0, min(order, digits.shape[-1])))  # (…,T)
        keys.append((keys[-1] * (vocabulary + 1) + last) * (last > 0))
    return torch.stack(keys, dim=-2)


def cider_of_words(captions: Tensor, references: Tensor, rarity: NGramRarity) -> Tensor:
    """A tenth of CIDEr-D, in 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    Without a reference that has a word, or for a caption without one, it is 0.
    """
    mine, theirs = (ngram_keys(words, rarity.vocabulary) for words in (captions, references))  # (B,K,G,T), (B,R,G,T')
    entries, other = (ngram_counts(keys) * rarity(keys) for keys in (mine, theirs))  # g: (B,K,G,T), (B,R,G,T')
    entries, other = entries[:, :, None], other[:, None]  # (B,K,1,G,T), (B,1,R,G,T')
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
    """How often each n-gram (…,G,T) is in its caption, at its first place; 0 elsewhere."""
    same = keys[..., :, None] == keys[..., None, :]  # (…,G,T,T)
    is_first = ~same.tril(-1).any(-1) & (keys > 0)  # (…,G,T)
    return same.sum(-1) * is_first


def clipped_counts(mine: Tensor, theirs: Tensor) -> Tensor:
    """How often each n-gram of ``mine`` (B,K,G,T) is in both it and each of ``theirs`` (B,R,G,T'): (B,K,R,G,T)."""
    in_references = (mine[:, :, None, ..., None] == theirs[:, None, ..., None, :]).sum(-1)  # (B,K,R,G,T)
    return torch.minimum(ngram_counts(mine)[:, :, None], in_references)


def bleu_of_words(captions: Tensor, references: Tensor, vocabulary: int) -> Tensor:
    """Smoothed BLEU-4, 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    Without a reference that has a word, or for a caption without one, it is 0.
    """
    mine, theirs = (ngram_keys(words, vocabulary) for words in (captions, references))  # (B,K,G,T), (B,R,G,T')
    clipped = clipped_counts(mine, theirs).amax(2)  # (B,K,G,T): by the reference that has it most often
    matched, there = clipped.sum(-1).float(), (mine > 0).sum(-1).float()  # (B,K,G)
    one = (torch.arange(matched.shape[-1], device=captions.device) > 0).float()  # (G,): 0 1 1 1
    precision = (matched + one) / (there + one).clamp_min(1)  # (B,K,G)
    length, lengths = there[..., 0], (references >= 0).sum(-1).float()  # (B,K), (B,R)
    counts = (lengths > 0)[:, None]  # (B,1,R)
    # a quarter of a word more, and of two as close the shorter is the closer
    away = (lengths[:, None] - length[..., None] + 0.25).abs().masked_fill(~counts, torch.inf)  # (B,K,R)
    closest = lengths[:, None].expand_as(away).gather(-1, away.argmin(-1, keepdim=True)).squeeze(-1)  # (B,K)
    brevity = (1 - closest / length.clamp_min(1)).clamp(max=0).exp() * ((length > 0) & counts.any(-1))  # (B,K)
    return brevity * precision.log().mean(-1).exp()
