"""What models return: plain tensors with names, fit for compiling, for graphs and for several processes.

A :class:`ModelOutput` has the logits and an :class:`Act` for each look. What else a family's models say has a field in
a class of its own. torch maps over all of them: under ``vmap``, in ``torch.export``, between processes. A
:class:`LookSpec` is what is constant about a look; with it an act becomes a :class:`~saccade.looks.Look`.

Axes: B examples, T steps (words, hops, glimpses), H and W cells, S slots, C channels, K answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, dataclass_transform, overload

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from saccade.geometry import Size, theta_to_frame
from saccade.looks import Kind, Look, Norm, Role

T = TypeVar("T")

ABSENT: Any = None
"""In a field that this output or act does not have. Whoever reads a field knows which model it is of."""


@dataclass_transform(eq_default=False)
def tensors(cls: type[T]) -> type[T]:
    """A dataclass whose tensors torch finds. Not frozen: Fabric fills in copies of what a model returns."""
    made = dataclass(eq=False)(cls)
    pytree.register_dataclass(made, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
    return made


@tensors
class Act:
    """One act of attention; shapes as in :class:`~saccade.looks.Look`, whose tensors these become."""

    context: Tensor = ABSENT
    """What came of it: (B,C), (B,C,H,W) of a gate, with steps (B,T,C)."""
    weights: Tensor = ABSENT
    scores: Tensor = ABSENT
    values: Tensor = ABSENT
    """What was attended: (B,C,H,W) or (B,S,C)."""
    theta: Tensor = ABSENT
    """(B,2,3) of a crop: its corners in those of the picture, both from -1 to 1."""
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
    frame: Tensor | None = None
    """(2,3): cells → pixels of the network input; None for slots and for crops."""
    base: float = 0.0
    chosen: Role | None = None
    """Its role where one cell was chosen, if that is another."""
    grid: Size | None = None
    """(h, w) of a crop."""
    picture: Size | None = None
    """(H, W) of the picture that a crop is cut from."""

    def at(self, frame: Tensor | None) -> LookSpec:
        """The same where its cells lie elsewhere."""
        return dataclasses.replace(self, frame=frame)

    def look(self, name: str, act: Act) -> Look:
        """The look of an act; the frame of a crop is θ in pixels, in double precision, so that it reads the same."""
        frame, role = self.frame, self.role
        if self.grid is not None and self.picture is not None:
            frame = theta_to_frame(act.theta.double(), self.grid, self.picture)  # (B,2,3)
        if self.chosen is not None and act.choice is not None:
            role = self.chosen
        held: dict[str, Any] = {each: getattr(act, each) for each in _OF_LOOK}
        return Look(name, self.kind, role, norm=self.norm, frame=frame, grid=self.grid, base=self.base, **held)


SOFT = LookSpec("soft", "multiplier", "softmax")
GATE = LookSpec("gate", "multiplier", "sigmoid")
MIXTURE = LookSpec("hard", "mixture", "softmax", chosen="multiplier")
"""Without a choice the weights mix what all cells predict."""


def crop_spec(grid: Size, picture: Size) -> LookSpec:
    """A crop read at ``grid`` (h, w) from a picture of (H, W)."""
    return LookSpec("crop", "crop", grid=grid, picture=picture)


class _ByOldName:
    """Fields by the names that outputs had as dictionaries: "logits", "stage1.weights". Until its last reader goes."""

    acts: dict[str, Act]

    def _find(self, key: str) -> Any:
        name, _, part = key.rpartition(".")
        if name:
            return getattr(self.acts.get(name), part, None)
        return getattr(self, "logits" if key == "class_logits" and hasattr(self, "said") else key, None)

    def _named(self, key: str) -> Tensor:
        found: Tensor | None = self._find(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: str) -> bool:
        return self._find(key) is not None

    def get(self, key: str, other: Tensor | None = None) -> Tensor | None:
        """The tensor of that name, or ``other``."""
        found: Tensor | None = self._find(key)
        return other if found is None else found


@tensors
class ModelOutput(_ByOldName):
    """What every model says."""

    logits: Tensor = ABSENT
    """(B,K), or (B,T,K) of what is said step by step."""
    acts: dict[str, Act] = field(default_factory=dict)
    """By the names of their looks, in their order."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """With every tensor replaced by ``change(tensor)``."""
        changed: Self = pytree.tree_map(change, self)
        return changed

    @overload
    def __getitem__(self, rows: str) -> Tensor: ...
    @overload
    def __getitem__(self, rows: slice | Tensor) -> Self: ...
    def __getitem__(self, rows: Any) -> Any:
        """Some of the examples."""
        return self._named(rows) if isinstance(rows, str) else self.map(lambda tensor: tensor[rows])


@tensors
class QuestionOutput(ModelOutput):
    """Of models that are asked about a picture."""

    penalty: Tensor = ABSENT
    """(B,): what the model adds to its loss."""
    helper_logits: Tensor = ABSENT
    """(B,K), in training: of a head that answers too, so that it teaches."""
    argmax_logits: Tensor = ABSENT
    """(B,K): what the likeliest cell says alone."""
    posterior: Tensor = ABSENT
    """(B,H,W): where the evidence for the answer lies."""
    sampled_logits: Tensor = ABSENT
    """(B,S,K), in training: what each drawn cell says."""
    sampled_log_prob: Tensor = ABSENT
    """(B,S): how likely each was."""
    entropy: Tensor = ABSENT
    """(B,) of the cells."""


@tensors
class LabelOutput(ModelOutput):
    """Of models that give a picture one label; those with several scales say more."""

    scale_logits: Tensor = ABSENT
    """(B,S,K) of each scale that looked."""
    boxes: Tensor = ABSENT
    """(B,2,3): the regions, in shares of their parents."""
    strongest: Tensor = ABSENT
    """(B,2,2): the place (x, y) of the strongest response of scales 1 and 2, in shares of what they see."""
    responses: Tensor = ABSENT
    """(B,2,3): the square of what they see in which the network of the next scale responds."""


@tensors
class MultisetOutput(ModelOutput):
    """Of models that say labels one by one: logits (B,T,Y), of which the last class means "nothing more"."""

    said: Tensor = ABSENT
    """(B,T)"""
    said_log_prob: Tensor = ABSENT
    class_entropy: Tensor = ABSENT
    class_value: Tensor = ABSENT
    active: Tensor = ABSENT
    """(B,T): nothing had ended the reading before."""
    location: Tensor = ABSENT
    """(B,T,k): cells that were glimpsed, numbered row by row."""
    location_log_prob: Tensor = ABSENT
    location_entropy: Tensor = ABSENT
    location_value: Tensor = ABSENT
    location_reward: Tensor = ABSENT
    energy: Tensor = ABSENT
    """(B,H,W): saliency before it is brought to 0 … 1."""
    single_logits: Tensor = ABSENT
    """(B,C) of the classifier of single objects."""
    object_logits: Tensor = ABSENT
    """(B,M,C): what that says of the cells in each box."""
    count_logits: Tensor = ABSENT
    """(B,C,n): how many of each class."""


@tensors
class CaptionOutput(ModelOutput):
    """Of captioners: logits (B,T,V) of words."""

    log_prob: Tensor = ABSENT
    """(B,T) of each word of a caption that the model drew."""
    entropy: Tensor = ABSENT
    """(B,T) of the cells before each word, where they are drawn."""
    expected: Tensor = ABSENT
    """(B,): of which pictures all cells counted even so."""
    baseline: Tensor = ABSENT
    """(): the moving average of log p of one word before this batch."""


Output = TypeVar("Output", bound=ModelOutput)


def joined(parts: Iterable[Output]) -> Output:
    """Outputs of a few examples each as one, without what was attended: that is large, and scores do not read it."""
    leaves, specs = zip(*(pytree.tree_flatten(_without_values(part)) for part in parts))
    whole = [torch.cat(each) if each[0].dim() else each[0] for each in zip(*leaves)]
    found: Output = pytree.tree_unflatten(whole, specs[0])
    return found


def _without_values(output: Output) -> Output:
    acts = {name: dataclasses.replace(act, values=ABSENT, context=ABSENT) for name, act in output.acts.items()}
    return dataclasses.replace(output, acts=acts)
