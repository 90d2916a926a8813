"""Holes filled in: exact where the picture is a constant or a ramp, untouched outside, MI-GAN by its file."""

from types import SimpleNamespace

import numpy as np
import pytest
from made_up_photographs import painted, square

from saccade.data.causal.photographs import filling
from saccade.data.causal.photographs.filling import filler, smooth_fill
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.files import RemoteFile, file_digest

HOLE = square(size=(60, 80), top=14, left=20, side=31)


def test_a_constant_and_a_ramp_are_continued_exactly():
    rows, columns = np.mgrid[:60, :80]
    for plane in (np.full((60, 80), 93), 3 * columns, 4 * rows, 2 * columns + rows):
        pixels = np.repeat(plane.astype(np.uint8)[..., None], 3, 2)
        spoilt = np.where(HOLE[..., None], np.uint8(255), pixels)
        assert np.array_equal(smooth_fill(spoilt, HOLE), pixels)


def test_each_pixel_of_the_hole_is_the_mean_of_its_neighbours_and_others_stay():
    values = np.random.default_rng(0).integers(0, 256, (21, 26, 3)).astype(np.float64)
    hole = square(size=(21, 26), top=0, left=3, side=12) | square(size=(21, 26), top=15, left=18, side=6)
    solved = filling._harmonic(values, hole)
    padded = np.pad(solved, ((1, 1), (1, 1), (0, 0)))
    count = filling._neighbours(np.ones((21, 26, 1)))
    mean = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / count
    assert np.abs(solved - mean)[hole].max() < 1e-3
    assert np.array_equal(solved[~hole], values[~hole])
    assert count[0, 0] == 2


class Upside:
    """Stands in for MI-GAN: fills each hole with the numbers of the rows that it sees, and spoils what is kept."""

    def __init__(self, path, options, providers):
        pass

    def run(self, outputs, inputs):
        image, keep = inputs["image"], inputs["mask"]
        rows = np.arange(image.shape[2], dtype=np.uint8)[:, None]
        return [np.where(keep == 0, rows, image // 2)]


def test_migan_is_used_where_its_file_is_and_sees_pictures_upside_down(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    assert filler("auto") == ("smooth", smooth_fill)
    with pytest.raises(DataError, match="saccade data get migan"):
        filler("migan")
    file = tmp_path / "migan" / "migan_pipeline_v2.onnx"
    file.parent.mkdir()
    file.write_bytes(b"another network")
    runtime = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=Upside)
    monkeypatch.setattr(filling.importlib, "import_module", lambda name: runtime)
    with pytest.raises(CheckpointError, match="damaged"):
        filler("auto")
    monkeypatch.setitem(filling.FILES, "migan", (RemoteFile(file.name, file.stat().st_size, file_digest(file)),))
    name, fill = filler("auto")
    hole, pixels = square(size=(48, 64)), painted(1)
    filled = fill(pixels, hole)
    assert name == "migan"
    assert np.array_equal(filled[hole][:, 0], 47 - hole.nonzero()[0])
    assert np.array_equal(filled[~hole], pixels[~hole])

    monkeypatch.setattr(filling.importlib, "import_module", lambda name: __import__("no_such_package"))
    with pytest.raises(MissingExtraError, match="photo"):
        filler("migan")
    assert filler("auto")[0] == "smooth"
