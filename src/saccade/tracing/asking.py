"""A published transformer behind ``saccade look``: a picture in, the answer that its head gives, and its own attention.

Where the model has no head, no answer is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.answer import Answer
from saccade.devices import pick_device
from saccade.errors import ConfigError, DataError
from saccade.families.labels import ranked
from saccade.families.pictures import PICTURES, Pictures
from saccade.families.responder import Question, Responder, Response
from saccade.models.base import AttentionModel, Given, Raw
from saccade.models.io.facts import ModelFacts, Preprocessing
from saccade.trace import Look
from saccade.tracing.hf_models import hf_published
from saccade.tracing.published import Published
from saccade.tracing.timm_models import timm_published
from saccade.tracing.trace_of import trace_with_output

SOURCES = {"timm": timm_published, "hf": hf_published}
"""What stands before the colon of a name, and who loads such a model."""
_NEXT_BEST = 9
_OPTIONS = ("layers", "rollout")


def is_published(name: object) -> bool:
    """Whether ``name`` means a transformer of another library.

    >>> is_published("timm:vit_tiny_patch16_224"), is_published("soft-mref")
    (True, False)
    """
    return isinstance(name, str) and name.partition(":")[0] in SOURCES and ":" in name and "://" not in name


class TracedTransformer(AttentionModel):
    """A transformer of another library, watched while it runs; its attention cannot be given."""

    total = "mean"
    mean: Tensor
    std: Tensor

    def __init__(self, published: Published) -> None:
        super().__init__()
        self.network = published.network
        self.register_buffer("mean", torch.tensor(published.mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(published.std).view(-1, 1, 1))

    def encode(self, images: Tensor) -> Tensor:
        """Pictures (B,3,H,W) in 0..1, scaled as the network takes them."""
        return (images - self.mean) / self.std

    def respond(self, encoding: Tensor, query: Tensor | None = None, *, attention: Given | None = None) -> Raw:
        """Logits where it has a head, and the weights of the last layer's heads."""
        self.given(attention, "", ())
        found = trace_with_output(self.network, encoding, layers="last")
        weights = {f"{look.name}.weights": look.weights for look in found.trace.looks if look.weights is not None}
        return weights if found.logits is None else {"logits": found.logits, **weights}

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """The looks of a result; where their cells lie is told by :func:`trace_with_output` alone."""
        weights = {key.removesuffix(".weights"): raw[key] for key in raw if key.endswith(".weights")}
        return tuple(Look(name, "soft", "multiplier", held) for name, held in weights.items())


class TracedResponder(Responder):
    """Answers for a :class:`TracedTransformer`: it takes no question, only options of ``trace_with_output``."""

    def __init__(self, model: TracedTransformer, facts: ModelFacts, name: str, classes: Sequence[str]) -> None:
        self.model, self.facts, self.name, self._classes = model, facts, name, tuple(classes)

    def query(self, ask: Question | None) -> None:
        """Nothing can be asked."""
        if ask is not None:
            raise DataError(f"'{self.name}' takes no question: it classifies what it sees; leave out '{ask}'")

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """``layers`` and ``rollout``, as :func:`trace_with_output` takes them."""
        told = {name: value for name, value in given.items() if value is not None}
        for name in told:
            if name not in _OPTIONS:
                raise DataError(f"'{self.name}' has no {name}: it takes {', '.join(_OPTIONS)}; leave it out")
        return told

    def respond(
        self, encoding: Tensor, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """One response: what the head says, and the looks that are wanted, by default the last layer's."""
        if attention is not None:
            raise ConfigError(f"attention: that of '{self.name}' can be seen, not given; leave it out")
        model: Any = self.model
        found = trace_with_output(model.network, encoding, **{"layers": "last", **options})
        return [Response(self._answers(found.logits, len(encoding)), found.trace)]

    def _answers(self, logits: Tensor | None, count: int) -> list[Answer]:
        if logits is None or len(self._classes) != logits.shape[-1]:
            return [Answer("", 0.0, kind="none")] * count
        shares = logits.float().softmax(-1).cpu()  # (B,K)
        all_of_them = [ranked(each, self._classes) for each in shares]
        return [Answer(each.text, each.confidence, alternatives=each.alternatives[:_NEXT_BEST]) for each in all_of_them]


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
        parameters=sum(each.numel() for each in published.network.parameters()),
    )
    return model, facts, PICTURES, TracedResponder(model, facts, name, published.classes)
