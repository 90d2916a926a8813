"""Scores of a captioning model: its sentences against human ones, and where it looked for each word.

For any pictures: BLEU with and without the brevity penalty, ROUGE-L, CIDEr-D, METEOR-lite, and METEOR 1.5 where its
program is there. Where most references end with a full stop, ``bleu_1_stop`` … ``bleu_4_stop`` are scored as Xu et al.
do: without brevity penalty, on words split at spaces, with the full stop as a word. Models here learn no punctuation,
so one full stop is put behind each caption. For generated scenes also:

==========================  ========================================================================================
``exact_match``             the sentence is the one that is true of the scene, word for word
``exact_match_empty``       the same of the scenes without a digit alone, of which "nothing" is said
``true_positive_strength``  share of a word's attention that lies on the digit whose size, colour or name it is
``selectivity``             attention on that digit ÷ attention on all digits
``pointing``                the maximum of the word's map lies on that digit
``causal_follow``           a digit is rendered again in another colour: its colour word is now the new one, and every
                            other word is as it was
``causal_hold``             the latter alone
==========================  ========================================================================================

Of photographs a sample of the captions is scored by :mod:`saccade.families.caption.evidence`. Maps of scenes are those
of the true sentence, fed word by word. Empty scenes count in scores of sentences alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.layout import SceneLayout
from saccade.errors import ConfigError
from saccade.families.caption.data import CaptionBatch, CaptionFiles, CaptionSplit
from saccade.families.caption.evidence import EDITED, PICTURES, add_words, word_edits
from saccade.families.caption.scenes import DIGIT_WORDS, SIZE_WORDS
from saccade.families.caption.vocabulary import BEAM, Vocabulary
from saccade.metrics.intervals import mean_defined, mean_interval
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.maps.words import same_caption, word_follow, words_among
from saccade.metrics.result import Summary
from saccade.metrics.text.meteor import meteor_jar, meteor_lite, meteor_missing
from saccade.metrics.text.ngrams import ORDERS, bleu_intervals, cider_scores, rouge_l_scores, split_with_stops
from saccade.metrics.verdict import sampled
from saccade.models.sat import SatModel
from saccade.tasks.evaluate import Job, Measurements, Scoring, encoded, numbers_in_batches

KINDS = {"size": SIZE_WORDS, "colour": COLOURS, "digit": DIGIT_WORDS}  # content words of scenes
CIDER_ENDS = (0.0, 10.0)
STRENGTH = "true_positive_strength"
EMPTY = "exact_match_empty"
# Baseline maps: even, on all digits, on the best single cell.
RIVALS = ("uniform", "all_objects", "grid_oracle")


class Sentences(list[tuple[str, tuple[str, ...]]]):
    """The model's caption of each picture, and its references."""

    join = list.extend


@dataclass
class CaptionMeasurements(Measurements):
    """Measurements of captions.

    ``answers`` are exact matches, ``maps`` those of content words of scenes, ``causal`` has a value per recoloured
    digit. ``columns`` say of which scene each is, and which maps belong to each kind of word.
    """

    maps: MapScorer = field(
        default_factory=lambda: MapScorer(
            scores=(STRENGTH, "selectivity", "pointing"), baselines=RIVALS, baseline_scores=(STRENGTH,)
        )
    )
    sentences: Sentences = field(default_factory=Sentences)


