"""Model folders of strangers: refused before they cost memory or time, whatever they ask for."""

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import get_type_hints

import pytest
import torch

from saccade.errors import CheckpointError, ConfigError
from saccade.families import families
from saccade.files import MAX_FILE
from saccade.models import folder as model_folder
from saccade.models.folder import SPARE, load_model
from saccade.models.soft import SoftModel
from tiny_models import edit_config, save_tiny, tiny_facts

SETTINGS = {"queries": 4, "answers": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many numbers each tensor has that is given memory while a model is loaded."""
    sizes: list[int] = []
    real = torch.empty

    def counted(*size, **options):
        tensor = real(*size, **options)
        if not tensor.is_meta:
            sizes.append(tensor.numel())
        return tensor

    monkeypatch.setattr(torch, "empty", counted)
    return sizes


def header_of(**entries: list[int]) -> bytes:
    """The head of a weights file with float32 tensors of these shapes."""
    at, header = 0, {}
    for name, shape in entries.items():
        end = at + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def test_no_number_of_a_model_is_without_a_range() -> None:
    """Each whole number that settings may hold is refused when it is 2^60 or below 0."""
    for family in families().values():
        for name, spec in family.models.items():
            config = spec.load().Config
            for field, hint in get_type_hints(config).items():
                for value in (2**60, -1) if hint is int else ():
                    with pytest.raises(ConfigError, match=field):
                        spec.build({field: value}, where=name)


@pytest.mark.parametrize("change", [{"channels": 8192}, {"channels": 8192, "depth": 6}, {"queries": 10**6}])
def test_a_large_model_with_a_small_file_costs_no_memory(folder: Path, made: list[int], change: dict) -> None:
    edit_config(folder, model={**SETTINGS, **change})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_model(folder)
    assert sum(made) < 2 * SPARE


def test_maps_beyond_all_memory_are_refused(folder: Path, tmp_path: Path) -> None:
    model = SoftModel(SoftModel.Config(queries=4, answers=3, channels=80, depth=1, hidden=8))
    facts = tiny_facts(model={**SETTINGS, "channels": 80, "depth": 1, "hidden": 8})
    model_folder.save_model(model, tmp_path / "wide", facts)
    load_model(tmp_path / "wide")
    edit_config(tmp_path / "wide", preprocessing={"size": [4096, 4096]})
    with pytest.raises(CheckpointError, match=r"stage 'stage1' makes 335,\d+,\d+ numbers"):
        load_model(tmp_path / "wide")


def test_pipes_and_devices_are_refused_unread(folder: Path) -> None:
    for name, said in (("model.safetensors", "not a regular file"), ("config.json", "not a regular file")):
        path = folder / name
        kept = path.read_bytes()
        for make in (os.mkfifo, lambda place: os.symlink("/dev/zero", place)):
            path.unlink()
            make(path)
            with pytest.raises(CheckpointError, match=said):
                load_model(folder)
        path.unlink()
        path.mkdir()
        with pytest.raises(CheckpointError, match="Is a directory"):
            load_model(folder)
        path.rmdir()
        path.write_bytes(kept)
    load_model(folder)


def test_a_large_file_is_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size, by a header that does not account for its bytes, and by one of another model."""
    path = folder / "model.safetensors"
    monkeypatch.setattr(Path, "read_bytes", None)
    head = header_of(stranger=[2**25])
    for content, size in ((path.open("rb").read(), 2**40), (path.open("rb").read(), 2**27), (head, len(head) + 2**27)):
        with path.open("wb") as file:
            file.write(content)
            file.truncate(size)
        if size < MAX_FILE:
            with path.open("rb") as file:
                edit_config(folder, sha256=hashlib.file_digest(file, "sha256").hexdigest())
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_model(folder)
