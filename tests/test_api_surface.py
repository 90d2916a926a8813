"""The public names: this list, few of them, loaded lazily, and all of them real."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import saccade

PUBLIC = {
    "load", "compare", "evaluate", "train", "average", "tour", "Predictor", "Sighting", "read_picture",
    "AttentionTrace", "Look", "Output", "Record", "read_record", "write_record",
    "SoftAttention", "AdditiveScorer",
    "SaccadeError", "ConfigError", "DataError", "CheckpointError", "OutputError", "MissingExtraError", "ShapeError",
}  # fmt: skip


def test_the_list_is_the_list() -> None:
    assert set(saccade.__all__) == PUBLIC
    assert len(PUBLIC) <= 25
    assert set(dir(saccade)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_name_is_there_and_documented(name: str) -> None:
    thing = getattr(saccade, name)
    assert thing.__name__ == name
    assert thing.__doc__
    assert getattr(saccade, name) is thing


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="lode"):
        saccade.lode  # noqa: B018


def test_importing_saccade_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, saccade; dir(saccade); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert saccade.__version__ == project["version"]
