"""Causal scores of a model that zooms, on pictures of ``details`` that are drawn again with one thing changed.

=========================  ===================================================================================
``moved_follow``           the bearer is elsewhere: share of pictures whose finest crop now covers it (half or more)
``moved_hold``             … and the answer is the same
``rewoven_follow``         the mark has other stripes: the answer is now their class
``rewoven_hold``           … and the finest crop lies where it was (overlap of half or more)
``surrounded_hold``        everything but the bearer is another: the answer is the same
``surrounded_crop_hold``   … and the finest crop lies where it was
=========================  ===================================================================================

Only pictures that are answered correctly, with a crop that covers the evidence, count; others are NaN. A model that is
already wrong cannot show that it follows.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.data.details.layout import moved, rewoven, surrounded
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import as_float
from saccade.families.classify.data import LabelData
from saccade.families.classify.details import Details, drawn
from saccade.families.classify.zoom_scores import crops_of
from saccade.families.classify.zooming import seen
from saccade.metrics.maps.edits import covers_evidence, overlap
from saccade.models.racnn import CROPS, RacnnModel

HALF = 0.5
_EDITS = {"moved": moved, "rewoven": rewoven, "surrounded": surrounded}


def drawn_again(data: LabelData, numbers: Tensor) -> dict[str, LabelledBatch] | None:
    """The pictures ``numbers`` (B,) with one thing changed, by name; None of data that is not drawn."""
    source = data.source
    if not isinstance(source, DrawnSplit) or not isinstance(source.pictures, Details):
        return None
    layout = source.pictures.layout(source.stream, numbers.to(data.device))
    return {name: drawn(edit(layout)) for name, edit in _EDITS.items()}


def causal_values(
    model: RacnnModel, raw: Mapping[str, Tensor], batch: LabelledBatch, again: Mapping[str, LabelledBatch]
) -> dict[str, Tensor]:
    """The scores (B,) of a batch, of what the model made of it, and of the same pictures drawn again."""
    if batch.evidence is None:
        return {}
    before = crops_of(model, raw)[CROPS[-1]]  # (B,4)
    answer = raw["logits"].argmax(-1)  # (B,)
    counts = (answer == batch.label) & (covers_evidence(before, batch.evidence) >= HALF)  # (B,)
    found: dict[str, Tensor] = {}
    for name, other in again.items():
        then = seen(model, as_float(other.images), other.evidence)
        crop, said = crops_of(model, then)[CROPS[-1]], then["logits"].argmax(-1)
        stayed = overlap(before, crop) >= HALF
        if name == "moved" and other.evidence is not None:
            found["moved_follow"] = covers_evidence(crop, other.evidence) >= HALF
            found["moved_hold"] = said == answer
        elif name == "rewoven":
            found["rewoven_follow"] = said == other.label
            found["rewoven_hold"] = stayed
        else:
            found["surrounded_hold"] = said == answer
            found["surrounded_crop_hold"] = stayed
    return {name: torch.where(counts, value.double(), torch.nan) for name, value in found.items()}
