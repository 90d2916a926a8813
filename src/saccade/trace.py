"""The result types: what a model looked at, exactly as it was computed, with the coordinates to draw it; its answer.

A :class:`Look` is one kind of attention act for a batch; an :class:`AttentionTrace` is the ordered looks plus the
answer as tensors; an :class:`Answer` is that of one example in words. Weights are the α of the paper, never rescaled:
what is stored is what multiplied the features, and :meth:`Look.rebuild` proves it. Rescaling for display happens in
``saccade.show`` only.

Axes: B examples, T steps (words, hops, glimpses), H and W cells, S slots, C channels.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar, cast, dataclass_transform, get_args

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from saccade import geometry
from saccade.errors import DataError, nearest
from saccade.geometry import Size, theta_to_frame
from saccade.looks import Kind as Kind
from saccade.looks import Look as Look
from saccade.looks import Norm as Norm
from saccade.looks import Role as Role
from saccade.looks import ShortRepr, as_slice

AnswerKind = Literal["label", "labels", "sentence", "none"]

_FAR = 1.5  # How far beyond its last cell a map may reach before a look is taken for one of another picture.

Total = Literal["product", "mean", "last"]

# How a total takes in one more map, and what it starts from.
COMBINE: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float]] = {
    "product": (torch.mul, 1.0),
    "mean": (torch.add, 0.0),  # divided by the count in the end
    "last": (lambda before, current: current, 0.0),
}


@dataclass(frozen=True)
class Answer:
    """What a model answered; how it is drawn and stored follows from its kind and from the trace."""

    text: str
    #: Probability of the answer, 0..1; of a sentence, that of a word of it (the geometric mean, its end included).
    #: Calibrated where the model has a temperature, see ``raw``.
    confidence: float
    #: One label; labels said one after the other; the words of a sentence; none where the model has no head.
    kind: AnswerKind = "label"
    #: The other answers and their probabilities, likeliest first: all of them, or of very many the first few.
    alternatives: tuple[tuple[str, float], ...] = ()
    #: What was said one after the other, each with its probability; None for one label.
    parts: tuple[tuple[str, float], ...] | None = None
    log_probability: float | None = None  #: Log-probability of the whole sentence, including its end.
    #: What it would have answered before it had seen all, in order: where (a scale), the answer, its probability.
    on_the_way: tuple[tuple[str, str, float], ...] = ()
    #: Before calibration: the probability of the answer, then that of each alternative. Empty: not calibrated.
    raw: tuple[float, ...] = ()

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities were put right by the model's temperature."""
        return bool(self.raw)

    @property
    def raw_confidence(self) -> float:
        """The confidence as the network gives it, before calibration."""
        return self.raw[0] if self.raw else self.confidence


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTrace(ShortRepr):
    """The ordered looks of a model on a batch, its answer, and the way back to the original picture."""

    looks: tuple[Look, ...]
    answer: Tensor | None = None  # (B,…) ids of the answer.
    canvas: Tensor | None = None  # (B,2,3): network input → original picture, upright. None: the input is the picture.
    image_size: Tensor | None = None  # (B,2) height and width of the original picture; None for text.
    total: Total = "last"  # How this model's acts combine into one map.
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        answered = 0 if self.answer is None else self.answer.shape[0]
        return max((look.batch_size for look in self.looks), default=answered)

    def __iter__(self) -> Iterator[AttentionTrace]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int | slice) -> AttentionTrace:
        """The trace of one example (or a slice), batch axis kept; views, no copies."""
        part = as_slice(index, len(self))
        looks = tuple(look if look.is_shared else look.example(part) for look in self.looks)
        sliced: dict[str, Any] = {name: tensor[part] for name, tensor in self._own_tensors().items()}
        return dataclasses.replace(self, looks=looks, **sliced)

    def look(self, name: str) -> Look:
        """The look called ``name``."""
        for look in self.looks:
            if look.name == name:
                return look
        raise DataError(f"no look '{name}' in this trace: {nearest(name, [look.name for look in self.looks])}")

    def _own_tensors(self) -> dict[str, Tensor]:
        optional = {name: getattr(self, name) for name in ("answer", "canvas", "image_size")}
        return {name: value for name, value in optional.items() if value is not None}

    def map(self, change: Callable[[Tensor], Tensor]) -> AttentionTrace:
        """A trace with every tensor replaced by ``change(tensor)``."""
        looks = tuple(look.map(lambda _, tensor: change(tensor)) for look in self.looks)
        changed: dict[str, Any] = {name: change(tensor) for name, tensor in self._own_tensors().items()}
        return dataclasses.replace(self, looks=looks, **changed)

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
        """The same trace with the canvas and size of its original pictures."""
        return dataclasses.replace(self, canvas=canvas, image_size=image_size)

    def as_given(self) -> dict[str, Tensor]:
        """Attention that makes a model attend as here: weights or full masks by name, or the frames of crops."""
        return {name: tensor for look in self.looks for name, tensor in look.as_given().items()}

    def mark_given(self, attention: Mapping[str, Tensor]) -> AttentionTrace:
        """The same trace, marked: the weights of the looks in ``attention`` were given to the model, not computed.

        ``meta["given"]`` lists them; ``meta["given_steps"]`` says of how many first steps, where those were not all.
        Given weights need not be normalised, so their norm becomes "none".
        """
        names = [look.name for look in self.looks if look.name in attention]
        looks = tuple(dataclasses.replace(look, norm="none") if look.name in names else look for look in self.looks)
        fewer = {
            look.name: attention[look.name].shape[1]
            for look in self.looks
            if look.name in names and look.has_steps and attention[look.name].shape[1] < look.steps
        }
        marks: dict[str, object] = {"given": names} | ({"given_steps": fewer} if fewer else {})
        return dataclasses.replace(self, looks=looks, meta={**self.meta, **marks})

    def validate(self) -> AttentionTrace:
        """Check every look and that they belong together; returns the trace."""
        for problem in self._problems():
            raise DataError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        names = [look.name for look in self.looks]
        if not self.looks and self.answer is None:
            yield "a trace has at least one look, or of a model that has none an answer"
        if len(set(names)) != len(names) or "total" in names:
            yield f"look names repeat, or one is that of all looks together: {', '.join(names)}"
        if self.total not in get_args(Total):
            yield f"unknown total '{self.total}': {nearest(str(self.total), get_args(Total))}"
        for look in self.looks:
            look.validate()
            if look.batch_size != len(self) and not look.is_shared:
                yield f"look '{look.name}' is a batch of {look.batch_size}, not of {len(self)}"
        for name, expected in (("canvas", (len(self), 2, 3)), ("image_size", (len(self), 2))):
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != expected:
                yield f"trace.{name} should be {expected}, found {tuple(tensor.shape)}"

    def image_map(self, look: str | Look = "total", size: geometry.Size | None = None) -> Tensor:
        """A look (by itself or by name), or the total, laid over the original picture: (B,H,W), with steps (B,T,H,W).

        ``size`` (H, W) is by default the picture's own, which all examples must then share. A trace that does not know
        the size of its picture takes ``size`` for the input of the network.
        """
        if look == "total":
            return self._total_map(self._wanted_size(size))
        chosen = self.look(look) if isinstance(look, str) else look
        size = self._wanted_size(size)
        to_pixels = self.frame_on(chosen, size)
        if chosen.weights is None:
            to_pixels = to_pixels.to(cast(Tensor, chosen.frame).device)  # a map lies where its look does
            grid = cast(geometry.Size, chosen.grid)
            return geometry.coverage(to_pixels, grid, size).float().expand(len(self), *size)
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
        frame = geometry.compose(self._to_target(size), look.frame.to(torch.float64))
        if self.image_size is None and look.weights is not None and frame.device.type == "cpu":
            _warn_of_another_size(look, look.weights, frame, size)
        return frame

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
    def is_nested(self) -> bool:
        """Whether it looks at its picture by several crops and by nothing else."""
        looks = [look for look in self.looks if look.is_spatial]
        return len(looks) > 1 and all(look.kind == "crop" for look in looks)

    @property
    def looks_of_total(self) -> tuple[Look, ...]:
        """The looks on the picture that the total is made of, in order.

        What was fed to a layer is left aside; so is what was drawn from or derived, where there is something that was
        attended.
        """
        shown = [look for look in self.looks if look.is_spatial and look.role != "input"]
        return tuple([look for look in shown if look.role not in ("policy", "derived")] or shown)

    def _total_map(self, size: geometry.Size, laid: Mapping[str, Tensor] | None = None) -> Tensor:
        """Every act that is active, in order, combined as ``total`` says; (B,H,W). ``laid``: maps that are known."""
        combine, neutral = COMBINE[self.total]
        result: Tensor | None = None
        count: Tensor | int = 0
        for look in self.looks_of_total:
            maps = laid[look.name] if laid and look.name in laid else self.image_map(look, size)
            maps = maps.reshape(len(self), look.steps, *size)  # (B,T,H,W)
            maps = maps + look.base if look.base else maps
            active = None if look.active is None else look.active.bool().reshape(-1, look.steps, 1, 1)  # (B,T,1,1)
            for step in range(look.steps):
                before = torch.full_like(maps[:, step], neutral) if result is None else result
                after = combine(before, maps[:, step].to(before.device))  # (B,H,W)
                # chosen, not multiplied: what an inactive step holds may be NaN
                result = after if active is None else torch.where(active[:, step].to(before.device), after, before)
                count = count + (1 if active is None else active[:, step].to(torch.int64))
        if result is None:
            raise DataError("this trace has no look on a picture: there is no total map")
        return result / torch.as_tensor(count, device=result.device).clamp(min=1) if self.total == "mean" else result

    def _wanted_size(self, size: geometry.Size | None) -> geometry.Size:
        if size is not None:
            return geometry.checked_size(size)
        sizes = set() if self.image_size is None else {(int(h), int(w)) for h, w in self.image_size.tolist()}
        if len(sizes) != 1:
            raise DataError(
                f"the pictures of this trace have {len(sizes)} known sizes; slice it or give image_map a size"
            )
        return sizes.pop()

    def _to_target(self, size: geometry.Size) -> Tensor:
        """(B,2,3) or (2,3): network input → pixels of a picture of ``size``."""
        canvas = geometry.identity() if self.canvas is None else self.canvas.to(torch.float64)
        if self.image_size is None:
            return canvas
        height, width = self.image_size.to(torch.float64).unbind(-1)  # (B,)
        zero = torch.zeros_like(width)
        stretch = torch.stack([size[1] / width, zero, zero, zero, size[0] / height, zero], dim=-1)  # (B,6)
        return geometry.compose(torch.unflatten(stretch, -1, (2, 3)), canvas)


