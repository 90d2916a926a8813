"""Features that describe an input of a model; :mod:`saccade.likeness` compares them with those of held-out inputs.

==============  ==================================================================================================
``encoding``    what ``encode`` made of the input, where that is a feature map
``first``       the first stage of the backbone, computed for this purpose; it keeps what later stages forget
==============  ==================================================================================================
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.backbones import Stages
from saccade.errors import ConfigError
from saccade.likeness import can_be_pooled, pooled
from saccade.models.base import AttentionModel, Encoding, ImageModel

ENCODING, FIRST = "encoding", "first"


def input_feature_names(model: AttentionModel, encoding: Encoding) -> tuple[str, ...]:
    """The names of those that ``model`` has; none where its input is no picture."""
    if not isinstance(model, ImageModel):
        return ()
    found = [ENCODING] if can_be_pooled(encoding) else []
    return (*found, FIRST) if _first_stages(model) is not None else tuple(found)


def input_features(model: AttentionModel, name: str, images: Tensor, encoding: Encoding = None) -> Tensor:
    """The features (B,D) called ``name`` of pictures (B,3,H,W) and what ``encode`` made of them; None: do it now."""
    if name == ENCODING:
        return pooled(model.encode(images) if encoding is None else encoding)
    stages = _first_stages(model)
    if name != FIRST or stages is None:
        raise ConfigError(
            f"no features '{name}' of {type(model).__name__}: {', '.join(input_feature_names(model, encoding))}"
        )
    return pooled(stages.between(images, to=stages.names[0]))


def _first_stages(model: Any) -> Stages | None:
    """The backbone that sees the picture."""
    return next((part for part in model.children() if isinstance(part, Stages)), None)
