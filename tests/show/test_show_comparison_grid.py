"""Models beside each other, look by look: what is painted where."""

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.errors import DataError
from saccade.show.sheets import Example, Shown, comparison_grid
from saccade.trace import AttentionTrace, Look

SIDE = 40
WHITE = Image.new("RGB", (SIDE, SIDE), (255, 255, 255))


def look(name, weights, kind="gate", norm="sigmoid"):
    frame = geometry.scale_shift((SIDE / 2, SIDE / 2), (0.0, 0.0))
    return Look(name, kind, "multiplier", torch.tensor([weights]), norm=norm, frame=frame)


def trace(*looks, total="product"):
    return AttentionTrace(
        looks=looks, answer=torch.tensor([0]), canvas=None, image_size=torch.tensor([[SIDE, SIDE]]), total=total
    )


LEFT = look("stage1", [[1.0, 0.0], [1.0, 0.0]])
TOP = look("stage2", [[1.0, 1.0], [0.0, 0.0]])
BOTH = Shown("GATES", trace(LEFT, TOP))


def panels(sheet, columns):
    """Attended image and map of each column of the first example, found from the right edge of the sheet."""
    pixels = np.asarray(sheet)
    top = sheet.height - 28 - 2 * SIDE - 4
    starts = [sheet.width - 28 - SIDE - number * (SIDE + 8) for number in reversed(range(columns))]
    return [
        (pixels[top : top + SIDE, x : x + SIDE, 0], pixels[top + SIDE + 4 : top + 2 * SIDE + 4, x : x + SIDE, 0])
        for x in starts
    ]


def test_the_upper_row_accumulates_and_the_lower_row_is_the_look_alone():
    (first, own_first), (second, own_second) = panels(
        comparison_grid([Example(WHITE, ["query"], [BOTH])], panel=SIDE), 2
    )
    assert (first[0, 0], first[0, -1], first[-1, 0]) == (255, 0, 255)
    assert (second[0, 0], second[0, -1], second[-1, 0]) == (255, 0, 0), "left and top"
    assert (own_first[-1, 0], own_first[0, -1]) == (255, 0)
    assert (own_second[-1, 0], own_second[0, -1]) == (0, 255)


def test_only_the_last_looks_are_shown_and_still_what_passed_before_counts():
    ((attended, own),) = panels(comparison_grid([Example(WHITE, [], [Shown("GATES", BOTH.trace, 1)])], panel=SIDE), 1)
    assert (attended[0, 0], attended[0, -1], attended[-1, 0]) == (255, 0, 0)
    assert (own[0, -1], own[-1, 0]) == (255, 0)


def test_examples_stand_below_each_other_and_models_side_by_side():
    one = Example(WHITE, ["query"], [BOTH])
    two = Example(WHITE, ["query"], [BOTH, Shown("SOFT", trace(LEFT), 1)])
    narrow, wide = comparison_grid([one], panel=SIDE), comparison_grid([two, two], panel=SIDE)
    assert wide.width == narrow.width + SIDE + 22
    assert wide.height == narrow.height + 2 * SIDE + 4 + 22


def test_bad_input():
    other = Example(WHITE, [], [Shown("SOFT", trace(LEFT))])
    with pytest.raises(DataError, match="same looks"):
        comparison_grid([Example(WHITE, [], [BOTH]), other])
