"""Records: bit-equal there and back, and nothing that is damaged, foreign or unsafe gets in."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from saccade import files, geometry
from saccade.errors import CheckpointError, OutputError
from saccade.record import Record, read_record, write_record
from saccade.trace import AttentionTrace, Look


def trace_of(dtype: torch.dtype) -> AttentionTrace:
    """Every kind of look, with and without steps, every optional field filled somewhere."""
    weights = torch.softmax(torch.randn(2, 12), -1).reshape(2, 3, 4).to(dtype)
    frames = geometry.identity().repeat(2, 1, 1)
    looks = (
        Look("soft", "soft", "multiplier", weights, "softmax", frames[0], scores=torch.randn(2, 3, 4).to(dtype)),
        Look(
            "word", "hard", "policy", weights[:, None].repeat(1, 5, 1, 1), norm="softmax", frame=frames,
            gain=torch.rand(2, 5).to(dtype), choice=torch.randint(12, (2, 5)), log_prob=-torch.rand(2, 5).to(dtype),
            active=torch.rand(2, 5) > 0.5, emits=torch.randint(99, (2, 5)),
        ),
        Look(
            "gate", "gate", "multiplier", torch.rand(2, 3, 4).to(dtype), "sigmoid", frames,
            full=torch.rand(2, 6, 3, 4).to(dtype), base=1.0,
        ),
        Look("hop", "slots", "mixture", torch.softmax(torch.randn(2, 7), -1).to(dtype), norm="softmax"),
        Look("crop", "crop", "crop", frame=frames.float(), grid=(8, 9)),
    )  # fmt: skip
    return AttentionTrace(
        looks, torch.tensor([3, 4]), frames, torch.tensor([[30, 40], [50, 60]]), total="mean", meta={"steps": [1, 2]}
    ).validate()


def bits(tensor: Tensor) -> bytes:
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The JSON file of a good record."""
    return write_record(tmp_path / "one", Record(trace_of(torch.float32), {"answer": "red"}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_bit_equal_there_and_back(dtype: torch.dtype, tmp_path: Path) -> None:
    trace = trace_of(dtype)
    info = {"answer": "rot", "alternatives": [["x", 0.1]]}
    back = read_record(write_record(tmp_path / "deep" / "a.b", Record(trace, info)))
    assert back.info == info
    assert back.picture is None
    assert (back.trace.total, back.trace.meta) == ("mean", {"steps": [1, 2]})
    for name in ("answer", "canvas", "image_size"):
        assert torch.equal(getattr(back.trace, name), getattr(trace, name))
    for before, after in zip(trace.looks, back.trace.looks, strict=True):
        assert (after.name, after.kind, after.role) == (before.name, before.kind, before.role)
        assert (after.norm, after.grid, after.base) == (before.norm, before.grid, before.base)
        assert before.tensors().keys() == after.tensors().keys()
        for name, tensor in before.tensors().items():
            assert after.tensors()[name].dtype == tensor.dtype, name
            assert after.tensors()[name].shape == tensor.shape, name
            assert bits(after.tensors()[name]) == bits(tensor), name


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def with_tensors(path: Path, tensors: dict[str, Tensor]) -> Path:
    """Replace the tensor file by another one, digest and all."""
    data = save(tensors)
    path.with_suffix(".safetensors").write_bytes(data)
    return rewrite(path, lambda document: document["tensors"].update(sha256=hashlib.sha256(data).hexdigest()))


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + bytes([data[-1] ^ 1]), None])
def test_a_damaged_or_missing_tensor_file_is_named(written: Path, damage: Callable[[bytes], bytes] | None) -> None:
    file = written.with_suffix(".safetensors")
    file.unlink() if damage is None else file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CheckpointError, match=r"one\.safetensors"):
        read_record(written)


@pytest.mark.parametrize(
    "content",
    [None, b"{", b'{"format": "other"}', b'{"format": "saccade-record", "schema_version": 99}'],
)
def test_a_missing_or_foreign_json_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"r\.json"):
        read_record(tmp_path / "r.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("looks"),
        lambda d: d["looks"][0].update(kind="sotf"),
        lambda d: d["looks"][0].update(weights=[1]),
        lambda d: d["looks"][4].update(grid=[2**62, 2]),
        lambda d: d.update(total="sum"),
        lambda d: d["tensors"].update(sha256="0" * 64),
    ],
)
def test_a_tampered_json_file_is_refused(written: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(CheckpointError):
        read_record(rewrite(written, change))


@pytest.mark.parametrize(
    "name",
    ["../one.safetensors", "/etc/passwd", "", "a\0.safetensors", "x" * 400 + ".safetensors"],
)
def test_tensors_are_read_from_beside_the_record_only(written: Path, name: str) -> None:
    outside = written.parent.parent / "one.safetensors"
    outside.write_bytes(written.with_suffix(".safetensors").read_bytes())  # the right digest does not help
    with pytest.raises(CheckpointError):
        read_record(rewrite(written, lambda document: document["tensors"].update(file=name)))


@pytest.mark.parametrize("failing_call", [1, 2])
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int) -> None:
    """The disk is full at the tensors (1) or at the JSON file (2)."""
    real, calls = os.replace, []

    def replace(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == failing_call:
            raise OSError(errno.ENOSPC, "no space")
        real(source, target)

    monkeypatch.setattr(files.os, "replace", replace)
    with pytest.raises(OutputError, match="the disk is full"):
        write_record(tmp_path / "r", Record(trace_of(torch.float32)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("looks.0.weights", torch.full((2, 3, 4), 9.0)),  # not a softmax
        ("looks.0.evil", torch.zeros(1)),
        ("looks.0.weights", torch.zeros(2, 0, 4)),
        ("looks.0.weights", torch.ones(2, 3, 4, dtype=torch.int64)),
        ("picture", torch.zeros(0, 0, 3, dtype=torch.uint8)),
        ("image_size", torch.tensor([[2**40, 2**40], [1, 1]])),
    ],
)
def test_tensors_that_do_not_fit_are_refused(written: Path, name: str, tensor: Tensor) -> None:
    with_tensors(written, load(written.with_suffix(".safetensors").read_bytes()) | {name: tensor})
    with pytest.raises(CheckpointError):
        read_record(written)


def test_the_name_of_a_picture_may_hold_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    info = {"picture": os.fsdecode(b"\xff.png")}
    assert read_record(write_record(tmp_path / "r", Record(trace_of(torch.float32), info))).info == info
