"""Captions: a sentence about a picture. Generated scenes, the Flickr sets, COCO, and your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade import models
from saccade.families.registry import DataEntry, Family, ModelSpec, drawn_digits, own_data

if TYPE_CHECKING:
    from saccade.families import Decode, ModelFacts, Responder, Task, TrainedScenes

MODELS = {
    "sat-soft": ModelSpec(
        load=lambda: models.SatModel,
        summary="says a caption word by word, each from a soft look at the picture",
        paper="Xu et al. 2015, arXiv:1502.03044",
    ),
    "sat-hard": ModelSpec(
        load=lambda: models.SatModel,
        summary="says a caption word by word, each from one cell, drawn in training",
        paper="Xu et al. 2015, arXiv:1502.03044",
        defaults={"attention_kind": "hard"},
    ),
}

OWN = own_data("image, caption; optional split")
del OWN["folder"], OWN["coco"]  # classes are no captions, and coco is the collection here
_FLICKR = "pictures for non-commercial research and education only"
_PHOTOGRAPHS: dict[str, Any] = {"kind": "reader", "research_only": True, "example": "cat"}
_READERS = {
    "flickr8k": DataEntry(
        description="Flickr8k: 8,000 photographs with five captions each, in its official layout or Karpathy's JSON",
        licence=_FLICKR,
        get="ask for it on its page at Illinois, unpack both archives into one folder, name it flickr8k:FOLDER",
        shows="photographs of people, dogs and sport",
        **_PHOTOGRAPHS,
    ),
    "flickr30k": DataEntry(
        description="Flickr30k: 31,000 photographs with five captions each, token file and lists or Karpathy's JSON",
        licence=_FLICKR,
        get="ask for it on its page at Illinois, unpack it beside the lists or the JSON, name it flickr30k:FOLDER",
        shows="photographs of people",
        **_PHOTOGRAPHS,
    ),
    "coco": DataEntry(
        description="COCO captions: 123,000 photographs with five captions each, Karpathy's splits or the annotations",
        licence="captions CC BY 4.0; pictures under the terms of Flickr",
        get="download train2014, val2014 and annotations (or dataset_coco.json), unpack, name it coco:FOLDER",
        shows="photographs",
        **_PHOTOGRAPHS,
    ),
}
DATA = {
    "scenes": drawn_digits(
        "one or two coloured digits, 100 × 100, and the one sentence that is true of them: "
        "a small red seven above a large white two"
    ),
    **_READERS,
    **OWN,
}


class Captions(Family):
    """Captions."""

    def task(self) -> type[Task]:
        from saccade.families.caption.task import CaptionTask

        return CaptionTask

    def decode(self) -> Decode:
        from saccade.families.caption.vocabulary import decode

        return decode

    def responder(self) -> type[Responder]:
        from saccade.families.caption.vocabulary import CaptionResponder

        return CaptionResponder

    def trained_scenes(self, facts: ModelFacts) -> TrainedScenes | None:
        from saccade.families.caption.scenes import SIDES, scene_spec
        from saccade.families.page import CANVAS, TrainedScenes

        if str(facts.data.get("name")) != "scenes":
            return None
        fewest, most = scene_spec(CANVAS).count
        fewest = 0 if facts.data.get("empty") else fewest
        return TrainedScenes((fewest, most), SIDES, "black")  # sides are told in hundredths of the picture's


FAMILY = Captions(
    name="caption",
    title="a picture in, a sentence out",
    folder=Path(__file__).parent,
    models=MODELS,
    data=DATA,
    options=("beam", "captions", "length_penalty", "sweeps"),
    headline=("exact_match", "bleu_4_nobp"),
    columns=(frozenset({"image", "caption"}), frozenset({"image", "captions"})),
    featured=("sat-soft-scenes", "sat-soft-photos"),
)
