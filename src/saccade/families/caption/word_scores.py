"""Word evidence on photographs: do the words of a caption rest on what their maps mark?

A photograph cannot be rendered again, so the pixels that a map marks are blurred, or replaced by those of another
photograph whose caption shares no content word (:mod:`saccade.metrics.maps.words`). Of each caption every
content and every function word is scored:

============================  ====================================================================================
``word_evidence_FILL_raw``    of content words: Eq. (2) there, in nats; above 0 where maps mark what their word needs
``word_drop_FILL_raw``        of content words: what altering their own map takes, before others' are subtracted
``function_evidence_FILL_raw``  of function words ("a", "on"), which name nothing to be seen: the negative control
``word_map_distance``         of content words: total variation between their map and those of the others, 0 .. 1
============================  ====================================================================================

FILL is ``blur`` or ``patch``. The rival ``noise`` has the first score of maps of noise on the same cells: 0 on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from saccade.families.caption.vocabulary import UNKNOWN, Vocabulary
from saccade.geometry import Size
from saccade.metrics import blurred
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.words import log_drops, map_distances, marked, own_and_other, word_log_probabilities
from saccade.metrics.result import only_defined
from saccade.metrics.text.tokens import FUNCTION_WORDS
from saccade.metrics.verdict import BLUR, donors
from saccade.models.sat import WORD, SatModel
from saccade.tasks.forward_passes import encoded
from saccade.trace import AttentionTrace

PICTURES = 120
"""Photographs whose words are scored: a word of them costs four forward passes, a caption has about ten."""
AT_ONCE = 32  # altered copies in one forward pass
BLUR_FILL, PATCH_FILL = "blur", "patch"
CONTENT, FUNCTION = "word", "function"
KINDS = (CONTENT, FUNCTION)


@dataclass
class WordEvidence:
    """What was measured, word by word; NaN where a score is of the other kind of words."""

    values: Values = field(default_factory=Values)
    noise: Values = field(default_factory=Values)
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``picture`` of every word."""
    pictures: int = 0

    def __len__(self) -> int:
        return self.pictures

    def means(self) -> dict[str, float]:
        """The mean of every score that some word has."""
        return only_defined(self.values.means())

    def rivals(self) -> dict[str, dict[str, float]]:
        """The same of maps of noise."""
        found = only_defined(self.noise.means())
        return {"noise": found} if found else {}

    @property
    def groups(self) -> Tensor:
        """The picture (N,) of each word."""
        return self.columns["picture"] if "picture" in self.columns else torch.zeros(0, dtype=torch.long)


