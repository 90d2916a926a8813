"""Pictures moved and mirrored by whole pixels: every byte comes from its place, the rest is the mean colour."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.pictures.augment import MEAN_COLOUR, Shift, shifted

IMAGES = torch.arange(64 * 3 * 5 * 7).remainder(251).reshape(64, 3, 5, 7).to(torch.uint8)


def by_hand(image: Tensor, x: int, y: int, mirrored: bool) -> Tensor:
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


def test_it_is_a_function_of_the_seed() -> None:
    assert torch.equal(shifted(IMAGES, Shift(), 5), shifted(IMAGES, Shift(), 5))
    assert not torch.equal(shifted(IMAGES, Shift(), 5), shifted(IMAGES, Shift(), 6))
