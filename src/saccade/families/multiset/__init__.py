"""Multisets: which digits are on the picture, and how often each? Generated scenes, SVHN, and your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from saccade import models
from saccade.families.registry import DataEntry, Family, ModelSpec, drawn_digits, own_data

if TYPE_CHECKING:
    from saccade.families import Decode, ModelFacts, Task, TrainedScenes

MODELS = {
    "hsal": ModelSpec(
        load=lambda: models.HsalModel,
        summary="reads a multiset of labels, one salient region and a few glimpses at a time",
        paper="Welleck et al. 2017, arXiv:1711.05165",
    ),
    "multiset-counts": ModelSpec(
        load=lambda: models.MultisetCountsModel,
        summary="control: counts every label on the activations of hsal, no attention",
        paper="control for Welleck et al. 2017, arXiv:1711.05165",
    ),
}

DATA = {
    "mnist-multiset": drawn_digits(
        "1 to 4 MNIST digits of 20 to 50 px among clutter, 100 × 100; which digits, and how often each?"
    ),
    "mnist-set": drawn_digits("the scenes of mnist-multiset with no digit twice"),
    "mnist-single": drawn_digits(
        "one digit of a scene of mnist-set, among clutter: what a backbone learns digits from"
    ),
    "svhn": DataEntry(
        kind="reader",
        description="SVHN, full numbers: the digits on photographs of house numbers, a box for each as evidence",
        licence="pictures for non-commercial use only",
        research_only=True,
        get="download train.tar.gz and test.tar.gz (format 1) from its page at Stanford, unpack, name it svhn:FOLDER; "
        "to score a trained model, test.tar.gz is enough",
        shows="photographs of house numbers",
    ),
    **own_data("image, labels: the multiset of labels on each picture; optional split, boxes"),
}


class Multisets(Family):
    """Multisets."""

    def task(self) -> type[Task]:
        from saccade.families.multiset.task import MultisetTask

        return MultisetTask

    def decode(self) -> Decode:
        from saccade.families.multiset.task import decode

        return decode

    def trained_scenes(self, facts: ModelFacts) -> TrainedScenes | None:
        from saccade.families.multiset.data import SCENES
        from saccade.families.multiset.scenes import MultisetSpec
        from saccade.families.page import CANVAS, TrainedScenes

        if (kind := SCENES.get(str(facts.data.get("name")))) is None:
            return None
        spec = MultisetSpec(CANVAS, **kind)
        fewest = 0 if facts.data.get("empty") and not spec.alone else 1
        sizes = ((spec.smallest, spec.largest),)
        return TrainedScenes((fewest, spec.slots), sizes, "clutter", colours=("white",), repeats=spec.repeats)


FAMILY = Multisets(
    name="multiset",
    title="a picture in, the labels of everything on it out",
    folder=Path(__file__).parent,
    models=MODELS,
    data=DATA,
    headline=("macro_f1", "exact_match"),
    columns=(frozenset({"image", "labels"}),),
    featured=("hsal-mnist-multiset",),
)
