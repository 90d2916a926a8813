"""MBG: photographs behind the digits, from any folder of pictures.

Seo et al. (arXiv:1606.02393, §5.1) take natural scenes of the SUN database and do not say how they were cut; here each
scene takes a photograph, one of three scales, a position and perhaps a mirror image, all from the hash. The folder is
the one that is named, else ``backgrounds`` in the cache, else nine photographs that ship with saccade. Accuracy depends
on the photographs, so every result names folder, split, number and a digest of their pixels. Known sets are named by
that digest: ``bsds500`` is BSDS500 (Arbelaez et al. 2011), train and val, resized to a short side of 200 px. Only SUN
compares with the paper.

No photograph is in two splits:

=============================== ======================================================================================
the folder holds                 train / val / test
=============================== ======================================================================================
train/, val/, test/              as they are
train/ and one of test/, val/    nine tenths of train/ · the other tenth · that one
anything else                    eight, one and one tenth of all pictures in it
=============================== ======================================================================================

Tenths are cut in the order of a hash of the names.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.examples import SPLITS, Split
from saccade.data.pictures.reading import find_pictures, read_picture
from saccade.data.scenes.backgrounds import BACKGROUND_DRAWS
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import hash_state, hash_words, uniform_below
from saccade.data.scenes.kernels import try_kernel
from saccade.data.tables.doubts import first_few
from saccade.errors import DataError
from saccade.files import cache_home

SHIPPED = Path(__file__).parent / "packs" / "backgrounds"  # Nine photographs, with ``attribution.json`` beside them

# Digest of the photographs of a split → what the set is called.
KNOWN = {
    **dict.fromkeys(("e3972d19", "c4077eee", "ee467d42"), "bsds500"),
    **dict.fromkeys(("3b287d7b", "fef84052", "c8aec02d"), "shipped"),
}

LIMIT = 2_000  # Photographs kept of a split at most, the first in the order of the hash; some 450 MB

_SHORT_SIDES = (110, 130, 150)  # scales kept of each photograph; a scene of 100 px shows 67 to 91 % of the short side
_LONGEST = 2  # a panorama is cut to this many times its short side
_SOURCE, _PLACE = range(BACKGROUND_DRAWS, BACKGROUND_DRAWS + 2)
_NAMED = 5  # unreadable pictures that a warning lists by name


class Photographs:
    """A stack of photographs to cut backgrounds from; a :class:`~saccade.data.scenes.backgrounds.Background`.

    Its name is ``label``, or that of a known set, with the number and a digest of the pixels.
    """

    def __init__(self, pictures: Iterable[Image.Image], label: str) -> None:
        planes = [_scaled(picture, short) for picture in pictures for short in _SHORT_SIDES]  # (3, h, w) each
        pixels = torch.cat([plane.flatten() for plane in planes])
        height, width = (torch.tensor([plane.shape[axis] for plane in planes]) for axis in (1, 2))
        start = (3 * height * width).cumsum(0) - 3 * height * width
        self._copies = {pixels.device: (pixels, torch.stack([start, height, width]))}  # by device; (3, scales · n)
        self.count = len(planes) // len(_SHORT_SIDES)
        digest = hashlib.sha256(pixels.numpy().data).hexdigest()[:8]
        folder, _, split = label.rpartition("-")
        known = f"{KNOWN.get(digest, folder)}-{split}" if folder else label
        self.name = f"{known}-{self.count}-{digest}"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """A cut of some photograph for each scene."""
        device = indices.device
        if device not in self._copies:
            pixels, places = self._copies[torch.device("cpu")]
            self._copies[device] = (pixels.to(device), places.to(device))
        pixels, places = self._copies[device]
        scene = hash_state(seed, indices)  # lanes (B,)
        for_source, for_mirror = hash_words(scene, _SOURCE)
        for_x, for_y = hash_words(scene, _PLACE)
        start, height, width = places[:, uniform_below(for_source, places.shape[1])]  # (B,): photograph and scale
        x, y = uniform_below(for_x, width - size + 1), uniform_below(for_y, height - size + 1)
        corner, area = start + y * width + x, height * width  # (B,)
        mirrored = uniform_below(for_mirror, 2).bool()

        def by_one_kernel() -> Tensor:
            from saccade.data.scenes.kernels.painting import cut

            return cut(pixels, corner, width, area, mirrored, size)

        images = try_kernel(by_one_kernel, indices.device, size)
        return _cuts(pixels, corner, width, area, mirrored, size) if images is None else images


def _cuts(pixels: Tensor, corner: Tensor, width: Tensor, area: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """Squares (B, 3, size, size) of photographs that begin at ``corner`` (B,) in ``pixels``, mirrored or not."""
    channel = torch.arange(3, device=corner.device)[:, None] * area[:, None, None]  # (B, 3, 1)
    row = torch.arange(size, device=corner.device) * width[:, None, None]  # (B, 1, size)
    runs = pixels.unfold(0, size, 1)  # every run of ``size`` pixels is a row of this view; a cut is a choice of rows
    cuts = runs[corner[:, None, None] + channel + row]  # (B, 3, size, size)
    return torch.where(mirrored[:, None, None, None], cuts.flip(-1), cuts)


def photographs_for(split: Split, folder: str | Path | None = None) -> Photographs:
    """The photographs that ``split`` may use; see the module for which folder and which split.

    Unreadable pictures are left out, with one warning.
    """
    base, label = _folder(folder)
    files = _share(base, split)
    unreadable: list[str] = []
    pictures = _readable(files, unreadable)
    first = list(islice(pictures, 1))
    if not first:
        raise DataError(
            f"{base}: none of the {len(files)} pictures for {split} can be read ({unreadable[0]}); "
            "replace them, or name another folder"
        )
    photographs = Photographs(chain(first, islice(pictures, LIMIT - 1)), f"{label}-{split}")
    if unreadable:
        count, listed = f"{len(unreadable)} of {len(files)} pictures", first_few(unreadable, _NAMED)
        warnings.warn(f"{base}: left out {count} for {split}, which cannot be read: {listed}", stacklevel=2)
    return photographs


def photograph_files(split: Split, folder: str | Path | None = None) -> list[Path]:
    """The files of :func:`photographs_for`, in their order, whether they can be read or not."""
    return _share(_folder(folder)[0], split)


def _folder(named: str | Path | None) -> tuple[Path, str]:
    if named is None:
        cached = cache_home() / "backgrounds"
        return (cached, cached.name) if cached.is_dir() else (SHIPPED, "shipped")
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"backgrounds: {folder} is not a folder; name one that holds photographs, or none to use "
            f"{cache_home() / 'backgrounds'} or those that ship with saccade"
        )
    return folder, folder.resolve().name or "photographs"


def _share(base: Path, split: Split) -> list[Path]:
    parts = [part for part in SPLITS if (base / part).is_dir()]
    if "train" not in parts or len(parts) == 1:
        return _cut(_in_hash_order(base), SPLITS, split, base)
    if len(parts) == 3:
        return _in_hash_order(base / split)
    if split == "test":
        return _in_hash_order(base / parts[1])
    return _cut(_in_hash_order(base / "train"), ("train", "val"), split, base / "train")


def _in_hash_order(folder: Path) -> list[Path]:
    """All pictures of a folder, in an order that has nothing to do with what they show."""
    names = {file: file.relative_to(folder).as_posix() for file in find_pictures([folder])}
    return sorted(names, key=lambda file: hashlib.sha256(names[file].encode()).digest())


def _cut(files: list[Path], splits: Sequence[Split], split: Split, where: Path) -> list[Path]:
    """A tenth of the files, at least one, for each split but the first, which has the rest."""
    if len(files) < len(splits):
        raise DataError(f"{where}: {len(files)} picture(s) cannot be shared among {', '.join(splits)}; add some")
    tenth = max(1, len(files) // 10)
    if split == splits[0]:
        return files[tenth * (len(splits) - 1) :]
    first = tenth * (splits.index(split) - 1)
    return files[first : first + tenth]


def _readable(files: Sequence[Path], unreadable: list[str]) -> Iterator[Image.Image]:
    for file in files:
        try:
            yield read_picture(file).image
        except DataError as error:
            unreadable.append(str(error))


def _scaled(image: Image.Image, short_side: int) -> Tensor:
    """The middle of ``image``, no longer than twice its short side, resized: (3, h, w) uint8."""
    short = min(image.size)
    width, height = (min(side, _LONGEST * short) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    target = round(width * short_side / short), round(height * short_side / short)
    resized = image.resize(target, Image.Resampling.BICUBIC, box=(left, top, left + width, top + height))
    return torch.from_numpy(np.array(resized)).permute(2, 0, 1)
