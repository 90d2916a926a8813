"""Does the kept head depend on the evidence, and do its maps beat maps that do not look? Needs boxes or masks.

Every picture is answered by the head of the split that tests it, which never saw it. Pictures are changed before the
backbone sees them (:mod:`saccade.metrics.verdict`), so a changed picture costs a pass of the backbone. With questions,
each is asked again, and the pixels come from a picture with another answer to the same question. A point marks a part
and says not how far the object goes, so it is the box or mask that is blurred or swapped.

``box_centre`` looks at the centre of the object's box, where a point or mask inside it is the evidence. ``part_prior``
looks where the evidence usually lies: at the same place of the object's box where boxes are known, else at the same
place of the picture. With questions each has a place of its own. Both lie on the grids of the model; where clicks are
the evidence, ``…_exact`` is the pixel itself.

Axes: N examples, n examples of a part, A questions, H and W pixels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from saccade.data.pictures.evidence import Evidence
from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.metrics.maps.baselines import grids_of, seen_by_cells
from saccade.metrics.maps.points import Clicks, at_points, exactly_at
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.result import Part, without_nan
from saccade.metrics.verdict import EvidenceReliance, against_chance, beside_blind_maps, joined, sampled
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR
from saccade.probing.data import OnProgress, ProbedPictures
from saccade.probing.features import Features
from saccade.probing.head_stack import Places
from saccade.probing.probe import ProbeResult
from saccade.probing.report import HeadModel
from saccade.probing.trials import habits
from saccade.tasks.forward_passes import in_parts
from saccade.trace import AttentionTrace


class UsualPlaces:
    """Where evidence lies on the mean over examples, question by question.

    Args:
        pictures: all examples.
        evidence: theirs.
        examples: (n,) those that are known, the training examples of a split.
    """

    def __init__(self, pictures: ProbedPictures, evidence: Evidence, examples: Tensor) -> None:
        self._pictures, self._evidence = pictures, evidence
        centre = torch.cat([_centres(evidence, pictures.row(part)) for part in torch.split(examples, _AT_ONCE)])
        box = self._box(examples)  # (n,4), as centre (n,2)
        self._in_picture = self._means(examples, centre)
        self._in_box = self._means(examples, (centre - box[:, :2]) / (box[:, 2:] - box[:, :2]))

    def of(self, examples: Tensor) -> Tensor:
        """The place (n,2) as (x, y) for examples; NaN where nothing is known."""
        query, box = self._pictures.questions.query[examples], self._box(examples)
        inside = box[:, :2] + self._in_box[query] * (box[:, 2:] - box[:, :2])  # (n,2)
        known = ~inside.isnan().any(1)[:, None]
        return torch.where(known, inside, self._in_picture[query]).float()

    def _box(self, examples: Tensor) -> Tensor:
        return self._evidence.boxes_of_objects(self._pictures.row(examples)).double()

    def _means(self, examples: Tensor, points: Tensor) -> Tensor:
        """The mean point of each question (A,2); NaN where none is known."""
        known = ~points.isnan().any(1)  # (n,)
        query, points = self._pictures.questions.query[examples[known]], points[known]
        total = torch.zeros(len(self._pictures.questions.words), 3, dtype=torch.float64)
        total.index_add_(0, query, torch.cat([points, torch.ones_like(points[:, :1])], 1))
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


def blind_maps(
    pictures: ProbedPictures, evidence: Evidence, part: Tensor, usual: UsualPlaces, trace: AttentionTrace
) -> dict[str, Baseline]:
    """Both maps of the examples ``part`` (n,), on the grids of ``trace``."""
    size = pictures.store.size
    grids = grids_of(trace, size)
    if grids is None:
        return {}
    rows = pictures.row(part)
    box = evidence.boxes_of_objects(rows)  # (n,4)
    points = {"box_centre": (box[:, :2] + box[:, 2:]) / 2, "part_prior": usual.of(part)}  # (n,2) each
    clicked = not bool(evidence.marks(rows, masks=False).point.isnan().all())
    found = {}
    for name, at in points.items():
        known = ~at.isnan().any(1)  # (n,)
        if bool(known.any()):
            found[name] = Baseline(grids.through(partial(at_points, at, size=size)), known)  # (n,H,W)
            if clicked:
                found[f"{name}_exact"] = Baseline(exactly_at(at, size), known)
    return found


MAX_MAPS = 1000
"""Pictures whose maps are scored."""
_AT_ONCE = 100  # pictures that are changed, or whose maps are scored, together


def places_of(pictures: ProbedPictures, frame: Tensor, grid: Size, weight: float) -> Places | None:
    """Where labels can be seen on the cells of the features, for heads that are taught where to look.

    Args:
        pictures: N pictures.
        frame: (2,3) cells of the features → pixels of the network input.
        grid: (h, w) of the features.
        weight: of the loss; 0: no such loss.

    Raises:
        ConfigError: the pictures have no evidence.
    """
    if not weight:
        return None
    if pictures.evidence is None:
        raise ConfigError(
            "evidence weight: no picture has evidence; name data with boxes or masks (a table with a column box or "
            "mask, COCO annotations), or leave it out"
        )
    parts = torch.split(torch.arange(len(pictures)), _AT_ONCE)
    found = [seen_by_cells(pictures.evidence.marks(pictures.row(part)).evidence(), frame, grid) for part in parts]
    everywhere = torch.ones(1, *pictures.store.size, dtype=torch.bool)
    return Places(torch.cat(found), seen_by_cells(everywhere, frame, grid), weight)


@torch.no_grad()
def with_evidence(probed: ProbeResult, features: Features, model_of: HeadModel, on_progress: OnProgress) -> ProbeResult:
    """The same probe, whose verdict says what the kept head rests on and how its maps lie on the evidence."""
    if probed.pictures.evidence is None:
        return probed
    rests = _rests_on(probed, probed.pictures.evidence, model_of, on_progress).summary()
    maps: Part = {}
    if probed.kept.name != LINEAR:
        scores = _map_scores(probed, probed.pictures.evidence, features, model_of)
        maps = against_chance(scores)
        if maps:
            maps["blind_maps"] = beside_blind_maps(scores, maps["score"])
    verdict = "; ".join(filter(None, (probed.verdict, joined([rests, maps]))))
    return replace(probed, rests_on=without_nan(rests), maps=without_nan(maps), verdict=verdict)


def _rests_on(probed: ProbeResult, held: Evidence, model_of: HeadModel, on_progress: OnProgress) -> EvidenceReliance:
    """Answers to changed test pictures of all splits."""
    rests, pictures = EvidenceReliance(), probed.pictures
    chosen = torch.zeros(len(pictures), dtype=torch.bool)
    chosen[sampled(len(pictures))] = True
    total, done = int(chosen.sum()), 0
    for number, split in enumerate(probed.splits):
        model = model_of(number)
        guess = _guesses(pictures, split.train)
        tested = split.test[chosen[split.test]]
        for part in _mixed(tested):
            label, query = pictures.labels[part], pictures.query(part)  # (n,) each
            picture, region = pictures.questions.picture[part], held.marks(pictures.row(part)).region()  # (n,), (n,H,W)
            rests.add(
                pictures.images(part),
                region,
                partial(_right, model, label, query),
                labels=label,
                pictures=picture,
                guessed=label == guess[pictures.questions.query[part]],
                kinds=query,
            )
            done += len(part)
            on_progress("pictures without their evidence", done, total)
    return rests


def _right(model: AnyProbe, label: Tensor, query: Tensor | None, images: Tensor, rows: Tensor) -> Tensor:
    """Whether the examples ``rows`` (n,) of a part are answered right when their pictures are ``images``: (n,)."""
    asked = () if query is None else (query[rows],)
    found: Tensor = in_parts(model, images, *asked).logits.argmax(-1) == label[rows]
    return found


def _guesses(pictures: ProbedPictures, train: Tensor) -> Tensor:
    """The commonest answer to each question in the training examples, (A,); of labels, the commonest class, (1,)."""
    return habits(pictures.labels, train, pictures.questions.query[train], len(pictures.questions.words))


def _map_scores(probed: ProbeResult, held: Evidence, features: Features, model_of: HeadModel) -> MapScorer:
    """The maps of test examples on their evidence and at their clicks, beside the blind ones."""
    pictures, scorer = probed.pictures, MapScorer(scores=("pointing",), baselines=("uniform", "centre_gaussian"))
    chosen = torch.zeros(len(pictures), dtype=torch.bool)
    chosen[sampled(len(pictures), MAX_MAPS)] = True
    size = pictures.store.size
    every = pictures.row(torch.arange(len(pictures)))
    clicked = not bool(held.marks(every, masks=False).point.isnan().all())  # of the same kind in every part
    for number, split in enumerate(probed.splits):
        model = model_of(number)
        usual = UsualPlaces(pictures, held, split.train)
        for part in _mixed(split.test[chosen[split.test]]):
            marks = held.marks(pictures.row(part))
            evidence = marks.evidence()  # (n,H,W)
            if not bool(evidence.any()):
                continue
            picture = pictures.questions.picture[part]
            encoded = features.encoded(probed.kept.name, picture)  # (n,C,h,w)
            trace = model.wrap(model.respond(encoded, pictures.query(part)), size).trace
            clicks = [Clicks.at(marks.point, marks.box, size)] if clicked else []
            beside = blind_maps(pictures, held, part, usual, trace)
            scorer.add_trace(trace, evidence, groups=picture, also=clicks, beside=beside)
    return scorer


def _mixed(numbers: Tensor) -> list[Tensor]:
    """The pictures in a fixed random order, in parts of which none is small: donors come from the same part."""
    order = numbers[torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))]
    parts = max(1, len(order) // _AT_ONCE)
    return [part for part in torch.tensor_split(order, parts) if len(part)]
