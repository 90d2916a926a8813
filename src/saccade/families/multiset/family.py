"""Multisets: which digits are on the picture, and how often each? Generated scenes, SVHN, and your own tables."""

from __future__ import annotations

from pathlib import Path

from saccade.data import scenes
from saccade.families.contract import DataEntry, Family, ModelSpec, class_folders, own_tables, picture_tables

MODELS = {
    "hsal": ModelSpec(
        target="saccade.models.hsal:HsalModel",
        summary="reads a multiset of labels, one salient region and a few glimpses at a time",
        paper="Welleck et al. 2017, arXiv:1711.05165",
    ),
    "multiset-counts": ModelSpec(
        target="saccade.models.multiset_reader:MultisetCountsModel",
        summary="control: counts every label on the activations of hsal, no attention",
        paper="control for Welleck et al. 2017, arXiv:1711.05165",
    ),
}

DATA = {
    "mnist-multiset": DataEntry(
        kind="generator",
        description="1 to 4 MNIST digits of 20 to 50 px among clutter, 100 × 100; which digits, and how often each?",
        licence=scenes.LICENCE,
        get=scenes.GET,
        download=scenes.DOWNLOAD,
        shows="drawn digits",
    ),
    "mnist-set": DataEntry(
        kind="generator",
        description="the scenes of mnist-multiset with no digit twice",
        licence=scenes.LICENCE,
        get=scenes.GET,
        download=scenes.DOWNLOAD,
        shows="drawn digits",
    ),
    "mnist-single": DataEntry(
        kind="generator",
        description="one digit of a scene of mnist-set, among clutter: what a backbone learns digits from",
        licence=scenes.LICENCE,
        get=scenes.GET,
        download=scenes.DOWNLOAD,
        shows="drawn digits",
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
    **class_folders(),
    **own_tables("image, labels: the multiset of labels on each picture; optional split, boxes"),
    **picture_tables(),
}

FAMILY = Family(
    name="multiset",
    title="a picture in, the labels of everything on it out",
    folder=Path(__file__).parent,
    reads="saccade.families.pictures:PICTURES",
    models=MODELS,
    data=DATA,
    task="saccade.families.multiset.task:MultisetTask",
    decode="saccade.families.multiset.decode:decode",
    headline=("macro_f1", "exact_match"),
    columns=(frozenset({"image", "labels"}),),
    featured=("hsal-mnist-multiset",),
    page="saccade.families.multiset.page",
)
