"""PNG files that are small: 256 colours where the difference cannot be seen, else all of them.

Colours here are of three kinds: a few that fill the picture (paper, ink, digits), the ramp in which attention is
painted, and mixtures of these. The first are kept as they are, the second in even steps, so that no bar shows bands,
and the third are grouped by k-means. In that every colour counts once, whether it fills a corner or a pixel: a rare
colour is not drawn to a common one.
"""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.show.colours import heat
from saccade.show.overlay import png_bytes

COLOURS, FILLING, RAMP, ROUNDS = 256, 32, 64, 60
FARTHEST = 32
"""By how much of 255 a channel of any pixel may be off; more can be seen, and the picture keeps all its colours."""
_EMBEDDED = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=\s]+")

Colours = npt.NDArray[np.float64]


def small_png(picture: Image.Image) -> bytes:
    """``picture`` as a PNG file."""
    exact = picture.convert("RGB")
    few = _with_few_colours(exact)
    off = np.abs(np.asarray(few.convert("RGB"), np.int16) - np.asarray(exact, np.int16)).max()
    return min((png_bytes(each, "small") for each in ([few, exact] if off <= FARTHEST else [exact])), key=len)


def smaller_base64(data: str) -> str:
    """A PNG file written in base64, smaller; as it is where that gains nothing."""
    made = base64.b64encode(small_png(Image.open(io.BytesIO(base64.b64decode(data))))).decode("ascii")
    return made if len(made) < len("".join(data.split())) else data


def smaller_embedded(html: str) -> str:
    """HTML whose embedded pictures are smaller."""
    return _EMBEDDED.sub(lambda found: smaller_base64(found[0]), html)


def _with_few_colours(picture: Image.Image) -> Image.Image:
    pixels = np.asarray(picture).reshape(-1, 3)  # (N,3)
    found, which, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)  # (K,3), (N,), (K,)
    palette = found.astype(np.float64) if len(found) <= COLOURS else _palette(found, counts)  # (P,3)
    meant = palette[_nearest(found.astype(np.float64), palette)]  # (K,3)
    used, place = np.unique(meant.astype(np.uint8), axis=0, return_inverse=True)  # in order, which packs better
    few = Image.fromarray(place.ravel()[which.ravel()].astype(np.uint8).reshape(picture.height, picture.width))
    few.putpalette(used.ravel().tolist())
    return few


def _palette(found: npt.NDArray[np.uint8], counts: npt.NDArray[np.intp]) -> Colours:
    """The colours (P,3) that stand for all that were ``found`` (K,3)."""
    filling = found[np.argsort(-counts, kind="stable")[:FILLING]]
    ramp = heat(np.linspace(0, 1, RAMP, dtype=np.float32)).round()
    fixed = np.concatenate([filling, ramp]).astype(np.float64)  # (F,3)
    room = COLOURS - len(fixed)
    cut = Image.fromarray(found[None]).quantize(room, method=Image.Quantize.MEDIANCUT).getpalette() or []
    groups = np.array(cut[: 3 * room], np.float64).reshape(-1, 3)  # (G,3)
    colours = found.astype(np.float64)
    for _ in range(ROUNDS):
        nearest = _nearest(colours, np.concatenate([fixed, groups])) - len(fixed)  # (K,): below 0 for the fixed ones
        mine = nearest >= 0
        sums = np.zeros_like(groups)
        np.add.at(sums, nearest[mine], colours[mine])
        members = np.bincount(nearest[mine], minlength=len(groups))[:, None]
        groups = np.where(members > 0, sums / np.maximum(members, 1), groups)
    return np.concatenate([fixed, groups]).round()


def _nearest(colours: Colours, palette: Colours) -> npt.NDArray[np.intp]:
    """For each of ``colours`` (K,3) the number (K,) of the nearest in ``palette`` (P,3)."""
    # |c - p|² = |c|² - 2 c·p + |p|², and |c|² is the same for all p
    return (np.square(palette).sum(1) - 2 * colours @ palette.T).argmin(1)
