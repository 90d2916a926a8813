"""What every model on pictures is: encode a picture once, answer, and return the answer with its trace.

A :class:`QueryModel` can be asked many questions about an encoded picture; a :class:`PictureModel` says by itself what
it sees.

``forward_raw`` is plain tensors in, a dictionary of plain tensors out, so that it can be compiled, captured in a graph
and exported; ``forward`` wraps its result into an :class:`~saccade.trace.Output` outside the captured part. Keys of
the dictionary: ``logits``; for each look ``NAME.weights``, ``NAME.scores``, ``NAME.values`` and ``NAME.context``, the
last two being the features that were attended and what became of them, so that a trace can be checked against the
computation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from saccade.backbones import Stages
from saccade.errors import ConfigError, ShapeError
from saccade.geometry import Size
from saccade.trace import AttentionTrace, Look, Output, Total

Raw = dict[str, Tensor]


class SeeingModel(nn.Module, ABC):
    """What models that are asked and models that are not have in common."""

    Config: ClassVar[type]
    """The frozen dataclass of sizes that builds this model."""
    total: ClassVar[Total] = "last"
    """How the looks combine into one map."""
    config: Any

    @abstractmethod
    def encode(self, images: Tensor) -> Tensor:
        """What of the picture (B,3,H,W) does not depend on the query; computed once, asked many times."""

    @property
    def encoder(self) -> Stages | None:
        """The backbone, where :meth:`encode` is that and no more, so that while it rests a picture is encoded alike.

        What it makes of a picture can then be kept. None: of this model nothing can.
        """
        return None

    @abstractmethod
    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """The looks, in order, of a result of ``forward_raw``."""

    def start_pretrained(self) -> None:
        """Give a freshly built model the published weights that training starts from."""
        raise ConfigError(f"pretrained: {type(self).__name__} has no published weights to start from; leave it out")

    def check_input(self, size: Size) -> None:
        """Refuse a network input of ``size`` (height, width) that is too small for this model's stages."""
        for part in self.children():
            if isinstance(part, Stages):
                part.grid(size)

    def traced(self, raw: Raw, logits: Tensor, answer: Tensor, input_size: Size) -> Output:
        """Logits (B,…), answer ids (B) or (B,T) and looks together; whatever else is in ``raw`` goes with them."""
        size = torch.tensor(input_size, device=logits.device).expand(logits.shape[0], 2)
        trace = AttentionTrace(looks=self.looks(raw), answer=answer, image_size=size, total=self.total)
        return Output(logits, trace, {name: tensor for name, tensor in raw.items() if tensor is not logits})


class PictureModel(SeeingModel):
    """Base of models that need no question: they say, one after the other, what they see in a picture.

    Their plain tensors hold ``class_logits`` (B,T,C+1), whose last class means "nothing more", and ``said`` (B,T).
    """

    @abstractmethod
    def answer(self, encoding: Tensor) -> Raw:
        """What the encoded pictures show, as plain tensors."""

    def forward_raw(self, images: Tensor) -> Raw:
        """Pictures (B,3,H,W) → plain tensors."""
        return self.answer(self.encode(images))

    def forward(self, images: Tensor) -> Output:
        """Pictures (B,3,H,W) → logits, trace and the tensors behind them."""
        return self.wrap(self.forward_raw(images), (images.shape[-2], images.shape[-1]))

    def wrap(self, raw: Raw, input_size: Size) -> Output:
        """Give plain tensors their meaning; ``input_size`` is the network input's (height, width)."""
        return self.traced(raw, raw["class_logits"], raw["said"], input_size)


class QueryModel(SeeingModel):
    """Base of models that answer a query about a picture."""

    multi_label: bool = False
    """Whether several answers may hold at once."""

    @abstractmethod
    def ask(self, encoding: Tensor, query: Tensor) -> Raw:
        """Answer the queries (B,) about the encoded pictures, as plain tensors."""

    def probabilities(self, logits: Tensor) -> Tensor:
        """What the logits (B,K) mean: shares of exclusive answers, or for many labels the probability of each."""
        return logits.sigmoid() if self.multi_label else logits.softmax(-1)

    def forward_raw(
        self, images: Tensor | None, query: Tensor, *, asks: int = 1, encoding: Tensor | None = None
    ) -> Raw:
        """Pictures (B,3,H,W) and query ids (B·k,), for each picture ``asks`` = k of them in a row → plain tensors.

        Where the ``encoding`` (B,…) of the pictures is kept, these need not be there.
        """
        if encoding is None:
            if images is None:
                raise ShapeError("images", "(B,3,H,W), or their encoding in their place", ())
            encoding = self.encode(images)  # (B,…)
        if asks > 1:
            layout = torch.channels_last if _channels_last(encoding) else torch.contiguous_format
            encoding = encoding.unsqueeze(1).expand(-1, asks, *encoding.shape[1:]).flatten(0, 1)  # (B·k,…)
            encoding = encoding.contiguous(memory_format=layout)
        return self.ask(encoding, query)

    def forward(self, images: Tensor, query: Tensor) -> Output:
        """Pictures (B,3,H,W) and query ids (B,) → logits, trace and the tensors behind them."""
        return self.wrap(self.forward_raw(images, query), (images.shape[-2], images.shape[-1]))

    def wrap(self, raw: Raw, input_size: Size) -> Output:
        """Give plain tensors their meaning; ``input_size`` is the network input's (height, width)."""
        return self.traced(raw, raw["logits"], raw["logits"].argmax(-1), input_size)


def _channels_last(encoding: Tensor) -> bool:
    return encoding.dim() == 4 and encoding.is_contiguous(memory_format=torch.channels_last)
