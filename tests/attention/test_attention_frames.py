"""Frames for networks of one's own: against layers by hand, and against where a lit pixel shows up."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from saccade import geometry
from saccade.attention import frame_like, frame_of
from saccade.errors import ConfigError, DataError, ShapeError


class Block(nn.Module):
    """A residual block with a strided shortcut, and a gate that multiplies from the left."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(channels, channels, 3, stride, 1), nn.BatchNorm2d(channels))
        self.short = nn.Conv2d(channels, channels, 1, stride)
        self.gate = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        made = F.relu(self.main(x) + self.short(x))
        return self.gate(made.mean((2, 3), keepdim=True)).sigmoid() * made


class Patches(nn.Module):
    """A ViT in small: patches, a class token, attention among them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        return self.block(torch.cat([self.first.expand(len(x), -1, -1), tokens], 1))


class Same(nn.Module):
    """Padding as TensorFlow has it: more behind than before."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class Folded(nn.Module):
    """Cells that are made coarser by a reshape, which no layer tells."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(self.conv(x), 4)


def test_branches_gates_and_norms_do_not_hide_the_frame() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3), Block(4, 2), Block(4, 1), Block(4, 2)).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert frame_of(network, (64, 64)).tolist() == [[8, 0, -3.5], [0, 8, -3.5]]
    assert all(module.training for module in network.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_tokens_of_patches_tile_the_picture() -> None:
    frame = frame_of(Patches(), (64, 96))
    assert frame.tolist() == [[16, 0, 0], [0, 16, 0]]
    assert torch.equal(frame, frame_like(torch.zeros(1, 8, 4, 6), torch.zeros(1, 3, 64, 96)))


@pytest.mark.parametrize(
    "network",
    [
        Same(),
        nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.ConvTranspose2d(4, 4, 2, 2)),
        nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.Upsample(scale_factor=2, mode="bilinear")),
        nn.Sequential(nn.ReflectionPad2d(2), nn.Conv2d(3, 4, 5, 4)),
    ],
)
def test_a_cell_lies_where_the_pixels_are_that_move_it(network: nn.Module) -> None:
    """The mean place of the pixels with a gradient is the centre of the cell."""
    for parameter in network.parameters():
        nn.init.ones_(parameter)
    picture = torch.zeros(1, 3, 32, 32, requires_grad=True)
    made = network(picture)
    row, column = made.shape[-2] // 2, made.shape[-1] // 2 - 1
    made[0, 0, row, column].backward()
    moved = picture.grad[0].sum(0)  # (32,32)
    places = torch.arange(32) + 0.5
    centre = (float(moved.sum(0) @ places / moved.sum()), float(moved.sum(1) @ places / moved.sum()))
    told = geometry.apply(frame_of(network, (32, 32)), torch.tensor([column + 0.5, row + 0.5], dtype=torch.float64))
    tolerance = 1.0 if isinstance(network[-1] if isinstance(network, nn.Sequential) else network, nn.Upsample) else 0.01
    if isinstance(network, nn.Sequential) and isinstance(network[-1], nn.ConvTranspose2d):
        tolerance = 1.0  # a cell there moves by one cell below alone, whose middle lies beside its own
    assert told.tolist() == pytest.approx(centre, abs=tolerance)


def test_of_a_crop_the_frame_leads_to_the_whole_picture() -> None:
    frame = frame_like((2, 2), (32, 32), box=(100, 50, 164, 114))
    assert frame.tolist() == [[32, 0, 100], [0, 32, 50]]
    assert torch.equal(frame_of(nn.Conv2d(3, 4, 16, 16), (32, 32), box=torch.tensor([100, 50, 164, 114])), frame)


@pytest.mark.parametrize("image", [Image.new("RGB", (96, 64)), np.zeros((64, 96, 3)), torch.zeros(3, 64, 96), [64, 96]])
def test_a_picture_may_come_in_any_form(image: object) -> None:
    assert frame_like((4, 6), image).tolist() == [[16, 0, 0], [0, 16, 0]]


def test_what_has_no_frame_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Folded changes its grid by more than.*frame_like"):
        frame_of(Folded(), (32, 32))
    classifier = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(ConfigError, match=r"returns a tensor \(1, 4\), not a feature map"):
        frame_of(classifier, (32, 32))
    with pytest.raises(ShapeError, match="features"):
        frame_like(torch.zeros(1, 49, 8), (224, 224))
    with pytest.raises(DataError, match="image: expected"):
        frame_like((7, 7), "photo.jpg")
    with pytest.raises(DataError, match="box"):
        frame_like((7, 7), (8, 8), box=(5, 5, 5, 9))