class CaptionScoring(Scoring):
    """Measures a captioner on at most ``limit`` pictures: of generated scenes the first, of files a sample.

    ``sweeps``: photographs whose words are asked for again while parts of them are altered.
    """

    together = 100  # a batch of maps is eleven words of each
    measurements = CaptionMeasurements

    def __init__(
        self,
        model: SatModel,
        data: CaptionSplit,
        limit: int | None = None,
        beam: int = BEAM,
        length_penalty: float = 0.0,
        sweeps: int | None = None,
    ) -> None:
        self.model, self.data, self.beam, self.length_penalty = model, data, beam, length_penalty
        self.numbers = data.sampled(limit)
        self.is_files = isinstance(data, CaptionFiles)  # whether the truth of single words is not known
        self._altered = torch.zeros(len(self.numbers), dtype=torch.bool)  # (N,)
        if self.is_files:
            self._altered[sampled(len(self.numbers), PICTURES if sweeps is None else sweeps)] = True
        elif sweeps:
            raise ConfigError(f"sweeps: generated scenes are rendered again, not altered in parts; found {sweeps}")

    def measure(self, numbers: Tensor, before: int) -> CaptionMeasurements:
        """Captions of the pictures ``numbers`` (B,), and what their words rest on."""
        measured, batch = CaptionMeasurements(), self.data.of_pictures(numbers)
        features = encoded(self.model.encode, batch.images)  # (B,L,D)
        words = captions_of(self.model, features, self.beam, self.length_penalty)  # (B,T)
        references = map(self.data.references, numbers.tolist())
        measured.sentences += zip(sentences(words, self.data.vocabulary), references)
        if batch.layout is None:
            here = self._altered[before : before + len(batch)].nonzero().squeeze(1)  # (A,)
            first = int(self._altered[:before].sum())
            add_words(measured, self.model, batch.images, words, here, self.data.vocabulary, first=first)
            return measured
        is_right, is_empty = same_caption(words, batch.words), batch.layout.count == 0  # (B,)
        measured.answers.add_values({"exact_match": is_right})
        if bool(is_empty.any()):
            measured.answers.add_values({EMPTY: is_right[is_empty]})
        add_maps(measured, self.model, features, batch, self.data.vocabulary)
        self._add_causal(measured, words, batch)
        return measured

    def further(self) -> list[Job]:
        """Edits of one word of each of the first scenes."""
        few = self.numbers[: 0 if self.is_files else EDITED]
        return [(self._edited, few[places]) for places in numbers_in_batches(len(few), self.together)]

    def _edited(self, numbers: Tensor) -> CaptionMeasurements:
        measured, batch = CaptionMeasurements(), self.data.of_pictures(numbers)
        measured.edits = word_edits(self.model, encoded(self.model.encode, batch.images), batch)
        return measured

    def _add_causal(self, measured: CaptionMeasurements, words: Tensor, batch: CaptionBatch) -> None:
        present = cast(SceneLayout, batch.layout).present  # (B,2)
        for which in range(present.shape[1]):
            there = present[:, which].nonzero().squeeze(1)  # (N,)
            if not len(there):
                continue
            before = batch[there]
            changed = before.recolour(which)
            place = (changed.words != before.words).int().argmax(1)  # (N,): where the one new word is
            new = changed.words.gather(1, place[:, None]).squeeze(1)  # (N,)
            features = encoded(self.model.encode, changed.images)  # (N,L,D)
            after = captions_of(self.model, features, self.beam, self.length_penalty)  # (N,T)
            follow = word_follow(words[there], after, place=place, new_word=new)
            measured.causal.add_values({"causal_follow": follow.causal_follow, "causal_hold": follow.rest_stays})
            measured.columns.append(recoloured=before.picture)

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Scores of sentences and words, and their causal tests."""
        captions, references = (list(column) for column in zip(*cast(CaptionMeasurements, measured).sentences))
        intervals = bleu_intervals(captions, references)
        ends = [reference.split()[-1:] == ["."] for texts in references for reference in texts]
        if 2 * sum(ends) > len(ends):
            stopped = bleu_intervals([f"{caption} ." for caption in captions], references, cut=split_with_stops)
            intervals |= {f"bleu_{order}_stop": stopped[f"bleu_{order}_nobp"] for order in range(1, ORDERS + 1)}
        intervals["rouge_l"] = mean_interval(rouge_l_scores(captions, references))
        intervals["cider"] = mean_interval(cider_scores(captions, references), ends=CIDER_ENDS)
        intervals |= {name: mean_interval(values) for name, values in measured.answers.values().items()}
        metrics = {name: interval.mean for name, interval in intervals.items()}
        metrics["meteor_lite"] = meteor_lite(captions, references)
        counts, attention, recoloured = {"references": sum(map(len, references))}, {}, []
        if isinstance(self.data, CaptionFiles):
            if meteor_missing() is None:
                metrics["meteor"] = meteor_jar(captions, references)
            counts["skipped"] = len(self.data.skipped)
        else:
            by_kind: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
            for name, values in measured.maps.total.values().items():
                for kind, means in by_kind.items():
                    means[name] = mean_defined(values[measured.columns[kind]])
            attention = {**measured.causal.means(), "by_kind": by_kind}
        if "altered" in measured.columns:
            counts["altered_pictures"] = len(measured.columns["altered"])
        if EMPTY in intervals:
            counts[EMPTY] = intervals[EMPTY].n
        if "recoloured" in measured.columns:
            recoloured = [(measured.causal, measured.columns["recoloured"])]
        return {
            "n": len(captions),
            "metrics": metrics,
            "maps": measured.maps,
            "measured": recoloured,
            "attention": attention,
            "intervals": intervals,
            "counts": counts,
            "keep_undefined": True,
        }

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """Beam options, and why METEOR 1.5 is missing."""
        why = meteor_missing() if self.is_files else None
        note = {} if why is None else {"note": f"no METEOR 1.5: {why}"}
        return {"beam": self.beam, "length_penalty": self.length_penalty, **note}


def captions_of(model: SatModel, features: Tensor, beam: int = 1, length_penalty: float = 0.0) -> Tensor:
    """The best caption (B,T) of each of the encoded pictures (B,L,D)."""
    return model.caption(features, width=beam, length_penalty=length_penalty).words[:, 0]


def sentences(words: Tensor, vocabulary: Vocabulary) -> list[str]:
    """Captions (B,T) as text."""
    return [vocabulary.decode(ids) for ids in words.tolist()]


def add_maps(
    measured: Measurements, model: SatModel, features: Tensor, batch: CaptionBatch, vocabulary: Vocabulary
) -> None:
    """Maps of the content words of the true sentences of scenes."""
    masks = cast(Tensor, batch.word_masks())  # (B,T,H,W)
    size = (masks.shape[-2], masks.shape[-1])
    trace = model.wrap(model.teacher_force(features, batch.words), size).trace
    measured.maps.add(
        trace.image_map("word", size),
        masks,
        groups=batch.picture,
        objects=cast(SceneLayout, batch.layout).masks().any(1),
        grids=grids_of(trace, size),
        steps=batch.has_mask,
    )
    kinds = {kind: [vocabulary.number(word) for word in words] for kind, words in KINDS.items()}
    measured.columns.append(**words_among(batch.words[batch.has_mask], kinds))
