"""The base classes of all models: encode the input once, answer from the encoding, return the answer with its trace.

==========================  =======================================================================================
:class:`AttentionModel`     any input: what all models have in common
:class:`AskedModel`         it answers a question about its input
:class:`ImageModel`         its input is a picture (B,3,H,W)
:class:`ImageOnlyModel`       a picture and no question: a classifier, a reader of multisets
:class:`LabelModel`         the same, one label out, which learns by its logits alone
:class:`QueryModel`         a picture and a query: asked many times about one encoded picture
==========================  =======================================================================================

``forward_raw`` maps plain tensors to a :class:`~saccade.trace.ModelOutput` of plain tensors, so it can be compiled and
exported. ``forward`` wraps its result into an :class:`~saccade.trace.Output`. Each look has an act with what was
attended (``values``) and the result (``context``), so a trace can be checked.

``attention`` replaces a model's own weights, by the name of the look. Given weights have the shape of that look and are
used as they are, never normalised; scores stay the model's own. In eval mode the cell with the largest weight is
chosen. Of an act that repeats (words, glimpses), the first t ≤ T steps (B,t,…) are enough. A crop takes a frame
(B,2,3), cells of the crop → pixels of the network input. ``model(images, attention=trace.as_given())`` repeats the
looks of a trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, cast

import torch
from torch import Tensor, nn

from saccade.attention.scores import check_given
from saccade.backbones import Stages, pretrained
from saccade.backbones.catalog import check_pretrained
from saccade.config import Within
from saccade.errors import ConfigError, DataError, nearest
from saccade.geometry import Size
from saccade.trace import AttentionTrace, LabelOutput, Look, LookSpec, ModelOutput, Output, Total

Encoding = Any
"""What ``encode`` makes of a batch: a tensor (B,…), or several by name, such as a memory and its filled slots."""
Given = Mapping[str, Tensor]
"""Weights, or the frame of a crop, by the name of their look: to be used in place of the model's own."""
LAST = "last"  # the act whose values are the last feature map (B,C,h,w), of a model that classifies its mean


