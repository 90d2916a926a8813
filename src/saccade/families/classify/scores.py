"""Scores of a classifier: accuracy, calibration, confusions, and how its maps lie on the evidence.

``accuracy`` is top-1; ``top5`` is told where there are more than five classes. ``calibration_error`` is the expected
calibration error with 15 bins. The confusion matrix has a row for each true class and a column for each answer. Maps
are scored where the data knows where a label can be seen, beside HiResCAM and gradient × input of the same network
(:mod:`.rival_maps`). There too, answers are asked for again without the evidence, and without the rest of the picture
(:mod:`saccade.metrics.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.tables.sampling import sample_rows, table_folder
from saccade.families.classify.data import LabelData
from saccade.families.classify.files import LabelFiles
from saccade.families.classify.zoom_scores import EDITED, ZoomScores, causal_values, drawn_again, zoom_edits
from saccade.families.classify.zooming import seen
from saccade.geometry import Size
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.labels import Details, calibration_error, details_of, top_k_correct
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.faithfulness import gradient_times_input, hirescam
from saccade.metrics.maps.points import at_points
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.result import Part, Summary, summarise, without_nan
from saccade.metrics.verdict import EvidenceReliance, sampled, verdict
from saccade.models.base import LAST, ImageOnlyModel
from saccade.models.racnn import RacnnModel
from saccade.tasks.forward_passes import BATCH, answers_of, numbers_in_batches
from saccade.trace import AttentionTrace

TOGETHER = 32
"""Pictures whose gradients are computed at once."""


def rival_maps(model: ImageOnlyModel, images: Tensor, answer: Tensor) -> dict[str, Baseline]:
    """HiResCAM and gradient × input of the answers (B,) to pictures (B,3,H,W), by name; none of a model without a map.

    A map that is zero all over says nothing, and is undefined.
    """
    if model.last_frame is None:
        return {}
    frame = model.last_frame
    parts = [
        _of_some(model, frame, *each) for each in zip(torch.split(images, TOGETHER), torch.split(answer, TOGETHER))
    ]
    laid = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}  # (B,H,W) each
    return {name: Baseline(maps, maps.flatten(1).amax(1) > 0) for name, maps in laid.items()}


@torch.enable_grad()
def _of_some(model: ImageOnlyModel, frame: Tensor, images: Tensor, answer: Tensor) -> dict[str, Tensor]:
    images = images.detach().requires_grad_()
    raw = model.forward_raw(images)
    features = raw.acts[LAST].values  # (B,C,h,w)
    logit = raw["logits"].gather(1, answer[:, None]).sum()
    by_features, by_pixels = torch.autograd.grad(logit, (features, images))
    size = (images.shape[-2], images.shape[-1])
    cells = hirescam(features.detach(), by_features)  # (B,h,w)
    return {
        "hirescam": geometry.project(cells, frame, size),
        "gradient_times_input": gradient_times_input(images.detach(), by_pixels),
    }


FIRST = 5
"""How many answers ``top5`` may give."""


@dataclass
class LabelScores:
    """What was measured, with the values of each picture behind every mean."""

    classes: tuple[str, ...]
    answers: Values = field(default_factory=Values)
    maps: MapScorer = field(default_factory=MapScorer)
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``answer``, ``label``, ``picture``, ``confidence`` and ``of_true``, the probability of the label; (N,) each."""
    zoom: ZoomScores | None = None
    """Scores of a model that zooms."""
    causal: Values = field(default_factory=Values)
    """What became of answers and crops when the picture was drawn again with one thing changed."""
    edits: EditScores = field(default_factory=EditScores)
    """Scores of moved crops, from fewer pictures."""
    rests_on: EvidenceReliance = field(default_factory=EvidenceReliance)
    """What became of answers without the evidence, and without the rest."""
    name_of: Callable[[int], str] | None = None
    """Number of a picture → its file; None where there are no files."""

    def add(self, logits: Tensor, shares: Tensor, answer: Tensor, label: Tensor, picture: Tensor) -> None:
        """Keep the answers (B,) of a batch, with logits and probabilities (B,K)."""
        right = answer == label  # (B,)
        values = {"accuracy": right}
        if len(self.classes) > FIRST:
            values["top5"] = top_k_correct(logits, label, FIRST)
        self.answers.add_values(values)
        confidence = shares.gather(1, answer[:, None])[:, 0]  # (B,)
        of_true = shares.gather(1, label[:, None])[:, 0]  # (B,)
        self.columns.append(answer=answer, label=label, picture=picture, confidence=confidence, of_true=of_true)

    def metrics(self) -> dict[str, float]:
        """Scores of the answers."""
        right = self.columns["answer"] == self.columns["label"]  # (N,)
        scales = {} if self.zoom is None else self.zoom.answers.means()
        error = calibration_error(self.columns["confidence"], right)
        return {**self.answers.means(), "calibration_error": error, **scales, **self.causal.means()}

    def summary(self) -> Summary:
        """Plain numbers, see :mod:`saccade.metrics.result`; the verdict, and what was taken for what."""
        label, picture = self.columns["label"], self.columns["picture"]  # (N,) each
        guessed = label == commonest(label)  # (N,)
        zoom = ZoomScores() if self.zoom is None else self.zoom
        measured = (self.answers, self.causal, zoom.answers, zoom.crops)
        guesses = {"commonest_label": guessed.double()}
        found: Summary = {
            **summarise(
                n=len(label),
                metrics=self.metrics(),
                maps=self.maps,
                measured=[(values, picture) for values in measured],
                attention=zoom.crops.means(),
                baselines={"commonest_label": {"accuracy": float(guessed.double().mean())}, **zoom.baselines()},
            ),
            **verdict(self.answers["accuracy"], guesses, picture, maps=self.maps, rests_on=self.rests_on),
            **self.details().to_json(None if self.name_of is None else self._place),
        }
        if len(self.edits):
            found["interventions"] = without_nan(self.edits.interventions())
        return found

    def details(self) -> Details:
        """What was taken for what, class by class, and the worst mistakes."""
        said, label, confidence, of_true = (self.columns[name] for name in ("answer", "label", "confidence", "of_true"))
        return details_of(said, label, confidence, of_true, self.classes)

    def _place(self, number: int) -> Part:
        """The picture of answer ``number``."""
        return {} if self.name_of is None else {"picture": self.name_of(int(self.columns["picture"][number]))}


