"""Varied training pictures: a function of the seed, within the limits asked for, and frames that say what was done."""

import pytest
import torch

from saccade.data.augment import Augmentation, augment
from saccade.errors import ConfigError
from saccade.geometry import apply

STILL = Augmentation(area=(1.0, 1.0), aspect=1.0, mirror=False)


def pictures(count: int = 4, height: int = 12, width: int = 20) -> torch.Tensor:
    return torch.rand(count, 3, height, width)


def coordinates(count: int, height: int, width: int) -> torch.Tensor:
    """Pictures whose first two channels are the x and y of the pixel's centre, as a share of the side."""
    x = ((torch.arange(width) + 0.5) / width).expand(height, width)
    y = ((torch.arange(height) + 0.5) / height)[:, None].expand(height, width)
    return torch.stack([x, y, torch.zeros_like(x)]).expand(count, 3, height, width).contiguous()


def test_no_change_is_no_change(assert_near):
    images = pictures()
    varied, frames = augment(images, STILL, 3)
    assert_near(varied, images)
    assert_near(frames, torch.eye(2, 3, dtype=torch.float64).expand(4, 2, 3))


def test_the_seed_decides_and_the_place_in_the_batch():
    images = pictures(1).expand(16, -1, -1, -1)
    first, again, other = (augment(images, Augmentation(), seed)[0] for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(torch.unique(first.flatten(1), dim=0)) == 16
    assert torch.equal(augment(images[:4], Augmentation(), 5)[0], first[:4])


def test_mirroring_turns_half_of_them():
    images = pictures(200)
    varied, frames = augment(images, Augmentation(area=(1.0, 1.0), aspect=1.0), 1)
    turned = frames[:, 0, 0] < 0
    assert 70 < int(turned.sum()) < 130
    torch.testing.assert_close(varied[turned], images[turned].flip(-1))
    torch.testing.assert_close(varied[~turned], images[~turned])
    assert not bool((augment(images, Augmentation(mirror=False), 1)[1][:, 0, 0] < 0).any())


def test_frames_lead_back_to_the_pixels_that_are_shown():
    images = coordinates(64, 24, 40)
    varied, frames = augment(images, Augmentation(area=(0.3, 0.9)), 2)
    centre = torch.tensor([20.5, 12.5])  # of pixel (12, 20)
    source = apply(frames, centre.double().expand(64, 2)) / torch.tensor([40.0, 24.0])
    torch.testing.assert_close(varied[:, :2, 12, 20].double(), source, rtol=0, atol=1e-5)


def test_crops_keep_to_area_aspect_and_picture():
    how = Augmentation(area=(0.25, 0.5), aspect=1.5)
    _, frames = augment(pictures(500, 30, 30), how, 9)
    width, height = frames[:, 0, 0].abs() * 30, frames[:, 1, 1] * 30
    share = width * height / 900
    assert 0.25 - 1e-9 <= float(share.min()) < 0.27 < 0.48 < float(share.max()) <= 0.5 + 1e-9
    assert 1 / 1.5 - 1e-9 <= float((width / height).min()) < 0.7 < 1.4 < float((width / height).max()) <= 1.5 + 1e-9
    corners = torch.stack(
        [apply(frames, torch.tensor([x, y]).double().expand(500, 2)) for x in (0, 30) for y in (0, 30)]
    )
    assert float(corners.min()) >= -1e-9
    assert float(corners.max()) <= 30 + 1e-9


def test_brightness_changes_all_channels_alike():
    images = torch.full((100, 3, 4, 4), 0.5) * torch.tensor([1.0, 0.5, 0.2])[:, None, None]
    varied, _ = augment(images, Augmentation(area=(1.0, 1.0), aspect=1.0, brightness=0.2), 4)
    light = varied[:, 0, 0, 0] / 0.5
    assert 0.8 <= float(light.min()) < 0.85 < 1.15 < float(light.max()) <= 1.2
    torch.testing.assert_close(varied[:, 2] / varied[:, 0], torch.full((100, 4, 4), 0.2))
    bright, _ = augment(torch.ones(50, 3, 4, 4), Augmentation(brightness=0.9), 4)
    assert float(bright.max()) == 1


def test_contrast_moves_pixels_from_the_mean_of_their_picture(assert_near):
    images = torch.tensor([0.4, 0.6]).repeat(100, 3, 4, 2)
    varied, _ = augment(images, Augmentation(area=(1.0, 1.0), aspect=1.0, mirror=False, contrast=0.5), 4)
    assert_near(varied.mean((1, 2, 3)), torch.full((100,), 0.5))
    spread = (varied.amax((1, 2, 3)) - varied.amin((1, 2, 3))) / 0.2
    assert 0.5 <= float(spread.min()) < 0.55 < 1.45 < float(spread.max()) <= 1.5


def test_tint_changes_each_channel_in_its_own_way():
    images = torch.full((100, 3, 4, 4), 0.5)
    varied, _ = augment(images, Augmentation(area=(1.0, 1.0), aspect=1.0, tint=0.2), 4)
    light = varied[..., 0, 0] / 0.5  # (100,3)
    assert 0.8 <= float(light.min()) < 0.82 < 1.18 < float(light.max()) <= 1.2
    assert abs(float(torch.corrcoef(light.T)[0, 1])) < 0.3
    torch.testing.assert_close(varied, light[..., None, None].expand_as(varied) * 0.5)  # and a whole channel alike


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"area": (0.0, 1.0)}, "area"),
        ({"area": (0.9, 0.5)}, "the smaller first, found 0.9 and 0.5"),
        ({"area": (0.5, 1.1)}, "area"),
        ({"aspect": 0.5}, "aspect: must be at least 1"),
        ({"brightness": 1.0}, "brightness"),
        ({"contrast": -0.1}, "contrast: must lie in 0 .. 1, found -0.1"),
        ({"tint": 1.0}, "tint"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ConfigError, match=message):
        Augmentation(**settings)
