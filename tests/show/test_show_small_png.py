"""The tool that writes the pictures of the documentation: small, and nothing in them that could be seen is lost."""

from __future__ import annotations

import base64
import importlib.util
import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from saccade.show.colours import legend_bar

TOOL = Path(__file__).parents[2] / "tools" / "small_png.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("small_png", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def off(one: Image.Image, other: Image.Image) -> int:
    """By how much of 255 the pictures differ where they differ most."""
    return int(np.abs(np.asarray(one.convert("RGB"), int) - np.asarray(other.convert("RGB"), int)).max())


def encoded(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


@pytest.fixture(scope="module")
def mixed() -> Image.Image:
    """Paper, a bar of the colour map, a grainy slope of greys, and one small yellow square: more than 256 colours."""
    picture = Image.new("RGB", (300, 220), (255, 255, 255))
    picture.paste(legend_bar(280, 20), (10, 10))
    across, down = np.meshgrid(np.linspace(0, 40, 280), np.linspace(0, 200, 160))
    grain = np.random.default_rng(0).integers(0, 8, across.shape)  # as in a photograph
    slope = np.stack([down, down, down + across + grain], -1).round().astype(np.uint8)
    picture.paste(Image.fromarray(slope), (10, 40))
    picture.paste((255, 240, 0), (150, 204, 166, 218))
    assert len(picture.getcolors(1 << 20) or ()) > 1000
    return picture


def test_few_colours_stay_what_they_are(tool: ModuleType) -> None:
    random = np.random.default_rng(0)
    colours = random.integers(0, 256, (256, 3)).astype(np.uint8)
    picture = Image.fromarray(colours[random.integers(0, 256, (40, 50))])
    made = opened(tool.small_png(picture))
    assert made.mode == "P"
    assert off(made, picture) == 0


def test_many_colours_become_256_that_look_the_same(tool: ModuleType, mixed: Image.Image) -> None:
    made = opened(tool.small_png(mixed))
    assert made.mode == "P"
    assert 0 < off(made, mixed) <= 12
    assert len(tool.small_png(mixed)) < 0.7 * len(encoded(mixed))


def test_paper_swatches_and_the_bar_of_colours_are_kept(tool: ModuleType, mixed: Image.Image) -> None:
    made = opened(tool.small_png(mixed)).convert("RGB")
    assert made.getpixel((1, 1)) == (255, 255, 255)
    assert made.getpixel((158, 210)) == (255, 240, 0)
    bar = made.crop((10, 10, 290, 30))
    assert off(bar, legend_bar(280, 20)) <= 8
    assert len(bar.getcolors() or ()) >= 60  # no bands of ten pixels


def test_a_picture_that_256_colours_would_change_keeps_all_of_its_own(tool: ModuleType) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (60, 60, 3)).astype(np.uint8)
    picture = Image.fromarray(noise)
    made = opened(tool.small_png(picture))
    assert made.mode == "RGB"
    assert off(made, picture) == 0


def test_a_slope_that_is_small_anyway_keeps_its_colours(tool: ModuleType) -> None:
    down, across = np.mgrid[:64, :64]
    smooth = Image.fromarray(np.stack([2 * down, 2 * across, down + across], -1).astype(np.uint8))  # 4,096 colours
    made = tool.small_png(smooth)
    assert opened(made).mode == "RGB"
    assert off(opened(made), smooth) == 0
    assert len(made) <= len(encoded(smooth))


def test_embedded_pictures_get_smaller_and_the_page_stays(tool: ModuleType, mixed: Image.Image) -> None:
    data = base64.b64encode(encoded(mixed)).decode()
    page = tool.smaller_embedded(f'<p>1+1=2</p><img src="data:image/png;base64,{data}" alt="a"><b>AAAA</b>')
    small = base64.b64encode(tool.small_png(mixed)).decode()
    assert page == f'<p>1+1=2</p><img src="data:image/png;base64,{small}" alt="a"><b>AAAA</b>'
    assert tool.smaller_base64(small) == small  # what is small already is not written again
