"""What data there is: one dictionary, importable without torch, behind ``saccade data list``.

A reader or generator that joins the toolkit joins here, or nobody finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DataEntry:
    """One data set as users see it."""

    kind: Literal["generator", "reader"]
    description: str
    task: str
    splits: tuple[str, ...]
    licence: str
    get: str
    """How to come by it."""
    download: str | None = None
    """Name to pass to ``saccade data get``, where there is something to fetch."""


_MNIST_LICENCE = "generator Apache-2.0; MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"
_MADE_ON_THE_FLY = "made on the fly; training on MNIST's own glyphs needs `saccade data get mnist`"

DATA: dict[str, DataEntry] = {
    "mref": DataEntry(
        kind="generator",
        description="5 to 9 coloured MNIST digits on black, 100 × 100; which colour has the digit asked for?",
        task="attribute",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "mdist": DataEntry(
        kind="generator",
        description="the scenes of mref with 17 coloured bits of digits behind them as distractors",
        task="attribute",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "mbg": DataEntry(
        kind="generator",
        description="the scenes of mref with photographs behind them",
        task="attribute",
        splits=("train", "val", "test"),
        licence="as mref; photographs: yours, or the nine that ship (CC0, public domain, CC BY 2.0)",
        get="made on the fly; put photographs into backgrounds/ of the cache, or set data.backgrounds=FOLDER",
        download="mnist",
    ),
    "mnist-multiset": DataEntry(
        kind="generator",
        description="1 to 4 MNIST digits of 20 to 50 px among clutter, 100 × 100; which digits, and how often each?",
        task="multiset",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "mnist-set": DataEntry(
        kind="generator",
        description="the scenes of mnist-multiset with no digit twice",
        task="multiset",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "mnist-single": DataEntry(
        kind="generator",
        description="one digit of a scene of mnist-set, among clutter: what a backbone learns digits from",
        task="multiset",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "scenes": DataEntry(
        kind="generator",
        description="one or two coloured digits, 100 × 100, and the one sentence that is true of them: "
        "a small red seven above a large white two",
        task="caption",
        splits=("train", "val", "test"),
        licence=_MNIST_LICENCE,
        get=_MADE_ON_THE_FLY,
        download="mnist",
    ),
    "svhn": DataEntry(
        kind="reader",
        description="SVHN, full numbers: the digits on photographs of house numbers, a box for each as evidence",
        task="multiset",
        splits=("train", "val", "test"),
        licence="pictures for non-commercial use only",
        get="download train.tar.gz and test.tar.gz (format 1) from its page at Stanford, unpack, name it svhn:FOLDER",
    ),
    "csv": DataEntry(
        kind="reader",
        description="your own pictures: a CSV with image, query, label (or labels); optional split, box, point, mask; "
        "without query: the multiset of labels on each picture, optional split, boxes; or image, caption",
        task="question",
        splits=("train", "val", "test"),
        licence="yours",
        get="name it csv:PATH; pictures are found from the table's folder",
    ),
    "jsonl": DataEntry(
        kind="reader",
        description="the same as csv with one JSON object in each line",
        task="question",
        splits=("train", "val", "test"),
        licence="yours",
        get="name it jsonl:PATH; pictures are found from the table's folder",
    ),
    "flickr8k": DataEntry(
        kind="reader",
        description="Flickr8k: 8,000 photographs with five captions each, in its official layout or Karpathy's JSON",
        task="caption",
        splits=("train", "val", "test"),
        licence="pictures for non-commercial research and education only",
        get="ask for it on its page at Illinois, unpack both archives into one folder, name it flickr8k:FOLDER",
    ),
    "flickr30k": DataEntry(
        kind="reader",
        description="Flickr30k: 31,000 photographs with five captions each, token file and lists or Karpathy's JSON",
        task="caption",
        splits=("train", "val", "test"),
        licence="pictures for non-commercial research and education only",
        get="ask for it on its page at Illinois, unpack it beside the lists or the JSON, name it flickr30k:FOLDER",
    ),
    "coco": DataEntry(
        kind="reader",
        description="COCO captions: 123,000 photographs with five captions each, Karpathy's splits or the annotations",
        task="caption",
        splits=("train", "val", "test"),
        licence="captions CC BY 4.0; pictures under the terms of Flickr",
        get="download train2014, val2014 and annotations (or dataset_coco.json), unpack, name it coco:FOLDER",
    ),
    "cub": DataEntry(
        kind="reader",
        description="CUB-200-2011: what colour is the crown of this bird? nine body parts, part clicks as evidence",
        task="question",
        splits=("train", "val", "test"),
        licence="pictures for non-commercial research and education only",
        get="download CUB_200_2011.tgz from its page at Caltech, unpack it, name it cub:FOLDER",
    ),
    "vg": DataEntry(
        kind="reader",
        description="Visual Genome: which attributes has the object asked for? several labels, boxes as evidence",
        task="question",
        splits=("train", "val", "test"),
        licence="CC BY 4.0",
        get="download image_data, attributes and both picture archives of Visual Genome, unpack, name it vg:FOLDER",
    ),
}
