"""True-positive strength under the two projections that the paper's Table 1b may have meant.

The paper sums "attention probabilities within the ground-truth segmentation" and divides by the sum of all. It does not
say which map of several that is, nor how a 4×4 map was laid on the picture. saccade extends the edge cells to the
border everywhere; the other reading lets maps fall to zero one cell beyond the outermost.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from saccade.geometry import Size
from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.models.base import QueryModel
from saccade.papers.results import recorded_runs
from saccade.predict import Predictor
from saccade.show.tables import Table
from saccade.tasks.forward_passes import in_parts


def zero_border(maps: Tensor, frame: Tensor, size: Size) -> Tensor:
    """Bilinear between receptive-field centres, falling to zero one cell beyond the outermost: (B,h,w) → (B,H,W)."""
    inverse = geometry.invert(frame.double().to(maps.device))
    return geometry.sample(maps.double().unsqueeze(1), inverse, size, padding_mode="zeros").squeeze(1).to(maps.dtype)


PROJECTIONS = {"edge_extended": geometry.project, "zero_border": zero_border}


@torch.no_grad()
def strengths(predictor: Predictor, n: int) -> dict[str, float]:
    """By ``PROJECTION/product`` (all maps multiplied) and ``PROJECTION/last``: on the first ``n`` test questions."""
    model = cast("QueryModel", predictor.model)
    split = SceneData(SceneDataConfig(predictor.facts.data["name"]), "test", device=predictor.device, allow_pack=True)
    batch = split.take(torch.arange(n))
    size = (split.spec.size, split.spec.size)
    trace = model.wrap(in_parts(model, batch.images, batch.query), size).trace
    grids = [(look.weights, look.frame) for look in trace.looks if look.weights is not None and look.frame is not None]
    evidence, found = batch.evidence(), {}
    for name, project in PROJECTIONS.items():
        laid = torch.stack([project(weights, frame, size) for weights, frame in grids])  # (L,B,H,W)
        for which, maps in (("product", laid.prod(0)), ("last", laid[-1])):
            found[f"{name}/{which}"] = mean_defined(true_positive_strength(maps, evidence)).mean
    return found


def strength_table() -> Table:
    """What :func:`strengths` gave for shipped models, one a line."""
    columns = [f"{projection}/{which}" for projection in PROJECTIONS for which in ("product", "last")]
    rows, counts = [], set()
    for run in recorded_runs().values():
        scores = [run.scores.get(f"strength/{column}") for column in columns]
        known = [score for score in scores if score is not None]
        if len(known) == len(columns):
            counts |= {score.n for score in known}
            rows.append([run.run, *(f"{100 * score.value:.1f}" for score in known)])
    heads = [column.replace("_", " ").replace("/", ", ") for column in columns]
    note = f"The first {min(counts):,} test questions. The paper does not say which of these it means."
    return Table(["model", *heads], rows, "True-positive strength % of shipped models under two projections", note)
