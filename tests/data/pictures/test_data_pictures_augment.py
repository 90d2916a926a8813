"""Varied training pictures: a function of the seed, within the limits asked for, and frames that say what was done."""

import math
from dataclasses import replace

import pytest
import torch

from saccade.config import from_dict
from saccade.data.pictures.augment import MEAN_COLOUR, Augmentation, Shift, augment, shifted
from saccade.errors import ConfigError
from saccade.geometry import apply, apply_to_boxes, identity, invert

STILL = Augmentation(area=(1.0, 1.0), aspect=1.0, mirror=False)

FIRST_FRAMES = [
    [[0.842032870923, 0.0, 4.171835429476], [0.0, 0.780988992959, 2.957248114796]],
    [[-0.995466965272, 0.0, 43.802518449634], [0.0, 0.748730598824, 6.205806683236]],
]
FIRST_LIGHT = [[0.613149464, 0.497610092, 0.651733696], [0.457469881, 0.500463784, 0.580719709]]
"""What seed 5 made of two grey pictures of 30 × 44, in half light or more, before there was more to choose."""


def pictures(count: int = 4, height: int = 12, width: int = 20) -> torch.Tensor:
    return torch.rand(count, 3, height, width)


def coordinates(count: int, height: int, width: int) -> torch.Tensor:
    """Pictures whose first two channels are the x and y of the pixel's centre, as a share of the side."""
    x = ((torch.arange(width) + 0.5) / width).expand(height, width)
    y = ((torch.arange(height) + 0.5) / height)[:, None].expand(height, width)
    return torch.stack([x, y, torch.zeros_like(x)]).expand(count, 3, height, width).contiguous()


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


def test_crops_above_one_hold_the_whole_picture():
    """Without stretching: every corner of the picture is inside, anywhere, and light on black only becomes smaller."""
    images = torch.zeros(300, 3, 30, 50)
    images[:, :, 10:20, 20:30] = 1.0
    varied, frames = augment(images, replace(STILL, area=(1.2, 2.0)), 6)
    share = torch.linalg.det(frames[..., :2])
    assert 1.2 - 1e-9 <= float(share.min()) < 1.23 < 1.97 < float(share.max()) <= 2 + 1e-9
    inside = apply_to_boxes(invert(frames), torch.tensor([0.0, 0.0, 50.0, 30.0]))  # (300,4)
    room = torch.cat([inside[:, :2], torch.tensor([50.0, 30.0]) - inside[:, 2:]], dim=-1)  # left, top, right, bottom
    assert float(room.min()) >= -1e-9
    assert bool((room.amin(0) < 0.2).all() & (room.amax(0) > torch.tensor([9.0, 5.4, 9.0, 5.4])).all())
    torch.testing.assert_close(varied.sum((1, 2, 3)).double(), 300 / share, rtol=0.08, atol=0)


TILTED = {
    "turn": replace(STILL, turn=30.0),
    "slant": replace(STILL, slant=0.5),
    "all": Augmentation(area=(0.9, 1.5), aspect=1.3, turn=20.0, slant=0.2),
}


@pytest.mark.parametrize("how", [*TILTED.values(), Augmentation(area=(0.3, 0.9))], ids=[*TILTED, "cut"])
def test_frames_lead_back_to_the_pixels_that_are_shown(how):
    images = coordinates(64, 40, 48)
    varied, frames = augment(images, how, 2)
    source = apply(frames, torch.tensor([24.5, 17.5]).double().expand(64, 2))  # the centre of pixel (17, 24)
    expected = source / torch.tensor([48.0, 40.0])
    torch.testing.assert_close(varied[:, :2, 17, 24].double(), expected, rtol=0, atol=1e-5)


