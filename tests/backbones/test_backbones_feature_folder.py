"""``features:FOLDER``: maps by the names of pictures, where their cells lie, and what is wrong with a folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from saccade import geometry
from saccade.backbones.feature_folder import FeatureFolder
from saccade.errors import DataError

MAP = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TOKEN = np.array([7, 8], dtype=np.float32)


def folder_with(path: Path, note: dict[str, Any] | None = None, **maps: Any) -> FeatureFolder:
    path.mkdir(exist_ok=True)
    for name, array in (maps or {"a": MAP}).items():
        np.save(path / f"{name}.npy", array)
    if note is not None:
        (path / "features.json").write_text(json.dumps(note))
    return FeatureFolder(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_every_kind_of_file_is_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"cat{suffix}"
    if suffix == ".npy":
        np.save(file, MAP.astype(np.float64))
    elif suffix == ".npz":
        np.savez(file, features=MAP)  # one array needs no special name
    else:
        save_file({"map": MAP, "token": TOKEN}, file)
    folder = FeatureFolder(tmp_path)
    result = folder.take([Path("photos/cat.jpg")])
    assert torch.equal(result[0, :, :3], torch.from_numpy(MAP))
    assert folder.has_class_token == (suffix == ".safetensors")
    if folder.has_class_token:  # one row more, its first cell the token
        assert result.shape == (1, 2, 4, 4)
        assert result[0, :, 3].tolist() == [[7, 0, 0, 0], [8, 0, 0, 0]]


def test_channels_may_be_last(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, {"layout": "hwc"}, a=MAP.transpose(1, 2, 0))
    assert torch.equal(folder.take([Path("a.jpg")])[0], torch.from_numpy(MAP))


def test_a_map_in_a_folder_of_the_same_name_comes_first(tmp_path: Path) -> None:
    for kind, value in (("cat", 1), ("dog", 2)):
        folder_with(tmp_path / kind, a=MAP * 0 + value)
    folder = FeatureFolder(tmp_path)
    pictures = [Path("photos/cat/a.jpg"), Path("photos/dog/a.jpg")]
    assert folder.take(pictures)[:, 0, 0, 0].tolist() == [1, 2]
    assert folder.file_of(Path("photos/cow/a.jpg")) is None
    with pytest.raises(DataError, match=r"a.npy: the map of both .*1/b/a.jpg and .*2/b/a.jpg"):
        folder_with(tmp_path / "flat").check_apart([Path("1/b/a.jpg"), Path("2/b/a.jpg")])


@pytest.mark.parametrize(
    ("note", "corner", "middle"),
    [
        ({}, (0, 0), (200, 150)),  # 3 × 4 cells on a picture of 300 × 400: all of it
        ({"fit": "inside", "input_size": [60, 40]}, (0, -150), (200, 150)),  # 10 pixels of the picture in one
        ({"fit": "centre", "input_size": [60, 80], "crop": 0.5}, (100, 75), (200, 150)),
        ({"frame": [[56, 0, 28], [0, 56, 0]]}, (50, 0), (250, 112.5)),  # as said, not as the cells would tile it
    ],
)
def test_cells_lie_where_the_note_says(tmp_path: Path, note: dict[str, Any], corner: Any, middle: Any) -> None:
    folder = folder_with(tmp_path, note)
    canvas = folder.canvas(torch.tensor([[300, 400]]))[0]
    frame = geometry.compose(canvas, folder.frame)
    for cell, wanted in (((0.0, 0.0), corner), ((2.0, 1.5), middle)):
        assert geometry.apply(frame, torch.tensor(cell)).tolist() == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("maps", "note", "said"),
    [
        ({"a": MAP.astype(int)}, None, "int64"),
        ({"a": MAP * np.nan}, None, "NaN or infinity"),
        ({"a": np.array([{}])}, None, "cannot be read .*allow_pickle"),
        ({"a": MAP}, {"fit": "stretch"}, "features.json: .*fit"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, maps: dict[str, Any], note: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        folder_with(tmp_path, note, **maps)


def test_maps_must_be_alike_and_there(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError, match=str(place)):
            FeatureFolder(place)
    folder = folder_with(tmp_path, a=MAP, b=MAP[:1])
    with pytest.raises(DataError, match=r"b.npy: a map of \(1, 3, 4\).*the first file has \(2, 3, 4\)"):
        folder.take([Path("b.jpg")])
    with pytest.raises(DataError, match=r"no map of c.jpg; expected c.npy"):
        folder.take([Path("c.jpg")])
    (tmp_path / "c.safetensors").write_bytes(b"no tensors")
    with pytest.raises(DataError, match="cannot be read"):
        FeatureFolder(tmp_path).take([Path("c.jpg")])
