"""Class activation maps of any network, and the layer on which they are made.

The layer is the last module whose output is a map of cells, (B,C,h,w) or (B,h,w,C), or tokens (B,N,C) of a
transformer, and whose cells the answer depends on, by the gradient of one forward pass. Of a transformer, only the
norms are tried. Tokens in front of the patches are left out. Frames are followed through the layers; where that fails,
cells tile the input.

Axes: B pictures, h and w cells, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.frames import GridTracker, frame_like
from saccade.errors import ConfigError, nearest
from saccade.geometry import Size
from saccade.metrics.maps.faithfulness import hirescam
from saccade.scoring.networks import Network
from saccade.tracing.model_facts import patch_grid, tokens_of

CAMS = ("gradcam", "hirescam", "layercam")


class CellMaps(NamedTuple):
    """Maps on the cells of a grid."""

    maps: Tensor  # (B,h,w)
    frame: Tensor  # (2,3): cells → pixels of the network input

    def over(self, canvas: Tensor, size: Size) -> Tensor:
        """Laid over a picture of ``size`` (B,H,W), in main memory; ``canvas`` (2,3): network input → picture."""
        frame = geometry.compose(canvas.double().cpu(), self.frame.detach().double().cpu())
        return geometry.project(self.maps.detach().cpu().float(), frame, size)


Attribute = Callable[[Tensor, Tensor], CellMaps]  # Network inputs (B,3,H,W) and classes (B,) → maps
Logit = Callable[[Tensor], Tensor]  # Network inputs (B,3,H,W) → the logit (B,) of the answer to each


def cam_on(method: str, network: Network, layer: str | None) -> Attribute:
    """The method on a network, at its layer or the one named."""
    place, frame = cam_layer(network, layer)
    module = network.module.get_submodule(place.name)

    def attribute(images: Tensor, targets: Tensor) -> CellMaps:
        outputs: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Any) -> Any:
            torch.set_grad_enabled(True)  # from here on: what lies before costs no memory
            outputs.append(_first(output).detach().requires_grad_())
            return _with_first(output, outputs[-1].clone())  # a layer behind may write into it

        with torch.no_grad(), hooked({module: keep}):
            score = network.logit_of(images, targets).sum()
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(score, outputs[-1])
        return CellMaps(cam(method, place.of(outputs[-1].detach()), place.of(gradient)), frame)

    return attribute


def cam(method: str, features: Tensor, slopes: Tensor) -> Tensor:
    """The map (B,h,w) of features A and slopes ∂y/∂A, (B,C,h,w) each."""
    if method == "gradcam":
        slopes = slopes.mean((-2, -1), keepdim=True)
    return hirescam(features, slopes.relu() if method == "layercam" else slopes)


class _Cells(NamedTuple):
    """How the output of a module is read as a map of cells."""

    name: str
    kind: str  # map (B,C,h,w), last (B,h,w,C) or tokens (B,N,C)
    grid: Size

    def of(self, output: Tensor) -> Tensor:
        """(B,C,h,w)."""
        if self.kind == "tokens":
            many = self.grid[0] * self.grid[1]
            return output[:, -many:].transpose(1, 2).reshape(len(output), -1, *self.grid)
        return output.permute(0, 3, 1, 2) if self.kind == "last" else output


def cam_layer(network: Network, layer: str | None = None) -> tuple[_Cells, Tensor]:
    """The layer of CAMs, see the module, and the frame (2,3) of its cells; ``layer`` names another one."""
    module, size = network.module, network.size
    names = {part: name for name, part in module.named_modules() if name}
    if layer is not None and layer not in names.values():
        near = nearest(layer, names.values(), listed_by="model.named_modules()")
        raise ConfigError(f"layer: '{network.name}' has no '{layer}'; {near}")
    outputs: list[tuple[nn.Module, Tensor]] = []

    def note(part: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(_first(output), Tensor):
            outputs.append((part, _first(output)))

    images = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(0)).to(network.device)
    wanted = {part: note for part, name in names.items() if layer in (None, name)}
    with network.evaluating(), torch.enable_grad(), hooked(wanted):
        score = network.logits(images.requires_grad_()).amax(-1).sum()
        pairs = [(part, output) for part, output in outputs if output.requires_grad and output.is_floating_point()]
        slopes = torch.autograd.grad(score, [output for _, output in pairs], allow_unused=True)
    patches, prefix = patch_grid(module, size), tokens_of(module).prefix
    places = [(part, _cells(names[part], output, size, patches, prefix)) for part, output in pairs]
    known = [(part, place) for (part, place), slope in zip(places, slopes)
             if place is not None and slope is not None and bool(place.of(slope).any())]  # fmt: skip
    if any(place.kind == "tokens" for _, place in known) and layer is None:
        norms = [(part, place) for part, place in known if "norm" in type(part).__name__.lower()]
        known = [(part, place) for part, place in norms if place.kind == "tokens"] or known
    if not known:
        what = "no layer has" if layer is None else f"'{layer}' has not"
        raise ConfigError(
            f"'{network.name}': {what} an output with cells (B,C,h,w) or tokens (B,N,C) that its answer depends on; "
            "name one by `layer`, or take a method that needs none, such as ig or occlusion"
        )
    part, place = known[-1]
    return place, _frame(network, part, place.grid)


def _cells(name: str, output: Tensor, size: Size, patches: Size | None, prefix: int) -> _Cells | None:
    """How an output is read as a map of cells; None where it is none. ``prefix``: tokens before those of patches."""
    shape = output.shape
    if len(shape) == 4:
        for kind, grid in (("map", (shape[2], shape[3])), ("last", (shape[1], shape[2]))):
            if min(grid) > 1 and max(grid) <= max(size) and abs(grid[0] * size[1] - grid[1] * size[0]) <= max(size):
                return _Cells(name, kind, grid)
    if len(shape) == 3 and shape[0] == 1:
        sides = [math.isqrt(max(0, shape[1] - before)) for before in (prefix, 0)]
        for grid in filter(None, (patches, *((side, side) for side in sides))):
            if min(grid) > 1 and shape[1] - grid[0] * grid[1] in (0, 1, prefix):  # 1: a token of the class
                return _Cells(name, "tokens", grid)
    return None


def _frame(network: Network, part: nn.Module, grid: Size) -> Tensor:
    """The frame (2,3) of the cells of a module's output, followed through the layers where that shows."""
    frames: list[tuple[Size, Tensor]] = []
    with torch.inference_mode(False), torch.no_grad(), network.evaluating():
        image = torch.zeros(1, 3, *network.size, device=network.device)
        moves = GridTracker(image)

        def note(module: nn.Module, inputs: Any, output: Any) -> None:
            with suppress(ConfigError):
                frames.append(moves.grid_and_frame(_first(output)))

        with moves, hooked({part: note}):
            network.logits(image)
    seen, frame = frames[-1] if frames else (None, torch.zeros(2, 3))
    strides = (float(frame[1, 1]), float(frame[0, 0]))
    is_whole = all(abs(cells * stride - side) < 2 * stride for cells, stride, side in zip(grid, strides, network.size))
    return frame if seen == grid and is_whole else frame_like(grid, network.size)


@contextmanager
def hooked(hooks: dict[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """Modules with a function that is called with what each returns."""
    handles = [module.register_forward_hook(hook) for module, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) and output else output


def _with_first(output: Any, first: Tensor) -> Any:
    return (first, *output[1:]) if isinstance(output, tuple) else first
