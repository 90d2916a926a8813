"""Scores of a captioning model: its sentences against human ones, and where it looked for each word.

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

Of photographs a sample of the captions is scored by :mod:`saccade.families.caption.word_scores`: do words rest on what
their maps mark?

Maps of scenes are those of the true sentence, given word by word, so that every content word of every scene has one.
"nothing" is none, and in an empty scene there is nothing to recolour, so that empty scenes count in scores of sentences
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from saccade.data.scenes.drawing import COLOURS
from saccade.errors import DataError
from saccade.families.caption.data import CaptionBatch, CaptionData, CaptionFiles
from saccade.families.caption.edits import EDITED, word_edits
from saccade.families.caption.scenes import DIGIT_WORDS, SIZE_WORDS
from saccade.families.caption.vocabulary import Vocabulary
from saccade.families.caption.word_scores import PICTURES, WordEvidence, add_words
from saccade.metrics import (
    bleu_intervals,
    cider_each,
    mean_defined,
    mean_interval,
    meteor_jar,
    meteor_lite,
    meteor_missing,
    rouge_l_each,
    same_caption,
    word_follow,
    words_among,
)
from saccade.metrics.intervals import ColumnBuffer, Interval, Values
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Summary, summarise, without_nan
from saccade.metrics.verdict import sampled
from saccade.models.sat import SatModel
from saccade.tasks.forward_passes import encoded, numbers_in_batches

BATCH = 100  # pictures: a batch of maps is eleven words of each
KINDS = {"size": SIZE_WORDS, "colour": COLOURS, "digit": DIGIT_WORDS}
"""Content words of scenes."""
CIDER_ENDS = (0.0, 10.0)
STRENGTH = "true_positive_strength"
EMPTY = "exact_match_empty"
RIVALS = ("uniform", "all_objects", "grid_oracle")
"""Maps that stand beside the model's: even, on all digits alike, on the best single cell."""


def _word_scorer() -> MapScorer:
    return MapScorer(scores=(STRENGTH, "selectivity", "pointing"), baselines=RIVALS, baseline_scores=(STRENGTH,))


