"""Whether a caption follows what was changed in its scene, and is otherwise the same: the causal scores of words.

One object of a scene is recoloured and the model speaks again. If it named the colour because it saw that object, the
one word changes to the new colour and every other word stays. Captions are ids (B,T) as the data gives them: words,
then 0 for the end; what comes after the end does not count, and captions need not be padded to the same width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.answers.accuracy import check_ids
from saccade.metrics.maps.causal import causal_follow

_END = 0
_NOTHING = -1  # at every place from the end on


class WordFollow(NamedTuple):
    """What became of each caption (B,), 1 or 0; NaN where it does not count."""

    causal_follow: Tensor
    """The word followed and the rest held."""
    followed: Tensor
    """The word at the place is now the new one."""
    held: Tensor
    """Every other word is as before, and the caption as long, right or wrong."""


def word_follow(
    before: Tensor,
    after: Tensor,
    *,
    place: Tensor,
    new_word: Tensor,
    old_word: Tensor,
    given: Tensor | None = None,
) -> WordFollow:
    """Compare the captions of scenes with those of the same scenes after one object was recoloured.

    Args:
        before: ids (B,T) said of the scenes.
        after: ids (B,T') said of the changed scenes.
        place: (B,) where in the caption the changed word stands; it tells two objects of one colour apart.
        new_word: (B,) the word that is true there now.
        old_word: (B,) the word that was true there; must differ everywhere, or there is nothing to follow.
        given: (B,) bool, captions that count; all by default. ``same_caption(before, truth).bool()`` is "given that the
            first caption was right".
    """
    place = check_ids("place", place, before)
    if bool((place < 0).any()):
        index = int((place < 0).nonzero()[0, 0])
        raise DataError(f"place of caption {index} is {int(place[index])}; places count from 0, the first word")
    reach = int(place.max()) + 1 if len(place) else 0  # a caption may end before the place
    before, after = _spoken(before, after, at_least=reach)  # (B,W) each
    at = place.unsqueeze(1)  # (B,1)
    followed = causal_follow(after.gather(1, at).squeeze(1), new_word, old_word, given=given)  # (B,)
    same = (before == after).scatter(1, at, torch.ones_like(at, dtype=torch.bool))  # (B,W): the place itself may differ
    held = torch.where(followed.isnan(), torch.nan, same.all(1).float())  # (B,)
    return WordFollow(followed * held, followed, held)


def same_caption(said: Tensor, truth: Tensor) -> Tensor:
    """1.0 where two captions, ids (B,T) and (B,T'), are word for word the same, else 0.0: (B,).

    >>> same_caption(torch.tensor([[4, 7, 0], [4, 7, 5]]), torch.tensor([[4, 7, 0, -1], [4, 7, 0, -1]])).tolist()
    [1.0, 0.0]
    """
    said, truth = _spoken(said, truth)
    return (said == truth).all(1).float()


def _spoken(*captions: Tensor, at_least: int = 0) -> list[Tensor]:
    """Captions (B,W) of one width of ``at_least`` places, on one device, with nothing from the end on."""
    first = captions[0]
    for words in captions:
        if words.dim() != 2 or len(words) != len(first):
            raise ShapeError("captions", f"({len(first)},T)", words.shape)
        if words.is_floating_point() or words.dtype == torch.bool:
            raise DataError(f"captions: expected integer ids, found {words.dtype}; take the arg-max of logits first")
    width = max(at_least, *(words.shape[1] for words in captions))
    wide = [F.pad(words.to(first.device), (0, width - words.shape[1]), value=_NOTHING) for words in captions]
    return [torch.where((words <= _END).cumsum(1) > 0, _NOTHING, words) for words in wide]