def test_pictures_are_turned_and_slanted_about_their_centre_within_the_limits(assert_near):
    """Turning keeps shapes; slanting shifts whole rows."""
    centre = torch.tensor([10.0, 6.0]).expand(400, 2)
    turned, slanted = (augment(pictures(400), replace(STILL, **how), 4)[1] for how in ({"turn": 30.0}, {"slant": 0.2}))
    linear, slant = turned[..., :2], slanted[:, 0, 1]
    assert_near(linear @ linear.mT, torch.eye(2).expand(400, 2, 2))
    degrees = torch.rad2deg(torch.atan2(linear[:, 1, 0], linear[:, 0, 0]))
    assert -30 <= float(degrees.min()) < -28 < 28 < float(degrees.max()) <= 30
    assert -0.2 <= float(slant.min()) < -0.19 < 0.19 < float(slant.max()) <= 0.2
    for frames in (turned, slanted):
        assert_near(apply(frames, centre), centre)
    below = apply(slanted, torch.tensor([7.0, 11.0]).double().expand(400, 2))
    assert_near(below, torch.stack([7 + 5 * slant, torch.full_like(slant, 11.0)], dim=-1))


def test_a_share_of_the_pictures_is_inverted_and_stays_where_it_was():
    images = pictures(400)
    still, frames = augment(images, Augmentation(), 3)
    varied, same = augment(images, Augmentation(invert=0.25), 3)
    assert torch.equal(same, frames)
    changed = (varied != still).flatten(1).any(1)
    assert 70 < int(changed.sum()) < 130
    assert torch.equal(varied[changed], 1 - still[changed])
    assert torch.equal(augment(images, Augmentation(invert=1.0), 3)[0], 1 - still)


def test_blur_softens_a_share_of_the_pictures_at_most_to_half(assert_near):
    """A checkerboard of single pixels is gone at half size: what is left of it is 1 − the amount, from 0 to 1."""
    board = ((torch.arange(8)[:, None] + torch.arange(12)) % 2).float().expand(400, 3, 8, 12).contiguous()
    varied, frames = augment(board, replace(STILL, blur=0.5), 5)
    assert torch.equal(frames, identity(400))
    left = varied.amax((1, 2, 3)) - varied.amin((1, 2, 3))  # (400,)
    assert 160 < int((left < 1 - 1e-4).sum()) < 240
    assert float(left.min()) < 0.02
    assert abs(float(left[left < 1 - 1e-4].mean()) - 0.5) < 0.06
    assert_near(varied, 0.5 + (board - 0.5) * left[:, None, None, None], atol=1e-5)
    for size in ((1, 1), (5, 7)):
        flat = torch.full((9, 3, *size), 0.25)
        assert_near(augment(flat, replace(STILL, blur=1.0), 5)[0], flat)


def test_a_rectangle_of_a_share_of_the_pictures_is_erased():
    """Pictures of 40 × 60 pixels: 2 to 10 % of them are 48 to 240, give or take the rounding of two sides."""
    images = coordinates(400, 40, 60)
    varied, frames = augment(images, replace(STILL, erase=0.5), 8)
    holes = (varied - images).abs().amax(1) > 1e-6  # (B,H,W)
    hidden = holes.flatten(1).any(1)
    assert 160 < int(hidden.sum()) < 240
    torch.testing.assert_close(frames, identity().expand(400, 2, 3))
    down, across = holes.any(2).sum(1)[hidden], holes.any(1).sum(1)[hidden]
    assert torch.equal(down * across, holes.sum((1, 2))[hidden])  # rectangles, and nothing beside them
    assert 40 <= int((down * across).min()) < 70
    assert 200 < int((down * across).max()) <= 260
    sides = (across / 60) / (down / 40)
    assert 0.25 < float(sides.min()) < 0.45
    assert 2.2 < float(sides.max()) < 4
    colour = varied[hidden].permute(0, 2, 3, 1)[holes[hidden]]  # (N,3)
    torch.testing.assert_close(colour, torch.tensor([0.5, 0.5, 0.0]).expand_as(colour))  # the mean of each


