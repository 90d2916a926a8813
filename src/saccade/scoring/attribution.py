"""Attribution methods on any network: inputs (B,3,H,W) and classes (B,) → a map of cells for each.

The methods and their equations are listed in :mod:`saccade.scoring.methods`. A method of your own is

* a function ``attribute(model, images (B,3,H,W), targets (B,))`` → (B,h,w) or (B,C,h,w), whose channels are added up;
* an object with ``attribute(inputs, target=…)``, as captum has them;
* an object that is called with ``input_tensor`` and ``targets``, as pytorch-grad-cam has them.

Images are scaled as the network takes them.

Class activation maps are those of :mod:`.cam`.

Axes: B pictures, h and w cells, H and W pixels, C channels, K classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention.frames import frame_like
from saccade.errors import ConfigError, DataError, nearest
from saccade.scoring.cam import CAMS, Attribute, CellMaps, Logit, cam_on
from saccade.scoring.networks import Network, is_file, named_in
from saccade.trace import Output
from saccade.tracing.trace_of import trace_with_output

NAMES = (*CAMS, "gradxinput", "ig", "smoothgrad", "occlusion", "rise", "rollout", "own")
LONG_NAMES = {"integrated-gradients": "ig"}
STEPS = 32  # of integrated gradients
COPIES = 25  # of SmoothGrad
NOISE = 0.15  # its standard deviation, as a share of the range of the input
WINDOWS = 8  # of occlusion along each side; they move by half their width
MASKS, CELLS, KEPT = 400, 7, 0.5  # of RISE: how many, cells along each side, share of cells that are kept
_INPUTS_AT_ONCE = 32  # inputs that go through the network together


def check_method(method: object) -> None:
    """Refuse a name that is no method."""
    if isinstance(method, str) and method not in (*NAMES, *LONG_NAMES) and not is_file(method):
        hint = f"{nearest(method, NAMES)}; my_method.py:attribute is a function of your own"
        raise ConfigError(f"no method '{method}': {hint}")


def attribution(method: Any, network: Network, *, layer: str | None = None) -> tuple[str, Attribute]:
    """What the method is called, and the method on ``network``; ``layer`` is where CAMs are made."""
    name = LONG_NAMES.get(method, method) if isinstance(method, str) else method
    if layer is not None and name not in CAMS:
        raise ConfigError(f"layer: it says where {', '.join(CAMS)} are made; leave it out with method={method}")
    if isinstance(name, str) and name in CAMS:
        return name, cam_on(name, network, layer)
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


def slope(logit: Logit, images: Tensor) -> Tensor:
    """∂y/∂x (B,3,H,W)."""
    with torch.enable_grad():
        pixels = images.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(logit(pixels).sum(), pixels)
    return gradient


def _slope(network: Network, images: Tensor, targets: Tensor) -> Tensor:
    return slope(lambda pixels: network.logit_of(pixels, targets), images)


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
    before = network.logit_of(images, targets)  # (B,)
    total, count = torch.zeros_like(images[:, 0]), torch.zeros_like(images[0, 0])  # (B,H,W), (H,W)
    for part in _parts(places, len(images)):
        hidden = images.expand(len(part), *images.shape).clone()  # (P,B,3,H,W)
        for number, (top, left) in enumerate(part):
            hidden[number, :, :, top : top + high, left : left + wide] = network.black
        after = network.logit_of(hidden.flatten(0, 1), targets.repeat(len(part)))  # (P·B,)
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
