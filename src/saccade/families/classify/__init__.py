"""Classification: a picture in, one label out. CIFAR-10, birds, generated details, folders, and your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from saccade import models
from saccade.families.registry import DataEntry, Family, ModelSpec, Probing, cub_birds, own_data

if TYPE_CHECKING:
    from saccade.families import Decode, Task

MODELS = {
    "ran": ModelSpec(
        load=lambda: models.RanModel,
        summary="a classifier of residual units whose attention modules mask their own features",
        paper="Wang et al. 2017, arXiv:1704.06904",
    ),
    "resnet": ModelSpec(
        load=lambda: models.ResidualNetModel,
        summary="control: a pre-activation residual network, no attention",
        paper="control for Wang et al. 2017, arXiv:1704.06904",
    ),
    "racnn": ModelSpec(
        load=lambda: models.RacnnModel,
        summary="looks, proposes a region and looks again closer; three scales, one answer",
        paper="Fu et al. 2017, CVPR",
    ),
    "probe": ModelSpec(
        load=lambda: models.ProbeModel,
        summary="one small head, linear or attention, on a frozen backbone; see saccade probe",
        paper="after Psomas et al. 2025, arXiv:2506.10178",
    ),
}

DATA = {
    "details": DataEntry(
        kind="generator",
        description="discs with a mark of fine stripes; the class hangs on the stripes of one of them",
        licence="generated, no restrictions",
        get="generated on the fly",
        shows="drawn pictures of small details",
        example="stripes",
    ),
    "cifar10": DataEntry(
        kind="collection",
        description="CIFAR-10: 60,000 pictures of 32 × 32 in ten classes",
        licence="none stated; free for research",
        research_only=True,
        get="run 'saccade data get cifar10', or name the official binary version cifar10:FOLDER",
        download="cifar10",
        shows="small photographs of animals and vehicles",
        example="cat",
    ),
    "cub": cub_birds("11,788 pictures of 200 kinds of birds, each with its box"),
    **own_data("image, label; optional split, group, box, mask"),
}


class Classify(Family):
    """Classification."""

    def task(self) -> type[Task]:
        from saccade.families.classify.task import ClassifyTask

        return ClassifyTask

    def decode(self) -> Decode:
        from saccade.families.classify.task import decode

        return decode


FAMILY = Classify(
    name="classify",
    title="a picture in, one label out",
    folder=Path(__file__).parent,
    models=MODELS,
    data=DATA,
    headline=("accuracy",),
    columns=(frozenset({"image", "label"}),),
    featured=("racnn-details", "ran-56-cifar10"),
    probing=Probing(model="probe"),
)
