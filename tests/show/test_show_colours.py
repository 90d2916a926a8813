from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest

from saccade.show.colours import ANCHORS, FAINT_INK, INK, PAPER, contrast, cover, heat, ink_on, legend_bar


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


def test_cover_grows_with_the_weight_up_to_the_opacity():
    share = cover(np.array([0, 0.5, 1], dtype=np.float32), 0.6)
    assert share[0] > 0
    assert (np.diff(share) > 0).all()
    assert share[2] == pytest.approx(0.6)
    assert (cover(np.ones(3, dtype=np.float32), 0.0) == 0).all()


def test_legend_bar_runs_from_low_to_high():
    bar = np.asarray(legend_bar(50, 4))
    assert bar.shape == (4, 50, 3)
    np.testing.assert_array_equal(bar[0, 0], ANCHORS[0])
    np.testing.assert_array_equal(bar[-1, -1], ANCHORS[-1])


def test_contrast_is_wcag():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((9, 9, 9), (9, 9, 9)) == 1
    assert contrast(INK, PAPER) > 7
    assert contrast(FAINT_INK, PAPER) > 4.5


def test_ink_is_legible_on_every_colour_of_the_map():
    for colour in heat(np.linspace(0, 1, 33, dtype=np.float32)).round().astype(int).tolist():
        assert contrast(ink_on(tuple(colour)), tuple(colour)) >= 4.5


PAGE, REPORT = "web/static/css/tokens.css", "show/static/report.css"
TEXTS = [
    *((PAGE, text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "raised", "wash", "tint")),
    (PAGE, "on-accent", "accent"),
    (PAGE, "danger", "danger-wash"),
    *((REPORT, text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "wash", "best")),
]


@pytest.mark.parametrize(("sheet", "text", "ground"), TEXTS)
def test_text_is_readable_on_every_ground_in_light_and_dark(sheet: str, text: str, ground: str) -> None:
    """WCAG 2 asks for 4.5 : 1."""
    css = files("saccade").joinpath(sheet).read_text(encoding="utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
    found = {name: [light, dark] for name, light, dark in pairs}
    for name, colour in [] if pairs else re.findall(r"--([\w-]+): (#\w{6});", css):
        found.setdefault(name, []).append(colour)  # the light one stands first
    (light, dark), (light_ground, dark_ground) = found[text][:2], found[ground][:2]  # a third is for paper
    assert contrast(rgb_of(light), rgb_of(light_ground)) >= 4.5
    assert contrast(rgb_of(dark), rgb_of(dark_ground)) >= 4.5


def rgb_of(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue
