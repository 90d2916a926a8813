"""Folders of strangers: a JSON file and a file of tensors whose digest it holds. Models and records."""

import hashlib
import json
import random
import struct
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzzing import Content, Odd, Target, as_json, odd, spoilt_bytes, spoilt_values
from PIL import Image
from safetensors.torch import load, save

import saccade
from saccade.commands.report import report
from saccade.config import to_dict
from saccade.families import family, model_spec
from saccade.geometry import scale_shift
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.record import Record, write_record
from saccade.trace import AttentionTrace, Look
from tiny_models import tiny_config

Files = dict[str, Content]


def files_in(folder: Path, *left_out: str) -> Files:
    """The files below ``folder``, as bytes."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in left_out]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


class Folders(Target):
    """Good folders, of which one file is spoilt."""

    values: str
    """The JSON file."""
    tensors: str
    """The safetensors file."""
    bases: dict[str, Files]

    @abstractmethod
    def sealed(self, files: Files, values: dict[str, Any]) -> Files:
        """``files`` with these ``values``, in which the digests of the tensors fit."""

    def corpus(self) -> Mapping[str, Any]:
        first = next(iter(self.bases.values()))
        inputs: dict[str, Any] = {f"good {name}": base for name, base in self.bases.items()}
        for depth in (50, 100_000):
            inputs[f"{depth} brackets"] = {**first, self.values: b"[" * depth + b"]" * depth}
            inputs[f"{depth} brackets inside"] = {**first, self.values: b'{"info": ' + b"[" * depth}
            inputs[f"header of {depth} brackets"] = self.with_tensors(first, _with_header(b"[" * depth, b""))
        return inputs | self.odd_files(first, self.values, self.tensors)

    def drawn(self, rng: random.Random) -> Files:
        base = rng.choice(list(self.bases.values()))
        values, data, what = self.read(base), _bytes(base[self.tensors]), rng.randrange(8)
        length = int.from_bytes(data[:8], "little")
        header, numbers = data[8 : 8 + length], data[8 + length :]
        if what < 3:
            spoilt = spoilt_values(rng, values)
            return self.sealed(base, spoilt) if isinstance(spoilt, dict) else {**base, self.values: as_json(spoilt)}
        if what == 3:
            inner = rng.choice([key for key, value in values.items() if isinstance(value, dict)])
            return self.sealed(base, {**values, inner: spoilt_values(rng, values[inner])})
        if what == 4:
            return {**base, self.values: spoilt_bytes(rng, _bytes(base[self.values]))}
        if what == 5:
            return {**base, self.tensors: spoilt_bytes(rng, data)}
        if what == 6:
            return self.with_tensors(base, _with_header(as_json(spoilt_values(rng, json.loads(header))), numbers))
        return self.with_tensors(base, _with_header(header, spoilt_bytes(rng, numbers)[: len(numbers)]))

    def read(self, base: Files) -> dict[str, Any]:
        return json.loads(_bytes(base[self.values]))

    def with_values(self, base: Files, **changes: Any) -> Files:
        """Other values, with digests that fit."""
        return self.sealed(base, {**self.read(base), **changes})

    def with_tensors(self, base: Files, data: bytes) -> Files:
        """Other tensors, with digests that fit."""
        return self.sealed({**base, self.tensors: data}, self.read(base))


def _bytes(content: Content) -> bytes:
    assert isinstance(content, bytes)
    return content


def _with_header(header: bytes, numbers: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + numbers


def _digest(content: Content) -> str:
    return hashlib.sha256(_bytes(content)).hexdigest()


ARCHITECTURES = dict.fromkeys(("soft", "hattnet", "stn"), "question") | {"hsal": "multiset", "sat-soft": "caption"}


class Models(Folders):
    """Settings, words and weights, loaded and asked once."""

    name = "model folders"
    deadline = 10.0
    memory = 1500
    slow = frozenset({"input 4096"})
    values, tensors = "config.json", "model.safetensors"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bases = {name: self._saved(name, kind) for name, kind in ARCHITECTURES.items()}
        self.bases["soft int8"] = self._saved("soft", "question", dtype="int8")
        self.picture = np.zeros((31, 34, 3), np.uint8)

    def _saved(self, name: str, kind: str, **more: Any) -> Files:
        """A tiny model of this architecture."""
        config = tiny_config(name)
        queries = tuple(f"q{number}" for number in range(getattr(config, "queries", 0)))
        count = next(getattr(config, what) for what in ("answers", "classes", "vocabulary") if hasattr(config, what))
        torch.manual_seed(0)
        size = getattr(config, "input_size", getattr(config, "picture", (31, 34)))
        facts = ModelFacts(
            name, to_dict(config), family(kind).name, queries, tuple(f"w{number}" for number in range(count)),
            Preprocessing(tuple(size)), sentences=kind == "caption", name="tiny", **more,
        )  # fmt: skip
        place = self.folder / f"base-{name}-{len(more)}"
        save_model(model_spec(name).load()(config), place, facts)
        return files_in(place, "card.md")

    def sealed(self, files: Files, values: dict[str, Any]) -> Files:
        return {**files, self.values: as_json({**values, "sha256": _digest(files[self.tensors])})}

    def corpus(self) -> Mapping[str, Any]:
        inputs, soft = dict(super().corpus()), self.bases["soft"]
        for base, settings in (
            *(("soft", {"channels": number}) for number in (8192, 2**63)),
            *(("soft", {"depth": 100_000}), ("soft", {"queries": 10**6}), ("sat-soft", {"longest": 10**5})),
            *(("stn", {"crop": [10**6, 10**6]}), ("hsal", {"glimpses": 1000, "most": 1000})),
        ):
            model = self.read(self.bases[base])["model"]
            inputs[f"{base} {settings}"] = self.with_values(self.bases[base], model=model | settings)
        inputs["input 4096"] = self.with_values(soft, preprocessing={"size": [4096, 4096]})
        for value in (float("nan"), 3e38):
            filled = load(_bytes(soft[self.tensors]))
            for tensor in filled.values():
                tensor.fill_(value if tensor.is_floating_point() else 1)
            inputs[f"weights {value}"] = self.with_tensors(soft, save(filled))
        size = 2**29  # of holes; the header accounts for every byte
        text = as_json({"head.classify.weight": {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}})
        sparse = Odd("sparse", 8 + len(text) + 4 * size, _with_header(text, b""))
        return inputs | {"sparse and accounted for": {**soft, self.tensors: sparse}}

    def run(self, case: Files) -> None:
        predictor = saccade.load(self.lay(case), "cpu")
        predictor.look(self.picture, predictor.facts.queries[0] if predictor.facts.queries else None)


class Records(Folders):
    """Records of answers, read and drawn as ``saccade report`` does."""

    name = "records"
    deadline = 10.0
    values, tensors = "r.json", "r.safetensors"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bases = {}
        for name, record in _records().items():
            (folder / f"base-{name}").mkdir()
            write_record(folder / f"base-{name}" / "r", record)
            self.bases[name] = files_in(folder / f"base-{name}")

    def sealed(self, files: Files, values: dict[str, Any]) -> Files:
        if isinstance(values.get("tensors"), dict):
            values = {**values, "tensors": {**values["tensors"], "sha256": _digest(files[self.tensors])}}
        return {**files, self.values: as_json(values)}

    def corpus(self) -> Mapping[str, Any]:
        inputs, soft = dict(super().corpus()), self.bases["soft"]
        info, stored = self.read(soft)["info"], load(_bytes(soft[self.tensors]))
        shapes = ([["a", 0.5, 1]], "ab", {"a": 0.5}, [[[], {}]], 5, [["a", None]], [[1, 1e400]])
        for value in shapes:
            for key in ("alternatives", "labels", "words", "captions", "slots", "supporting", "size"):
                inputs[f"{key} {value}"] = self.with_values(soft, info={**info, key: value})
        tensors = {
            "looks.0.weights": [torch.ones(1, 5, 7).to(torch.complex64), torch.zeros(0, 5, 7), torch.zeros(5)],
            "looks.0.frame": [torch.eye(2, 3).double() * scale for scale in (0, torch.nan, 1e300, 1e-300)],
            "image_size": [torch.tensor([size]) for size in ([-1, 5], [2**62, 2**62])],
            "picture": [torch.zeros(shape, dtype=torch.uint8) for shape in ((0, 0, 3), (5, 5, 4), (5, 5))],
        }
        for name, values in tensors.items():
            for number, value in enumerate(values):
                inputs[f"{name} {number}"] = self.with_tensors(soft, save({**stored, name: value}))
        return inputs

    def drawn(self, rng: random.Random) -> Files:
        if rng.random() < 0.1:
            base = rng.choice(list(self.bases.values()))
            key = rng.choice(("alternatives", "labels", "size", "captions"))
            return self.with_values(base, info={**self.read(base)["info"], key: odd(rng)})
        return super().drawn(rng)

    def run(self, case: Files) -> None:
        place = self.lay(case)
        report([place / self.values]).save(place / "out.html")


def _records() -> dict[str, Record]:
    """A soft look, a product of two, a crop, slots, and words."""
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 255, (10, 14, 3), np.uint8))
    placed = {"canvas": scale_shift((1.0, 1.0), (0.0, 0.0))[None], "image_size": torch.tensor([[10, 14]])}
    frame = scale_shift((2.0, 2.0), (0.0, 0.0))
    weights = torch.softmax(torch.arange(35.0), 0).view(1, 5, 7)
    soft = Look("hop", "soft", "multiplier", weights, norm="softmax", frame=frame)
    crop = Look("cut", "crop", "crop", frame=frame[None], grid=(4, 4))
    slots = Look("slot", "slots", "multiplier", torch.full((1, 3), 1 / 3), norm="softmax")
    steps = Look("word", "soft", "multiplier", weights[:, None].repeat(1, 3, 1, 1), norm="softmax", frame=frame,
                 emits=torch.tensor([[1, 2, 0]]), active=torch.tensor([[True, True, False]]))  # fmt: skip
    info = {"model": "m", "question": "where?", "answer": "here", "confidence": 0.5, "size": [10, 14],
            "alternatives": [["there", 0.25]], "peak": [3.0, 4.0], "picture": "a/b.png"}  # fmt: skip
    words = [{"word": "a", "log_probability": -0.5}, {"word": "b", "log_probability": -1.0}]

    answer = torch.tensor([1])
    return {
        "soft": Record(AttentionTrace((soft,), answer, **placed), info, picture),
        "crop": Record(AttentionTrace((crop, soft), answer, **placed), {**info, "captions": {"hop": "h"}}, picture),
        "slots": Record(AttentionTrace((slots,)), {**info, "sentences": ["a", "b", "c"], "supporting": [1]}),
        "words": Record(AttentionTrace((steps,), torch.tensor([[1, 2, 0]]), **placed), {**info, "words": words},
                        picture),
    }  # fmt: skip
