"""One kind of attention act for a batch: weights exactly as they were computed, and where their cells lie.

Weights are the α of the paper, never rescaled: what is stored is what multiplied the features, and :meth:`Look.rebuild`
proves it. Axes: B examples, T steps (words, hops, glimpses), H and W cells, S slots, C channels.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, nearest

Kind = Literal["soft", "hard", "gate", "crop", "slots"]
Role = Literal["multiplier", "mixture", "policy", "input", "crop", "derived"]
Norm = Literal["softmax", "sigmoid", "linear", "l2", "none"]


class _Short(reprlib.Repr):
    """Values in few characters: tensors and arrays as their shapes, looks as their names."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr1(self, value: Any, level: int) -> str:
        if isinstance(value, ShortRepr):
            return str(getattr(value, "name", type(value).__name__))
        return str(tuple(value.shape)) if hasattr(value, "shape") else super().repr1(value, level)


_NOTHING: tuple[Any, ...] = (None, "", (), [], {})


class ShortRepr:
    """Base of dataclasses (with ``repr=False``) whose repr fits a screen; fields that say nothing are left out."""

    def __repr__(self) -> str:
        # a mixin of dataclasses
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}  # type: ignore[arg-type]
        shown = {name: value for name, value in values.items() if hasattr(value, "shape") or value not in _NOTHING}
        short = _Short()
        return f"{type(self).__name__}({', '.join(f'{name}={short.repr(value)}' for name, value in shown.items())})"