@dataclass
class CaptionScores:
    """What was said and measured, picture by picture."""

    said: list[str] = field(default_factory=list)
    references: list[tuple[str, ...]] = field(default_factory=list)
    exact: Values = field(default_factory=Values)
    maps: MapScorer = field(default_factory=_word_scorer)
    """Scores of the maps of content words, one map each; empty if the truth of words is not known."""
    causal: Values = field(default_factory=Values)
    """One value for every digit that was recoloured."""
    edits: EditScores = field(default_factory=EditScores)
    """Scores of edited attention to one word of each scene, from fewer scenes."""
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``recoloured``: the scene of each of these; for each kind of word, which maps are of its words."""
    evidence: WordEvidence = field(default_factory=WordEvidence)
    """For photographs: whether words depend on what their maps mark."""

    def sentences(self) -> dict[str, Interval]:
        """The scores of the sentences, with intervals."""
        pair = self.said, self.references
        found = bleu_intervals(*pair)
        found["rouge_l"] = mean_interval(rouge_l_each(*pair))
        found["cider"] = mean_interval(cider_each(*pair), ends=CIDER_ENDS)
        found |= {name: mean_interval(values) for name, values in self.exact.values().items()}
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
        return bool(self.maps.baselines)

    def summary(self) -> Summary:
        """Plain numbers, see :mod:`saccade.metrics.result`."""
        sentences = self.sentences()
        recoloured = self.columns["recoloured"] if "recoloured" in self.columns else torch.zeros(0)
        found = summarise(
            n=len(self.said),
            metrics={name: interval.mean for name, interval in sentences.items()} | self.whole_set(),
            maps=self.maps,
            measured=[(self.causal, recoloured), (self.evidence.values, self.evidence.groups)],
            attention={**self.causal.means(), "by_kind": self.by_kind()} if self.is_scenes else self.evidence.means(),
            baselines=self.evidence.rivals(),
            intervals=sentences,
            counts={"references": sum(map(len, self.references))}
            | ({"altered_pictures": len(self.evidence)} if len(self.evidence) else {})
            | ({EMPTY: sentences[EMPTY].n} if EMPTY in sentences else {}),
            keep_undefined=True,
        )
        if len(self.edits):
            found["interventions"] = without_nan(self.edits.interventions())
        if not self.is_scenes and (why := meteor_missing()) is not None:
            found["note"] = f"no METEOR 1.5: {why}"
        return found

    def by_kind(self) -> dict[str, dict[str, float]]:
        """The mean of every score over the words of each kind."""
        values = self.maps.total.values()
        return {
            kind: {name: mean_defined(each[self.columns[kind]]).mean for name, each in values.items()} for kind in KINDS
        }


@torch.no_grad()
def score_captions(
    model: SatModel,
    data: CaptionData,
    *,
    beam: int,
    length_penalty: float = 0.0,
    limit: int | None = None,
    altered: int = PICTURES,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CaptionScores:
    """Score ``model`` on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        beam: captions followed side by side; 1 is greedy.
        length_penalty: of a beam, as ``decode`` has it.
        limit: at most this many pictures: of generated scenes the first, of files a sample, see
            :mod:`saccade.data.tables.splits`.
        altered: photographs of a sample whose words are asked for again while parts of them are altered; of generated
            scenes none is.
        batch_size: pictures at once.
        progress: called with pictures done and pictures in all.
    """
    if data.picture_count is None:
        raise DataError(f"split '{data.split}' has no end; score val or test")
    scores = CaptionScores()
    say = partial(captions_of, beam=beam, length_penalty=length_penalty)
    chosen = _sampled(data, data.picture_count, limit)  # (N,)
    total, done = len(chosen), 0
    is_altered = torch.zeros(total, dtype=torch.bool)
    if isinstance(data.source, CaptionFiles):
        is_altered[sampled(total, altered)] = True
    for places in numbers_in_batches(total, batch_size):
        numbers = chosen[places]  # (B,)
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
        else:
            rows = is_altered[places].nonzero().squeeze(1)  # (A,)
            on_progress = partial(_report_progress, progress, done, total)
            add_words(scores.evidence, model, batch.images, words, rows, data.vocabulary, on_progress)
        done += len(batch)
        progress(done, total)
    for places in numbers_in_batches(min(EDITED, total), batch_size):
        batch = data.pictures(chosen[places])
        if batch.layout is not None:
            scores.edits.join(word_edits(model, encoded(model.encode, batch.images), batch))
    return scores


def _report_progress(progress: Callable[[int, int], None], before: int, total: int, row: int) -> None:
    """Report ``row`` pictures of a batch that has ``before`` pictures before it."""
    progress(before + row, total)


def _sampled(data: CaptionData, count: int, limit: int | None) -> Tensor:
    """Numbers (N,) of at most ``limit`` of the ``count`` pictures."""
    if isinstance(data.source, CaptionFiles):
        return data.source.sampled(limit)
    return torch.arange(min(limit or count, count))


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
    """Where the model looked for each content word of the true sentences."""
    masks = batch.word_masks()  # (B,T,H,W)
    if masks is None or batch.layout is None:
        raise DataError("these captions do not know what their words are about; score generated scenes")
    size = (masks.shape[-2], masks.shape[-1])
    trace = model.wrap(model.forward_features(features, batch.words), size).trace
    scores.maps.add(
        trace.image_map("word", size),
        masks,
        groups=batch.picture,
        objects=batch.layout.masks().any(1),
        grids=grids_of(trace, size),
        steps=batch.has_mask,
    )
    kinds = {kind: [vocabulary.number(word) for word in words] for kind, words in KINDS.items()}
    scores.columns.append(**words_among(batch.words[batch.has_mask], kinds))


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
        scores.columns.append(recoloured=before.picture)