def _warn_of_another_size(look: Look, weights: Tensor, frame: Tensor, size: geometry.Size) -> None:
    """Say so where the cells of a look end far inside the wanted map: the network probably saw a resized picture."""
    rows, columns = weights.shape[-2:]
    corner = torch.tensor([float(columns), float(rows)], dtype=frame.dtype)
    reach = geometry.apply(frame, corner).reshape(-1, 2).amax(0)  # (2,): x, y of the far corner
    if size[1] > _FAR * reach[0] or size[0] > _FAR * reach[1]:
        warnings.warn(
            f"look '{look.name}' ends at ({reach[0]:.0f}, {reach[1]:.0f}) of a map of {size[1]} × {size[0]} pixels: if "
            f"the network saw a resized picture, make its frame with box=(0, 0, {size[1]}, {size[0]})",
            stacklevel=4,
        )


T = TypeVar("T")

# In a field that this output or act does not have. Whoever reads a field knows which model it is of.
ABSENT: Any = None


@dataclass_transform(eq_default=False)
def tensors(cls: type[T]) -> type[T]:
    """A dataclass whose tensors torch finds. Not frozen: Fabric fills in copies of what a model returns."""
    result = dataclass(eq=False)(cls)
    pytree.register_dataclass(result, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
    return result


@tensors
class Act:
    """One act of attention; shapes as in :class:`~saccade.looks.Look`, whose tensors these become."""

    context: Tensor = ABSENT  #: What came of it: (B,C), (B,C,H,W) of a gate, with steps (B,T,C).
    weights: Tensor = ABSENT
    scores: Tensor = ABSENT
    values: Tensor = ABSENT  #: What was attended: (B,C,H,W) or (B,S,C).
    theta: Tensor = ABSENT  #: (B,2,3) of a crop: its corners in those of the picture, both from -1 to 1.
    gain: Tensor = ABSENT
    choice: Tensor = ABSENT
    log_prob: Tensor = ABSENT
    active: Tensor = ABSENT
    emits: Tensor = ABSENT
    full: Tensor = ABSENT


_OF_LOOK = ("weights", "scores", "gain", "choice", "log_prob", "active", "emits", "full")


@dataclass(frozen=True, eq=False)
class LookSpec:
    """What does not change from batch to batch about a look."""

    kind: Kind
    role: Role
    norm: Norm = "none"
    frame: Tensor | None = None  #: (2,3): cells → pixels of the network input; None for slots and for crops.
    base: float = 0.0
    chosen: Role | None = None  #: Its role where one cell was chosen, if that is another.
    grid: Size | None = None  #: (h, w) of a crop.
    picture: Size | None = None  #: (H, W) of the picture that a crop is cut from.

    def at(self, frame: Tensor | None) -> LookSpec:
        """The same where its cells lie elsewhere."""
        return dataclasses.replace(self, frame=frame)

    def look(self, name: str, act: Act) -> Look:
        """The look of an act; the frame of a crop is θ in pixels, in double precision."""
        frame, role = self.frame, self.role
        if self.grid is not None and self.picture is not None:
            frame = theta_to_frame(act.theta.double(), self.grid, self.picture)  # (B,2,3)
        if self.chosen is not None and act.choice is not None:
            role = self.chosen
        fields: dict[str, Any] = {key: getattr(act, key) for key in _OF_LOOK}
        return Look(name, self.kind, role, norm=self.norm, frame=frame, grid=self.grid, base=self.base, **fields)


SOFT = LookSpec("soft", "multiplier", "softmax")
GATE = LookSpec("gate", "multiplier", "sigmoid")
# Without a choice the weights mix what all cells predict.
MIXTURE = LookSpec("hard", "mixture", "softmax", chosen="multiplier")


def crop_spec(grid: Size, picture: Size) -> LookSpec:
    """A crop read at ``grid`` (h, w) from a picture of (H, W)."""
    return LookSpec("crop", "crop", grid=grid, picture=picture)


@tensors
class ModelOutput:
    """What every model says."""

    logits: Tensor = ABSENT  #: (B,K), or (B,T,K) of what is said step by step.
    acts: dict[str, Act] = field(default_factory=dict)  #: By the names of their looks, in their order.

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """With every tensor replaced by ``change(tensor)``."""
        changed: Self = pytree.tree_map(change, self)
        return changed

    def __getitem__(self, rows: slice | Tensor) -> Self:
        """Some of the examples."""
        return self.map(lambda tensor: tensor[rows])


@tensors
class QuestionOutput(ModelOutput):
    """Of models that are asked about a picture."""

    penalty: Tensor = ABSENT  #: (B,): what the model adds to its loss.
    helper_logits: Tensor = ABSENT  #: (B,K), in training: of a head that answers too, so that it teaches.
    argmax_logits: Tensor = ABSENT  #: (B,K): what the likeliest cell says alone.
    posterior: Tensor = ABSENT  #: (B,H,W): where the evidence for the answer lies.
    sampled_logits: Tensor = ABSENT  #: (B,S,K), in training: what each drawn cell says.
    sampled_log_prob: Tensor = ABSENT  #: (B,S): how likely each was.
    entropy: Tensor = ABSENT  #: (B,) of the cells.


@tensors
class LabelOutput(ModelOutput):
    """Of models that give a picture one label; those with several scales say more."""

    scale_logits: Tensor = ABSENT  #: (B,S,K) of each scale that looked.
    boxes: Tensor = ABSENT  #: (B,2,3): the regions, in shares of their parents.
    #: (B,2,2): the place (x, y) of the strongest response of scales 1 and 2, in shares of what they see.
    strongest: Tensor = ABSENT
    responses: Tensor = ABSENT  #: (B,2,3): the square of what they see in which the network of the next scale responds.


@tensors
class MultisetOutput(ModelOutput):
    """Of models that say labels one by one: logits (B,T,Y), of which the last class means "nothing more"."""

    said: Tensor = ABSENT  #: (B,T)
    said_log_prob: Tensor = ABSENT
    class_entropy: Tensor = ABSENT
    class_value: Tensor = ABSENT
    active: Tensor = ABSENT  #: (B,T): nothing had ended the reading before.
    location: Tensor = ABSENT  #: (B,T,k): cells that were glimpsed, numbered row by row.
    location_log_prob: Tensor = ABSENT
    location_entropy: Tensor = ABSENT
    location_value: Tensor = ABSENT
    location_reward: Tensor = ABSENT
    energy: Tensor = ABSENT  #: (B,H,W): saliency before it is brought to 0 … 1.
    single_logits: Tensor = ABSENT  #: (B,C) of the classifier of single objects.
    object_logits: Tensor = ABSENT  #: (B,M,C): what that says of the cells in each box.
    count_logits: Tensor = ABSENT  #: (B,C,n): how many of each class.


@tensors
class CaptionOutput(ModelOutput):
    """Of captioners: logits (B,T,V) of words."""

    log_prob: Tensor = ABSENT  #: (B,T) of each word of a caption that the model drew.
    entropy: Tensor = ABSENT  #: (B,T) of the cells before each word, where they are drawn.
    expected: Tensor = ABSENT  #: (B,): of which pictures all cells counted even so.
    baseline: Tensor = ABSENT  #: (): the moving average of log p of one word before this batch.


AnyOutput = TypeVar("AnyOutput", bound=ModelOutput)


def joined(parts: Iterable[AnyOutput]) -> AnyOutput:
    """Outputs of a few examples each as one, without what was attended, which is large."""
    leaves, specs = [], []
    for part in parts:
        acts = {name: dataclasses.replace(act, values=ABSENT, context=ABSENT) for name, act in part.acts.items()}
        tensors_of, spec = pytree.tree_flatten(dataclasses.replace(part, acts=acts))
        leaves.append(tensors_of)
        specs.append(spec)
    whole = [torch.cat(column) if column[0].dim() else column[0] for column in zip(*leaves)]
    result: AnyOutput = pytree.tree_unflatten(whole, specs[0])
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Output(ShortRepr):
    """What every model returns."""

    logits: Tensor
    trace: AttentionTrace
    aux: ModelOutput = field(default_factory=ModelOutput)
