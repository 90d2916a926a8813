"""Model folders of strangers: refused before they cost memory or time, whatever they ask for."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
from torch import nn

from saccade.errors import CheckpointError, ConfigError
from saccade.families import families, model_spec
from saccade.models.io import folder as model_folder
from saccade.models.io.folder import load_model
from saccade.models.io.sketch import Sketching, with_memory
from saccade.models.soft import SoftModel
from saccade.tensor_file import MAX_FILE
from tiny_models import save_tiny, tiny_facts

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


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def header_of(**entries: list[int]) -> bytes:
    """The head of a weights file with float32 tensors of these shapes."""
    at, header = 0, {}
    for name, shape in entries.items():
        end = at + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("architecture", "settings", "said"),
    [
        ("soft", {"channels": 10_000}, "channels: must be"),
        ("soft", {"depth": 100_000}, "depth: must be"),
        ("soft", {"depth": 2**63}, "depth: a whole number beyond 64 bits"),
        ("soft", {"queries": 10**9}, "queries: must be"),
        ("soft", {"hidden": 10**6}, "hidden: must be"),
        ("cross", {"hidden": 10**6}, "hidden: must be"),
        ("hard", {"samples": 10**9}, "samples: must be"),
        ("hattnet", {"context": 10**6 + 1}, "context: must be"),
        ("hattnet", {"gate_penalty": float("inf")}, "gate_penalty: must be"),
        ("stn", {"crop": [10**6, 10**6]}, "crop: must be"),
        ("stn", {"picture": [100, 0]}, "picture: must be 1 or more"),
        ("hsal", {"glimpses": 10**6}, "glimpses: must be"),
        ("hsal", {"most": 10**6}, "most: must be"),
        ("hsal", {"input_size": [10**9, 10**9]}, "input_size: must be"),
        ("sat-soft", {"longest": 10**30}, "longest: a whole number beyond 64 bits"),
        ("sat-soft", {"longest": 10**6}, "longest: must be"),
        ("sat-soft", {"vocabulary": 10**12}, "vocabulary: must be"),
    ],
)
def test_every_size_has_a_range(architecture: str, settings: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        model_spec(architecture).build(settings)


def test_no_number_of_a_model_is_without_a_range() -> None:
    """Each whole number that settings may hold is refused when it is 2^60."""
    for family in families().values():
        for name, spec in family.models.items():
            config = spec.resolve().Config
            for field, hint in get_type_hints(config).items():
                if hint is int:
                    with pytest.raises(ConfigError, match=field):
                        spec.build({field: 2**60}, where=name)


@pytest.mark.parametrize("change", [{"channels": 8192}, {"channels": 8192, "depth": 6}, {"hidden": 8192}])
def test_a_large_model_with_a_small_file_costs_no_memory(folder: Path, made: list[int], change: dict) -> None:
    edit_config(folder, model={**SETTINGS, **change})
    with pytest.raises(CheckpointError, match="should be"):
        load_model(folder)
    assert sum(made) < 100_000


def test_a_good_model_gets_exactly_its_numbers(folder: Path, made: list[int]) -> None:
    model, _ = load_model(folder)
    assert sum(made) <= sum(tensor.numel() for tensor in model.state_dict().values())
    assert not any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))


def test_maps_beyond_all_memory_are_refused(folder: Path, tmp_path: Path) -> None:
    model = SoftModel(SoftModel.Config(queries=4, answers=3, channels=80, depth=1, hidden=8))
    facts = tiny_facts(model={**SETTINGS, "channels": 80, "depth": 1, "hidden": 8})
    model_folder.save_model(model, tmp_path / "wide", facts)
    load_model(tmp_path / "wide")
    edit_config(tmp_path / "wide", preprocessing={"size": [4096, 4096]})
    with pytest.raises(CheckpointError, match=r"stage 'stage1' makes 335,\d+,\d+ numbers"):
        load_model(tmp_path / "wide")


def test_every_model_is_sketched_and_filled_bit_for_bit() -> None:
    for family in families().values():
        for name, spec in family.models.items():
            cls = spec.resolve()
            torch.manual_seed(0)
            built = cls(spec.tiny())
            with Sketching():
                sketch = cls(spec.tiny())
            shapes = {key: (tensor.shape, tensor.dtype) for key, tensor in built.state_dict().items()}
            assert {key: (tensor.shape, tensor.dtype) for key, tensor in sketch.state_dict().items()} == shapes, name
            assert with_memory(sketch), name
            sketch.load_state_dict(built.state_dict())
            for own, other in zip(built.buffers(), sketch.buffers(), strict=True):
                assert torch.equal(own, other), name
            inputs, _ = cls.example_batch(2, 0)
            torch.manual_seed(1)
            expected = built.eval()(**inputs).logits
            torch.manual_seed(1)
            assert torch.equal(sketch.eval()(**inputs).logits, expected), name


class Counting(nn.Module):
    """Keeps a tensor that no file has."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("places", torch.zeros(3), persistent=False)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(3)


