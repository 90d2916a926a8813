"""Published transformers of timm (extra ``timm``) by name: their weights come from timm's hub, or from its cache."""

from __future__ import annotations

import importlib

from saccade.backbones.hub import from_hub
from saccade.backbones.timm_adapter import timm_with
from saccade.errors import ConfigError
from saccade.tracing.model_facts import colours, input_size
from saccade.tracing.published import Published, distinct, numbered


def timm_published(name: str) -> Published:
    """The timm model ``name`` with its weights; a DataError within seconds where they cannot be had."""
    timm = timm_with(name)
    with from_hub(f"the weights of timm:{name}"):
        network = timm.create_model(name, pretrained=True)
    told, size = colours(network), input_size(network)
    if told is None or size is None:
        raise ConfigError(f"timm does not state the input size and colours of '{name}'; give trace_of a tensor")
    count = int(getattr(network, "num_classes", 0))
    return Published(network, f"timm:{name}", size, *told, classes=_classes(network, count))


def _classes(network: object, count: int) -> tuple[str, ...]:
    """Names of its classes: those it carries, or those of the ImageNet set that timm takes it for."""
    told = (getattr(network, "pretrained_cfg", None) or {}).get("label_names")
    if told and len(told) == count:
        return distinct([str(word) for word in told])
    info = importlib.import_module("timm.data")
    subset = info.infer_imagenet_subset(network) if count else None
    if subset is None:
        return numbered(count)
    names = info.ImageNetInfo(subset)
    if names.num_classes() != count:
        return numbered(count)
    return distinct([names.index_to_description(number).split(",")[0] for number in range(count)])