def commonest(labels: Tensor) -> int:
    """The commonest of the labels (N,)."""
    return int(torch.bincount(labels).argmax())


@torch.no_grad()
def score_labels(
    model: ImageOnlyModel,
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
        limit: at most this many pictures: of files a sample, see :mod:`saccade.data.tables.splits`; else the first.
        batch_size: pictures at once; among them maps are exchanged for the shuffled baseline.
        progress: called with pictures done and pictures in all.
    """
    scores = LabelScores(data.classes, name_of=_files(data))
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
            beside = rival_maps(model, batch.images, answer) | _box_centres(data, numbers, output.trace, size)
            scores.maps.add_trace(output.trace, batch.evidence, groups=numbers, beside=beside)
        if isinstance(model, RacnnModel):
            scores.zoom = scores.zoom or ZoomScores()
            scores.zoom.add(model, raw, batch)
            if (again := drawn_again(data, numbers)) is not None:
                scores.causal.add_values(causal_values(model, raw, batch, again))
            if done < EDITED:
                scores.edits.join(zoom_edits(model, raw, batch, batch.images, numbers))
        done += len(numbers)
        progress(done, len(chosen))
    _add_swaps(scores, model, data, chosen[sampled(len(chosen))], batch_size)
    return scores


def _add_swaps(scores: LabelScores, model: ImageOnlyModel, data: LabelData, chosen: Tensor, batch_size: int) -> None:
    """Ask again about the pictures ``chosen`` (n,) without their evidence, and without the rest."""
    guess = commonest(scores.columns["label"])
    for places in numbers_in_batches(len(chosen), batch_size):
        batch = data.take(chosen[places])
        if batch.evidence is None:
            return
        evidence, label = batch.evidence, batch.label

        def right(images: Tensor, rows: Tensor, evidence: Tensor = evidence, label: Tensor = label) -> Tensor:
            return model.logits_and_answer(seen(model, images, evidence[rows]))[1] == label[rows]

        pictures = chosen[places].to(label.device)
        scores.rests_on.add(batch.images, evidence, right, labels=label, pictures=pictures, guessed=label == guess)


def _box_centres(data: LabelData, numbers: Tensor, trace: AttentionTrace, size: Size) -> dict[str, Baseline]:
    """``box_centre``: the middle of the box round each mask, on the model's grids, where both are known."""
    grids = grids_of(trace, size)
    if not isinstance(data.source, LabelFiles) or grids is None:
        return {}
    box = data.source.boxes_of_masks(numbers)  # (B,4)
    centre = (box[:, :2] + box[:, 2:]) / 2  # (B,2)
    known = ~centre.isnan().any(1)  # (B,)
    if not bool(known.any()):
        return {}
    grids = grids.to(centre.device)
    return {"box_centre": Baseline(grids.through(lambda frame, cells: at_points(centre, frame, cells, size)), known)}


def _files(data: LabelData) -> Callable[[int], str] | None:
    """Number of a picture → its file, where there are files."""
    source = data.source
    return (lambda number: str(source.rows[number].image)) if isinstance(source, LabelFiles) else None


def _sampled(data: LabelData, limit: int | None) -> Tensor:
    """Numbers (N,) of at most ``limit`` pictures."""
    if isinstance(data.source, LabelFiles):
        return sample_rows([row.image for row in data.source.rows], table_folder(data.source.table.name), limit)
    return torch.arange(min(limit or len(data), len(data)))
