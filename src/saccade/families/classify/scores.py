"""Scores of a classifier: right answers, how sure it may be, what it mixes up, and how its maps lie on the evidence.

``accuracy`` is top-1; ``top5`` is told where there are more than five classes. ``calibration_error`` is the expected
calibration error with 15 bins. The confusion matrix has a row for each true class and a column for each answer. Maps
are scored where the data knows where a label can be seen, beside HiResCAM and gradient × input of the same network
(:mod:`.rival_maps`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from saccade.data.tables.sampling import sample_rows, table_folder
from saccade.families.classify.data import LabelData
from saccade.families.classify.files import LabelFiles
from saccade.families.classify.redrawn import causal_values, drawn_again
from saccade.families.classify.rival_maps import rival_maps
from saccade.families.classify.zoom_scores import ZoomScores
from saccade.families.classify.zooming import seen
from saccade.geometry import Size
from saccade.metrics.answers.calibration import among_first, calibration_error, confusion_matrix
from saccade.metrics.columns import Columns, Values
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.summary import summarise
from saccade.models.base import PictureModel
from saccade.models.racnn import RacnnModel
from saccade.tasks.forward_passes import BATCH, answers_of, numbers_in_batches

FIRST = 5
"""How many answers ``top5`` may give."""
MOST_SHOWN = 50
"""Classes of a confusion matrix at most; of more, only the most frequent mistakes are told."""
MISTAKES = 20


@dataclass
class LabelScores:
    """What was measured, with the values of each picture behind every mean."""

    classes: tuple[str, ...]
    answers: Values = field(default_factory=Values)
    maps: MapScorer = field(default_factory=MapScorer)
    columns: Columns = field(default_factory=Columns)
    """``answer``, ``label``, ``picture`` and ``confidence`` (N,)."""
    zoom: ZoomScores | None = None
    """Of a model that zooms."""
    causal: Values = field(default_factory=Values)
    """What became of answers and crops when the picture was drawn again with one thing changed."""

    def add(self, logits: Tensor, shares: Tensor, answer: Tensor, label: Tensor, picture: Tensor) -> None:
        """Keep the answers (B,) of a batch, with logits and probabilities (B,K)."""
        right = answer == label  # (B,)
        values = {"accuracy": right}
        if len(self.classes) > FIRST:
            values["top5"] = among_first(logits, label, FIRST)
        self.answers.add_values(values)
        confidence = shares.gather(1, answer[:, None])[:, 0]  # (B,)
        self.columns.keep(answer=answer, label=label, picture=picture, confidence=confidence)

    def metrics(self) -> dict[str, float]:
        """Of the answers."""
        right = self.columns["answer"] == self.columns["label"]  # (N,)
        scales = {} if self.zoom is None else self.zoom.answers.means()
        error = calibration_error(self.columns["confidence"], right)
        return {**self.answers.means(), "calibration_error": error, **scales, **self.causal.means()}

    def summary(self) -> dict[str, Any]:
        """Plain numbers, see :mod:`saccade.metrics.summary`."""
        label = self.columns["label"]  # (N,)
        commonest = float(torch.bincount(label).max() / len(label))
        zoom = ZoomScores() if self.zoom is None else self.zoom
        measured = (self.answers, self.causal, zoom.answers, zoom.crops)
        return {
            **summarise(
                n=len(label),
                metrics=self.metrics(),
                maps=self.maps,
                measured=[(values, self.columns["picture"]) for values in measured],
                attention=zoom.crops.means(),
                baselines={"commonest_label": {"accuracy": commonest}, **zoom.baselines()},
            ),
            "confusion": self.confusion(),
        }

    def confusion(self) -> dict[str, Any]:
        """The matrix with its classes, where these are few; and the most frequent mistakes."""
        matrix = confusion_matrix(self.columns["answer"], self.columns["label"], len(self.classes))  # (K,K)
        wrong = matrix.clone().fill_diagonal_(0)  # (K,K)
        order = wrong.flatten().argsort(descending=True, stable=True)[:MISTAKES].tolist()
        places = [(place // len(self.classes), place % len(self.classes)) for place in order]
        mistakes = [
            {"true": self.classes[true], "said": self.classes[said], "n": int(wrong[true, said])}
            for true, said in places
            if wrong[true, said]
        ]
        few = len(self.classes) <= MOST_SHOWN
        shown = {"classes": list(self.classes), "matrix": matrix.tolist()} if few else {}
        return {**shown, "mistakes": mistakes}


@torch.no_grad()
def score_labels(
    model: PictureModel,
    data: LabelData,
    size: Size,
    *,
    limit: int | None = None,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LabelScores:
    """Score ``model`` on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        size: (height, width) of the network input.
        limit: at most this many pictures: of files a sample, see :mod:`saccade.data.tables.sampling`; else the first.
        batch_size: pictures at once; among them maps are exchanged for the shuffled baseline.
        progress: called with pictures done and pictures in all.
    """
    scores = LabelScores(data.classes)
    chosen = _sampled(data, limit)  # (N,)
    done = 0
    for places in numbers_in_batches(len(chosen), batch_size):
        numbers = chosen[places]
        batch = data.take(numbers)
        raw = seen(model, batch.images, batch.evidence)
        output = model.wrap(raw, size)
        shares = model.probabilities(output.logits.float())  # (B,K)
        answer = answers_of(output.trace)  # (B,)
        scores.add(output.logits, shares, answer, batch.label, numbers)
        if batch.evidence is not None and output.trace.looks_of_total:
            beside = rival_maps(model, batch.images, answer)
            scores.maps.add_trace(output.trace, batch.evidence, groups=numbers, beside=beside)
        if isinstance(model, RacnnModel):
            scores.zoom = scores.zoom or ZoomScores()
            scores.zoom.add(model, raw, batch)
            if (again := drawn_again(data, numbers)) is not None:
                scores.causal.add_values(causal_values(model, raw, batch, again))
        done += len(numbers)
        progress(done, len(chosen))
    return scores


def _sampled(data: LabelData, limit: int | None) -> Tensor:
    """Numbers (N,) of at most ``limit`` pictures."""
    if isinstance(data.source, LabelFiles):
        return sample_rows([row.image for row in data.source.rows], table_folder(data.source.table.name), limit)
    return torch.arange(min(limit or len(data), len(data)))
