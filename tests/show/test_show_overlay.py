import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.overlay import (
    Mask,
    Points,
    Polygon,
    as_picture,
    overlay,
    stretch,
)


def brightest(image: Image.Image) -> tuple[float, float]:
    """Mean (row, column) of the pixels with the highest luminance."""
    light = np.asarray(image.convert("L")).astype(int)
    rows, cols = np.where(light == light.max())
    return rows.mean(), cols.mean()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 37), st.integers(1, 37), st.data())
def test_a_lit_pixel_lands_on_itself_at_every_size(height, width, data):
    row, col = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    attention = np.zeros((height, width))
    attention[row, col] = 1
    image = overlay(np.zeros((height, width, 3), np.uint8), attention, least_side=60)
    factor = image.width // width
    assert image.size == (width * factor, height * factor)
    at = brightest(image)
    assert at[0] // factor == row
    assert at[1] // factor == col


@pytest.mark.parametrize("shape", [(3, 700), (90, 5), (41, 53)])
def test_a_map_finer_than_the_picture_is_laid_as_any_other(shape, monkeypatch):
    """Without holding a number for each pair of a cell and a pixel: a row of 100,000 cells took 600 MB."""
    values = np.random.default_rng(0).random(shape, dtype=np.float32)
    frame = geometry.scale_shift((37 / shape[1], 29 / shape[0]), (0.0, 0.0))
    wanted = geometry.project(torch.from_numpy(values)[None], frame, (29, 37))[0].numpy()
    monkeypatch.setattr(geometry, "_hat_weights", None)
    laid = stretch(values, (29, 37))
    assert laid.dtype == np.float32
    np.testing.assert_allclose(laid, wanted, atol=1e-6)


def test_stretch_is_smooth_between_cell_centres_on_each_axis_by_its_own():
    """(1,2) → (2,8): cell centres at x = 2 and 6; pixel centres 0.5 … 7.5 rise by 1/4 between them."""
    laid = stretch(np.array([[0.0, 1.0]], dtype=np.float32), (2, 8))
    np.testing.assert_allclose(laid, [[0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1]] * 2, atol=1e-6)


def test_transparent_pixels_are_white_and_exif_is_applied():
    assert as_picture(Image.new("RGBA", (2, 2), (255, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)
    turned = Image.new("RGB", (4, 2))
    turned.getexif()[0x0112] = 6
    assert as_picture(turned).size == (2, 4)


def test_an_evidence_mask_is_outlined_from_outside(grey_picture):
    mask = np.zeros((100, 100), bool)
    mask[40:50, 60:70] = True
    plain = np.asarray(overlay(grey_picture, np.ones((2, 2))))
    marked = np.asarray(overlay(grey_picture, np.ones((2, 2)), outline=Mask(torch.from_numpy(mask))))
    inside = np.repeat(np.repeat(mask, 4, 0), 4, 1)
    np.testing.assert_array_equal(marked[inside], plain[inside])  # the evidence itself stays as it was
    assert marked[159, 260].tolist() == [255, 255, 255]  # just above its first row, 160
    assert marked[157, 260].tolist() == [0, 0, 0]  # and dark around the light line
    np.testing.assert_array_equal(marked[:150], plain[:150])


def test_polygons_and_points_are_drawn_where_they_are(grey_picture):
    plain = np.asarray(overlay(grey_picture, np.ones((2, 2))))
    corners = [(10, 20), (60, 20), (60, 70), (10, 70)]
    polygon = np.asarray(overlay(grey_picture, np.ones((2, 2)), outline=[Polygon(corners)]))
    rows, cols = np.where((polygon != plain).any(-1))
    assert (rows.min(), rows.max(), cols.min(), cols.max()) == pytest.approx((80, 280, 40, 240), abs=3)
    ring = np.asarray(overlay(grey_picture, np.ones((2, 2)), outline=Points([(50, 25)])))
    rows, cols = np.where((ring != plain).any(-1))
    assert (rows.mean(), cols.mean()) == pytest.approx((100, 200), abs=1)


def test_wrong_pictures_marks_and_opacities_are_named(grey_picture):
    even = np.ones((2, 2))
    for picture, options, error, named in (
        (np.zeros((4, 4, 4), np.uint8), {}, DataError, "picture"),
        (torch.full((3, 4, 4), 200.0), {}, DataError, "picture"),
        (torch.full((3, 4, 4), float("nan")), {}, DataError, "picture"),
        (grey_picture, {"opacity": 1.1}, DataError, "opacity"),
        (grey_picture, {"colormap": "virdis"}, DataError, "viridis"),
        (grey_picture, {"outline": Mask(np.zeros((4, 4), bool))}, ShapeError, "mask"),
    ):
        with pytest.raises(error, match=named):
            overlay(picture, even, **options)
