"""Traces the attention of a vision transformer from another library; the model runs unchanged.

A *layer* is a call in which every token looks at every token. The row of its class token is kept: where that token
looked. A *reading* is a call in which something else looks at the patches: a pooling head, or the words of a text.
Where there is a reading, it is what the answer saw of the picture, and the layers before it are left out.

Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928) is derived: no such weights are in the model. Each layer
counts as ½ A + ½ I, its mean over heads and the residual connection; rollout is the product of all layers.

Axes: B examples, h heads, Q query rows, K keys, T query rows that are kept, H and W patches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.attention.frames import GridTracker, frame_like
from saccade.data.pictures.reading import prepare, read_picture
from saccade.errors import ConfigError, DataError, ShapeError, nearest
from saccade.geometry import Size
from saccade.trace import AttentionTrace, Look, Role
from saccade.tracing.attention_calls import AttentionCall, AttentionCalls
from saccade.tracing.model_facts import (
    Tokens,
    bare,
    colours,
    input_size,
    is_compiled,
    layers_of_vision,
    logits_of,
    of_transformers,
    patch_grid,
    picture_part,
    pools_patches,
    tokens_of,
)

_ROWS = 128  # query rows at a time: heads times rows times keys is never held for all rows


class Rollout:
    """Takes in one layer after the other; holds (B,N,N)."""

    def __init__(self) -> None:
        self._product: Tensor | None = None

    def add(self, call: AttentionCall, batch: int) -> None:
        """R ← ½ A R + ½ R; A is the mean over heads of a layer in which every token looks at every token."""
        rows = torch.split(torch.arange(call.queries, device=call.source.device), _ROWS)
        mean = torch.cat([call.rows(batch, part).mean(1) for part in rows], 1)  # (B,N,N)
        before = self._product
        if before is None:
            before = torch.eye(call.keys, dtype=mean.dtype, device=mean.device).expand(batch, -1, -1)
        self._product = (mean @ before).add_(before).mul_(0.5)  # (B,N,N)

    def of(self, start: Tensor | None, prefix: int, *, has_class: bool) -> Tensor | None:
        """(B,cells): the share of each patch, behind ``prefix`` tokens; None where no layer was added.

        ``start`` (B,N) are weights on the last layer's tokens; None: the class token, or all patches evenly.
        """
        if self._product is None:
            return None
        if start is not None:
            reached = (start.unsqueeze(1).to(self._product) @ self._product).squeeze(1)  # (B,N)
        else:
            reached = self._product[:, 0] if has_class else self._product[:, prefix:].mean(1)  # (B,N)
        return reached[:, prefix:].clone()


Which = Literal["class", "all"]
Layers = Literal["all", "last"] | Sequence[int]


@dataclass(frozen=True, eq=False)
class CallRows:
    """What is kept of one call: its number, rows (B,h,T,K), and keys before the patches."""

    number: int
    weights: Tensor
    prefix: int


@dataclass(eq=False)
class WeightCollector:
    """Collects the calls of one forward pass, and makes looks of them."""

    tokens: Tokens
    batch: int  # pictures
    moves: GridTracker  # follows the grid from the picture to the first call
    candidates: list[tuple[Size, Tensor]]  # grids and frames that the patches may have, of the model or the caller
    rows: Which
    layers: Layers
    rollout: Rollout | None
    pools_patches: bool  # whether the answer is the mean of all patches
    most_layers: int | None  # layers that look at the picture; later ones of that shape are of a text
    reader: str  # name of a reading

    def __post_init__(self) -> None:
        self.grid: Size | None = None
        self.frame: Tensor | None = None
        self._layers: list[CallRows] = []
        self._readings: list[CallRows] = []
        self._seen: list[int] = []  # keys of each call: what refusals speak of
        self._odd: int | None = None  # windows or groups of the first call that is about something else than pictures
        self._others = self.layer_count = self.reading_count = 0
        self._ends_reading = False

    def _is_chosen(self, number: int, count: int) -> bool:
        if isinstance(self.layers, str):
            return self.layers == "all" or number == count
        return number in self.layers or number - count - 1 in self.layers

    def visit(self, call: AttentionCall) -> None:
        """Keep what is wanted of one call."""
        if not self._seen:  # where the patches lie, as the layers before the first attention moved the grid
            with suppress(ConfigError):
                self.candidates.insert(0, self.moves.grid_and_frame(call.source))
            self.moves.stop()  # or it would hold all that the model computes
        prefix, is_of_pictures = self.tokens.prefix, call.heads(self.batch) is not None
        if self._odd is None and not is_of_pictures:
            self._odd = call.lead[0] if call.lead else 0
        self._seen.append(call.keys)
        is_on_picture = is_of_pictures and self._lies_on_grid(call)
        is_layer = is_on_picture and call.queries == call.keys
        self._ends_reading = is_on_picture and not is_layer
        if not is_on_picture or (is_layer and call.keys != prefix + self._cells):
            self._others += 1
        elif is_layer:
            self._visit_layer(call)
        else:
            self.reading_count += 1
            own_tokens = prefix if call.keys == prefix + self._cells else 0
            self._readings.append(CallRows(self.reading_count, call.rows(self.batch), own_tokens))

    def _lies_on_grid(self, call: AttentionCall) -> bool:
        for grid, frame in self.candidates:
            if grid[0] * grid[1] in (call.keys - self.tokens.prefix, call.keys):
                self.candidates, self.grid, self.frame = [(grid, frame)], grid, frame
                return True
        return False

    def _visit_layer(self, call: AttentionCall) -> None:
        most = self.most_layers
        if most is not None and self.layer_count >= most:
            raise ConfigError(
                f"the text has {call.keys} tokens, as many as the picture: its own attention cannot be told from that "
                "on the picture; make the text one token shorter or longer"
            )
        self.layer_count += 1
        if self.rollout is not None:
            self.rollout.add(call, self.batch)
        if self.rows != "all" and not self._has_class:  # no row is wanted
            return
        chosen = self.layers
        if chosen == "last":
            self._layers.clear()
        elif not isinstance(chosen, str) and min(chosen) > 0 and self.layer_count not in chosen:
            return
        first = None if self.rows == "all" else torch.zeros(1, dtype=torch.long, device=call.source.device)
        self._layers.append(CallRows(self.layer_count, call.rows(self.batch, first), self.tokens.prefix))

    @property
    def _has_class(self) -> bool:
        return self.tokens.has_class and not self.pools_patches

    @property
    def _cells(self) -> int:
        return 0 if self.grid is None else self.grid[0] * self.grid[1]

    def looks(self, *, head_mean: bool = False) -> tuple[Look, ...]:
        """The looks in order, layer by layer and head by head; a ConfigError that says why there are none."""
        self._refuse_regrouped()
        is_reading = bool(self._readings) and self.rows == "class"
        calls = self._readings if is_reading else [*self._layers, *self._readings]
        count = self.reading_count if is_reading else self.layer_count
        chosen = [call for call in calls if self._is_chosen(call.number, count)]
        if count and not any(self._is_chosen(number, count) for number in range(1, count + 1)):
            raise ConfigError(f"layers: the model has layers 1 to {count}, found {self.layers}")
        looks = [look for call in chosen for look in self._looks_of(call, head_mean=head_mean)] + self._derived()
        if not looks:
            raise ConfigError(self._why_none())
        return tuple(looks)

    def _refuse_regrouped(self) -> None:
        """A ConfigError where calls are missing from the way to the answer: they lie on other tokens."""
        is_text = self.reader == "text" and self._readings
        if not self._others or is_text or (self._ends_reading and self.rollout is None):
            return
        if self._odd is not None:
            raise ConfigError(
                f"its attention runs in windows or groups, {self._odd} for {self.batch} picture(s): no row of it "
                "looks at the whole picture, so there is no map of where the model looked"
            )
        counts = ", ".join(map(str, sorted(set(self._seen))[:8]))
        cells = "a grid that is not known" if self.grid is None else f"{self.grid[0]} × {self.grid[1]} patches"
        raise ConfigError(
            f"its attention lies on {counts} tokens, and not always on {self.tokens.prefix} token(s) before "
            f"{cells}: it drops, merges or regroups them. Say prefix_tokens= and grid= if it does not"
        )

    def _name(self, call: CallRows) -> str:
        if any(call is layer for layer in self._layers):
            return f"layer{call.number}"
        return self.reader if self.reading_count == 1 else f"{self.reader}{call.number}"

    def _looks_of(self, call: CallRows, *, head_mean: bool) -> list[Look]:
        """A look for each head, or their mean, which is derived: each head multiplied values of its own."""
        name = self._name(call)
        if head_mean:
            return [self._look(name, call.weights.mean(1)[..., call.prefix :], "derived", call.prefix)]
        heads = enumerate(call.weights[..., call.prefix :].unbind(1), start=1)  # h × (B,T,cells)
        return [self._look(f"{name}.head{number}", weights, "multiplier", call.prefix) for number, weights in heads]

    def _look(self, name: str, weights: Tensor, role: Role, prefix: int) -> Look:
        """A look of weights (B,T,cells), which lack to 1 what lies on ``prefix`` tokens."""
        on_cells = weights.reshape(*weights.shape[:2], *(self.grid or (1, 1)))  # (B,T,H,W)
        on_cells = on_cells[:, 0] if on_cells.shape[1] == 1 else on_cells
        return Look(name, "soft", role, on_cells.contiguous(), norm="none" if prefix else "softmax", frame=self.frame)

    def _derived(self) -> list[Look]:
        """The rollout from what reads the patches, from the class token, or from all patches evenly."""
        if self.rollout is None:
            return []
        prefix, start = self.tokens.prefix, None
        if self._readings:
            last = self._readings[-1]
            start = last.weights.mean((1, 2))  # (B,K)
            if last.prefix < prefix:
                start = torch.cat([start.new_zeros(len(start), prefix), start], 1)  # (B,N)
        shares = self.rollout.of(start, prefix, has_class=self._has_class)  # (B,cells)
        return [] if shares is None else [self._look("rollout", shares.unsqueeze(1), "derived", prefix)]

    def _why_none(self) -> str:
        if not self._seen:
            return (
                "no attention was seen: it calls neither scaled_dot_product_attention nor nn.MultiheadAttention, and "
                "multiplies no softmax with values. Where it uses flash or flex attention, switch that off, in "
                "transformers by model.set_attn_implementation('sdpa')"
            )
        remedy = "rows='all' gives the attention of every token, rollout=True one derived map"
        if self.pools_patches:
            return f"its answer is the mean of all patches: no row of its attention alone decides it. {remedy}"
        return f"it has neither a class token nor a pooling head: no row of its attention decides the answer. {remedy}"


Heads = Literal["each", "mean"]


@dataclass(frozen=True, eq=False)
class TraceResult:
    """A trace, and what the model returned beside it."""

    trace: AttentionTrace
    logits: Tensor | None  # (B,K) scores of its classes; None of a model without a head
    output: Any  # of the model


def trace_of(model: nn.Module, image: Any, **options: Any) -> AttentionTrace:
    """Where a vision transformer of timm, transformers or plain torch looked, per layer and head.

    Each look holds weights as they multiplied the values, on the grid of patches. What the weights of a row lack to 1
    lies on the tokens before the patches (class, registers). The model runs once, in eval mode and without gradients,
    and is as before afterwards. Several threads may trace a model that is in eval mode already.

    Args:
        model: a vision transformer.
        image: its input (B,3,H,W) or (3,H,W), scaled as it takes it; or a path, a PIL image or an array, which is laid
            into the input without distortion.
        options: ``rows``, "class": the row of the class token, or of a pooling head or text in its place; "all": of
            every token, a step for each. ``layers``, "all", "last", or their numbers, from 1 or from the end as -1.
            ``heads``, "each", or "mean": one look for each layer, which is derived. ``rollout=True`` adds the look
            ``rollout``, which is derived. ``prefix_tokens``, those before the patches, the first of them the class, and
            ``grid``, (h, w) of the patches, where the model does not say. ``inputs``, what the model takes beside the
            picture, by name, such as ``input_ids``. ``mean``, ``std`` and ``size`` (H, W), how a path, a PIL image or
            an array becomes an input; by default as the model says.

    Returns:
        Looks ``layer1.head1`` …, the class token's rows; of a pooling head ``pool.head1`` …, of a text's words
        ``text1.head1`` … with a step for each; its total is their mean. The answer (B,) where the model has classes.

    Raises:
        ConfigError: there is no honest look, and why.
    """
    return trace_with_output(model, image, **options).trace


def trace_with_output(
    model: nn.Module,
    image: object,
    *,
    rows: Which = "class",
    layers: Layers = "all",
    heads: Heads = "each",
    rollout: bool = False,
    prefix_tokens: int | None = None,
    grid: Size | None = None,
    inputs: Mapping[str, object] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: Size | None = None,
) -> TraceResult:
    """:func:`trace_of`, with what the model returned."""
    _check(rows=rows, heads=heads, layers=layers)
    whole = bare(model)
    part = picture_part(whole, bool(inputs))
    pictures, canvas, sizes = _as_input(whole, image, mean, std, size)
    batch, network_size = pictures.shape[0], (pictures.shape[-2], pictures.shape[-1])
    tokens, told_grid = tokens_of(part, prefix_tokens), grid or patch_grid(part, network_size)
    with torch.inference_mode(False), torch.no_grad():  # in inference mode torch does not say what a layer does
        pictures = pictures.clone() if pictures.is_inference() else pictures
        moves = GridTracker(pictures)
        gathered = WeightCollector(
            tokens,
            batch,
            moves,
            candidates=[] if told_grid is None else [(told_grid, frame_like(told_grid, network_size))],
            rows=rows,
            layers=layers,
            rollout=Rollout() if rollout else None,
            pools_patches=pools_patches(part),
            most_layers=layers_of_vision(part),
            reader="text" if inputs else "pool",
        )
        with _as_it_is(part), moves, AttentionCalls(gathered.visit):
            named = {"pixel_values": pictures} if of_transformers(part) else {}
            output = part(**named, **(inputs or {})) if named else part(pictures, **(inputs or {}))
    logits, name = logits_of(part, output, batch), type(whole).__name__
    try:
        looks = gathered.looks(head_mean=heads == "mean")
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    derived = [look.name for look in looks if look.role == "derived"]
    meta = {"traced": name, "rows": rows, "prefix_tokens": tokens.prefix, "layers": gathered.layer_count}
    trace = AttentionTrace(
        looks,
        answer=None if logits is None else logits.argmax(-1),
        canvas=canvas,
        image_size=sizes,
        total="mean",
        meta={**meta, **({"derived": derived} if derived else {})},
    )
    return TraceResult(trace.validate(), logits, output)


def _check(*, rows: str, heads: str, layers: Layers) -> None:
    for what, value, allowed in (("rows", rows, ("class", "all")), ("heads", heads, ("each", "mean"))):
        if value not in allowed:
            raise ConfigError(f"{what}: unknown '{value}': {nearest(str(value), allowed)}")
    if layers in ("all", "last"):
        return
    is_list = isinstance(layers, Sequence) and not isinstance(layers, str) and len(layers) > 0
    if not is_list or any(type(number) is not int or number == 0 for number in layers):
        raise ConfigError(
            f"layers: expected 'all', 'last', or a list of numbers from 1 or from the end as -1, found {layers!r}"
        )


@contextmanager
def _as_it_is(model: nn.Module) -> Iterator[None]:
    """Run the model in eval mode and uncompiled; both are as before afterwards."""
    was_training = [module for module in model.modules() if module.training]
    with ExitStack() as undone:
        if is_compiled(model):
            undone.enter_context(torch.compiler.set_stance("force_eager"))
        for module in was_training:
            module.training = False
            undone.callback(setattr, module, "training", True)
        yield


def _as_input(
    model: nn.Module, image: Any, mean: Sequence[float] | None, std: Sequence[float] | None, size: Size | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The network input (B,3,H,W) on the model's device; its canvas (B,2,3) and the pictures' sizes (B,2)."""
    weight = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), torch.empty(0))
    if isinstance(image, Tensor):
        pictures = image.unsqueeze(0) if image.dim() == 3 else image
        if pictures.dim() != 4 or not pictures.is_floating_point() or 0 in pictures.shape:
            raise ShapeError("image", "(B,3,H,W) or (3,H,W) of floats, scaled as the model takes it", image.shape)
        sizes = torch.tensor(pictures.shape[-2:]).expand(pictures.shape[0], 2)
        return pictures.to(weight.device, weight.dtype), None, sizes
    scaling, own_size = colours(model), size or input_size(model)
    if mean is not None and std is not None:
        scaling = tuple(mean), tuple(std)
    if scaling is None or own_size is None:
        lacking = "mean= and std= of its colours" if scaling is None else "size= of its input"
        raise DataError(
            f"{type(model).__name__} does not say how a picture becomes its input: give {lacking}, or a tensor "
            "(B,3,H,W) as it takes it"
        )
    framed, canvas, picture_size = prepare(read_picture(image), own_size, fill=0.5)
    centre, spread = (torch.tensor(colour).view(-1, 1, 1) for colour in scaling)
    return ((framed - centre) / spread)[None].to(weight.device, weight.dtype), canvas[None], picture_size[None]