@torch.no_grad()
def add_words(
    scores: WordEvidence,
    model: SatModel,
    images: Tensor,
    words: Tensor,
    rows: Tensor,
    vocabulary: Vocabulary,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Score some of the captions (B,T) that ``model`` said of the pictures (B,3,H,W).

    Args:
        scores: where they are kept.
        model: in eval mode.
        images: all of the batch; each may lend a patch to another.
        words: the captions.
        rows: (A,) which of them are scored.
        vocabulary: the model's.
        progress: called with the number of pictures of the batch up to the last one that was scored.
    """
    lender = donors(torch.arange(len(words)), _content_words(words, vocabulary))  # (B,): -1 where all share a word
    size = (images.shape[-2], images.shape[-1])
    for row in rows.tolist():
        image, said = images[row : row + 1], words[row : row + 1]  # (1,3,H,W), (1,T)
        fills = {BLUR_FILL: blurred(image, BLUR * min(size))[0]}
        if int(lender[row]) >= 0:
            fills[PATCH_FILL] = images[int(lender[row])]
        raw = model.forward_features(encoded(model.encode, image), said)
        before = word_log_probabilities(raw["logits"], said)[0]  # (T,)
        one = _Caption(model, image[0], said[0], before)
        _add_caption(scores, one, fills, model.wrap(raw, size).trace, size, vocabulary)
        progress(row + 1)


@dataclass(frozen=True)
class _Caption:
    """One caption and its picture."""

    model: SatModel
    image: Tensor
    """(3,H,W)."""
    words: Tensor
    """(T,)."""
    before: Tensor
    """(T,) log p of each word of the picture as it is."""

    def drops(self, maps: Tensor, fill: Tensor, places: Tensor) -> Tensor:
        """D[u,t] (N,N) between the words at ``places`` (N,), whose maps (N,H,W) say what is replaced by ``fill``."""
        after = []
        for part in torch.split(marked(maps), AT_ONCE):
            copies = torch.where(part[:, None], fill, self.image)  # (R,3,H,W)
            said = self.words.expand(len(part), -1)  # (R,T): the same caption, whatever the model would say now
            logits = self.model.forward_features(encoded(self.model.encode, copies), said)["logits"]
            after.append(word_log_probabilities(logits, said))
        return log_drops(self.before, torch.cat(after))[:, places]  # (N,N)


def _add_caption(
    scores: WordEvidence,
    one: _Caption,
    fills: dict[str, Tensor],
    trace: AttentionTrace,
    size: Size,
    vocabulary: Vocabulary,
) -> None:
    """Score the words of one caption, the content words first."""
    weights = _weights(trace)[0]  # (T,h,w)
    maps = trace.image_map(WORD, size)[0]  # (T,H,W)
    for kind in KINDS:
        chosen = [place for place, word in enumerate(one.words.tolist()) if kind_of(word, vocabulary) == kind]
        if not chosen:
            continue
        places = torch.tensor(chosen, device=one.words.device)  # (N,)
        ids, is_word = one.words[places], kind == CONTENT
        unknown = torch.full((len(places),), torch.nan, device=places.device)  # (N,)
        found = dict.fromkeys(SCORES, unknown)
        rival = dict.fromkeys(NOISE_SCORES, unknown)
        for name, fill in fills.items():
            own, other = own_and_other(one.drops(maps[places], fill, places), ids)  # (N,) each
            found[f"{kind}_evidence_{name}_raw"] = own - other
            if is_word:
                found[f"word_drop_{name}_raw"] = own
                noise = _noise_maps(trace, scores.pictures, size)[places]  # (N,H,W)
                own, other = own_and_other(one.drops(noise, fill, places), ids)
                rival[f"word_evidence_{name}_raw"] = own - other
        if is_word:
            found["word_map_distance"] = map_distances(weights[places], ids)
        scores.values.add_values(found)
        scores.noise.add_values(rival)
        scores.columns.append(picture=torch.full_like(places, scores.pictures))
    scores.pictures += 1


def _noise_maps(trace: AttentionTrace, seed: int, size: Size) -> Tensor:
    """Maps (T,H,W) of noise, on the cells and through the projection of the model's own."""
    weights = _weights(trace)
    drawn = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))  # (1,T,h,w)
    return trace.image_map(replace(trace.look(WORD), weights=drawn.to(weights)), size)[0]


def _weights(trace: AttentionTrace) -> Tensor:
    """(1,T,h,w): those of the words of one caption."""
    return cast(Tensor, trace.look(WORD).weights)


def kind_of(number: int, vocabulary: Vocabulary) -> str | None:
    """Whether the word of that number names something or is a function word; ends and unknown words are neither."""
    if number <= UNKNOWN:
        return None
    return FUNCTION if vocabulary[number] in FUNCTION_WORDS else CONTENT


def _content_words(words: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which content words each caption (B,T) has, (B,V) of 0 and 1."""
    found = torch.zeros(len(words), len(vocabulary))
    for row, caption in enumerate(words.tolist()):
        found[row, [word for word in caption if kind_of(word, vocabulary) == CONTENT]] = 1
    return found


_FILLS = (BLUR_FILL, PATCH_FILL)
NOISE_SCORES = tuple(f"word_evidence_{fill}_raw" for fill in _FILLS)
SCORES = (
    *NOISE_SCORES,
    *(f"word_drop_{fill}_raw" for fill in _FILLS),
    *(f"function_evidence_{fill}_raw" for fill in _FILLS),
    "word_map_distance",
)
