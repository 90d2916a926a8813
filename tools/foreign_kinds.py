"""Foreign pictures on which the warning "unlike" is measured; features are chosen on other kinds.

Far ones: photographs, letters, blank pictures. Near ones: digits of a font, scans, inverted colours, and scenes of
another set than the model's own.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.families.question.scenes.data import SPECS, SceneData, SceneDataConfig

LETTERS, DIGITS = "ABCDEFGHJKLMNPQRTUVWXYZ", "0123456789"
AT_ONCE = 100


@lru_cache
def font(side: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font; to load it takes a millisecond."""
    return ImageFont.load_default(side)


def characters(alphabet: str, count: int, size: tuple[int, int], seed: int) -> Tensor:
    """Five to nine coloured characters of Pillow's own font on black: (count,3,H,W)."""
    random = np.random.default_rng(seed)
    palette = rgb(torch.arange(len(COLOURS)), torch.zeros(len(COLOURS), dtype=torch.int64)).tolist()
    height, width = size
    made = []
    for _ in range(count):
        image = Image.new("RGB", (width, height))
        draw = ImageDraw.Draw(image)
        for _ in range(random.integers(5, 10)):
            side = int(min(size) * (0.14 + 0.5 * random.random() ** 2))
            place = (int(random.integers(0, width - side + 1)), int(random.integers(0, height - side + 1)))
            colour = tuple(palette[random.integers(len(palette))])
            draw.text(place, random.choice(list(alphabet)), fill=colour, font=font(side))
        made.append(np.asarray(image))
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2).contiguous()


def photographs(folder: Path, count: int, size: tuple[int, int], seed: int) -> Tensor:
    """Squares out of photographs: (count,3,H,W)."""
    random = np.random.default_rng(seed)
    files = sorted(folder.rglob("*.jpg"))
    if not files:
        raise SystemExit(f"{folder}: no photographs (*.jpg)")
    made = []
    for _ in range(count):
        with Image.open(files[random.integers(len(files))]) as opened:
            image = opened.convert("RGB")
        side = int(min(image.size) * random.uniform(0.5, 1.0))
        x, y = (int(random.integers(0, length - side + 1)) for length in image.size)
        made.append(np.asarray(image.crop((x, y, x + side, y + side)).resize(size[::-1])))
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2).contiguous()


def scenes(name: str, count: int, size: tuple[int, int], backgrounds: Path | None) -> Tensor:
    """Test scenes of another set, of shipped digits: (count,3,H,W)."""
    folder = None if name != "mbg" or backgrounds is None else str(backgrounds)
    data = SceneData(SceneDataConfig(name=name, glyphs="pack", seed=11, backgrounds=folder), "test")
    made = torch.cat([data.take(part).images for part in data.one_per_scene(count).split(AT_ONCE)])
    made = made if tuple(made.shape[-2:]) == size else F.interpolate(made, size, mode="bilinear", antialias=True)
    return made.mul(255).round().to(torch.uint8)


def inverted(own: Tensor) -> Tensor:
    """Own test pictures as a negative."""
    return 255 - own


def scans(own: Tensor, seed: int) -> Tensor:
    """Own test pictures as grey ink on paper, with the noise of a scanner."""
    generator = torch.Generator().manual_seed(seed)
    ink = as_float(own).amax(1, keepdim=True)  # (N,1,H,W)
    paper = 0.93 - 0.8 * ink + 0.02 * torch.randn(own.shape, generator=generator)
    return paper.clamp(0, 1).mul(255).round().to(torch.uint8)


def blank(count: int, size: tuple[int, int], seed: int) -> Tensor:
    """One colour all over: (count,3,H,W)."""
    generator = torch.Generator().manual_seed(seed)
    return (256 * torch.rand(count, 3, 1, 1, generator=generator)).to(torch.uint8).expand(-1, -1, *size).contiguous()


def alike(count: int, size: tuple[int, int], photos: Path | None, known: dict[Any, dict[str, Tensor]]) -> dict:
    """The kinds that do not depend on the model, by name; made once for each size and kept in ``known``."""
    if size not in known:
        known[size] = {
            "letters": characters(LETTERS, count, size, 1),
            "printed digits": characters(DIGITS, count, size, 2),
            "blank": blank(count, size, 3),
            **({} if photos is None else {"photographs": photographs(photos, count, size, 4)}),
            **{f"scenes of {name}": scenes(name, count, size, photos) for name in SPECS},
        }
    return known[size]
