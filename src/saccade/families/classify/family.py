"""Classification: a picture in, one label out. CIFAR-10, birds, generated details, folders, and your own tables."""

from __future__ import annotations

from pathlib import Path

from saccade.families.contract import (
    LABEL_COLUMNS,
    DataEntry,
    Family,
    ModelSpec,
    Probing,
    class_folders,
    own_tables,
    picture_tables,
)

MODELS = {
    "ran": ModelSpec(
        target="saccade.models.ran:RanModel",
        summary="a classifier of residual units whose attention modules mask their own features",
        paper="Wang et al. 2017, arXiv:1704.06904",
    ),
    "resnet": ModelSpec(
        target="saccade.models.ran:ResidualNetModel",
        summary="control: a pre-activation residual network, no attention",
        paper="control for Wang et al. 2017, arXiv:1704.06904",
    ),
    "racnn": ModelSpec(
        target="saccade.models.racnn:RacnnModel",
        summary="looks, proposes a region and looks again closer; three scales, one answer",
        paper="Fu et al. 2017, CVPR",
    ),
    "probe": ModelSpec(
        target="saccade.models.probe:ProbeModel",
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
    "cub": DataEntry(
        kind="reader",
        description="CUB-200-2011: 11,788 pictures of 200 kinds of birds, each with its box",
        licence="pictures for non-commercial research and education only",
        research_only=True,
        get="download CUB_200_2011.tgz from its page at Caltech, unpack it, name it cub:FOLDER",
        shows="photographs of birds",
    ),
    **class_folders(),
    **own_tables("image, label; optional split, group, box, mask"),
    **picture_tables(),
}

FAMILY = Family(
    name="classify",
    title="a picture in, one label out",
    folder=Path(__file__).parent,
    reads="saccade.families.pictures:PICTURES",
    models=MODELS,
    data=DATA,
    task="saccade.families.classify.task:ClassifyTask",
    decode="saccade.families.classify.task:decode",
    headline=("accuracy",),
    columns=(LABEL_COLUMNS,),
    featured=("racnn-details", "ran-56-cifar10"),
    probing=Probing(model="probe"),
)
