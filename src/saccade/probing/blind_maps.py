"""Maps that ignore the picture: the chance level for the maps of a probe's heads.

``box_centre`` looks at the centre of the object's box, where a point or mask inside it is the evidence. ``part_prior``
looks where the evidence usually lies: at the same place of the object's box where boxes are known, else at the same
place of the picture. With questions each has a place of its own. Both lie on the grids of the model; where clicks are
the evidence, ``…_exact`` is the pixel itself.

Axes: A questions, n examples, H and W pixels.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from saccade.data.pictures.label_evidence import LabelEvidence
from saccade.geometry import Size
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.points import at_points, exactly_at
from saccade.metrics.maps.scorer import Baseline
from saccade.probing.pictures import ProbedPictures
from saccade.trace import AttentionTrace

_AT_ONCE = 100


class UsualPlaces:
    """Where evidence lies on the mean over examples, question by question.

    Args:
        pictures: all examples.
        evidence: theirs.
        examples: (n,) those that are known, the training examples of a split.
    """

    def __init__(self, pictures: ProbedPictures, evidence: LabelEvidence, examples: Tensor) -> None:
        self._pictures, self._evidence = pictures, evidence
        asked = 1 if pictures.questions is None else len(pictures.questions.words)
        self._in_box, self._in_picture = _Means(asked), _Means(asked)
        for part in torch.split(examples, _AT_ONCE):
            rows, query = pictures.row(part), self._query(part)
            centre, box = _centres(evidence, rows), evidence.boxes_of_objects(rows).double()  # (n,2), (n,4)
            self._in_picture.add(query, centre)
            self._in_box.add(query, (centre - box[:, :2]) / (box[:, 2:] - box[:, :2]))

    def of(self, examples: Tensor) -> Tensor:
        """The place (n,2) as (x, y) for examples; NaN where nothing is known."""
        query, box = self._query(examples), self._evidence.boxes_of_objects(self._pictures.row(examples)).double()
        inside = box[:, :2] + self._in_box.means()[query] * (box[:, 2:] - box[:, :2])  # (n,2)
        known = ~inside.isnan().any(1)[:, None]
        return torch.where(known, inside, self._in_picture.means()[query]).float()

    def _query(self, examples: Tensor) -> Tensor:
        found = self._pictures.query(examples)
        return torch.zeros_like(examples) if found is None else found


class _Means:
    """The mean point of each question."""

    def __init__(self, count: int) -> None:
        self._total, self._count = torch.zeros(count, 2, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)

    def add(self, query: Tensor, points: Tensor) -> None:
        known = ~points.isnan().any(1)  # (n,)
        self._total.index_add_(0, query[known], points[known])
        self._count.index_add_(0, query[known], torch.ones_like(points[known, 0]))

    def means(self) -> Tensor:
        """(A,2); NaN where none is known."""
        return self._total / self._count[:, None]


def _centres(evidence: LabelEvidence, rows: Tensor) -> Tensor:
    """The point that was clicked, else the centre of the evidence: (n,2); NaN where there is none."""
    marked = evidence.take(rows).double()  # (n,H,W)
    pixels = marked.sum((1, 2))  # (n,)
    down, across = (torch.arange(side, dtype=torch.float64) + 0.5 for side in marked.shape[1:])
    middle = torch.stack([(marked.sum(1) @ across) / pixels, (marked.sum(2) @ down) / pixels], 1)  # (n,2)
    clicked = evidence.points(rows).double()
    return torch.where(clicked.isnan().any(1)[:, None], middle, clicked)


def blind_maps(
    pictures: ProbedPictures, evidence: LabelEvidence, part: Tensor, usual: UsualPlaces, trace: AttentionTrace
) -> dict[str, Baseline]:
    """Both maps of the examples ``part`` (n,), on the grids of ``trace``."""
    size = pictures.store.size
    grids = grids_of(trace, size)
    if grids is None:
        return {}
    rows = pictures.row(part)
    box = evidence.boxes_of_objects(rows)  # (n,4)
    points = {"box_centre": (box[:, :2] + box[:, 2:]) / 2, "part_prior": usual.of(part)}  # (n,2) each
    clicked = not bool(evidence.points(rows).isnan().all())
    found = {}
    for name, at in points.items():
        known = ~at.isnan().any(1)  # (n,)
        if bool(known.any()):
            found[name] = Baseline(grids.through(partial(_cell_at, at, size)), known)  # (n,H,W)
            if clicked:
                found[f"{name}_exact"] = Baseline(exactly_at(at, size), known)
    return found


def _cell_at(points: Tensor, size: Size, frame: Tensor, cells: Size) -> Tensor:
    """The map (n,H,W) of the cell at each point (n,2)."""
    return at_points(points, frame, cells, size)
