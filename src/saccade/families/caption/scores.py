"""Scores of a model that says captions: its sentences beside those of people, and where it looked for each word.

Of any pictures: BLEU with and without the brevity penalty, ROUGE-L, CIDEr-D, METEOR-lite, and METEOR 1.5 where its
program is there. Of generated scenes, whose every object is known, also:

==========================  ========================================================================================
``exact_match``             the sentence is the one that is true of the scene, word for word
``exact_match_empty``       the same of the scenes without a digit alone, where there are any: "nothing" is said
``true_positive_strength``  share of a word's attention that lies on the digit whose size, colour or name it is
``selectivity``             attention on that digit ÷ attention on all digits
``pointing``                the maximum of the word's map lies on that digit
``causal_follow``           a digit is rendered again in another colour: its colour word is now the new one, and every
                            other word is as it was
``causal_hold``             the latter alone
==========================  ========================================================================================

Maps are those of the true sentence, given word by word, so that every content word of every scene has one. "nothing"
is none, and in an empty scene there is nothing to recolour, so that empty scenes count in scores of sentences alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saccade.data.scenes.palette import COLOURS
from saccade.errors import DataError
from saccade.families.caption.data import CaptionBatch, CaptionData
from saccade.families.caption.scenes import DIGIT_WORDS, SIZE_WORDS
from saccade.families.caption.vocabulary import Vocabulary
from saccade.metrics import (
    WordScores,
    baselines,
    bleu_intervals,
    bootstrap,
    cider_each,
    meteor_jar,
    meteor_lite,
    meteor_missing,
    pointing,
    rouge_l_each,
    same_caption,
    selectivity,
    uniform_word_strength,
    word_follow,
    word_strength,
    words_among,
)
from saccade.metrics.intervals import Interval, mean_defined
from saccade.metrics.maps.map_scores import PictureValues
from saccade.models.sat import SatModel
from saccade.tasks.forward_passes import encoded
from saccade.tasks.scoring import cells_of, numbers_in_batches, without_nan
from saccade.trace import AttentionTrace

BATCH = 100  # pictures: a batch of maps is eleven words of each
KINDS = {"size": SIZE_WORDS, "colour": COLOURS, "digit": DIGIT_WORDS}
"""Content words of scenes."""
STRENGTH = "true_positive_strength"
EMPTY = "exact_match_empty"
RIVALS = ("uniform", "all_objects", "grid_oracle")
"""Maps that stand beside the model's: even, on all digits alike, on the best single cell."""


@dataclass
class CaptionScores:
    """What was said and measured, picture by picture."""

    said: list[str] = field(default_factory=list)
    references: list[tuple[str, ...]] = field(default_factory=list)
    exact: PictureValues = field(default_factory=PictureValues)
    words: WordScores = field(default_factory=WordScores)
    word_scores: tuple[str, ...] = ()
    """Names of the scores that ``words`` holds, the model's and the baselines'."""
    causal: PictureValues = field(default_factory=PictureValues)
    """One value for every digit that was recoloured."""
    recoloured: list[Tensor] = field(default_factory=list)
    """The scene of each of these values."""

    def sentences(self) -> dict[str, Interval]:
        """The scores of the sentences, with intervals from resampling pictures where a score is one of pictures."""
        pair = self.said, self.references
        found = bleu_intervals(*pair)
        found |= {"rouge_l": bootstrap(rouge_l_each(*pair)), "cider": bootstrap(cider_each(*pair))}
        found |= {name: bootstrap(values) for name, values in self.exact.values().items()}
        return found

    def whole_set(self) -> dict[str, float]:
        """Scores that pool over pictures and come without an interval; METEOR only where it can run."""
        found = {"meteor_lite": meteor_lite(self.said, self.references)}
        if not self.is_scenes and meteor_missing() is None:
            found["meteor"] = meteor_jar(self.said, self.references)
        return found

    @property
    def is_scenes(self) -> bool:
        """Whether the truth of every word is known."""
        return bool(self.word_scores)

    def summary(self) -> dict[str, Any]:
        """Plain numbers: ``n``, ``metrics``, ``attention``, ``baselines``, ``intervals`` and ``counts``."""
        sentences = self.sentences()
        found: dict[str, Any] = {
            "n": len(self.said),
            "metrics": {name: interval.mean for name, interval in sentences.items()} | self.whole_set(),
            "attention": {},
            "baselines": {},
            "intervals": {name: [interval.low, interval.high] for name, interval in sentences.items()},
            "counts": {"references": sum(map(len, self.references))},
        }
        if EMPTY in sentences:
            found["counts"][EMPTY] = sentences[EMPTY].n
        if self.is_scenes:
            self._add_words(found)
        elif (why := meteor_missing()) is not None:
            found["note"] = f"no METEOR 1.5: {why}"
        return {key: without_nan(value) for key, value in found.items()}

    def _add_words(self, found: dict[str, Any]) -> None:
        """Add where was looked for each word, and what the words followed."""
        means = {name: self.words.means(name) for name in self.word_scores}
        own = [name for name in self.word_scores if name not in RIVALS]
        found["attention"] = {name: means[name]["all"].mean for name in own}
        found["attention"]["by_kind"] = {kind: {name: means[name][kind].mean for name in own} for kind in KINDS}
        found["baselines"] = {rival: {STRENGTH: means[rival]["all"].mean} for rival in RIVALS}
        intervals = {name: self.words.interval(name) for name in own}
        for name, values in self.causal.values().items():
            found["attention"][name] = mean_defined(values).mean
            intervals[name] = bootstrap(values, torch.cat(self.recoloured))
        found["intervals"] |= {name: [each.low, each.high] for name, each in intervals.items()}
        found["counts"] |= {name: each.n for name, each in intervals.items()}