def test_options_that_are_off_leave_the_draws_of_the_others_alone(assert_near):
    """Numbers of the first release: a run resumes, and is repeated, with the pictures it had."""
    images = torch.full((2, 3, 30, 44), 0.5)
    how = Augmentation(brightness=0.3, tint=0.2)
    varied, frames = augment(images, how, 5)
    assert_near(frames, FIRST_FRAMES)
    assert_near(varied[:, :, 0, 0], FIRST_LIGHT, atol=1e-6)
    again, same = augment(images, replace(how, invert=1.0, blur=1.0, erase=1.0), 5)
    assert_near(again, varied)  # a half stays a half
    assert torch.equal(same, frames)


def test_light_changes_within_its_limits(assert_near):
    """Brightness changes all channels alike, tint each in its own way, contrast what differs from the mean."""
    images = torch.full((100, 3, 4, 4), 0.5)
    bright, tinted = (augment(images, replace(STILL, **{name: 0.2}), 4)[0] / 0.5 for name in ("brightness", "tint"))
    for light in (bright, tinted):
        assert 0.8 <= float(light.min()) < 0.85 < 1.15 < float(light.max()) <= 1.2
        assert_near(light, light[..., :1, :1].expand_as(light))
    assert_near(bright, bright[:, :1].expand_as(bright))
    assert abs(float(torch.corrcoef(tinted[..., 0, 0].T)[0, 1])) < 0.3
    varied, _ = augment(torch.tensor([0.4, 0.6]).repeat(100, 3, 4, 2), replace(STILL, contrast=0.5), 4)
    assert_near(varied.mean((1, 2, 3)), torch.full((100,), 0.5))
    spread = (varied.amax((1, 2, 3)) - varied.amin((1, 2, 3))) / 0.2
    assert 0.5 <= float(spread.min()) < 0.55 < 1.45 < float(spread.max()) <= 1.5


def test_settings_that_cannot_be():
    wrong = {"area": ((0.0, 1.0), (0.9, 0.5), (0.5, 2.1), (math.nan, 1.0)), "aspect": (0.5,), "invert": (50.0,),
             "erase_area": ((0.0, 0.1), (0.3, 0.2), (0.3, 0.4))}  # fmt: skip
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ConfigError, match=name):
                from_dict(Augmentation, {name: value})


IMAGES = torch.arange(64 * 3 * 5 * 7).remainder(251).reshape(64, 3, 5, 7).to(torch.uint8)


def by_hand(image: torch.Tensor, x: int, y: int, mirrored: bool) -> torch.Tensor:
    """(3,H,W) moved by (x, y): what lies outside is the mean colour."""
    _, height, width = image.shape
    found = torch.tensor(MEAN_COLOUR, dtype=torch.uint8)[:, None, None].repeat(1, height, width)
    for row in range(height):
        for column in range(width):
            from_row, from_column = row + y, (width - 1 - column if mirrored else column) + x
            if 0 <= from_row < height and 0 <= from_column < width:
                found[:, row, column] = image[:, from_row, from_column]
    return found


def test_each_picture_is_one_of_the_ways_to_move_it_and_all_ways_occur() -> None:
    moved = shifted(IMAGES, Shift(pixels=1), seed=3)
    assert (moved.dtype, moved.shape) == (torch.uint8, IMAGES.shape)
    ways = [(x, y, mirrored) for x in (-1, 0, 1) for y in (-1, 0, 1) for mirrored in (False, True)]
    found = [next(way for way in ways if torch.equal(by_hand(one, *way), to)) for one, to in zip(IMAGES, moved)]
    assert {x for x, _, _ in found} == {y for _, y, _ in found} == {-1, 0, 1}
    assert {mirrored for *_, mirrored in found} == {False, True}
    assert len(set(found)) > 12
    assert not torch.equal(shifted(IMAGES, Shift(pixels=1), seed=4), moved)
