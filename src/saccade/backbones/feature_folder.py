"""``features:FOLDER``: feature maps computed elsewhere, one file for each picture, used instead of a network.

The file of ``photos/cat/1.jpg`` is ``cat/1.npy`` or ``1.npy`` in the folder, or the same with ``.npz`` or
``.safetensors``. It holds one map. A file with several arrays calls the map ``map``, and may have a vector ``token`` of
the whole picture (C,), the class token of a transformer.

``features.json`` in the folder holds what the arrays do not say (:class:`FolderNote`): the order of the axes, the part
of the picture that the map covers, and the frame of its cells. ``docs/how-to/probe.md`` explains the keys; each is
optional. Arrays are read without unpickling anything.
"""

from __future__ import annotations

import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import safetensors
import torch
from safetensors.numpy import load_file
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones.stages import Stages, token_row
from saccade.config import Within, from_dict
from saccade.errors import ConfigError, DataError
from saccade.files import parse_json

NOTE = "features.json"
MAP, TOKEN = "map", "token"
SUFFIXES = (".npy", ".npz", ".safetensors")


@dataclass(frozen=True)
class FolderNote:
    """What ``features.json`` says."""

    layout: Literal["chw", "hwc"] = "chw"
    fit: Literal["whole", "inside", "centre"] = "whole"
    input_size: Annotated[tuple[int, int], Within(1)] = (224, 224)
    crop: Annotated[float, Within(0, 1, above=True)] = 0.875
    frame: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None


class FeatureFolder:
    """The maps in a folder, by picture; a DataError where it has no map or a wrong note."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.note = _note(self.folder / NOTE)
        self._files = {
            path.relative_to(self.folder).with_suffix("").as_posix(): path
            for path in sorted(self.folder.rglob("*"))
            if path.suffix in SUFFIXES and path.is_file()
        }
        if not self._files:
            raise DataError(f"features:{self.folder}: no map there; expected files such as NAME{SUFFIXES[0]}")
        first, token = self._read(next(iter(self._files.values())))
        self.shape: tuple[int, int, int] = (first.shape[0], first.shape[1], first.shape[2])  # (C,H,W) of all maps
        self.has_class_token = token is not None

    @property
    def frame(self) -> Tensor:
        """(2,3): cells → pixels of what the network saw."""
        if self.note.frame is not None:
            return torch.tensor(self.note.frame, dtype=torch.float64)
        (height, width), (_, rows, columns) = self.note.input_size, self.shape
        return geometry.scale_shift((width / columns, height / rows), (0.0, 0.0))

    def file_of(self, picture: Path) -> Path | None:
        """The file with the map of ``picture``."""
        return self._files.get(f"{picture.parent.name}/{picture.stem}") or self._files.get(picture.stem)

    def check_apart(self, pictures: Sequence[Path]) -> None:
        """Refuse two pictures that have one and the same map by their names."""
        owner: dict[Path, Path] = {}
        for picture in pictures:
            file = self.file_of(picture)
            if file is not None and owner.setdefault(file, picture) != picture:
                raise DataError(
                    f"{file}: the map of both {owner[file]} and {picture}; put maps into folders named as those of the "
                    "pictures"
                )

    def take(self, pictures: Sequence[Path]) -> Tensor:
        """The maps (B,C,H,W) of pictures; with class tokens (B,C,H+1,W), a row below for each."""
        return torch.stack([self._one(picture) for picture in pictures])

    def canvas(self, image_size: Tensor) -> Tensor:
        """(N,2,3): pixels of what the network saw → pixels of pictures of size (N,2), height and width."""
        return torch.stack([_canvas(self.note, *side) for side in image_size.tolist()])

    def _one(self, picture: Path) -> Tensor:
        file = self.file_of(picture)
        if file is None:
            raise DataError(f"{self.folder}: no map of {picture}; expected {picture.stem}{SUFFIXES[0]}")
        values, token = self._read(file)  # (C,H,W), (C,)
        if tuple(values.shape) != self.shape or (token is not None) != self.has_class_token:
            raise DataError(
                f"{file}: a map of {tuple(values.shape)}, class token: {token is not None}; the first file has "
                f"{self.shape}, class token: {self.has_class_token}; all must be alike"
            )
        return values if token is None else torch.cat([values, token_row(values, token)], 1)

    def _read(self, file: Path) -> tuple[Tensor, Tensor | None]:
        arrays = _arrays(file)
        if MAP not in arrays and len(arrays) == 1:
            arrays = {MAP: next(iter(arrays.values()))}
        array = arrays.get(MAP)
        if array is None or array.ndim != 3 or 0 in array.shape or array.dtype.kind != "f":
            contents = ", ".join(f"{name} {other.dtype} {other.shape}" for name, other in sorted(arrays.items()))
            raise DataError(f"{file}: expected a map '{MAP}' with three axes and floating point, found {contents}")
        if self.note.layout == "hwc":
            array = array.transpose(2, 0, 1)
        values = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        token = arrays.get(TOKEN)
        if not bool(values.isfinite().all()) or (token is not None and token.shape != (array.shape[0],)):
            raise DataError(f"{file}: holds NaN or infinity, or its '{TOKEN}' is not {array.shape[0]} numbers")
        return values, None if token is None else torch.from_numpy(np.array(token, dtype=np.float32))


class GivenMaps(nn.Module):
    """In the place of a network: it knows where its cells lie, and cannot see."""

    def __init__(self, folder: FeatureFolder) -> None:
        super().__init__()
        self.frame_step, self.has_class_token = folder.frame, folder.has_class_token
        self._where, self._cells = folder.folder, folder.shape[1:]

    def forward(self, images: Tensor) -> Tensor:
        """Refused, unless it is asked for shapes alone."""
        if images.device.type == "meta":
            return images.new_zeros(images.shape[0], 1, *self._cells)
        raise ConfigError(f"features:{self._where} holds stored feature maps and no network; use another backbone")


def feature_stages(folder: str) -> Stages:
    """The folder as a backbone with the one stage "features"."""
    maps = FeatureFolder(folder)
    return Stages(OrderedDict(features=GivenMaps(maps)), {"features": maps.shape[0]})


def _note(path: Path) -> FolderNote:
    if not path.is_file():
        return FolderNote()
    try:
        return from_dict(FolderNote, parse_json(path.read_text("utf-8")))
    except (OSError, ValueError, ConfigError) as error:
        raise DataError(f"{path}: {error}") from error


def _arrays(file: Path) -> dict[str, Any]:
    """Name → array of a file; nothing is unpickled."""
    try:
        if file.suffix == ".safetensors":
            return dict(load_file(file))
        loaded = np.load(file, allow_pickle=False)
        return {MAP: loaded} if file.suffix == ".npy" else {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, safetensors.SafetensorError) as error:
        raise DataError(f"{file}: cannot be read ({error}); write it again") from error


def _canvas(note: FolderNote, height: int, width: int) -> Tensor:
    rows, columns = note.input_size
    if note.fit == "whole":
        return geometry.scale_shift((width / columns, height / rows), (0.0, 0.0))
    if note.fit == "inside":  # one scale for both axes, the borders of equal width
        scale = max(width / columns, height / rows)
    else:  # the middle part, as large as the shorter side times crop
        scale = min(width / columns, height / rows) * note.crop
    return geometry.scale_shift((scale, scale), ((width - scale * columns) / 2, (height - scale * rows) / 2))
