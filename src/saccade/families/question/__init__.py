"""Questions about a picture: what colour is the 7? Generated scenes, birds, and your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from saccade import models
from saccade.data.scenes import LICENCE
from saccade.families.registry import DataEntry, Family, ModelSpec, Probing, cub_birds, drawn_digits, own_data

if TYPE_CHECKING:
    from torch import nn

    from saccade.families import ModelFacts, PageModel, Task, TrainedScenes

# Generated scenes; without ``absent`` every question is about a digit that is there.
SCENES = ("mref", "mdist", "mbg")
SEO = "Seo et al. 2016, arXiv:1606.02393"
MODELS = {
    "stn": ModelSpec(
        lambda: models.StnModel,
        "a spatial transformer that cuts out what it was asked for",
        f"Jaderberg et al. 2015, arXiv:1506.02025, as the baseline of {SEO}",
    ),
    "stn-tuned": ModelSpec(
        lambda: models.StnTunedModel,
        "the same, changed until it uses its query: attention points, and half of the picture is the most",
        f"after the baseline STN of {SEO}, which did not",
    ),
    "soft": ModelSpec(lambda: models.SoftModel, "one soft attention on the last feature map", SEO),
    "question-head": ModelSpec(
        lambda: models.QuestionHeadModel,
        "one soft attention on the last feature map, whose classifier hears the question too: for frozen backbones",
        f"after {SEO}",
    ),
    "hard": ModelSpec(
        lambda: models.HardModel, "one hard attention on the last feature map, its location summed out or sampled", SEO
    ),
    "hattnet": ModelSpec(lambda: models.HAttNetModel, "a gate after every stage, a soft attention on the last", SEO),
    "hattnet-ctx": ModelSpec(
        lambda: models.HAttNetModel, "hattnet whose gates see their local context", SEO, {"context": 3}
    ),
    "cross": ModelSpec(
        lambda: models.CrossModel,
        "control: one dot-product attention on the last feature map",
        "Vaswani et al. 2017, arXiv:1706.03762, on the stack of Seo et al. 2016",
    ),
    "film": ModelSpec(
        lambda: models.FilmModel,
        "control: the query scales and shifts every stage, no attention",
        "Perez et al. 2018, arXiv:1709.07871, on the stack of Seo et al. 2016",
    ),
    "vit": ModelSpec(
        lambda: models.VitModel,
        "control: a small transformer on the cells of the stack, the query is its class token",
        "Dosovitskiy et al. 2021, arXiv:2010.11929, in its hybrid form, on the stack of Seo et al. 2016",
    ),
    "blind": ModelSpec(lambda: models.BlindModel, "control: the stack of SOFT without the query", f"control for {SEO}"),
    "asked-probe": ModelSpec(
        lambda: models.AskedProbeModel,
        "one small head, linear or attention, on a frozen backbone, asked a question; see saccade probe",
        f"after Psomas et al. 2025, arXiv:2506.10178, and {SEO}",
    ),
}

DATA = {
    "mref": drawn_digits("5 to 9 coloured MNIST digits on black, 100 × 100; which colour has the digit asked for?"),
    "mdist": drawn_digits("the scenes of mref with 17 coloured bits of digits behind them as distractors"),
    "mbg": drawn_digits(
        "the scenes of mref with photographs behind them",
        licence="as mref; photographs: yours, or the nine that ship (CC0, public domain, CC BY 2.0)",
        get="made on the fly; put photographs into backgrounds/ of the cache, or set data.backgrounds=FOLDER; records "
        "have BSDS500 (train and val of its page at Berkeley, short side 200 px)",
        shows="drawn digits on photographs",
    ),
    "causal": DataEntry(
        kind="collection",
        description="scenes of mref, mdist or mbg with seven twins each, one thing changed; masks, questions, answers",
        licence=LICENCE,
        get="`saccade data make causal --out DIR`, no download; then name it causal:DIR. 10,000 scenes are causal-v1",
    ),
    "cub": cub_birds("what colour is the crown of this bird? nine body parts, part clicks as evidence"),
    "vg": DataEntry(
        kind="reader",
        description="Visual Genome: which attributes has the object asked for? several labels, boxes as evidence",
        licence="CC BY 4.0",
        get="download image_data, attributes and both picture archives of Visual Genome, unpack, name it vg:FOLDER",
        shows="photographs",
        example="cat",
    ),
    **own_data(
        "image, query, label (or labels); optional split, box, point, mask; without query all are asked the same"
    ),
}


class Questions(Family):
    """Questions about pictures."""

    def task(self) -> type[Task]:
        from saccade.families.question.task import QuestionTask

        return QuestionTask

    def premise(self, facts: ModelFacts) -> str:
        """Without questions about absent digits a model cannot reject one."""
        if facts.data.get("name") not in SCENES or facts.data.get("absent"):
            return ""
        return (
            "takes for granted that the digit asked for is in the picture: of one that is not there it names a colour "
            "all the same, at times with high confidence"
        )

    def prompt(self, facts: ModelFacts) -> str | None:
        asks_colours = str(facts.data.get("name")) in (*SCENES, "cub")
        return "What colour is the …" if asks_colours else None

    def trained_scenes(self, facts: ModelFacts) -> TrainedScenes | None:
        from saccade.data.scenes.drawing import FRACTION_BITS
        from saccade.families.page import Behind, TrainedScenes
        from saccade.families.question.scenes import SPEC

        behind: dict[str, Behind] = {"mref": "black", "mdist": "distractors", "mbg": "photo"}
        if (name := str(facts.data.get("name"))) not in behind:
            return None
        return TrainedScenes(SPEC.count, ((SPEC.extents[0] >> FRACTION_BITS, SPEC.largest),), behind[name])

    def page_model(self, model: nn.Module, facts: ModelFacts, name: str) -> PageModel:
        from saccade.families.question.page import page_model

        return page_model(model, facts, name)


FAMILY = Questions(
    name="question",
    title="a picture and a question in, one label (or several) out",
    folder=Path(__file__).parent,
    models=MODELS,
    data=DATA,
    headline=("accuracy", "weighted_map"),
    options=("sweeps", "twins"),
    columns=(frozenset({"image", "query", "label"}), frozenset({"image", "query", "labels"})),
    featured=("hattnet-ctx-sparse-mref", "soft-mref", "crown-cub"),
    live=("hattnet-ctx-sparse-mdist", "soft-mdist"),  # trained on clutter, they answer with it and without
    probing=Probing(model="asked-probe", asks=True),
)
