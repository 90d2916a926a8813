"""Overlays on the right pixels, and colour maps whose lightness rises for every reader."""

import re
from importlib.resources import files

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.colours import ANCHORS, as_map, by_own_ends, by_own_peak, heat, ink_on, smooth
from saccade.show.overlay import Mask, Points, Polygon, as_picture, overlay, stretch


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


def lightness(rgb: np.ndarray) -> np.ndarray:
    """CIE L* of sRGB values 0..255, (…,3) → (…)."""
    part = rgb / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    y = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


def as_seen_without_red_or_green(rgb: np.ndarray) -> np.ndarray:
    """Deuteranopia after Viénot, Brettel and Mollon (1999), on linear RGB."""
    linear = (rgb / 255) ** 2.2
    matrix = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
    return (np.clip(linear @ matrix.T, 0, 1) ** (1 / 2.2)) * 255


def test_ends_and_anchors_are_met():
    np.testing.assert_allclose(heat(np.linspace(0, 1, 9, dtype=np.float32)), ANCHORS, atol=0.01)


def test_lightness_rises_all_the_way_also_for_colour_blind_readers():
    colours = heat(np.linspace(0, 1, 65, dtype=np.float32))
    steps = np.diff(lightness(colours))
    assert steps.min() > 0.5
    assert steps.max() < 2.5  # no jump that would look like an edge in the data
    assert np.diff(lightness(as_seen_without_red_or_green(colours))).min() > 0.2


def contrast(first: tuple[int, int, int], second: tuple[int, int, int]) -> float:
    """The WCAG contrast ratio of two colours, 1 to 21."""
    light = [np.array(colour) / 255 for colour in (first, second)]
    linear = [np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) for part in light]
    darker, lighter = sorted(float(part @ (0.2126, 0.7152, 0.0722)) for part in linear)
    return (lighter + 0.05) / (darker + 0.05)


def test_ink_is_legible_on_every_colour_of_the_map():
    for colour in heat(np.linspace(0, 1, 33, dtype=np.float32)).round().astype(int).tolist():
        assert contrast(ink_on(tuple(colour)), tuple(colour)) >= 4.5


PAGE, REPORT = "web/static/css/tokens.css", "show/templates/report.css"
TEXTS = [
    *((PAGE, text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "raised", "wash", "tint")),
    (PAGE, "on-accent", "accent"),
    (PAGE, "danger", "danger-wash"),
    *((REPORT, text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "wash", "best")),
]


def test_text_is_readable_on_every_ground_in_light_and_dark() -> None:
    """WCAG 2 asks for 4.5 : 1."""
    for sheet, text, ground in TEXTS:
        css = files("saccade").joinpath(sheet).read_text(encoding="utf-8")
        pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
        found = {name: [light, dark] for name, light, dark in pairs}
        for name, colour in [] if pairs else re.findall(r"--([\w-]+): (#\w{6});", css):
            found.setdefault(name, []).append(colour)  # the light one stands first; a third is for paper
        for pair in zip(found[text][:2], found[ground][:2], strict=True):
            assert contrast(*(tuple(bytes.fromhex(colour[1:])) for colour in pair)) >= 4.5, (sheet, text, ground)


def test_own_peak_divides_by_the_maximum_and_says_so():
    scaled = by_own_peak([[0.0, 0.1], [0.2, 0.4]])
    np.testing.assert_allclose(scaled.values, [[0, 0.25], [0.5, 1]], rtol=1e-6)
    assert scaled.top == pytest.approx(0.4)
    assert scaled.legend == "0 … 0.4, the map's own peak"


@given(arrays(np.float32, (3, 4), elements=st.floats(-1e6, 1e6, width=32)))
def test_values_lie_between_0_and_1_and_keep_the_place_of_the_peak(values):
    scaled = by_own_peak(values)
    assert scaled.values.min() >= 0
    assert scaled.values.max() <= 1
    if values.max() > 0:
        assert scaled.values.flat[values.argmax()] == 1


def test_masks_that_only_add_are_shown_from_their_least_where_they_differ_by_half() -> None:
    """1 + M goes from 1.1 to 1.9 about 1.5: by .8, more than half of 1.5. So the whole range of colours."""
    scaled = by_own_ends([[0.1, 0.5], [0.9, 0.5]], base=1.0)
    assert scaled.values.tolist() == [[0, pytest.approx(0.5, abs=1e-5)], [1, pytest.approx(0.5, abs=1e-5)]]
    assert (scaled.least, scaled.top, scaled.is_fixed) == (pytest.approx(0.1), pytest.approx(0.9), False)


def test_a_nearly_even_mask_is_shown_nearly_even() -> None:
    """1 + M goes from 1.48 to 1.52: all colours together are half of 1.5, 0.75, from .125 to .875 of the mask.

    So .48 is (.48 − .125) / .75 = .4733 of the range and .52 is .5267: a twentieth of the colours apart.
    """
    scaled = by_own_ends([[0.48, 0.5], [0.52, 0.5]], base=1.0)
    np.testing.assert_allclose(scaled.values, [[0.47333, 0.5], [0.52667, 0.5]], atol=1e-4)
    assert (scaled.least, scaled.top, scaled.is_fixed) == (pytest.approx(0.125), pytest.approx(0.875), True)
    assert "from 0.48 to 0.52" in scaled.legend


def test_the_filter_is_a_gaussian() -> None:
    """One bright pixel becomes the kernel itself: e^(−x²/2σ²) along each axis, and nothing is lost."""
    point = np.zeros((41, 41), dtype=np.float32)
    point[20, 20] = 1
    found = smooth(point, (4.0, 4.0), width=1.0)  # σ = 4 pixels
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert found[20, 24] / found[20, 20] == pytest.approx(np.exp(-0.5), abs=1e-5)
    assert found[26, 20] / found[20, 20] == pytest.approx(np.exp(-0.5 * 36 / 16), abs=1e-5)
    wide = smooth(point, (8.0, 2.0))
    assert wide[20, 24] > 5 * wide[24, 20]
    np.testing.assert_array_equal(smooth(point, (3.0, 3.0), width=0.0), point)


def test_what_is_no_map_is_refused():
    for values, error in (
        (np.zeros((0, 3)), ShapeError),
        (np.zeros((2, 3, 4)), ShapeError),
        ([[np.nan, 1.0]], DataError),
        ("abc", DataError),
    ):
        with pytest.raises(error, match="map"):
            as_map(values)
    np.testing.assert_array_equal(by_own_peak([[-2.0, 1.0]]).values, [[0, 1]])