@dataclass(frozen=True, eq=False, repr=False)
class Look(ShortRepr):
    """One kind of attention act for a batch of examples."""

    name: str  # "stage2", "hop", "word", "glimpse" …: unique within a trace; "total" is taken.
    kind: Kind  # soft and hard attention over cells, a gate on a feature map, a crop, or slots of a memory.
    role: Role
    """What the weights do in the model: multiply features, mix predictions, choose, feed a layer, cut a region. Derived
    weights do nothing in it: they were computed from others, as attention rollout is."""
    weights: Tensor | None = None
    """(B,H,W) or (B,S); (B,T,H,W) or (B,T,S) when the act repeats. None for a crop: its map is its box."""
    norm: Norm = "none"  # What must hold of the weights.
    frame: Tensor | None = None
    """(2,3) or (B,2,3): this look's grid → pixels of the network input. None for slots, and if it is unknown: then the
    look cannot be drawn."""
    grid: geometry.Size | None = None  # (H, W) of a crop's grid; taken from the weights otherwise.
    gain: Tensor | None = None  # (B) or (B,T): a scalar on top of the weights, such as the captioner's β.
    scores: Tensor | None = None  # What the normalisation was applied to; shaped as the weights.
    choice: Tensor | None = None  # (B) or (B,T): the sampled cell or slot, numbered row by row.
    log_prob: Tensor | None = None  # (B) or (B,T): log-probability of the choice.
    active: Tensor | None = None  # (B) or (B,T) bool: False where a step is padding or came after the end.
    emits: Tensor | None = None  # (B) or (B,T): id of what was said at the step.
    full: Tensor | None = None
    """The channel-wise tensor where one exists: (B,C,H,W) for residual masks, (B,T,C,H,W) with steps. Of channels that
    are slots, weights are (B,C) and this is the mask of each cell."""
    base: float = 0.0
    """What is added to a mask before it multiplies: 1 of a residual mask, (1 + M)·F. The total and :meth:`rebuild` add
    it; the weights are those of the mask alone."""

    @property
    def is_spatial(self) -> bool:
        """Whether the look lies on a grid (and so on a picture)."""
        return self.kind != "slots"

    @property
    def has_steps(self) -> bool:
        """Whether the act repeats: there is a step axis T after the batch axis."""
        if self.weights is None:
            return False
        return self.weights.dim() == (4 if self.is_spatial else 3)

    @property
    def batch_size(self) -> int:
        """Number of examples B; 1 for a crop whose frame all examples share."""
        if self.weights is not None:
            return self.weights.shape[0]
        return self.frame.shape[0] if self.frame is not None and self.frame.dim() == 3 else 1

    @property
    def is_shared(self) -> bool:
        """Whether one crop frame (2,3) serves the whole batch, whatever its size."""
        return self.weights is None and self.frame is not None and self.frame.dim() == 2

    @property
    def steps(self) -> int:
        """Number of steps T; 1 for an act that does not repeat."""
        return self.weights.shape[1] if self.weights is not None and self.has_steps else 1

    def example(self, index: int | slice) -> Look:
        """The look of one example (or a slice of them), batch axis kept; views, no copies."""
        part = as_slice(index, self.batch_size)
        return self.map(lambda name, tensor: tensor if name == "frame" and tensor.dim() == 2 else tensor[part])

    def step(self, index: int) -> Look:
        """One step of an act that repeats, without the step axis; views, no copies."""
        if not self.has_steps or not -self.steps <= index < self.steps:
            raise DataError(f"look '{self.name}' has {self.steps} steps; there is no step {index}")
        return self.map(lambda name, tensor: tensor if name == "frame" else tensor[:, index])

    def map(self, change: Callable[[str, Tensor], Tensor]) -> Look:
        """A look with every tensor replaced by ``change(field name, tensor)``."""
        changed: dict[str, Any] = {name: change(name, tensor) for name, tensor in self.tensors().items()}
        return dataclasses.replace(self, **changed)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that this look holds, by field name."""
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {name: value for name, value in fields.items() if isinstance(value, Tensor)}

    def rebuild(self, values: Tensor) -> Tensor:
        """The context that this look alone makes of ``values``: the proof that the weights are what was used.

        Of the attended features (B,C,H,W) or (B,S,C), for a mixture the per-cell predictions (B,K,H,W), it makes (B,C);
        a gate (B,C,H,W). With steps there is a T after the B. Of the picture (B,C,H,W) a crop is cut, (B,C,h,w).
        """
        if self.role == "derived":
            raise DataError(f"look '{self.name}' was computed from other weights: it multiplied nothing in the model")
        if self.kind == "crop":
            return geometry.sample(values, cast(Tensor, self.frame), cast(geometry.Size, self.grid))
        attention = cast(Tensor, self.weights)
        if self.kind == "gate" or self.full is not None:
            mask = self.full if self.full is not None else attention.unsqueeze(-3)  # (B[,T],C|1,H,W)
            mask = mask + self.base if self.base else mask
            mask = mask if self.gain is None else mask * self.gain[..., None, None, None]
            return mask * (values.unsqueeze(1) if self.has_steps else values)  # (B[,T],C,H,W)
        cells = values.flatten(2).transpose(1, 2) if self.is_spatial else values  # (B,N,C)
        weights = attention.flatten(-2) if self.is_spatial else attention  # (B[,T],N)
        if self.kind == "hard" and self.role == "multiplier" and self.choice is not None:
            weights = torch.nn.functional.one_hot(self.choice, weights.shape[-1]).to(cells)  # (B[,T],N)
        context = torch.einsum("btn,bnc->btc" if self.has_steps else "bn,bnc->bc", weights, cells)
        return context if self.gain is None else context * self.gain.unsqueeze(-1)

    def edit(self, cells: Tensor, *, onto: Tensor | None = None, step: int | None = None) -> Look:
        """The look with its weights on ``cells`` removed or moved, to be given to a model instead of its own.

        ``model(images, query, attention=look.edit(cells).as_given())`` runs the rest of the model on it.
        Weights that a softmax made keep their sum: the others are scaled up. If all of an example's weights are taken
        away, they are all 0, and the model reads a context of 0. Gates are never scaled.

        Args:
            cells: bool, shaped as the weights or without their leading axes: (H,W) or (S,) for all examples alike.
            onto: bool, shaped so too: where the weights that are taken away go, in equal parts. None: nowhere.
            step: the one step of an act that repeats, such as a word, that is edited; ``cells`` then have no step axis.
                None: all of them.

        >>> look = Look("gate", "gate", "multiplier", torch.tensor([[[0.5, 0.25]]]))
        >>> first = torch.tensor([[True, False]])
        >>> look.edit(first).weights.tolist(), look.edit(first, onto=~first).weights.tolist()
        ([[[0.0, 0.25]]], [[[0.0, 0.75]]])
        >>> soft = Look("word", "soft", "multiplier", torch.tensor([[[0.5, 0.5]]]), norm="softmax")
        >>> soft.edit(first).weights.tolist(), soft.edit(first | True).weights.tolist()
        ([[[0.0, 1.0]]], [[[0.0, 0.0]]])
        """
        weights = self._editable("weights of its own (of a mask, change what trace.as_given() has)", self.full is None)
        if step is not None:
            changed = self.step(step).edit(cells, onto=onto).weights
            return self._with_step(step, torch.as_tensor(changed))
        over = (-2, -1) if self.is_spatial else (-1,)
        chosen = _cells("cells", cells, weights)  # (B[,T],…)
        left = weights.masked_fill(chosen, 0)
        if onto is not None:
            places = _cells("onto", onto, weights).to(left)  # (B[,T],…)
            taken = (weights - left).sum(over, keepdim=True)
            left = left + taken * places / places.sum(over, keepdim=True).clamp(min=1)
        elif self.norm == "softmax":
            rest, before = left.sum(over, keepdim=True), weights.sum(over, keepdim=True)
            left = left * torch.where(rest > 0, before / rest.clamp(min=1e-30), 1.0)
        return self._edited(left)

    def point(self, cells: Tensor | int, *, step: int | None = None) -> Look:
        """The look with all its weight on one cell or slot: for a model that chooses one, another choice.

        Args:
            cells: its number, row by row: one for all examples, or (B,).
            step: the one step that is edited, such as a glimpse; None: all of them.

        >>> look = Look("glimpse", "hard", "policy", torch.full((1, 2, 1, 2), 0.5))
        >>> look.point(1, step=0).weights.tolist()
        [[[[0.0, 1.0]], [[0.5, 0.5]]]]
        """
        weights = self._editable("cells")
        many = weights.shape[-1] * (weights.shape[-2] if self.is_spatial else 1)
        numbers = torch.as_tensor(cells, device=weights.device)
        if not bool(((numbers >= 0) & (numbers < many)).all()):
            raise DataError(
                f"cells: expected a number of 0 … {many - 1}, or {self.batch_size} of them, found {cells!r}"
            )
        hot = torch.nn.functional.one_hot(numbers.expand(self.batch_size), many).to(weights)  # (B,N)
        hot = hot.view(-1, *weights.shape[-2:]) if self.is_spatial else hot  # (B,H,W) or (B,S)
        if step is not None:
            return self._with_step(step, hot.expand_as(torch.as_tensor(self.step(step).weights)))
        return self._edited((hot.unsqueeze(1) if self.has_steps else hot).expand_as(weights).contiguous())

    def aim(self, boxes: Tensor | Sequence[float]) -> Look:
        """The crop cut from other ``boxes`` (B,4) or (4,), xyxy in pixels of the network input; four numbers will do.

        >>> look = Look("crop", "crop", "crop", frame=torch.eye(2, 3)[None], grid=(2, 2))
        >>> look.aim(torch.tensor([4.0, 4.0, 8.0, 6.0])).frame.tolist()
        [[[2.0, 0.0, 4.0], [0.0, 1.0, 4.0]]]
        """
        if self.kind != "crop" or self.frame is None or self.grid is None:
            raise DataError(f"look '{self.name}' has weights and no box; edit it with edit(cells) or point(cells)")
        wanted = torch.as_tensor(boxes).to(self.frame)
        is_box = wanted.shape in ((4,), (self.batch_size, 4)) and bool(wanted.isfinite().all())
        if not is_box or not bool((wanted[..., 2:] > wanted[..., :2]).all()):
            shape = f"(4,) or ({self.batch_size},4), finite, with x0 < x1 and y0 < y1"
            raise DataError(f"boxes: expected x0, y0, x1, y1 as {shape}, found {tuple(wanted.shape)}")
        return dataclasses.replace(self, frame=geometry.crop_frame(wanted.expand(self.batch_size, 4), self.grid))

    def as_given(self, steps: int | None = None) -> dict[str, Tensor]:
        """Attention that makes a model attend as here: weights or a full mask by name, or the frame of a crop.

        Of an act that repeats, ``steps`` keeps the first so many; the model computes the later ones again.
        """
        tensor = self.full if self.full is not None else self.weights
        tensor = self.frame if tensor is None else tensor
        if tensor is None:
            return {}
        if steps is None:
            return {self.name: tensor}
        if not self.has_steps or not 1 <= steps <= self.steps:
            raise DataError(f"look '{self.name}' has {self.steps} steps; found steps={steps}")
        return {self.name: tensor[:, :steps]}

    def _editable(self, what: str, is_so: bool = True) -> Tensor:
        """The weights, which an edit changes; a DataError for a look that has none, or others than they seem."""
        if self.weights is None or not is_so:
            raise DataError(f"look '{self.name}' has no {what}; of a crop, change the box with aim(boxes)")
        return self.weights

    def _with_step(self, step: int, weights: Tensor) -> Look:
        changed = torch.as_tensor(self.weights).clone()
        changed[:, step] = weights
        return self._edited(changed)

    def _edited(self, weights: Tensor) -> Look:
        """The look with other weights, of which nothing is promised."""
        return dataclasses.replace(self, weights=weights, norm="none", choice=None, log_prob=None)

    def validate(self) -> Look:
        """Check shapes and what ``norm`` promises; returns the look, raises :class:`DataError`."""
        for problem in self._problems():
            raise DataError(f"look '{self.name}': {problem}")
        return self

    def _problems(self) -> Iterator[str]:
        for what, allowed in (("kind", get_args(Kind)), ("role", get_args(Role)), ("norm", get_args(Norm))):
            if (value := getattr(self, what)) not in allowed:
                yield f"unknown {what} '{value}': {nearest(str(value), allowed)}"
        if self.kind == "crop":
            if self.weights is not None or self.grid is None or self.frame is None:
                yield "a crop has a frame and a grid, and no weights"
        else:
            yield from self._problems_of_weights()
        if self.is_spatial and (frame := self.frame) is not None:
            if frame.shape not in ((2, 3), (self.batch_size, 2, 3)):
                yield f"its frame should be (2,3) or ({self.batch_size},2,3), found {tuple(frame.shape)}"
            if not bool(frame.isfinite().all()) or bool((torch.linalg.det(frame[..., :2].double()) == 0).any()):
                yield "its frame cannot be inverted"
        lead = (self.batch_size, self.steps) if self.has_steps else (self.batch_size,)
        for name in ("gain", "choice", "log_prob", "active", "emits"):
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != lead:
                yield f"{name} should be {lead}, found {tuple(tensor.shape)}"
        if self.log_prob is not None and not bool((self._when_active(self.log_prob) <= 1e-6).all()):
            yield "a log-probability is above 0 or not a number"
        if self.choice is not None and self.weights is not None:
            cells = self.weights.shape[-1] * (self.weights.shape[-2] if self.is_spatial else 1)
            chosen = self._when_active(self.choice)
            if bool((chosen < 0).any() or (chosen >= cells).any()):
                yield f"a choice lies outside its {cells} cells"

    def _problems_of_weights(self) -> Iterator[str]:
        dims, wanted_axes = ((3, 4), "(B,H,W) or (B,T,H,W)") if self.is_spatial else ((2, 3), "(B,S) or (B,T,S)")
        if self.weights is None or self.weights.dim() not in dims:
            actual = None if self.weights is None else tuple(self.weights.shape)
            yield f"weights should be {wanted_axes}, found {actual}"
            return
        if self.scores is not None and self.scores.shape != self.weights.shape:
            yield f"scores should be {tuple(self.weights.shape)}, found {tuple(self.scores.shape)}"
        if self.full is not None:
            shape = tuple(self.weights.shape)
            wanted: tuple[int | str, ...] = (*shape[:-2], "C", *shape[-2:]) if self.is_spatial else (*shape, "H", "W")
            same = all(side in (actual, "C", "H", "W") for side, actual in zip(wanted, self.full.shape))
            if not same or len(wanted) != self.full.dim():
                yield f"full should be ({','.join(map(str, wanted))}), found {tuple(self.full.shape)}"
        weights = self._when_active(self.weights.detach()).double()
        weights = weights.flatten(-2) if self.is_spatial else weights  # (…,N)
        if not bool(weights.isfinite().all()):
            yield "weights hold NaN or infinity"
        if not abs(self.base) < 1e6:
            yield f"its base must be a number of ordinary size, found {self.base}"
        slack = 1e-4 if self.weights.dtype in (torch.float32, torch.float64) else 2e-2
        if self.norm in ("softmax", "sigmoid") and bool((weights < 0).any() or (weights > 1 + slack).any()):
            yield f"norm '{self.norm}' promises weights between 0 and 1"
        if self.norm == "softmax" and weights.numel() and bool(((weights.sum(-1) - 1).abs() > slack).any()):
            yield f"norm 'softmax' promises a sum of 1; off by {(weights.sum(-1) - 1).abs().max().item():.2g}"
        if self.norm == "l2" and bool((weights.abs() > 1 + slack).any()):
            yield "norm 'l2' promises weights between -1 and 1"

    def _when_active(self, tensor: Tensor) -> Tensor:
        """The entries of ``tensor`` (B[,T],…) that count; (B[,T],…) itself where nothing is inactive."""
        if self.active is None or self.active.shape != tensor.shape[: self.active.dim()]:
            return tensor
        return tensor[self.active.bool()]  # (K,…)


def _cells(name: str, cells: Tensor, weights: Tensor) -> Tensor:
    """``cells`` in the shape of the weights, once they are known to be a mask of them."""
    if cells.dtype != torch.bool:
        raise DataError(f"{name}: expected a bool mask of cells, found {cells.dtype}; compare with a threshold first")
    return cells.to(weights.device).expand_as(weights)


def as_slice(index: int | slice, length: int) -> slice:
    """One example as a slice of one, so that the batch axis stays; a slice as it is."""
    if isinstance(index, slice):
        return index
    if not -length <= index < length:
        raise IndexError(f"example {index} of a batch of {length}")
    index %= length
    return slice(index, index + 1)
