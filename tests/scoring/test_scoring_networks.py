"""Strangers' networks: opened from files, names and memory, and attribution methods on them against their equations."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

import saccade
from planted_photographs import Reads, reads_object
from saccade.attention.frames import frame_of
from saccade.errors import ConfigError
from saccade.scoring.attribution import LONG_NAMES, attribution
from saccade.scoring.cam import cam_layer
from saccade.scoring.networks import NetworkOptions, open_network
from saccade.tracing.trace_of import trace_of
from tiny_vits import TinyViT


class Labels(nn.Module):
    def forward(self, images):
        return images.mean((2, 3))


def file_of(folder, text):
    path = folder / "my_net.py"
    path.write_text("from torch import nn\nfrom planted_photographs import reads_object\n" + text)
    return path


def test_a_file_is_run_and_may_import_its_neighbours(tmp_path):
    (tmp_path / "beside_it.py").write_text("from planted_photographs import reads_object as made\n")
    path = tmp_path / "net.py"
    path.write_text("from beside_it import made\nmodel = made()\ndef build(gain=1):\n    return made()\n")
    for name in (f"{path}:build", f"{path}:model", str(path)):
        network = open_network(name, NetworkOptions(device="cpu"))
        assert isinstance(network.module, Reads)
        assert network.size == (64, 64)
    assert network.name == str(path)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("def build(): return reads_object()", "biuld", "did you mean 'build'"),
        ("def build(): return 1 / 0", "build", r"build\(\) failed \(ZeroDivisionError"),
        ("def build(: pass", "build", "running it failed"),
        ("def build(): return nn.Sequential(nn.Flatten(), nn.Linear(9, 2))", "build", "cannot take pictures"),
        (
            "def build(): return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))",
            "build",
            "two classes",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(tmp_path, text, name, said):
    with pytest.raises(ConfigError, match=said) as error:
        open_network(f"{file_of(tmp_path, text)}:{name}", NetworkOptions(device="cpu"))
    assert "\n" not in str(error.value)


def test_size_and_colours_are_what_the_model_says():
    network = Labels()
    plain = open_network(network, NetworkOptions(device="cpu"))
    assert plain.size == (224, 224)
    laid = "pictures laid in undistorted, the rest grey"
    assert plain.facts == f"input 224 × 224 (it says no size), {laid}, colours from 0 to 1"
    network.default_cfg = {"input_size": (3, 40, 40), "mean": (0.5, 0.4, 0.3), "std": (0.1, 0.2, 0.5)}
    said = open_network(network, NetworkOptions(device="cpu"))
    assert said.facts == f"input 40 × 40 (as the model says), {laid}, colours scaled by its own mean and deviation"
    image, canvas = said.prepare(np.full((20, 20, 3), 255, np.uint8))
    torch.testing.assert_close(image[:, 0, 0], torch.tensor([5.0, 3.0, 1.4]))
    torch.testing.assert_close(canvas[:, :2].diagonal(), torch.tensor([0.5, 0.5], dtype=torch.float64))
    torch.testing.assert_close(said.black.flatten(), torch.tensor([-5.0, -2.0, -0.6]))
    assert open_network(network, NetworkOptions(size=56, device="cpu")).size == (56, 56)


def test_the_module_is_left_as_it_was():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    network[1].eval()
    before = network[1].running_mean.clone()
    opened = open_network(network, NetworkOptions(size=16, device="cpu"))
    with opened.evaluating():
        assert not network.training
    assert [part.training for part in (network, network[0], network[1])] == [True, True, False]
    torch.testing.assert_close(network[1].running_mean, before)


def test_a_model_of_ours_that_answers_with_a_label_is_a_classifier(tmp_path):
    predictor = saccade.load("ran-56-cifar10", "cpu")
    network = open_network(predictor, NetworkOptions(device="cpu"))
    picture = np.random.default_rng(0).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    seen = predictor.look(picture)
    logits = network.logits(network.prepare(picture)[0][None])
    assert predictor.facts.answers[int(logits.argmax())] == seen.answer
    assert float(logits.softmax(-1).max()) == pytest.approx(seen.confidence, abs=0.05)


def test_maps_of_a_stranger_are_scored_against_masks(tmp_path):
    for number in range(3):
        mask = np.zeros((64, 64), np.uint8)
        mask[20:34, 10 * number : 10 * number + 14] = 255
        pixels = np.full((64, 64, 3), 120, np.uint8)
        pixels[mask > 0] = (230, 30, 30)
        for folder, values in (("pictures", pixels), ("masks", mask)):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(values).save(tmp_path / folder / f"cat{number}.png")
    found = saccade.score(tmp_path / "pictures", tmp_path / "masks", method="gradcam", model=reads_object())
    assert found.scores["true_positive_strength"].mean == pytest.approx(1, abs=0.01)
    assert found.counts["scored"] == 3


def test_pictures_are_laid_in_whole_or_stretched():
    """A white strip at the right edge of a wide picture lies at the right edge of the input only if stretched."""
    picture = np.zeros((8, 16, 3), np.uint8)
    picture[:, 12:] = 255
    for fit, top in (("inside", 0.5), ("stretch", 0.0)):
        image, canvas = open_network(Labels(), NetworkOptions(size=16, fit=fit, device="cpu")).prepare(picture)
        assert float(image[0, 0, 0]) == pytest.approx(top)
        assert float(image[0, 8, 15]) == 1
        corner = canvas @ torch.tensor([16.0, 16.0, 1.0], dtype=canvas.dtype)  # of the input, in pixels of the picture
        assert corner.tolist() == ([16, 12] if fit == "inside" else [16, 8])


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