@pytest.mark.parametrize("cls", [Counting, Plain])
def test_a_model_with_other_tensors_is_not_filled(cls: type[nn.Module]) -> None:
    with Sketching():
        sketch = cls()
    assert not with_memory(sketch)


class NeedsNumbers(SoftModel):
    """A model of another package, which looks at a number while it is built."""

    def __init__(self, config: object) -> None:
        super().__init__(config)  # type: ignore[arg-type]
        self.sure = float(torch.ones(1)) + float(next(self.parameters()).detach().sum() * 0)


def test_a_model_that_needs_numbers_is_built_with_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = load_model(folder)
    spec = type(model_spec("soft"))(f"{__name__}:NeedsNumbers", "a model of another package", "")
    monkeypatch.setattr(type(spec), "resolve", lambda _: NeedsNumbers)
    loaded, _ = load_model(folder)
    assert isinstance(loaded, NeedsNumbers)
    assert loaded.sure == 1
    inputs, _ = SoftModel.example_batch(2, 0)
    assert torch.equal(loaded(**inputs).logits, expected(**inputs).logits)


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


def test_a_sparse_file_is_refused_by_its_size_or_its_header(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(CheckpointError, match=f"{2**40:,} bytes, and at most {MAX_FILE:,} are allowed"):
        load_model(folder)

    def never(_: object) -> bytes:
        raise AssertionError("read into memory")

    monkeypatch.setattr("saccade.tensor_file.TensorFile.read", never)
    with path.open("r+b") as file:
        file.truncate(2**27)
    edit_config(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match=r"its header describes .* bytes, found 134,"):
        load_model(folder)
    shape = [2**25 - 32]
    head = header_of(stranger=shape)
    with path.open("wb") as file:  # a header that accounts for every byte, of another model
        file.write(head)
        file.truncate(len(head) + 4 * shape[0])
    edit_config(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match="unexpected tensor 'stranger'"):
        load_model(folder)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}, r"the shape \[-1\]"),
        ({"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}, "its header describes"),
        ({"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}, "type and shape"),
        ({"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}, "type and shape"),
        ([], "type and shape"),
        ({"dtype": ["F32"], "shape": [1]}, "type and shape"),
    ],
)
def test_a_header_that_lies(folder: Path, entry: object, said: str) -> None:
    text = json.dumps({"a": entry}).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(4)
    (folder / "model.safetensors").write_bytes(data)
    edit_config(folder, sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(CheckpointError, match=f"not a safetensors file .*{said}"):
        load_model(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "a\0b"},
        {"name": "\ud800"},
        {"beside": {"name": "a\0b", "sha256": "ab"}},
        {"beside": {"name": "\ud800", "sha256": "ab"}},
        {"beside": {"name": "x" * 5000, "sha256": "ab"}},
        {"seed": 2**63},
        {"seed": 1e400},
        {"parameters": 10**400},
        {"recipe": {"a\0": 1}},
        {"architecture": "\udfff"},
        {"schema_version": 2**70},
        {"training": {"deep": json.loads("[" * 80 + "]" * 80)}},
        {"base": {"backbone": "timm:\0", "sha256": ""}},
        {"family": ["question"]},
    ],
)
def test_odd_values_are_one_error(folder: Path, changes: dict) -> None:
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError) as caught:
        load_model(folder)
    assert len(str(caught.value)) < 6000
