"""Facts for the live page about question models: the training scenes, and the models it can run.

The engine (``web/static/js/engine``) computes the small stack of SOFT and HAttNet. Every other model needs ``saccade
serve``.
"""

from __future__ import annotations

import copy

import torch

from saccade.data.scenes.drawing import FRACTION_BITS
from saccade.errors import ConfigError
from saccade.families.question.scenes import SPEC
from saccade.models.facts import ModelFacts
from saccade.models.hattnet import HAttNetModel
from saccade.models.soft import SoftModel
from saccade.predict import Predictor
from saccade.web.page import Behind, TrainedScenes
from saccade.web.views import BLOCK, convolution, head, norm, page_facts, scorer

# The engine's names of the models that it computes.
KINDS: dict[type, str] = {SoftModel: "soft", HAttNetModel: "hattnet"}
_BEHIND: dict[str, Behind] = {"mref": "black", "mdist": "distractors", "mbg": "photo"}


def trained_scenes(facts: ModelFacts) -> TrainedScenes | None:
    """The scenes of the model's training; None for other pictures."""
    name = str(facts.data.get("name"))
    if name not in _BEHIND:
        return None
    return TrainedScenes(SPEC.count, ((SPEC.extents[0] >> FRACTION_BITS, SPEC.largest),), _BEHIND[name])


def page_model(predictor: Predictor) -> dict[str, object]:
    """Facts and weights of ``predictor``'s model as plain values, for ``load`` of the engine."""
    model = copy.deepcopy(_computable(predictor)).cpu().float().requires_grad_(False)
    size = predictor.facts.preprocessing.size  # type: ignore[union-attr]  # it reads pictures
    trace = model(torch.zeros(1, 3, *size), torch.zeros(1, dtype=torch.long)).trace
    return {
        **page_facts(predictor, KINDS[type(model)], trace),
        "stages": _stages(model),
        "attention": scorer(model.attention.scorer),
        "head": head(model.head),
    }


def _computable(predictor: Predictor) -> SoftModel | HAttNetModel:
    model = predictor.model
    if not isinstance(model, (SoftModel, HAttNetModel)):
        named = f"'{predictor.name}' ({predictor.facts.architecture})"
        raise ConfigError(f"{named} does not run inside a page; soft and hattnet do; use 'saccade serve'")
    config = model.config
    for what, is_so in {
        f"has the backbone {config.backbone}": config.backbone != "small",
        "answers with several labels at once": config.multi_label,
        "has a prior": config.prior,
        f"has {config.channels} channels and {config.hidden} hidden units, no multiples of {BLOCK}": (
            config.channels % BLOCK or config.hidden % BLOCK
        ),
    }.items():
        if is_so:
            raise ConfigError(f"'{predictor.name}' {what}, which the page cannot compute; use 'saccade serve'")
    return model


def _stages(model: SoftModel | HAttNetModel) -> list[dict[str, object]]:
    gates, norms = (dict(model.gates), dict(model.norms)) if isinstance(model, HAttNetModel) else ({}, {})
    stages: list[dict[str, object]] = []
    before = None
    for name in model.backbone.names:
        layers = model.backbone.stages[name].modules()
        stages.append(
            {
                # torch types parts as modules
                "norm": None if before is None else norm(before),  # type: ignore[arg-type]
                "convolution": convolution(next(layer for layer in layers if isinstance(layer, torch.nn.Conv2d))),
                "gate": scorer(gates[name].scorer) if name in gates else None,  # type: ignore[arg-type]  # as above
            }
        )
        before = norms.get(name)
    return stages
