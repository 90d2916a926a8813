"""Models that zoom: their losses, and what their parts say at each scale.

The losses of classification: one dataclass for each, by the name that a recipe uses.

``scales``, ``proposals`` and ``rank`` are for a model that zooms (:mod:`saccade.losses.maps`); the others for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeGuard, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention.zoom import clamped_box
from saccade.config import Portion, Weight, Within
from saccade.errors import ConfigError, DataError
from saccade.losses.maps import MARGIN, proposal_loss, rank_loss, scale_losses, true_class_probability
from saccade.metrics.maps.edits import mask_boxes
from saccade.models.base import ImageOnlyModel
from saccade.models.racnn import CROPS, SCALES, RacnnModel, region_round
from saccade.tasks.forward_passes import at_once, in_parts, thread_count
from saccade.tasks.label_task import CrossEntropy
from saccade.trace import LabelOutput, joined

USUAL_SIDE = 0.5
"""Side of the regions that proposals learn first, as a share of the parent's side, as in the paper."""
Scale = Literal["scale1", "scale2", "scale3"]


@dataclass(frozen=True)
class Scales:
    """Cross-entropy of every scale up to ``last``; with the finest one also of all scales together."""

    last: Scale = "scale3"


@dataclass(frozen=True)
class Proposals:
    """Smooth L1 between proposals and regions that the responses of a network ask for."""

    of: Literal["scale2", "scale3", "both"] = "both"
    """Whose proposals are taught."""
    target: Literal["strongest", "responses"] = "strongest"
    """``strongest``: a region of ``side`` round the strongest response, as in the paper. ``responses``: the square in
    which the network of the taught scale responds more than on average, ``grow`` times as wide."""
    side: Portion = USUAL_SIDE
    """Side of the region round the strongest response, as a share of its parent's."""
    grow: Annotated[float, Within(0, above=True)] = 1.0
    """Side of the region of ``responses``, as a multiple of the square's."""

    def __post_init__(self) -> None:
        if self.target == "strongest" and self.grow != 1:
            raise ValueError("grow: belongs to 'target: responses'; leave it out, or change target")
        if self.target == "responses" and self.side != USUAL_SIDE:
            raise ValueError("side: belongs to 'target: strongest'; give grow instead, or change target")


@dataclass(frozen=True)
class Rank:
    """Each scale is to be surer of the true class than the one before it, by ``margin``."""

    margin: Weight = MARGIN


ZoomLoss = Scales | Proposals | Rank
LOSSES: dict[str, type] = {
    "default": CrossEntropy,
    "cross_entropy": CrossEntropy,
    "scales": Scales,
    "proposals": Proposals,
    "rank": Rank,
}


def check_zoom_loss(model: Any, loss: Any) -> None:
    """Refuse a loss that the model has nothing for."""
    is_zoom = isinstance(loss, ZoomLoss)
    if is_zoom != isinstance(model, RacnnModel):
        fitting = "scales, proposals or rank" if isinstance(model, RacnnModel) else "cross_entropy"
        raise ConfigError(f"loss: this model is taught by {fitting}, found {type(loss).__name__}")
    if isinstance(loss, Proposals | Rank) and not model.proposals:
        raise ConfigError(
            f"loss: a model with crops '{model.config.crops}' proposes no crops; train it with the loss scales"
        )


def last_scale(loss: ZoomLoss) -> str:
    """The last scale that must look for ``loss``."""
    if isinstance(loss, Scales):
        return loss.last
    if isinstance(loss, Proposals):
        return SCALES[0] if loss.of == "scale2" else SCALES[1]
    return SCALES[-1]


def zoom_loss(raw: LabelOutput, label: Tensor, loss: ZoomLoss, smallest: float) -> dict[str, Tensor]:
    """What ``loss`` makes of a result of ``forward_raw`` and of labels (B,): scalars by name.

    ``smallest`` is the side of the model's smallest region: none is taught that it cannot propose.
    """
    logits = raw.scale_logits  # (B,S,K)
    right = (logits.argmax(-1) == label[:, None]).float().mean(0)  # (S,)
    told = {f"{name}_accuracy": share for name, share in zip(SCALES, right)}
    if isinstance(loss, Scales):
        total = scale_losses(logits, label).sum()
        if raw.logits is not None:
            total = total + F.cross_entropy(raw.logits, label)
            told["accuracy"] = (raw.logits.argmax(-1) == label).float().mean()
        return {"loss": total, **told}
    if isinstance(loss, Proposals):
        which = slice(None) if loss.of == "both" else slice(CROPS.index(loss.of), CROPS.index(loss.of) + 1)
        return {"loss": proposal_loss(raw.boxes[:, which], taught_regions(raw, loss, smallest)[:, which]), **told}
    return {"loss": rank_loss(true_class_probability(logits, label), loss.margin), **told}


def taught_regions(raw: LabelOutput, loss: Proposals, smallest: float) -> Tensor:
    """Legal boxes (B,2,3) that ``loss`` teaches; they teach nothing back."""
    if loss.target == "strongest":
        return wanted_regions(raw, loss.side, smallest)
    region = raw.responses.detach()  # (B,2,3)
    grown = torch.cat([region[..., :2], loss.grow * region[..., 2:]], dim=-1)  # (B,2,3)
    return clamped_box(grown.to(raw.boxes.dtype), smallest)


def zoom_options(loss: ZoomLoss) -> dict[str, object]:
    """Keyword arguments of ``forward_raw`` for a step with ``loss``."""
    options: dict[str, object] = {"last": last_scale(loss)}
    if isinstance(loss, Proposals) and loss.target == "responses":
        options["responses"] = True
    return options


def wanted_regions(raw: LabelOutput, side: float, smallest: float) -> Tensor:
    """Legal boxes (B,2,3) of ``side`` round the strongest responses; they teach nothing back."""
    centre = raw.strongest.detach()  # (B,2,2)
    half = torch.full_like(centre[..., :1], side / 2)
    return clamped_box(torch.cat([centre, half], dim=-1).to(raw.boxes.dtype), smallest)


def needs_evidence(model: object) -> TypeGuard[RacnnModel]:
    """Whether the crops of ``model`` come from the data."""
    return isinstance(model, RacnnModel) and model.config.crops == "given"


def crops_round(model: RacnnModel, evidence: Tensor | None) -> dict[str, Tensor]:
    """The frames of both crops round the evidence (B,H,W), as ``attention``; the whole where there is none."""
    if evidence is None:
        raise DataError("crops 'given' lie round the evidence, and this data has no evidence: add a column box or mask")
    config = model.config
    height, width = config.input_size
    boxes = mask_boxes(evidence)  # (B,4)
    whole = torch.tensor([0.0, 0.0, width, height], dtype=boxes.dtype, device=boxes.device)
    return region_round(torch.where(boxes.isnan(), whole, boxes), config.input_size, config.side, config.crop)


def seen(model: ImageOnlyModel, images: Tensor, evidence: Tensor | None = None) -> LabelOutput:
    """What ``forward_raw`` gives for all pictures, a few at a time; with crops round the evidence where they belong."""
    if not needs_evidence(model):
        return cast(LabelOutput, in_parts(model, images, threads=thread_count(images.device)))
    crops = crops_round(model, evidence)
    many = at_once(images)
    starts = range(0, len(images), many)
    return joined(
        model.forward_raw(images[at : at + many], attention={n: f[at : at + many] for n, f in crops.items()})
        for at in starts
    )
