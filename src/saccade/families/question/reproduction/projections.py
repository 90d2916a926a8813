"""How much the projection decides: one model's true-positive strength under four ways to lay its maps on the picture.

The paper says only that attention is compared with a segmentation; a 4×4 map must be enlarged for that, and how is not
said. saccade uses one way everywhere (:func:`saccade.geometry.project`); this table shows what the others would give,
each beside the even map and the best single cell of the last map's grid under the same projection. That cell is a bound
of the last map, not of the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.families.question.query_model import query_model
from saccade.families.question.scenes.data import SceneBatch, SceneData, SceneDataConfig
from saccade.geometry import Size
from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.predict import Predictor
from saccade.tasks.forward_passes import in_parts
from saccade.trace import AttentionTrace
from saccade.verbs.plain_table import PlainTable

Projection = Callable[[Tensor, Tensor, Size], Tensor]
"""Maps (B,h,w), their frame (2,3) and the size of the picture → (B,H,W)."""


def stretched(maps: Tensor, frame: Tensor, size: Size) -> Tensor:
    """The grid stretched over the whole picture, bilinear: what an image library does without knowing the network."""
    over_all = geometry.scale_shift((size[1] / maps.shape[-1], size[0] / maps.shape[-2]), (0.0, 0.0))
    return geometry.project(maps, over_all, size)


def nearest_centre(maps: Tensor, frame: Tensor, size: Size) -> Tensor:
    """Each pixel takes the cell whose receptive field is centred nearest."""
    ys, xs = (torch.arange(side, dtype=torch.float64, device=maps.device) + 0.5 for side in size)
    pixels = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), dim=-1)  # (H,W,2)
    at = geometry.apply(geometry.invert(frame.double().to(maps.device)), pixels)  # (H,W,2) in cells
    column = at[..., 0].floor().clamp(0, maps.shape[-1] - 1).long()  # (H,W)
    row = at[..., 1].floor().clamp(0, maps.shape[-2] - 1).long()
    return maps[:, row, column]  # (B,H,W)


def zero_outside(maps: Tensor, frame: Tensor, size: Size) -> Tensor:
    """Bilinear between receptive-field centres, falling to zero one cell beyond the outermost."""
    inverse = geometry.invert(frame.double().to(maps.device))
    return geometry.sample(maps.double().unsqueeze(1), inverse, size, padding_mode="zeros").squeeze(1).to(maps.dtype)


PROJECTIONS: dict[str, Projection] = {
    "stretched over the picture, bilinear": stretched,
    "receptive-field centres, bilinear, edge extended (ours)": geometry.project,
    "receptive-field centres, nearest": nearest_centre,
    "receptive-field centres, bilinear, zero outside": zero_outside,
}


@dataclass(frozen=True)
class ProjectionScores:
    """True-positive strengths under one projection; fractions."""

    name: str
    last: float
    """Score of the last look alone."""
    product: float
    """Score of all looks multiplied; with one look the same."""
    even: float
    """Score of a map that is the same everywhere on the grid of the last look."""
    best_cell: float
    """Score of the best single cell of each picture."""


@dataclass(frozen=True)
class ProjectionStudy:
    """One model under every projection."""

    model: str
    n: int
    glyphs: str
    """Glyphs of the scenes, which are the first of the test split."""
    rows: tuple[ProjectionScores, ...]


@torch.no_grad()
def study_projections(predictor: Predictor, n: int) -> ProjectionStudy:
    """Lay the looks of ``predictor`` on the first ``n`` test scenes in every way."""
    model = query_model(predictor)
    config = SceneDataConfig(predictor.facts.data["name"])
    split = SceneData(config, "test", device=predictor.device, allow_pack=True)
    batch = split.take(torch.arange(n))
    size = (split.spec.size, split.spec.size)
    trace = model.wrap(in_parts(model, batch.images, batch.query), size).trace
    rows = tuple(_scores(name, project, trace, batch, size) for name, project in PROJECTIONS.items())
    return ProjectionStudy(predictor.name, n, split.glyphs.name, rows)


def _scores(name: str, project: Projection, trace: AttentionTrace, batch: SceneBatch, size: Size) -> ProjectionScores:
    evidence = batch.evidence()
    laid = []
    for look in trace.looks:
        if look.weights is None or look.frame is None:
            raise DataError(
                f"look '{look.name}' has no weights on a grid: projections are compared for maps, not crops"
            )
        laid.append(project(look.weights, look.frame, size))  # (B,H,W)
    last = trace.looks[-1]
    if last.weights is None or last.frame is None:
        raise DataError("the trace has no look to project")
    rows, columns = last.weights.shape[-2:]
    single = torch.eye(rows * columns, device=evidence.device).reshape(-1, rows, columns)  # (S,h,w)
    cells = project(single, last.frame, size)  # (S,H,W)
    on_evidence = torch.einsum("shw,bhw->bs", cells, evidence.to(cells))  # (B,S)
    best = (on_evidence / cells.sum((-2, -1)).clamp(min=1e-12)).amax(1)  # (B,)
    even = cells.sum(0, keepdim=True).expand(len(batch), *size)  # (B,H,W)
    product = torch.stack(laid).prod(0)  # (B,H,W)

    def strength(maps: Tensor) -> float:
        return mean_defined(true_positive_strength(maps, evidence)).mean

    return ProjectionScores(name, strength(laid[-1]), strength(product), strength(even), float(best.mean()))


def projection_table(study: ProjectionStudy) -> PlainTable:
    """The variants, one a row."""
    rows = [
        [each.name, *(f"{100 * value:.1f}" for value in (each.last, each.product, each.even, each.best_cell))]
        for each in study.rows
    ]
    return PlainTable(
        f"true-positive strength % of {study.model} under four projections, n = {study.n:,}",
        ("projection", "last map", "product of all maps", "even map", "best cell of the last map"),
        rows,
        f"The first test scenes, made of {study.glyphs}. The paper does not state its projection, so that none of "
        "these rows can be compared with its table.",
    )