class AttentionModel(nn.Module, ABC):
    """What all models have in common, whatever they read."""

    Config: ClassVar[type]
    """The frozen dataclass of sizes that builds this model."""
    total: ClassVar[Total] = "last"
    """How the looks combine into one map."""
    answers_in_one_pass: ClassVar[bool] = True
    """Whether ``respond`` is all there is to an answer; False for a model that searches for it."""
    multi_label: bool = False
    """Whether several answers may hold at once."""
    extra_slots: ClassVar[tuple[str, ...]] = ()
    """Slots that it adds to a memory right after the last filled one, in words."""
    config: Any
    look_specs: Mapping[str, LookSpec] = MappingProxyType({})
    """What is constant about each look whose weights can be given, in order."""

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def encode(self, *inputs: Any, **named: Any) -> Encoding:
        """The part that does not depend on the question (B,…): computed once, asked many times."""

    @abstractmethod
    def respond(
        self, encoding: Encoding, query: Tensor | None = None, *, attention: Given | None = None
    ) -> ModelOutput:
        """Answer from the encoding (B,…), as plain tensors; ``query`` (B,…) for a model that is asked."""

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        """The looks, in order, of a result of ``forward_raw``."""
        specs = self.look_specs.items()
        return tuple(spec.look(name, output.acts[name]) for name, spec in specs if name in output.acts)

    def forward_raw(self, *inputs: Any, **named: Any) -> ModelOutput:
        """What ``encode`` takes, and ``query`` and ``attention`` as ``respond`` takes them → plain tensors."""
        query, attention = named.pop("query", None), named.pop("attention", None)
        return self.respond(self.encode(*inputs, **named), query, **attention_kwargs(attention))

    def forward(self, *inputs: Any, **named: Any) -> Output:
        """The same with its meaning: logits, trace and the tensors behind them."""
        return self.wrap(self.forward_raw(*inputs, **named), attention=named.get("attention"))

    def logits_and_answer(self, output: ModelOutput) -> tuple[Tensor, Tensor]:
        """Logits (B,K) and answer ids (B,); of a model that answers in steps (B,T,K) and (B,T)."""
        return output.logits, output.logits.argmax(-1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """What the logits (…,K) mean: shares of exclusive answers, or for many labels the probability of each."""
        return logits.sigmoid() if self.multi_label else logits.softmax(-1)

    def answer_format(self) -> dict[str, Any]:
        """How to read the answer ids, for programs that run an exported model."""
        return {}

    @property
    def look_names(self) -> tuple[str, ...]:
        """The looks whose weights can be given, in order."""
        return tuple(self.look_specs)

    def given(self, attention: Given | None, name: str, shape: Sequence[int], *, signed: bool = False) -> Tensor | None:
        """The weights of ``shape`` given for the look ``name``, or None where the model uses its own.

        Refuses names that are no looks of this model, and weights below 0 unless ``signed`` (frames of crops, masks
        that can be negative).
        """
        if attention is None:
            return None
        for other in attention:
            if other not in self.look_names:
                hint = nearest(other, self.look_names)
                raise ConfigError(f"attention: {type(self).__name__} has no look '{other}': {hint}")
        weights = attention.get(name)
        if weights is not None:
            check_given(weights, shape, f"attention for look '{name}'", signed=signed)
        return weights

    def given_steps(self, attention: Given | None, name: str, shape: Sequence[int]) -> Tensor | None:
        """:meth:`given` for an act that repeats, ``shape`` (B,T,…): the weights of its first t steps, 1 ≤ t ≤ T."""
        weights = None if attention is None else attention.get(name)
        if weights is not None and weights.dim() == len(shape) and 1 <= weights.shape[1] < shape[1]:
            shape = (shape[0], weights.shape[1], *shape[2:])
        return self.given(attention, name, shape)

    def wrap(self, output: ModelOutput, input_size: Size | None = None, attention: Given | None = None) -> Output:
        """Plain tensors with their trace; ``input_size`` is (height, width) of a picture, None for other inputs."""
        logits, answer = self.logits_and_answer(output)
        size = None
        if input_size is not None:
            size = torch.tensor(input_size, device=logits.device).expand(logits.shape[0], 2)  # (B,2)
        trace = AttentionTrace(looks=self.looks(output), answer=answer, image_size=size, total=self.total)
        return Output(logits, trace if attention is None else trace.mark_given(attention), output)

    def load_pretrained(self) -> None:
        """Give a freshly built model the published weights that training starts from."""
        raise ConfigError(f"pretrained: {type(self).__name__} has no published weights to start from; leave it out")

    def check_input(self, size: Size) -> None:
        """Refuse a network input of ``size`` (height, width) that this model cannot take."""


class AskedModel(AttentionModel):
    """A model that is asked something about its input."""

    @abstractmethod
    def ask(self, encoding: Encoding, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """Answer the queries (B,…) about the encoded inputs, as plain tensors."""

    def respond(
        self, encoding: Encoding, query: Tensor | None = None, *, attention: Given | None = None
    ) -> ModelOutput:
        """:meth:`ask`; the query is required."""
        return self.ask(encoding, cast(Tensor, query), **attention_kwargs(attention))


@dataclass(frozen=True)
class BackboneConfig:
    """Settings of models with a backbone by name."""

    backbone: str = "small"
    """Which network sees the picture: small, resnet34, vgg16, mobilenetv2, timm:NAME …"""
    pretrained: bool = False
    """Whether training starts from the backbone's ImageNet weights."""
    through: str | None = None
    """The last stage of the backbone that is kept; None: all stages."""

    def __post_init__(self) -> None:
        if self.pretrained:
            check_pretrained(self.backbone)


class ImageModel(AttentionModel):
    """A model whose input is a picture."""

    backbone: Stages
    """What sees the picture, of a model with one network for it."""
    keeps_features: ClassVar[bool] = False
    """Whether an ``encode`` of its own, too, depends on the picture and the backbone alone."""
    sized_by: ClassVar[str | None] = None
    """The setting with the one size of the pictures that it is built for; None: it takes any that is large enough."""
    network_size: Size | None = None
    """(height, width) at which its networks see the picture, if not at that of the input."""

    def encode(self, images: Tensor) -> Tensor:
        """What does not depend on the query: of pictures (B,3,H,W) the backbone's features (B,C,h,w)."""
        if self.sized_by is not None:
            self.check_input((images.shape[-2], images.shape[-1]))
        features: Tensor = self.backbone(images)
        return features

    def load_pretrained(self) -> None:
        """Give a freshly built model the ImageNet weights of its backbone."""
        name: str | None = getattr(self.config, "backbone", None)
        if name is None:
            return super().load_pretrained()
        return pretrained.load_imagenet(self.backbone, name)

    def forward(self, images: Tensor, *inputs: Any, **named: Any) -> Output:
        """Pictures (B,3,H,W) and what else ``forward_raw`` takes → logits, trace and the tensors behind them."""
        size = (images.shape[-2], images.shape[-1])
        return self.wrap(self.forward_raw(images, *inputs, **named), size, named.get("attention"))

    @property
    def encoder(self) -> Stages | None:
        """The backbone, if it alone makes the encoding, which can be cached while it is frozen; otherwise None."""
        return self.backbone if self.keeps_features or type(self).encode is ImageModel.encode else None

    @property
    def encoding_name(self) -> str:
        """What the encoding is called where it is cached: the last stage of the backbone."""
        return self.backbone.names[-1]

    def check_input(self, size: Size) -> None:
        """Refuse a network input of ``size`` (height, width) that is too small, or not the one it was built for."""
        if self.sized_by is None:
            for part in self.children():
                if isinstance(part, Stages):
                    part.grid(size)
            return
        height, width = getattr(self.config, self.sized_by)
        if (height, width) != tuple(size):
            raise DataError(
                f"this model reads pictures of {height}×{width} pixels only, found {size[0]}×{size[1]}; set "
                f"{self.sized_by} to {[*size]}"
            )


class ImageOnlyModel(ImageModel):
    """Base of models that need no question."""

    last_frame: Tensor | None = None
    """(2,3): cells of :data:`LAST` → pixels of the input, of a model that returns it; None of any other."""

    @abstractmethod
    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """What the encoded pictures show, as plain tensors."""

    def respond(self, encoding: Tensor, query: Tensor | None = None, *, attention: Given | None = None) -> ModelOutput:
        """:meth:`answer`; there is no query."""
        return self.answer(encoding, **attention_kwargs(attention))


class QueryModel(AskedModel, ImageModel):
    """Base of models that answer a query about a picture."""

    def answer_format(self) -> dict[str, Any]:
        """Whether several answers may hold at once."""
        return {"multi_label": self.multi_label}

    def forward_raw(
        self,
        images: Tensor | None,
        query: Tensor,
        *,
        asks: int = 1,
        encoding: Tensor | None = None,
        attention: Given | None = None,
    ) -> ModelOutput:
        """Pictures (B,3,H,W) or their ``encoding`` (B,…), ``asks`` = k query ids for each (B·k,) → plain tensors."""
        if encoding is None:
            encoding = self.encode(cast(Tensor, images))  # (B,…)
        if asks > 1:
            together = encoding.dim() == 4 and encoding.is_contiguous(memory_format=torch.channels_last)
            encoding = encoding.unsqueeze(1).expand(-1, asks, *encoding.shape[1:]).flatten(0, 1)  # (B·k,…)
            encoding = encoding.contiguous(memory_format=torch.channels_last if together else torch.contiguous_format)
        return self.ask(encoding, query, **attention_kwargs(attention))


class LabelModel(ImageOnlyModel):
    """Base of models that give a picture one label, and learn by their logits alone.

    Training takes ``logits_only``: large masks cost a step time, and no loss reads them.
    """

    def forward_raw(self, images: Tensor, *, logits_only: bool = False, attention: Given | None = None) -> ModelOutput:
        """Pictures (B,3,H,W) → plain tensors; with ``logits_only`` nothing but the logits."""
        output = self.answer(self.encode(images), **attention_kwargs(attention))
        return LabelOutput(output.logits) if logits_only else output


def attention_kwargs(attention: Given | None) -> dict[str, Any]:
    """The keyword argument for given weights; a model that is never given any need not have it."""
    return {} if attention is None else {"attention": attention}


def laid_out(images: Tensor) -> Tensor:
    """The pictures, on a CPU with their channels together: convolutions and poolings are twice as fast."""
    return images.contiguous(memory_format=torch.channels_last) if images.device.type == "cpu" else images


# Bounds of settings that decide size and speed. A model folder is untrusted: they are checked before it is built.
MAX_WORDS, MAX_UNITS, MAX_STAGES, MAX_STEPS = 1_000_000, 8192, 64, 512
Words = Annotated[int, Within(1, MAX_WORDS)]  # queries, answers, classes, words
Units = Annotated[int, Within(1, MAX_UNITS)]  # channels or hidden units of one layer
Depth = Annotated[int, Within(1, MAX_STAGES)]  # layers in a row
Steps = Annotated[int, Within(1, MAX_STEPS)]  # words or labels, one after the other
Glimpses = Annotated[int, Within(1, 32)]  # before each label
Sentences = Annotated[int, Within(1, 1024)]  # of a story in a model's memory
Hops = Annotated[int, Within(1, 16)]  # looks at one story, or words of its answer
Pixels = Annotated[tuple[int, int], Within(1, 4096)]  # sides of a picture that a model is built for
