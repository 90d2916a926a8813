"""Attribution methods on any network: inputs (B,3,H,W) and classes (B,) → a map of cells for each.

The methods and their equations are listed in :mod:`saccade.scoring.methods`. A method of your own is

* a function ``attribute(model, images (B,3,H,W), targets (B,))`` → (B,h,w) or (B,C,h,w), whose channels are added up;
* an object with ``attribute(inputs, target=…)``, as captum has them;
* an object that is called with ``input_tensor`` and ``targets``, as pytorch-grad-cam has them.

Images are scaled as the network takes them.

**The layer of CAMs** is the last module whose output is a map of cells, (B,C,h,w) or (B,h,w,C), or tokens (B,N,C) of a
transformer, and whose cells the answer depends on, by the gradient of one forward pass. Of a transformer, only the
norms are tried. Tokens in front of the patches are left out. Frames are followed through the layers; where that fails,
cells tile the input.

Axes: B pictures, h and w cells, H and W pixels, C channels, K classes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.frames import GridTracker, frame_like
from saccade.errors import ConfigError, DataError, nearest
from saccade.geometry import Size
from saccade.metrics.maps.faithfulness import hirescam
from saccade.scoring.networks import Network, is_file, named_in
from saccade.trace import Output
from saccade.tracing.model_facts import patch_grid, tokens_of
from saccade.tracing.trace_of import trace_with_output

CAMS = ("gradcam", "hirescam", "layercam")
NAMES = (*CAMS, "gradxinput", "ig", "smoothgrad", "occlusion", "rise", "rollout", "own")
LONG_NAMES = {"integrated-gradients": "ig"}
STEPS = 32  # of integrated gradients
COPIES = 25  # of SmoothGrad
NOISE = 0.15  # its standard deviation, as a share of the range of the input
WINDOWS = 8  # of occlusion along each side; they move by half their width
MASKS, CELLS, KEPT = 400, 7, 0.5  # of RISE: how many, cells along each side, share of cells that are kept
_INPUTS_AT_ONCE = 32  # inputs that go through the network together


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


def check_method(method: object) -> None:
    """Refuse a name that is no method."""
    if isinstance(method, str) and method not in (*NAMES, *LONG_NAMES) and not is_file(method):
        hint = f"{nearest(method, NAMES)}; my_method.py:attribute is a function of your own"
        raise ConfigError(f"no method '{method}': {hint}")


def attribution(method: Any, network: Network, *, layer: str | None = None) -> tuple[str, Attribute]:
    """What the method is called, and the method on ``network``; ``layer`` is where CAMs are made."""
    check_method(method)
    name = LONG_NAMES.get(method, method) if isinstance(method, str) else method
    if layer is not None and name not in CAMS:
        raise ConfigError(f"layer: it says where {', '.join(CAMS)} are made; leave it out with method={method}")
    if isinstance(name, str) and name in CAMS:
        return name, _cam(name, network, layer)
    if isinstance(name, str) and not is_file(name):
        if name in ("rollout", "own"):
            return name, lambda images, targets: _attention(name, network, images)
        make = {"gradxinput": _gradxinput, "ig": _integrated_gradients, "smoothgrad": _smoothgrad,
                "occlusion": _occlusion, "rise": _rise}[name]  # fmt: skip
        return name, lambda images, targets: _tiled(make(network, images, targets), images)
    own = named_in(name, "attribute") if isinstance(name, str) else name
    called = name if isinstance(name, str) else getattr(own, "__name__", type(own).__name__)
    return called, lambda images, targets: _tiled(_own_maps(own, called, network, images, targets), images)


def _tiled(maps: Tensor, images: Tensor) -> CellMaps:
    return CellMaps(maps, frame_like((maps.shape[-2], maps.shape[-1]), images))


class ClassTarget:
    """The logit of a class, as pytorch-grad-cam asks for it."""

    def __init__(self, category: int) -> None:
        self.category = category

    def __call__(self, output: Tensor) -> Tensor:
        """Of one example (K,) or of several (B,K)."""
        return output[..., self.category]


def _own_maps(own: Any, called: str, network: Network, images: Tensor, targets: Tensor) -> Tensor:
    with torch.enable_grad():
        if hasattr(own, "attribute"):
            result = own.attribute(images, target=targets)
        elif not callable(own):
            raise ConfigError(f"method: expected a function (model, images, targets), found {type(own).__name__}")
        elif "input_tensor" in inspect.signature(own).parameters:
            result = own(input_tensor=images, targets=[ClassTarget(target) for target in targets.tolist()])
        else:
            result = own(network.module, images, targets)
    is_array = isinstance(result, (Tensor, np.ndarray))
    maps = torch.as_tensor(result).detach().float() if is_array else torch.zeros(0)
    maps = maps.sum(1) if maps.dim() == 4 else maps
    if maps.dim() != 3 or maps.numel() == 0:
        shape = tuple(result.shape) if is_array else type(result).__name__
        raise DataError(f"method {called}: expected maps (B,h,w) or (B,C,h,w), found {shape}")
    return maps


def _logit(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    return network.logits(images).gather(1, targets[:, None])[:, 0]


def slope(logit: Logit, images: Tensor) -> Tensor:
    """∂y/∂x (B,3,H,W)."""
    with torch.enable_grad():
        pixels = images.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(logit(pixels).sum(), pixels)
    return gradient


def _slope(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    return slope(lambda pixels: _logit(network, pixels, targets), images)


def _gradxinput(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    """Pixels count from black."""
    return ((images - network.black) * _slope(network, images, targets)).sum(1)  # (B,H,W)


def _integrated_gradients(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    """The path is cut into equal parts, and each is read in its middle."""
    black, total = network.black, torch.zeros_like(images)
    for step in range(STEPS):
        total += _slope(network, black + (step + 0.5) / STEPS * (images - black), targets)
    return ((images - black) * total / STEPS).sum(1)  # (B,H,W)


def _smoothgrad(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    spread = NOISE * (images.flatten(1).amax(1) - images.flatten(1).amin(1)).view(-1, 1, 1, 1)
    total = torch.zeros_like(images)
    for _ in range(COPIES):
        noise = torch.randn(images.shape[1:], generator=generator).to(images)  # the same for every picture
        total += _slope(network, images + spread * noise, targets)
    return (total / COPIES).abs().sum(1)  # (B,H,W)


@torch.no_grad()
def _occlusion(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    high, wide = max(1, height // WINDOWS), max(1, width // WINDOWS)
    tops, lefts = ({*range(0, side - window + 1, max(1, window // 2)), side - window}
                   for side, window in ((height, high), (width, wide)))  # fmt: skip
    places = [(top, left) for top in sorted(tops) for left in sorted(lefts)]
    before = _logit(network, images, targets)  # (B,)
    total, count = torch.zeros_like(images[:, 0]), torch.zeros_like(images[0, 0])  # (B,H,W), (H,W)
    for part in _parts(places, len(images)):
        hidden = images.expand(len(part), *images.shape).clone()  # (P,B,3,H,W)
        for number, (top, left) in enumerate(part):
            hidden[number, :, :, top : top + high, left : left + wide] = network.black
        after = _logit(network, hidden.flatten(0, 1), targets.repeat(len(part)))  # (P·B,)
        lost = before - after.reshape(len(part), -1)  # (P,B)
        for (top, left), loss in zip(part, lost):
            total[:, top : top + high, left : left + wide] += loss[:, None, None]
            count[top : top + high, left : left + wide] += 1
    return total / count


@torch.no_grad()
def _rise(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    cell = (-(-height // CELLS), -(-width // CELLS))
    generator = torch.Generator().manual_seed(0)
    grids = (torch.rand(MASKS, CELLS + 1, CELLS + 1, generator=generator) < KEPT).float()
    tops, lefts = (torch.randint(0, side, (MASKS,), generator=generator).tolist() for side in cell)
    size = ((CELLS + 1) * cell[0], (CELLS + 1) * cell[1])
    total = torch.zeros_like(images[:, 0])  # (B,H,W)
    for part in _parts(range(MASKS), len(images)):
        large = F.interpolate(grids[part, None], size, mode="bilinear", align_corners=False)[:, 0]  # (P,·,·)
        cut = [mask[tops[at] : tops[at] + height, lefts[at] : lefts[at] + width] for mask, at in zip(large, part)]
        masks = torch.stack(cut).to(images)  # (P,H,W)
        shown = network.black + masks[:, None, None] * (images - network.black)  # (P,B,3,H,W)
        share = network.logits(shown.flatten(0, 1)).softmax(-1).gather(1, targets.repeat(len(part))[:, None])  # (P·B,1)
        total += torch.einsum("pb,phw->bhw", share.reshape(len(part), -1), masks)
    return total / (MASKS * KEPT)


def _parts(items: Any, batch: int) -> Iterator[Any]:
    """A few at a time, so that few inputs go through the network together."""
    many = max(1, _INPUTS_AT_ONCE // batch)
    return (items[start : start + many] for start in range(0, len(items), many))


def _attention(method: str, network: Network, images: Tensor) -> CellMaps:
    """The model's own attention, or rollout of a transformer's."""
    if method == "rollout":
        trace = trace_with_output(network.module, images, layers="last", heads="mean", rollout=True).trace
        look = next((look for look in trace.looks if look.name == "rollout"), None)
        if look is None or look.weights is None or look.frame is None:
            raise ConfigError(f"method=rollout: '{network.name}' has no layers of self-attention on the picture")
        return CellMaps(look.weights, look.frame)
    with torch.no_grad():
        output = network.module(images)
    is_ours = isinstance(output, Output)
    trace = output.trace if is_ours else trace_with_output(network.module, images, layers="last").trace
    return _tiled(trace.image_map("total", (images.shape[-2], images.shape[-1])), images)


# ---- class activation maps


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


def _cam(method: str, network: Network, layer: str | None) -> Attribute:
    place, frame = cam_layer(network, layer)
    module = network.module.get_submodule(place.name)

    def attribute(images: Tensor, targets: Tensor) -> CellMaps:
        outputs: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Any) -> Any:
            torch.set_grad_enabled(True)  # from here on: what lies before costs no memory
            outputs.append(_first(output).detach().requires_grad_())
            return _with_first(output, outputs[-1].clone())  # a layer behind may write into it

        with torch.no_grad(), hooked({module: keep}):
            score = _logit(network, images, targets).sum()
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(score, outputs[-1])
        return CellMaps(cam(method, place.of(outputs[-1].detach()), place.of(gradient)), frame)

    return attribute


def cam(method: str, features: Tensor, slopes: Tensor) -> Tensor:
    """The map (B,h,w) of features A and slopes ∂y/∂A, (B,C,h,w) each."""
    if method == "gradcam":
        slopes = slopes.mean((-2, -1), keepdim=True)
    return hirescam(features, slopes.relu() if method == "layercam" else slopes)


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