@torch.no_grad()
def score_captions(
    model: SatModel,
    data: CaptionData,
    *,
    beam: int,
    length_penalty: float = 0.0,
    limit: int | None = None,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CaptionScores:
    """Score ``model`` on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        beam: captions followed side by side; 1 is greedy.
        length_penalty: of a beam, as ``decode`` has it.
        limit: at most this many pictures, from the first on.
        batch_size: pictures at once.
        progress: called with pictures done and pictures in all.
    """
    if data.picture_count is None:
        raise DataError(f"split '{data.split}' has no end; score val or test")
    scores = CaptionScores()
    say = partial(captions_of, beam=beam, length_penalty=length_penalty)
    total, done = min(limit or data.picture_count, data.picture_count), 0
    for numbers in numbers_in_batches(total, batch_size):
        batch = data.pictures(numbers)
        features = encoded(model.encode, batch.images)  # (B,L,D)
        words = say(model, features)  # (B,T)
        scores.said += sentences(words, data.vocabulary)
        scores.references += [data.references(number) for number in numbers.tolist()]
        if batch.layout is not None:
            is_right, is_empty = same_caption(words, batch.words), batch.layout.count == 0  # (B,)
            scores.exact.add_values({"exact_match": is_right})
            if bool(is_empty.any()):
                scores.exact.add_values({EMPTY: is_right[is_empty]})
            _add_words(scores, model, features, batch, data.vocabulary)
            _add_causal(scores, model, words, batch, say)
        done += len(batch)
        progress(done, total)
    return scores


def captions_of(model: SatModel, features: Tensor, beam: int = 1, length_penalty: float = 0.0) -> Tensor:
    """The best caption (B,T) of each of the encoded pictures (B,L,D)."""
    method = "greedy" if beam == 1 else "beam"
    return model.caption(features, method=method, width=beam, length_penalty=length_penalty).words[:, 0]


def sentences(words: Tensor, vocabulary: Vocabulary) -> list[str]:
    """Captions (B,T) as text."""
    return [vocabulary.decode(each) for each in words.tolist()]


def _add_words(
    scores: CaptionScores, model: SatModel, features: Tensor, batch: CaptionBatch, vocabulary: Vocabulary
) -> None:
    """Where was looked for each content word of the true sentences."""
    masks = batch.word_masks()  # (B,T,H,W)
    if masks is None or batch.layout is None:
        raise DataError("these captions do not know what their words are about; score generated scenes")
    size = (masks.shape[-2], masks.shape[-1])
    trace = model.wrap(model.forward_features(features, batch.words), size).trace
    maps, has_mask = trace.image_map("word", size), batch.has_mask  # (B,T,H,W), (B,T)
    objects = batch.layout.masks().any(1)[:, None].expand_as(masks)  # (B,T,H,W)
    values = {
        STRENGTH: word_strength(maps, masks, has_mask),
        "selectivity": _at_words(selectivity(maps[has_mask], masks[has_mask], objects[has_mask]), has_mask),
        "pointing": _at_words(pointing(maps[has_mask], masks[has_mask]), has_mask),
        **_rivals(trace, masks, objects, has_mask),
    }
    kinds = {kind: [vocabulary.number(word) for word in words] for kind, words in KINDS.items()}
    scores.word_scores = tuple(values)
    scores.words.add(values, words_among(batch.words, kinds), batch.picture)


def _rivals(trace: AttentionTrace, masks: Tensor, objects: Tensor, has_mask: Tensor) -> dict[str, Tensor]:
    """The true-positive strength (B,T) of maps that do not listen to the sentence, and the bound of the grid."""
    cells = cells_of(trace)
    if cells is None:
        raise DataError("this model has no look on a picture: there is nothing to score")
    frame, grid = cells[0].to(masks.device), cells[1]
    everywhere = baselines.all_objects(objects[:, 0], frame, grid)[:, None].expand_as(masks)  # (B,T,H,W)
    best = torch.zeros_like(masks, dtype=torch.float32)
    if bool(has_mask.any()):  # the scenes of a batch may all be empty
        best[has_mask] = baselines.grid_oracle(masks[has_mask], frame, grid)  # (W,H,W)
    return {
        "uniform": uniform_word_strength(masks, has_mask),
        "all_objects": word_strength(everywhere, masks, has_mask),
        "grid_oracle": word_strength(best, masks, has_mask),
    }


def _at_words(scores: Tensor, has_mask: Tensor) -> Tensor:
    """Scores (W,) of the words that have a mask, in their places (B,T); NaN elsewhere."""
    places = torch.full(has_mask.shape, torch.nan, dtype=scores.dtype, device=scores.device)
    return places.masked_scatter(has_mask, scores)


def _add_causal(
    scores: CaptionScores,
    model: SatModel,
    words: Tensor,
    batch: CaptionBatch,
    say: Callable[[SatModel, Tensor], Tensor],
) -> None:
    """Render each scene again with one of its digits in another colour, and have it put into words again."""
    if batch.layout is None:
        raise DataError("these pictures are files, which cannot be rendered again; score generated scenes")
    for which in range(batch.layout.present.shape[1]):
        there = batch.layout.present[:, which].nonzero().squeeze(1)  # (N,)
        if not len(there):
            continue
        before = batch[there]
        changed = before.recolour(which)
        place = (changed.words != before.words).int().argmax(1)  # (N,): where the one new word is
        old, new = (each.words.gather(1, place[:, None]).squeeze(1) for each in (before, changed))  # (N,)
        after = say(model, encoded(model.encode, changed.images))  # (N,T)
        found = word_follow(words[there], after, place=place, new_word=new, old_word=old)
        scores.causal.add_values({"causal_follow": found.causal_follow, "causal_hold": found.held})
        scores.recoloured.append(before.picture.cpu())
