"""Does the kept head depend on the evidence, and do its maps beat maps that do not look? Needs boxes or masks.

Every picture is answered by the head of the split that tests it, which was not trained on it. Pictures are changed
before the backbone sees them (:mod:`saccade.metrics.verdict`). With questions, each is asked again, and the pixels come
from a picture with another answer to the same question. The box or mask is blurred or swapped, not a point.

``box_centre`` looks at the centre of the object's box, where a point or mask inside it is the evidence. ``part_prior``
looks where the evidence usually lies: at the same place of the object's box where boxes are known, else of the picture;
with questions each has a place of its own. Both lie on the grids of the model; where clicks are the evidence,
``…_exact`` is the pixel itself.

Axes: N examples, n examples of a part, A questions, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from saccade.data.pictures.image_split import Evidence
from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.metrics.maps.baselines import grids_of, seen_by_cells
from saccade.metrics.maps.points import Clicks
from saccade.metrics.maps.scorer import MapScorer, at_places
from saccade.metrics.result import Part, without_nan
from saccade.metrics.verdict import Altered, EvidenceReliance, against_chance, beside_blind_maps, joined, sampled
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR
from saccade.probing.examples import ProbeSplit
from saccade.probing.heads import EvidenceCells
from saccade.probing.pictures import ProbedPictures
from saccade.probing.rivals import ProbeResult
from saccade.progress import OnProgress
from saccade.tasks.evaluate import in_parts

if TYPE_CHECKING:
    from saccade.probing.probe import Probe

MAX_MAPS = 1000  # Pictures whose maps are scored
_PART = 100  # pictures that are changed, or whose maps are scored, together


def places_of(pictures: ProbedPictures, frame: Tensor, grid: Size, weight: float) -> EvidenceCells | None:
    """Where labels can be seen on the cells (h,w) of the features, for heads that are taught where to look.

    ``frame`` (2,3) leads from cells to pixels of the network input.
    """
    if not weight:
        return None
    evidence = pictures.evidence
    if evidence is None:
        raise ConfigError(
            "evidence weight: no picture has evidence; name data with boxes or masks (a table with a column box or "
            "mask, COCO annotations), or leave it out"
        )
    cells = [seen_by_cells(evidence.marks(rows).evidence(), frame, grid) for rows in torch.split(pictures.rows, _PART)]
    everywhere = torch.ones(1, *pictures.store.size, dtype=torch.bool)
    return EvidenceCells(torch.cat(cells), seen_by_cells(everywhere, frame, grid), weight)


@torch.no_grad()
def with_evidence(probe: Probe, on_progress: OnProgress) -> ProbeResult:
    """The result of ``probe``, whose verdict says what the kept head rests on and how its maps lie on the evidence."""
    result, evidence = probe.result, probe.pictures.evidence
    if evidence is None:
        return result
    rests = _rests_on(probe, evidence, on_progress).summary()
    maps: Part = {}
    if result.kept != LINEAR:
        scores = _map_scores(probe, evidence)
        maps = against_chance(scores)
        if maps:
            maps["blind_maps"] = beside_blind_maps(scores, maps["score"])
    verdict = "; ".join(filter(None, (result.verdict, joined([rests, maps]))))
    return replace(result, rests_on=without_nan(rests), maps=without_nan(maps), verdict=verdict)


def _tested(result: ProbeResult, chosen: Tensor) -> Iterator[tuple[int, Tensor]]:
    """The number of each split, with those of its test examples that are ``chosen`` (n,), part by part.

    They come in a fixed random order, in parts of which none is small: donors come from the same part.
    """
    for number, split in enumerate(result.splits):
        rows = split.test[torch.isin(split.test, chosen)]
        order = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
        for part in torch.tensor_split(order, max(1, len(order) // _PART)):
            if len(part):
                yield number, part


def _rests_on(probe: Probe, evidence: Evidence, on_progress: OnProgress) -> EvidenceReliance:
    pictures, questions = probe.pictures, probe.pictures.questions
    rests, done, chosen, guesses = EvidenceReliance(), 0, sampled(len(pictures)), probe.result.guesses
    for number, part in _tested(probe.result, chosen):
        label, query, picture = pictures.labels[part], pictures.query(part), questions.picture[part]  # (n,) each
        region = evidence.marks(pictures.rows[part]).region()
        right, guessed = partial(_right, probe.model(number), label, query), label == guesses[part]
        rests.add(Altered(pictures.inputs(picture), region, right, label, picture, guessed, query))
        done += len(part)
        on_progress("pictures without their evidence", done, len(chosen))
    return rests


def _right(model: AnyProbe, label: Tensor, query: Tensor | None, images: Tensor, rows: Tensor) -> Tensor:
    """Whether the examples ``rows`` (n,) of a part are answered right when their pictures are ``images``: (n,)."""
    asked = () if query is None else (query[rows],)
    device = model.centre.device
    answers: Tensor = in_parts(model, *(tensor.to(device) for tensor in (images, *asked))).logits.argmax(-1)
    return answers.cpu() == label[rows]


def _map_scores(probe: Probe, evidence: Evidence) -> MapScorer:
    result, pictures, size = probe.result, probe.pictures, probe.size
    scorer = MapScorer(scores=("pointing",), baselines=("uniform", "centre_gaussian"))
    usual = _usual_places(pictures, evidence, result.splits)  # (N,2)
    clicked = not bool(evidence.marks(pictures.rows, masks=False).point.isnan().all())  # of the same kind in every part
    for number, part in _tested(result, sampled(len(pictures), MAX_MAPS)):
        rows, picture = pictures.rows[part], pictures.questions.picture[part]
        marks = evidence.marks(rows)
        marked = marks.evidence()  # (n,H,W)
        if not bool(marked.any()):
            continue
        trace = probe.trace(number, part)
        clicks = Clicks.at(marks.point, marks.box, size) if clicked else None
        box = evidence.boxes_of_objects(rows)  # (n,4)
        points = {"box_centre": (box[:, :2] + box[:, 2:]) / 2, "part_prior": usual[part]}  # (n,2) each
        beside = at_places(points, grids_of(trace, size), size, exact=not bool(marks.point.isnan().all()))
        scorer.add_trace(trace, marked, groups=picture, clicks=clicks, beside=beside)
    return scorer


def _usual_places(pictures: ProbedPictures, evidence: Evidence, splits: Sequence[ProbeSplit]) -> Tensor:
    """Where evidence lies on the mean over the training examples of the split that tests each example: (N,2).

    It is the mean of the same question. NaN where nothing is known.
    """
    query, asked = pictures.questions.query, len(pictures.questions.words)
    centre = torch.cat([_centres(evidence, rows) for rows in torch.split(pictures.rows, _PART)])  # (N,2)
    box = evidence.boxes_of_objects(pictures.rows).double()  # (N,4)
    corner, extent = box[:, :2], box[:, 2:] - box[:, :2]
    places = torch.zeros(len(pictures), 2)
    for train, _, test in splits:
        in_picture, in_box = (
            _means(points[train], query[train], asked) for points in (centre, (centre - corner) / extent)
        )
        inside = corner[test] + in_box[query[test]] * extent[test]  # (n,2)
        known = ~inside.isnan().any(1)[:, None]
        places[test] = torch.where(known, inside, in_picture[query[test]]).float()
    return places


def _means(points: Tensor, kinds: Tensor, count: int) -> Tensor:
    """The mean point of each kind (count,2), of those points (n,2) that are not NaN."""
    known = ~points.isnan().any(1)  # (n,)
    total = torch.zeros(count, 3, dtype=torch.float64)
    total.index_add_(0, kinds[known], torch.cat([points[known], torch.ones_like(points[known, :1])], 1))
    return total[:, :2] / total[:, 2:]


def _centres(evidence: Evidence, rows: Tensor) -> Tensor:
    """The point that was clicked, else the centre of the evidence: (n,2); NaN where there is none."""
    marks = evidence.marks(rows)
    marked = marks.evidence().double()  # (n,H,W)
    pixels = marked.sum((1, 2))  # (n,)
    down, across = (torch.arange(side, dtype=torch.float64) + 0.5 for side in marked.shape[1:])
    middle = torch.stack([(marked.sum(1) @ across) / pixels, (marked.sum(2) @ down) / pixels], 1)  # (n,2)
    clicked = marks.point.double()
    return torch.where(clicked.isnan().any(1)[:, None], middle, clicked)
