"""Pictures as PNG bytes: exact whatever the effort, smaller where that is asked for, whole in an address."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from saccade.show.overlay import data_url, png_bytes


def ramps(height: int, width: int) -> Image.Image:
    """Ramps of another slope in each channel: what a compressor can do better or worse."""
    steps = np.add.outer(np.arange(height), np.arange(width))[..., None] * np.array([1, 2, 3])
    return Image.fromarray((steps % 256).astype(np.uint8))


@pytest.mark.parametrize("effort", ["fast", "plain", "small"])
def test_no_effort_changes_a_pixel(effort):
    picture = ramps(60, 80)
    with Image.open(io.BytesIO(png_bytes(picture, effort)), formats=["PNG"]) as opened:
        assert (np.asarray(opened) == np.asarray(picture)).all()


def test_more_effort_takes_fewer_bytes():
    sizes = [len(png_bytes(ramps(300, 400), effort)) for effort in ("fast", "plain", "small")]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(png_bytes(ramps(300, 400))) == sizes[1]


def test_a_very_large_picture_is_not_worth_the_effort():
    large = Image.new("L", (2_001, 2_000))
    assert png_bytes(large, "small") == png_bytes(large)
    assert len(png_bytes(large.crop((0, 0, 2_000, 2_000)), "small")) < len(png_bytes(large))


def test_an_address_holds_the_bytes_and_says_what_they_are():
    picture = png_bytes(ramps(3, 4))
    head, _, body = data_url(picture).partition(",")
    assert (head, base64.b64decode(body)) == ("data:image/png;base64", picture)
    assert data_url(b"<svg/>", "svg+xml") == "data:image/svg+xml;base64,PHN2Zy8+"
