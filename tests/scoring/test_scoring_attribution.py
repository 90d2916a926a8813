"""Attribution methods on small networks, against their equations; the layer of CAMs, and where its cells lie."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from saccade.attention.frames import frame_of
from saccade.errors import ConfigError
from saccade.scoring.attribution import LONG_NAMES, attribution, cam_layer
from saccade.scoring.networks import NetworkOptions, open_network
from saccade.tracing.trace_of import trace_of
from tiny_vits import TinyViT

SIDE = 32


class Conv(nn.Module):
    """Two strided convolutions, a mean, a linear layer; the activation is used twice and writes in place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 12, 3, 2, 1)
        self.act, self.pool, self.head = nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Linear(12, 4)

    def features(self, images):
        return self.act(self.two(self.act(self.one(images))))

    def forward(self, images):
        return self.head(self.pool(self.features(images)).flatten(1))


class Weighs(nn.Module):
    """Logits that are a weighted sum of all pixels."""

    def __init__(self, mean: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.pretrained_cfg = {"mean": (mean,) * 3, "std": (0.5,) * 3, "input_size": (3, 16, 16)}
        self.weight = nn.Parameter(torch.randn(2, 3, 16, 16))

    def forward(self, images):
        return torch.einsum("bchw,kchw->bk", images, self.weight)


def images(size=SIDE, count=2):
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(5))


def maps(module, method, inputs, targets, **options):
    network = open_network(module, NetworkOptions(size=inputs.shape[-1], device="cpu"))
    with network.evaluating():
        return attribution(method, network, **options)[1](inputs, targets)


def test_cams_are_their_equations():
    network, inputs, targets = Conv(), images(), torch.tensor([1, 3])
    features = network.features(inputs).detach()  # (B,12,8,8)
    weight = network.head.weight[targets].detach()[:, :, None, None] / 64  # ∂y/∂A of a mean and a linear layer
    want = {
        "gradcam": (features * weight).sum(1).relu(),
        "hirescam": (features * weight).sum(1).relu(),  # the gradient is even: both are the same here
        "layercam": (features * weight.relu()).sum(1).relu(),
    }
    for method, expected in want.items():
        found = maps(network, method, inputs, targets)
        torch.testing.assert_close(found.maps, expected, rtol=1e-4, atol=1e-7)
        body = nn.Sequential(network.one, nn.ReLU(), network.two)
        torch.testing.assert_close(found.frame, frame_of(body, (SIDE, SIDE)))  # not tiles: half a cell off
    earlier = maps(network, "gradcam", inputs, targets, layer="one")
    assert earlier.maps.shape == (2, 16, 16)


@pytest.mark.parametrize("mean", [0.0, 0.4])
def test_maps_of_pixels_are_their_equations_on_a_linear_network(mean):
    network, inputs, targets = Weighs(mean), images(16), torch.tensor([0, 1])
    weight, black = network.weight[targets].detach(), -mean / 0.5
    product = (weight * (inputs - black)).sum(1)
    for method in ("gradxinput", "ig", *LONG_NAMES):
        torch.testing.assert_close(maps(network, method, inputs, targets).maps, product, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(maps(network, "smoothgrad", inputs, targets).maps, weight.abs().sum(1))
    windows = F.unfold(product[:, None], 2, stride=1).sum(1)  # what each window of 2 × 2 holds
    spread = F.fold(windows[:, None].expand(-1, 4, -1), (16, 16), 2)[:, 0]
    often = F.fold(torch.ones(2, 4, windows.shape[1]), (16, 16), 2)[:, 0]
    torch.testing.assert_close(maps(network, "occlusion", inputs, targets).maps, spread / often, rtol=1e-3, atol=1e-4)


def test_integrated_gradients_add_up_to_the_change_of_the_logit():
    network, inputs, targets = Conv(), images(), torch.tensor([1, 3])
    total = maps(network, "ig", inputs, targets).maps.sum((1, 2))
    change = network(inputs) - network(torch.zeros_like(inputs))
    torch.testing.assert_close(total, change[[0, 1], targets].detach(), rtol=0.05, atol=1e-3)


def test_rise_marks_what_the_answer_needs():
    class Corner(nn.Module):
        def forward(self, images):
            bright = images[:, :, :8, :8].mean((1, 2, 3))
            return torch.stack([0 * bright, 20 * bright - 10], 1)

    found = maps(Corner(), "rise", torch.ones(2, 3, SIDE, SIDE), torch.tensor([1, 1])).maps
    assert found[:, :8, :8].mean() > 1.2 * found[:, 16:, 16:].mean()
    torch.testing.assert_close(found[0], found[1])


def test_maps_do_not_depend_on_the_batch():
    network, inputs, targets = Conv(), images(count=5), torch.tensor([0, 1, 2, 3, 0])
    for method in ("gradcam", "gradxinput", "ig", "smoothgrad", "occlusion", "rise"):
        whole = maps(network, method, inputs, targets).maps
        alone = maps(network, method, inputs[3:4], targets[3:4]).maps
        torch.testing.assert_close(whole[3:4], alone, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("registers", "head"), [(0, "token"), (3, "token"), (9, "token"), (0, "mean")])
def test_cams_of_transformers_lie_on_their_patches(registers, head):
    network, inputs, targets = TinyViT(registers=registers, head=head), images(), torch.tensor([1, 3])
    found = maps(network, "gradcam", inputs, targets)
    place, frame = cam_layer(open_network(network, NetworkOptions(size=SIDE, device="cpu")))
    assert found.maps.shape == (2, 4, 4)
    assert place.name == "blocks.1.norm"  # the last norm whose patches reach the class token
    torch.testing.assert_close(frame, torch.tensor([[8.0, 0, 0], [0, 8.0, 0]], dtype=torch.float64))
    tokens: list[torch.Tensor] = []
    network.blocks[1].norm.register_forward_hook(lambda module, given, output: tokens.append(output))
    logits = network(inputs)
    (slope,) = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), tokens[-1])
    patches, slopes = (each[:, -16:] for each in (tokens[-1], slope))  # (B,16,D)
    want = (slopes.mean(1, keepdim=True) * patches).sum(2).relu().reshape(2, 4, 4)
    torch.testing.assert_close(found.maps, want.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", ["sdpa", "module"])
def test_rollout_and_own_are_those_of_the_trace(way):
    network, inputs, targets = TinyViT(way, registers=1), images(), torch.tensor([1, 3])
    trace = trace_of(network, inputs, layers="last", rollout=True)
    rollout = next(look for look in trace.looks if look.name == "rollout")
    torch.testing.assert_close(maps(network, "rollout", inputs, targets).maps, rollout.weights)
    own = maps(network, "own", inputs, targets).maps
    torch.testing.assert_close(own, trace_of(network, inputs, layers="last").image_map("total", (SIDE, SIDE)))


def test_a_network_without_cells_has_no_cam_and_says_so():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))
    with pytest.raises(ConfigError, match="take a method that needs none"):
        maps(flat, "gradcam", images(16), torch.tensor([0, 1]))
    with pytest.raises(ConfigError, match="no attention was seen"):
        maps(Conv(), "rollout", images(), torch.tensor([0, 1]))
