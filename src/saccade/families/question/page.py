"""The question models that the live page can run.

The engine (``web/static/js/engine``) computes the small stack of SOFT and HAttNet. Every other model needs ``saccade
serve``.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from saccade.errors import ConfigError
from saccade.families.page import BLOCK, PageModel, convolution, head, norm, scorer
from saccade.models.facts import ModelFacts
from saccade.models.hattnet import HAttNetModel
from saccade.models.soft import SoftModel

# The engine's names of the models that it computes.
KINDS: dict[type, str] = {SoftModel: "soft", HAttNetModel: "hattnet"}


def page_model(model: nn.Module, facts: ModelFacts, name: str) -> PageModel:
    """See :meth:`saccade.families.Family.page_model`."""
    model = copy.deepcopy(_computable(model, facts, name)).cpu().float().requires_grad_(False)
    size = facts.preprocessing.size  # type: ignore[union-attr]  # it reads pictures
    trace = model(torch.zeros(1, 3, *size), torch.zeros(1, dtype=torch.long)).trace
    layers = {"stages": _stages(model), "attention": scorer(model.attention.scorer), "head": head(model.head)}
    return PageModel(KINDS[type(model)], layers, trace)


def _computable(model: nn.Module, facts: ModelFacts, name: str) -> SoftModel | HAttNetModel:
    if not isinstance(model, (SoftModel, HAttNetModel)):
        named = f"'{name}' ({facts.architecture})"
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
            raise ConfigError(f"'{name}' {what}, which the page cannot compute; use 'saccade serve'")
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
                "convolution": convolution(next(layer for layer in layers if isinstance(layer, nn.Conv2d))),
                "gate": scorer(gates[name].scorer) if name in gates else None,  # type: ignore[arg-type]  # as above
            }
        )
        before = norms.get(name)
    return stages
