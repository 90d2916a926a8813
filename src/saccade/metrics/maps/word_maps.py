"""Where the attention of each word of a caption lies, compared with what the word is about.

A content word ("red", "seven") has a mask of the pixels it speaks of; "a" and "above" have none and are not scored. The
score of a word is the true-positive strength of its map, Σ(a·mask) / Σa; beside it stands what a uniform map gets, the
share of the picture that the mask covers. A mean is over words, all of them or those of one kind, and its interval
resamples pictures, because the words of one caption are not independent.

Axes: B captions, T words, H and W pixels. A word that is not scored is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.columns import ColumnBuffer, Values
from saccade.metrics.intervals import Interval, Mean, mean_defined, mean_interval
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.metrics.maps.values import check_maps


def word_strength(maps: Tensor, masks: Tensor, has_mask: Tensor) -> Tensor:
    """The share of each word's attention that lies on what it speaks of, (B,T).

    Args:
        maps: (B,T,H,W) ≥ 0 at picture resolution; what stands at words without a mask does not matter.
        masks: (B,T,H,W) bool.
        has_mask: (B,T) bool, the words that have one. A mask without a pixel is NaN too.
    """
    _check_words(masks, has_mask)
    if maps.shape != masks.shape:
        raise ShapeError("word maps", f"{tuple(masks.shape)} as the masks", maps.shape)
    masks, has_mask = masks.to(maps.device), has_mask.to(maps.device)
    # One row for each caption, so that an error names the caption, and zeros for words that are not scored.
    check_maps(torch.where(has_mask[..., None], maps.flatten(2), 0), "word map")  # (B,T,HW)
    return _laid_out(true_positive_strength(maps[has_mask], masks[has_mask]), has_mask)


def uniform_word_strength(masks: Tensor, has_mask: Tensor) -> Tensor:
    """What :func:`word_strength` is for maps that are the same everywhere, (B,T)."""
    _check_words(masks, has_mask)
    rows = masks[has_mask].flatten(1)  # (W,HW)
    area = rows.float().mean(1)  # (W,)
    return _laid_out(torch.where(rows.any(1), area, torch.nan), has_mask)


def words_among(words: Tensor, kinds: Mapping[str, Iterable[int]]) -> dict[str, Tensor]:
    """For each kind which of the word ids (B,T) belong to it, (B,T) bool.

    >>> words_among(torch.tensor([[5, 9, 0]]), {"colour": [9, 8]})["colour"].tolist()
    [[False, True, False]]
    """
    ids = {kind: torch.tensor(list(members), dtype=words.dtype, device=words.device) for kind, members in kinds.items()}
    return {kind: torch.isin(words, members) for kind, members in ids.items()}


class WordScores:
    """Named scores of words, added up batch by batch: means over all words and over those of each kind.

    >>> scores = WordScores()
    >>> strength, colour = torch.tensor([[0.5, 0.1, torch.nan]]), torch.tensor([[True, False, False]])
    >>> scores.add({"strength": strength}, {"colour": colour}, torch.tensor([0]))
    >>> {kind: round(mean.mean, 2) for kind, mean in scores.means("strength").items()}
    {'all': 0.3, 'colour': 0.5}
    """

    def __init__(self) -> None:
        self._values, self._kinds, self._pictures = Values(), ColumnBuffer(), ColumnBuffer()

    def add(self, values: Mapping[str, Tensor], kinds: Mapping[str, Tensor], pictures: Tensor) -> None:
        """Keep the scores of a batch of captions.

        Args:
            values: name → (B,T), NaN at words that are not scored; the same names in every batch.
            kinds: name → (B,T) bool; the same names in every batch, and none of them "all".
            pictures: ids (B,); captions of one picture have the same.
        """
        shape = next(iter(values.values())).shape if values else torch.Size([0, 0])
        for name, tensor in (*values.items(), *kinds.items()):
            if tensor.dim() != 2 or tensor.shape != shape:
                raise ShapeError(f"{name} of words", "(B,T), the same for every score and kind", tensor.shape)
        if pictures.shape != shape[:1]:
            raise ShapeError("pictures", f"({shape[0]},), one id for each caption", pictures.shape)
        for kept, given in ((self._values, values), (self._kinds, kinds)):
            if "picture" in self._pictures and set(kept.names) != given.keys():
                had = _listed(kept.names)
                raise DataError(f"word scores: this batch has {_listed(given)}, the ones before had {had}")
        self._values.add_values({name: each.flatten() for name, each in values.items()})  # (B·T,)
        self._kinds.append(**{kind: each.flatten() for kind, each in kinds.items()})  # (B·T,)
        self._pictures.append(picture=pictures.cpu().repeat_interleave(shape[1]))  # (B·T,)

    def means(self, name: str) -> dict[str, Mean]:
        """The mean of one score over ``all`` words, and over the words of each kind."""
        values = self._values[name]  # (N,)
        by_kind = {kind: mean_defined(values[self._kinds[kind]]) for kind in self._kinds.names}
        return {"all": mean_defined(values), **by_kind}

    def interval(self, name: str, *, level: float = 0.95) -> Interval:
        """The mean over all words with its interval, with the picture as the unit."""
        return mean_interval(self._values[name], self._pictures["picture"], level=level)


def _check_words(masks: Tensor, has_mask: Tensor) -> None:
    if masks.dim() != 4 or masks.shape[2] * masks.shape[3] == 0:
        raise ShapeError("word masks", "(B,T,H,W) with at least one pixel", masks.shape)
    if has_mask.shape != masks.shape[:2]:
        raise ShapeError("has_mask", f"{tuple(masks.shape[:2])}, one for each word", has_mask.shape)
    for name, tensor in (("word masks", masks), ("has_mask", has_mask)):
        if tensor.dtype != torch.bool:
            raise DataError(f"{name}: expected bool, found {tensor.dtype}; compare with a threshold first")


def _laid_out(scores: Tensor, scored: Tensor) -> Tensor:
    """Scores (W,) at the places (B,T) of the words they belong to, NaN elsewhere."""
    places = torch.full(scored.shape, torch.nan, dtype=scores.dtype, device=scores.device)
    return places.masked_scatter(scored, scores)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
