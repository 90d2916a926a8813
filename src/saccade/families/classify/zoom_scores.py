"""Scores of a model that zooms: how right each scale is, and how its crops lie on the evidence.

``scale1_accuracy`` … are those of each scale by itself; ``accuracy`` is that of all together. Of each crop there are
``scale2_covers_evidence``, ``scale2_overlap`` and ``scale2_inside_evidence`` (:mod:`saccade.metrics.maps.edits`), where
the data knows the evidence, and ``scale2_side``, its side as a share of the picture's. Beside them stand a centred crop
and one anywhere, both of the same side. Validation also tells ``scale2_proposal_error``: how far a region is from the
one round the strongest response, in shares of its parent's sides, summed over centre and half side; not of proposals
that are taught another region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from saccade import geometry
from saccade.attention.zoom import theta_box
from saccade.data.pictures.labelled import LabelledBatch
from saccade.families.classify.losses import Proposals
from saccade.families.classify.zooming import wanted_regions
from saccade.metrics.intervals import Values
from saccade.metrics.maps.edits import anywhere_scores, centred, crop_boxes, crop_scores
from saccade.metrics.result import only_defined
from saccade.models.racnn import CROPS, SCALES, RacnnModel


def zoom_metric_names(model: object, has_evidence: bool, taught: Mapping[str, Proposals]) -> tuple[str, ...]:
    """Names of what validation tells of a model that zooms; none of another.

    ``taught`` is what teaches the proposals of a scale, if not the loss of the paper.
    """
    if not isinstance(model, RacnnModel):
        return ()
    covers = [f"{name}_covers_evidence" for name in CROPS] if has_evidence else []
    errors = [f"{name}_proposal_error" for name in model.proposals if _usual(name, taught)]
    return (*(f"{name}_accuracy" for name in SCALES), *(f"{name}_side" for name in CROPS), *covers, *errors)


def zoom_values(
    model: object, raw: Mapping[str, Tensor], batch: LabelledBatch, taught: Mapping[str, Proposals]
) -> dict[str, Tensor]:
    """Those values (B,) of a batch."""
    if not isinstance(model, RacnnModel):
        return {}
    found = scale_values(raw, batch.label)
    for number, name in enumerate(model.proposals):
        if (loss := _usual(name, taught)) is not None:
            wanted = wanted_regions(raw, loss.side, model.config.smallest)  # (B,2,3)
            found[f"{name}_proposal_error"] = (raw["boxes"] - wanted)[:, number].abs().sum(-1)
    for name, crops in crops_of(model, raw).items():
        found[f"{name}_side"] = sides_of(raw, name)
        if batch.evidence is not None:
            found[f"{name}_covers_evidence"] = crop_scores(crops, batch.evidence)["covers_evidence"]
    return found


def _usual(name: str, taught: Mapping[str, Proposals]) -> Proposals | None:
    """What teaches the proposals of a scale, if it is the region round the strongest response."""
    loss = taught.get(name, Proposals())
    return loss if loss.target == "strongest" else None


def scale_values(raw: Mapping[str, Tensor], label: Tensor) -> dict[str, Tensor]:
    """Whether each scale is right (B,), by itself."""
    right = raw["scale_logits"].argmax(-1) == label[:, None]  # (B,S)
    return {f"{name}_accuracy": right[:, number] for number, name in enumerate(SCALES)}


def crops_of(model: RacnnModel, raw: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The boxes (B,4) xyxy of the crops in pixels of the network input, by the name of the scale."""
    config = model.config
    frames = {n: geometry.theta_to_frame(raw[f"{n}.theta"].double(), config.crop, config.input_size) for n in CROPS}
    return {name: crop_boxes(frame, config.crop) for name, frame in frames.items()}


def sides_of(raw: Mapping[str, Tensor], name: str) -> Tensor:
    """The side (B,) of a crop as a share of the picture's."""
    return 2 * theta_box(raw[f"{name}.theta"])[:, 2]


@dataclass
class ZoomScores:
    """Values of each picture: of the answers, of the crops, and of crops of the same side elsewhere."""

    answers: Values = field(default_factory=Values)
    crops: Values = field(default_factory=Values)
    rivals: dict[str, Values] = field(default_factory=lambda: {"centred_crop": Values(), "crop_anywhere": Values()})

    def add(self, model: RacnnModel, raw: Mapping[str, Tensor], batch: LabelledBatch) -> None:
        """Keep the values of a batch."""
        self.answers.add_values(scale_values(raw, batch.label))
        for name, crops in crops_of(model, raw).items():
            self.crops.add_values({f"{name}_side": sides_of(raw, name)})
            if batch.evidence is not None:
                rivals = {
                    "centred_crop": crop_scores(centred(crops, model.config.input_size), batch.evidence),
                    "crop_anywhere": anywhere_scores(crops, batch.evidence),
                }
                self.crops.add_values(_named(name, crop_scores(crops, batch.evidence)))
                for rival, scores in rivals.items():
                    self.rivals[rival].add_values(_named(name, scores))

    def baselines(self) -> dict[str, dict[str, float]]:
        """Means of the rivals, where there was evidence."""
        found = {name: only_defined(values.means()) for name, values in self.rivals.items()}
        return {name: means for name, means in found.items() if means}


def _named(name: str, scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}_{score}": values for score, values in scores.items()}
