"""Published transformers of timm and transformers by name, and such a model behind ``saccade look``.

Weights come from the library's hub or its cache (extras ``timm`` and ``transformers``), or from a folder, as
safetensors alone: a pickle can run code. No code comes from the hub. A picture goes in; the answer of the head and the
model's own attention come out. A model without a head gives no answer.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from saccade.backbones.hub import from_hub
from saccade.backbones.stages import Normalise
from saccade.backbones.timm_adapter import timm_with
from saccade.backbones.transformers_adapter import hf_colours, hf_config, hf_network, open_hf
from saccade.errors import ConfigError, DataError
from saccade.families.answering import PICTURES, Pictures, Question, Responder, Response, ranked
from saccade.geometry import Size
from saccade.models.base import Given
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import pick_device
from saccade.trace import Answer
from saccade.tracing.model_facts import colours, input_size
from saccade.tracing.trace_of import trace_with_output


@dataclass(frozen=True, eq=False)
class Published:
    """A transformer with its published weights."""

    network: nn.Module
    size: Size  # (H, W) of its input
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...] = ()  # distinct names of its answers, by number; none of a model without a head


def distinct(words: Sequence[str]) -> tuple[str, ...]:
    """Names of classes, those that repeat with their number: ImageNet has two cranes.

    >>> distinct(["crane", "tench", "crane"])
    ('crane (class 0)', 'tench', 'crane (class 2)')
    """
    often = Counter(words)
    return tuple(f"{word} (class {number})" if often[word] > 1 else word for number, word in enumerate(words))


def numbered(count: int) -> tuple[str, ...]:
    """Classes whose names are not known.

    >>> numbered(2)
    ('class 0', 'class 1')
    """
    return tuple(f"class {number}" for number in range(count))


def timm_published(name: str) -> Published:
    """The timm model ``name`` with its weights; a DataError within seconds where they cannot be had."""
    timm = timm_with(name)
    with from_hub(f"the weights of timm:{name}"):
        network = timm.create_model(name, pretrained=True)
    scaling, size = colours(network), input_size(network)
    if scaling is None or size is None:
        raise ConfigError(f"timm does not state the input size and colours of '{name}'; give trace_of a tensor")
    return Published(network, size, *scaling, classes=_timm_classes(network, int(getattr(network, "num_classes", 0))))


def _timm_classes(network: object, count: int) -> tuple[str, ...]:
    """Names of its classes: those it carries, or those of the ImageNet set that timm takes it for."""
    labels = (getattr(network, "pretrained_cfg", None) or {}).get("label_names")
    if labels and len(labels) == count:
        return distinct([str(label) for label in labels])
    info = importlib.import_module("timm.data")
    subset = info.infer_imagenet_subset(network) if count else None
    names = None if subset is None else info.ImageNetInfo(subset)
    if names is None or names.num_classes() != count:
        return numbered(count)
    return distinct([names.index_to_description(number).split(",")[0] for number in range(count)])


def hf_published(name: str) -> Published:
    """The model ``name`` with its weights; a DataError within seconds where they cannot be had."""
    config, library = hf_config(name), open_hf()
    is_classifier = any("ForImageClassification" in architecture for architecture in config.architectures or ())
    auto = library.AutoModelForImageClassification if is_classifier else library.AutoModel
    network = hf_network(name, auto, config=config, dtype=torch.float32)
    scaling, size = hf_colours(name), input_size(network)
    if size is None or scaling is None:
        lacking = "the size of its input" if size is None else "its colours (no preprocessor_config.json)"
        raise ConfigError(
            f"hf:{name} does not say {lacking}; in Python trace_of takes its tensor, or size=, mean=, std="
        )
    return Published(network, size, *scaling, classes=_hf_classes(config, network))


def _hf_classes(config: Any, network: Any) -> tuple[str, ...]:
    if not type(network).__name__.endswith("ForImageClassification"):
        return ()
    words = [str(config.id2label.get(number, "")) for number in range(config.num_labels)]
    if all(word in ("", f"LABEL_{number}") for number, word in enumerate(words)):
        return numbered(config.num_labels)
    return distinct([word.split(",")[0] or f"class {number}" for number, word in enumerate(words)])


SOURCES = {"timm": timm_published, "hf": hf_published}  # by what stands before the colon of a name
_NEXT_BEST = 9
_OPTIONS = ("layers", "rollout")


def is_published(name: object) -> bool:
    """Whether ``name`` means a transformer of another library.

    >>> is_published("timm:vit_tiny_patch16_224"), is_published("soft-mref")
    (True, False)
    """
    return isinstance(name, str) and name.partition(":")[0] in SOURCES and ":" in name and "://" not in name


class TracedTransformer(nn.Module):
    """A transformer of another library, with the scaling of its input."""

    def __init__(self, published: Published) -> None:
        super().__init__()
        self.network, self.normalise = published.network, Normalise(published.mean, published.std)

    def encode(self, images: Tensor) -> Tensor:
        """Pictures (B,3,H,W) in 0..1, scaled as the network takes them."""
        scaled: Tensor = self.normalise(images)
        return scaled


class TracedResponder(Responder):
    """Answers for a transformer of another library: it takes no question, only options of ``trace_with_output``."""

    def __init__(self, network: nn.Module, facts: ModelFacts, name: str, classes: Sequence[str]) -> None:
        self.network, self.facts, self.name, self._classes = network, facts, name, tuple(classes)

    def query(self, ask: Question | None) -> None:
        """Nothing can be asked."""
        if ask is not None:
            raise DataError(f"'{self.name}' takes no question: it classifies what it sees; leave out '{ask}'")

    def options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """``layers`` and ``rollout``, as :func:`trace_with_output` takes them."""
        options = {name: value for name, value in values.items() if value is not None}
        for name in options.keys() - set(_OPTIONS):
            raise DataError(f"'{self.name}' has no {name}: it takes {', '.join(_OPTIONS)}; leave it out")
        return options

    def respond(
        self, encoding: Tensor, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """One response: the answer of the head, and looks, by default the last layer's."""
        if attention is not None:
            raise ConfigError(f"attention: that of '{self.name}' can be seen, not given; leave it out")
        result = trace_with_output(self.network, encoding, **{"layers": "last", **options})
        return [Response(self._answers(result.logits, len(encoding)), result.trace)]

    def _answers(self, logits: Tensor | None, count: int) -> list[Answer]:
        if logits is None or len(self._classes) != logits.shape[-1]:
            return [Answer("", 0.0, kind="none")] * count
        shares = logits.float().softmax(-1).cpu()  # (B,K)
        answers = [ranked(row, self._classes) for row in shares]
        return [replace(answer, alternatives=answer.alternatives[:_NEXT_BEST]) for answer in answers]


def published_parts(name: str, device: str | torch.device) -> tuple[TracedTransformer, ModelFacts, Pictures, Responder]:
    """What a predictor of the transformer ``name`` (timm:NAME, hf:NAME) is made of."""
    source, _, rest = name.partition(":")
    published = SOURCES[source](rest)
    model = TracedTransformer(published).eval().to(pick_device(device))
    facts = ModelFacts(
        architecture=type(published.network).__name__,
        model={},
        family="",
        queries=(),
        answers=published.classes or ("no answer",),
        preprocessing=Preprocessing(published.size, fill=0.5),
        name=name,
        parameters=sum(parameter.numel() for parameter in published.network.parameters()),
    )
    return model, facts, PICTURES, TracedResponder(published.network, facts, name, published.classes)
