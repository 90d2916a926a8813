"""Traces the attention of a vision transformer from another library; the model runs unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.attention.frames import GridTracker
from saccade.data.pictures.reading import prepare, read_picture
from saccade.errors import ConfigError, DataError, ShapeError, nearest
from saccade.geometry import Size
from saccade.trace import AttentionTrace
from saccade.tracing.attention_calls import AttentionCalls
from saccade.tracing.gathering import Layers, TraceRequest, WeightCollector, Which
from saccade.tracing.model_facts import (
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

Heads = Literal["each", "mean"]


@dataclass(frozen=True, eq=False)
class TraceResult:
    """A trace, and what the model returned beside it."""

    trace: AttentionTrace
    logits: Tensor | None
    """(B,K) scores of its classes; None of a model without a head."""
    output: Any
    """What the model returned."""


def trace_of(model: nn.Module, image: Any, **options: Any) -> AttentionTrace:
    """Where a vision transformer of timm, transformers or plain torch looked, per layer and head.

    Each look holds weights as they multiplied the values, on the grid of patches. The part of a row that lies on the
    tokens before the patches (class, registers) is what the weights lack to 1. The model runs once, in eval mode and
    without gradients, and is as before afterwards. Threads may trace at once a model that is in eval mode already.

    Args:
        model: a vision transformer.
        image: its input (B,3,H,W) or (3,H,W), scaled as it takes it; or a path, a PIL image or an array, which is laid
            into the input without distortion.
        options: those of :func:`trace_with_output`.

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
    """:func:`trace_of`, with what the model returned.

    Args:
        model: as there.
        image: as there.
        rows: "class": the row of the class token, or of a pooling head or text in its place; "all": of every token, a
            step for each.
        layers: "all", "last", or their numbers, from 1 or from the end as -1.
        heads: a look for each head, or "mean": one look for each layer, which is derived.
        rollout: add the look ``rollout`` (Abnar and Zuidema 2020), which is derived.
        prefix_tokens: tokens before the patches, the first of them the class, where the model does not say.
        grid: (h, w) of the patches, where neither layers nor model say.
        inputs: what the model takes beside the picture, by name, such as ``input_ids``.
        mean: by which a path, a PIL image or an array is scaled; by default what the model says.
        std: likewise.
        size: (H, W) of the network input for these; by default what the model says.
    """
    _check(rows=rows, heads=heads, layers=layers)
    whole = bare(model)
    part = picture_part(whole, bool(inputs))
    pictures, canvas, sizes = _as_input(whole, image, mean, std, size)
    batch, network_size = pictures.shape[0], (pictures.shape[-2], pictures.shape[-1])
    wanted = TraceRequest(
        tokens_of(part, prefix_tokens),
        rows=rows,
        layers=layers,
        rollout=rollout,
        pools_patches=pools_patches(part),
        most_layers=layers_of_vision(part),
        reader="text" if inputs else "pool",
    )
    told_grid = grid or patch_grid(part, network_size)
    with torch.inference_mode(False), torch.no_grad():  # in inference mode torch does not say what a layer does
        pictures = pictures.clone() if pictures.is_inference() else pictures
        moves = GridTracker(pictures)
        gathered = WeightCollector(wanted, batch, network_size, moves, told_grid)
        with _as_it_is(part), moves, AttentionCalls(gathered.visit):
            named = {"pixel_values": pictures} if of_transformers(part) else {}
            output = part(**named, **(inputs or {})) if named else part(pictures, **(inputs or {}))
    logits = logits_of(part, output, batch)
    meta = {
        "traced": type(whole).__name__,
        "rows": rows,
        "prefix_tokens": wanted.tokens.prefix,
        "layers": gathered.layer_count,
    }
    try:
        looks = gathered.looks(head_mean=heads == "mean")
    except ConfigError as error:
        raise ConfigError(f"{type(whole).__name__}: {error}") from error
    derived = [look.name for look in looks if look.role == "derived"]
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
    for what, found, allowed in (("rows", rows, ("class", "all")), ("heads", heads, ("each", "mean"))):
        if found not in allowed:
            raise ConfigError(f"{what}: unknown '{found}': {nearest(str(found), allowed)}")
    if layers in ("all", "last"):
        return
    is_list = isinstance(layers, Sequence) and not isinstance(layers, str) and len(layers) > 0
    if not is_list or any(type(each) is not int or each == 0 for each in layers):
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
    weight = next((each for each in model.parameters() if each.is_floating_point()), torch.empty(0))
    if isinstance(image, Tensor):
        pictures = image.unsqueeze(0) if image.dim() == 3 else image
        if pictures.dim() != 4 or not pictures.is_floating_point() or 0 in pictures.shape:
            raise ShapeError("image", "(B,3,H,W) or (3,H,W) of floats, scaled as the model takes it", image.shape)
        sizes = torch.tensor(pictures.shape[-2:]).expand(pictures.shape[0], 2)
        return pictures.to(weight.device, weight.dtype), None, sizes
    told, own_size = colours(model), size or input_size(model)
    if mean is not None and std is not None:
        told = tuple(mean), tuple(std)
    if told is None or own_size is None:
        lacking = "mean= and std= of its colours" if told is None else "size= of its input"
        raise DataError(
            f"{type(model).__name__} does not say how a picture becomes its input: give {lacking}, or a tensor "
            "(B,3,H,W) as it takes it"
        )
    framed, canvas, picture_size = prepare(read_picture(image), own_size, fill=0.5)
    centre, spread = (torch.tensor(each).view(-1, 1, 1) for each in told)
    return ((framed - centre) / spread)[None].to(weight.device, weight.dtype), canvas[None], picture_size[None]
