"""The one result type: what a model looked at, exactly as it was computed, with the coordinates to draw it.

A :class:`Look` is one kind of attention act for a batch; an :class:`AttentionTrace` is the ordered looks plus the
answer. Weights are the α of the paper, never rescaled: what is stored is what multiplied the features, and
:meth:`Look.rebuild` proves it. Rescaling for display happens in ``saccade.show`` only.

Axes: B examples, T steps (words, hops, glimpses), H and W cells, S slots, C channels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, ShapeError, nearest
from saccade.short_repr import ShortRepr

Kind = Literal["soft", "hard", "gate", "crop", "slots"]
Role = Literal["multiplier", "mixture", "policy", "input", "crop"]
Norm = Literal["softmax", "sigmoid", "linear", "l2", "none"]
Total = Literal["product", "mean", "last"]

SCHEMA_VERSION = 1

COMBINE: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float]] = {
    "product": (torch.mul, 1.0),
    "mean": (torch.add, 0.0),  # divided by the count in the end
    "last": (lambda before, current: current, 0.0),
}
"""How a total takes in one more map, and what it starts from."""


@dataclass(frozen=True, eq=False, repr=False)
class Look(ShortRepr):
    """One kind of attention act for a batch of examples."""

    name: str
    """"stage2", "hop", "word", "glimpse" …: unique within a trace; "total" is taken."""
    kind: Kind
    """soft and hard attention over cells, a gate on a feature map, a crop, or slots of a memory."""
    role: Role
    """What the weights do in the model: multiply features, mix predictions, choose, feed a layer, cut a region."""
    weights: Tensor | None = None
    """(B,H,W) or (B,S); (B,T,H,W) or (B,T,S) when the act repeats. None for a crop: its map is its box."""
    norm: Norm = "none"
    """What must hold of the weights."""
    frame: Tensor | None = None
    """(2,3) or (B,2,3): this look's grid → pixels of the network input. None for slots, and if it is unknown: then the
    look cannot be drawn."""
    grid: geometry.Size | None = None
    """(H, W) of a crop's grid; taken from the weights otherwise."""
    gain: Tensor | None = None
    """(B) or (B,T): a scalar on top of the weights, such as the captioner's β."""
    scores: Tensor | None = None
    """What the normalisation was applied to; shaped as the weights."""
    choice: Tensor | None = None
    """(B) or (B,T): the sampled cell or slot, numbered row by row."""
    log_prob: Tensor | None = None
    """(B) or (B,T): log-probability of the choice."""
    active: Tensor | None = None
    """(B) or (B,T) bool: False where a step is padding or came after the end."""
    emits: Tensor | None = None
    """(B) or (B,T): id of what was said at the step."""
    full: Tensor | None = None
    """The channel-wise tensor where one exists: (B,C,H,W) for residual masks, (B,T,C,H,W) with steps. Of channels that
    are slots, weights are (B,C) and this is the mask of each cell."""
    base: float = 0.0
    """What is added to a mask before it multiplies: 1 of a residual mask, (1 + M)·F. The total and :meth:`rebuild` add
    it; the weights are those of the mask alone."""

    # ------------------------------------------------------------ shape

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
        if self.frame is None:
            raise ShapeError(f"look '{self.name}'", "weights or a frame", ())
        return self.frame.shape[0] if self.frame.dim() == 3 else 1

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
        part = _as_slice(index, self.batch_size)
        return self.map(lambda name, tensor: tensor if name == "frame" and tensor.dim() == 2 else tensor[part])

    def step(self, index: int) -> Look:
        """One step of an act that repeats, without the step axis; views, no copies."""
        if not self.has_steps:
            raise ShapeError(
                f"look '{self.name}'", "a step axis (B,T,…)", () if self.weights is None else self.weights.shape
            )
        if not -self.steps <= index < self.steps:
            raise DataError(f"look '{self.name}' has {self.steps} steps; there is no step {index}")
        return self.map(lambda name, tensor: tensor if name == "frame" else tensor[:, index])

    def map(self, change: Callable[[str, Tensor], Tensor]) -> Look:
        """A look with every tensor replaced by ``change(field name, tensor)``."""
        changed: dict[str, Any] = {name: change(name, tensor) for name, tensor in self.tensors().items()}
        return dataclasses.replace(self, **changed)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that this look holds, by field name."""
        held = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, Tensor)}

    # ------------------------------------------------------------ meaning

    def rebuild(self, values: Tensor) -> Tensor:
        """The context that this look alone makes of ``values``: the proof that the weights are what was used.

        Args:
            values: the features that were attended, (B,C,H,W) or (B,S,C); for a mixture the per-cell predictions
                (B,K,H,W); for a crop the picture (B,C,H,W) it was cut from.

        Returns:
            (B,C) for soft, hard, mixture and slots, (B,T,C) with steps; (B,C,H,W) for a gate, (B,T,C,H,W) with steps;
            the crop (B,C,h,w) for a crop.
        """
        if self.kind == "crop":
            if self.frame is None or self.grid is None:
                raise ShapeError(f"crop '{self.name}'", "frame and grid", ())
            return geometry.sample(values, self.frame, self.grid)
        if self.weights is None:
            raise ShapeError(f"look '{self.name}'", "weights", ())
        if self.kind == "gate" or self.full is not None:
            mask = self.full if self.full is not None else self.weights.unsqueeze(-3)  # (B[,T],C|1,H,W)
            mask = mask + self.base if self.base else mask
            mask = mask if self.gain is None else mask * self.gain[..., None, None, None]
            return mask * (values.unsqueeze(1) if self.has_steps else values)  # (B[,T],C,H,W)
        cells = values.flatten(2).transpose(1, 2) if self.is_spatial else values  # (B,N,C)
        weights = self.weights.flatten(-2) if self.is_spatial else self.weights  # (B[,T],N)
        if self.kind == "hard" and self.role == "multiplier" and self.choice is not None:
            weights = torch.nn.functional.one_hot(self.choice, weights.shape[-1]).to(cells)  # (B[,T],N)
        context = torch.einsum("btn,bnc->btc" if self.has_steps else "bn,bnc->bc", weights, cells)
        return context if self.gain is None else context * self.gain.unsqueeze(-1)

    def validate(self) -> Look:
        """Check shapes and what ``norm`` promises; returns the look, raises :class:`DataError` or ShapeError."""
        for what, allowed in (("kind", get_args(Kind)), ("role", get_args(Role)), ("norm", get_args(Norm))):
            value = getattr(self, what)
            if value not in allowed:
                raise DataError(f"look '{self.name}': unknown {what} '{value}': {nearest(str(value), allowed)}")
        if self.kind == "crop":
            if self.weights is not None or self.grid is None or self.frame is None:
                raise DataError(f"look '{self.name}': a crop has a frame and a grid, and no weights")
        else:
            self._validate_weights()
        if self.is_spatial and self.frame is not None:
            self._validate_frame(self.frame)
        lead = (self.batch_size, self.steps) if self.has_steps else (self.batch_size,)
        for name in ("gain", "choice", "log_prob", "active", "emits"):
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != lead:
                raise ShapeError(f"look '{self.name}'.{name}", f"{lead}", tensor.shape)
        if self.log_prob is not None and not bool((self._when_active(self.log_prob) <= 1e-6).all()):
            raise DataError(f"look '{self.name}': a log-probability is above 0 or not a number")
        if self.choice is not None and self.weights is not None:
            cells = self.weights.shape[-1] * (self.weights.shape[-2] if self.is_spatial else 1)
            chosen = self._when_active(self.choice)
            if bool((chosen < 0).any() or (chosen >= cells).any()):
                raise DataError(f"look '{self.name}': a choice lies outside its {cells} cells")
        return self

    def _when_active(self, tensor: Tensor) -> Tensor:
        """The entries of ``tensor`` (B[,T],…) that count; (B[,T],…) itself where nothing is inactive."""
        if self.active is None or self.active.shape != tensor.shape[: self.active.dim()]:
            return tensor
        return tensor[self.active.bool()]  # (K,…)

    def _validate_weights(self) -> None:
        dims = (3, 4) if self.is_spatial else (2, 3)
        expected = "(B,H,W) or (B,T,H,W)" if self.is_spatial else "(B,S) or (B,T,S)"
        if self.weights is None or self.weights.dim() not in dims:
            raise ShapeError(
                f"look '{self.name}'.weights", expected, () if self.weights is None else self.weights.shape
            )
        if self.scores is not None and self.scores.shape != self.weights.shape:
            raise ShapeError(f"look '{self.name}'.scores", f"{tuple(self.weights.shape)}", self.scores.shape)
        if self.full is not None:
            shape = tuple(self.weights.shape)
            wanted: tuple[int | str, ...] = (*shape[:-2], "C", *shape[-2:]) if self.is_spatial else (*shape, "H", "W")
            same = all(side in (found, "C", "H", "W") for side, found in zip(wanted, self.full.shape))
            if not same or len(wanted) != self.full.dim():
                raise ShapeError(f"look '{self.name}'.full", f"({','.join(map(str, wanted))})", self.full.shape)
        weights = self._when_active(self.weights.detach()).double()
        weights = weights.flatten(-2) if self.is_spatial else weights  # (…,N)
        if not bool(weights.isfinite().all()):
            raise DataError(f"look '{self.name}': weights hold NaN or infinity")
        if not abs(self.base) < 1e6:
            raise DataError(f"look '{self.name}': its base must be a number of ordinary size, found {self.base}")
        slack = 1e-4 if self.weights.dtype in (torch.float32, torch.float64) else 2e-2
        if self.norm in ("softmax", "sigmoid") and bool((weights < 0).any() or (weights > 1 + slack).any()):
            raise DataError(f"look '{self.name}': norm '{self.norm}' promises weights between 0 and 1")
        if self.norm == "softmax" and weights.numel() and bool(((weights.sum(-1) - 1).abs() > slack).any()):
            worst = (weights.sum(-1) - 1).abs().max().item()
            raise DataError(f"look '{self.name}': norm 'softmax' promises a sum of 1; off by {worst:.2g}")
        if self.norm == "l2" and bool((weights.abs() > 1 + slack).any()):
            raise DataError(f"look '{self.name}': norm 'l2' promises weights between -1 and 1")

    def _validate_frame(self, frame: Tensor) -> None:
        if frame.shape not in ((2, 3), (self.batch_size, 2, 3)):
            raise ShapeError(f"look '{self.name}'.frame", f"(2,3) or ({self.batch_size},2,3)", frame.shape)
        if not bool(frame.isfinite().all()) or bool((torch.linalg.det(frame[..., :2].double()) == 0).any()):
            raise DataError(f"look '{self.name}': its frame cannot be inverted")


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTrace(ShortRepr):
    """The ordered looks of a model on a batch, its answer, and the way back to the original picture."""

    looks: tuple[Look, ...]
    answer: Tensor | None = None
    """(B,…) ids of the answer."""
    canvas: Tensor | None = None
    """(B,2,3): network input → original picture, upright. None: the input is the picture."""
    image_size: Tensor | None = None
    """(B,2) height and width of the original picture; None for text."""
    total: Total = "last"
    """How this model's acts combine into one map."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    # ------------------------------------------------------------ access

    def __len__(self) -> int:
        answered = 0 if self.answer is None else self.answer.shape[0]
        return max((look.batch_size for look in self.looks), default=answered)

    def __iter__(self) -> Iterator[AttentionTrace]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int | slice) -> AttentionTrace:
        """The trace of one example (or a slice), batch axis kept; views, no copies."""
        part = _as_slice(index, len(self))
        looks = tuple(look if look.is_shared else look.example(part) for look in self.looks)
        own: dict[str, Any] = {name: tensor[part] for name, tensor in self._own_tensors().items()}
        return dataclasses.replace(self, looks=looks, **own)

    def look(self, name: str) -> Look:
        """The look called ``name``."""
        for look in self.looks:
            if look.name == name:
                return look
        raise DataError(f"no look '{name}' in this trace: {nearest(name, [look.name for look in self.looks])}")

    def _own_tensors(self) -> dict[str, Tensor]:
        held = {name: getattr(self, name) for name in ("answer", "canvas", "image_size")}
        return {name: value for name, value in held.items() if value is not None}

    def map(self, change: Callable[[Tensor], Tensor]) -> AttentionTrace:
        """A trace with every tensor replaced by ``change(tensor)``."""
        looks = tuple(look.map(lambda _, tensor: change(tensor)) for look in self.looks)
        own: dict[str, Any] = {name: change(tensor) for name, tensor in self._own_tensors().items()}
        return dataclasses.replace(self, looks=looks, **own)

    def to(self, device: torch.device | str) -> AttentionTrace:
        """On another device."""
        return self.map(lambda tensor: tensor.to(device))

    def detach(self) -> AttentionTrace:
        """Cut from the autograd graph."""
        return self.map(Tensor.detach)

    def cpu(self) -> AttentionTrace:
        """In main memory."""
        return self.to("cpu")

    def placed(self, canvas: Tensor, image_size: Tensor) -> AttentionTrace:
        """The same trace, told where its network input came from."""
        return dataclasses.replace(self, canvas=canvas, image_size=image_size)

    # ------------------------------------------------------------ given attention

    def as_given(self) -> dict[str, Tensor]:
        """What makes a model attend as in this trace: weights of each look, or its full mask; of a crop its frame."""
        given = {each.name: each.frame if each.weights is None else each.full for each in self.looks}
        given |= {each.name: each.weights for each in self.looks if each.full is None and each.weights is not None}
        return {name: tensor for name, tensor in given.items() if tensor is not None}

    def mark_given(self, names: Iterable[str]) -> AttentionTrace:
        """The same trace, marked: the weights of the looks ``names`` were given to the model, not computed by it.

        ``meta["given"]`` lists them. Given weights need not be normalised, so their norm becomes "none".
        """
        marked = set(names)
        given = [look.name for look in self.looks if look.name in marked]
        looks = tuple(dataclasses.replace(look, norm="none") if look.name in given else look for look in self.looks)
        return dataclasses.replace(self, looks=looks, meta={**self.meta, "given": given})

    # ------------------------------------------------------------ meaning

    def validate(self) -> AttentionTrace:
        """Check every look and that they belong together; returns the trace."""
        if not self.looks and self.answer is None:
            raise DataError("a trace has at least one look, or of a model that has none an answer")
        names = [look.name for look in self.looks]
        if len(set(names)) != len(names):
            raise DataError(f"look names repeat: {', '.join(names)}")
        if "total" in names:
            raise DataError("no look may be called 'total': that is the name of all looks together")
        if self.total not in get_args(Total):
            raise DataError(f"unknown total '{self.total}': {nearest(str(self.total), get_args(Total))}")
        for look in self.looks:
            look.validate()
            if look.batch_size != len(self) and not look.is_shared:
                raise ShapeError(f"look '{look.name}'", f"batch of {len(self)}", (look.batch_size,))
        for name, expected in (("canvas", (len(self), 2, 3)), ("image_size", (len(self), 2))):
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != expected:
                raise ShapeError(f"trace.{name}", f"{expected}", tensor.shape)
        return self

    def image_map(self, look: str | Look = "total", size: geometry.Size | None = None) -> Tensor:
        """A look (or the total) laid over the original picture.

        Args:
            look: a look, its name, or "total".
            size: (H, W) of the wanted map; by default the picture's own size (all examples must then share it).

        Returns:
            (B,H,W), or (B,T,H,W) for a look with steps. The total never has a step axis.
        """
        if look == "total":
            return self._total_map(self._wanted_size(size))
        chosen = self.look(look) if isinstance(look, str) else look
        size = self._wanted_size(size)
        to_pixels = self.frame_on(chosen, size)
        if chosen.weights is None:
            if chosen.grid is None:
                raise ShapeError(f"crop '{chosen.name}'", "a grid", ())
            return geometry.coverage(to_pixels, chosen.grid, size).float().expand(len(self), *size)
        return geometry.project(chosen.weights, to_pixels, size)

    def image_maps(self, size: geometry.Size | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """The total (B,H,W) and every look on the picture by its name, as :meth:`image_map` lays them; each once."""
        wanted = self._wanted_size(size)
        laid = {look.name: self.image_map(look, wanted) for look in self.looks if look.is_spatial}
        return self._total_map(wanted, laid), laid

    def frame_on(self, look: Look, size: geometry.Size) -> Tensor:
        """(2,3) or (B,2,3): cells of ``look`` → pixels of the original picture, shown at ``size``."""
        if not look.is_spatial:
            raise DataError(f"look '{look.name}' lies on slots, not on a picture: there is no map to draw")
        if look.frame is None:
            raise DataError(
                f"look '{look.name}' has no frame, so where its cells lie on the picture is not known: pass "
                "frame=frame_of(network, input_size) or frame=frame_like(features, image) of saccade.attention to the "
                "mechanism that made it"
            )
        return geometry.compose(self._to_target(size), look.frame.to(torch.float64))

    def chosen_on(self, look: Look, size: geometry.Size | None = None) -> Tensor:
        """(x, y) of the centres of the cells that ``look`` chose, on the picture shown at ``size``: (B,T,2)."""
        if look.choice is None or look.weights is None:
            raise DataError(f"look '{look.name}' holds no choices: no cell was picked alone")
        width = look.weights.shape[-1]
        cells = look.choice.reshape(look.batch_size, -1)  # (B,T)
        centres = torch.stack([cells % width, cells // width], dim=-1).to(torch.float64) + 0.5  # (B,T,2)
        frame = self.frame_on(look, self._wanted_size(size))
        return geometry.apply(frame.unsqueeze(-3), centres)

    @property
    def looks_of_total(self) -> tuple[Look, ...]:
        """The looks on the picture that the total is made of, in order.

        What was fed to a layer is left aside; so is what was drawn from, where there is something that was attended.
        """
        shown = [look for look in self.looks if look.is_spatial and look.role != "input"]
        return tuple([look for look in shown if look.role != "policy"] or shown)

    def _total_map(self, size: geometry.Size, laid: Mapping[str, Tensor] | None = None) -> Tensor:
        """Every act that is active, in order, combined as ``total`` says; (B,H,W). ``laid``: maps that are known."""
        combine, neutral = COMBINE[self.total]
        result: Tensor | None = None
        count: Tensor | int = 0
        for current, active in self._acts(size, laid or {}):
            before = torch.full_like(current, neutral) if result is None else result
            after = combine(before, current.to(before.device))  # (B,H,W)
            # chosen, not multiplied: what an inactive step holds may be NaN
            result = after if active is None else torch.where(active.to(before.device), after, before)
            count = count + (1 if active is None else active.to(torch.int64))
        if result is None:
            raise DataError("this trace has no look on a picture: there is no total map")
        return result / torch.as_tensor(count, device=result.device).clamp(min=1) if self.total == "mean" else result

    def _acts(self, size: geometry.Size, laid: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The map (B,H,W) of every look and step on the picture, and where it counts (B,1,1)."""
        for look in self.looks_of_total:
            maps = laid[look.name] if look.name in laid else self.image_map(look, size)
            maps = maps.reshape(len(self), look.steps, *size)  # (B,T,H,W)
            maps = maps + look.base if look.base else maps
            active = None if look.active is None else look.active.bool().reshape(-1, look.steps, 1, 1)  # (B,T,1,1)
            for step in range(look.steps):
                yield maps[:, step], None if active is None else active[:, step]

    def _wanted_size(self, size: geometry.Size | None) -> geometry.Size:
        return self._shared_size() if size is None else geometry.checked_size(size)

    def _shared_size(self) -> geometry.Size:
        if self.image_size is None:
            raise DataError("this trace does not know its picture's size; give image_map a size")
        height, width = (int(value) for value in self.image_size[0])
        if bool((self.image_size != self.image_size[0]).any()):
            raise DataError("the pictures of this batch differ in size; slice the trace or give image_map a size")
        return height, width

    def _to_target(self, size: geometry.Size) -> Tensor:
        """(B,2,3) or (2,3): network input → pixels of a picture of ``size``."""
        canvas = geometry.identity() if self.canvas is None else self.canvas.to(torch.float64)
        if self.image_size is None:
            return canvas
        height, width = self.image_size.to(torch.float64).unbind(-1)  # (B,)
        zero = torch.zeros_like(width)
        stretch = torch.stack([size[1] / width, zero, zero, zero, size[0] / height, zero], dim=-1).unflatten(-1, (2, 3))
        return geometry.compose(stretch, canvas)


@dataclass(frozen=True, eq=False, repr=False)
class Output(ShortRepr):
    """What every model returns."""

    logits: Tensor
    trace: AttentionTrace
    aux: dict[str, Tensor] = field(default_factory=dict)


def _as_slice(index: int | slice, length: int) -> slice:
    if isinstance(index, slice):
        return index
    if not -length <= index < length:
        raise IndexError(f"example {index} of a batch of {length}")
    index %= length
    return slice(index, index + 1)
