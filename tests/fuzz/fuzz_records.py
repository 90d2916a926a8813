"""Records of answers, files of scores and metrics of runs, read and drawn as ``saccade report`` does."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzzing import Content, Target
from mutate import as_json, nested, odd, spoilt_bytes, spoilt_values
from PIL import Image

from saccade.commands.report import _score_sections, report
from saccade.geometry import scale_shift
from saccade.record import Record, write_record
from saccade.show.report import Report
from saccade.show.report_sources import read_metrics
from saccade.trace import AttentionTrace, Look

Files = dict[str, Content]
JSON, TENSORS, SCORES, METRICS = "r.json", "r.safetensors", "scores.json", "metrics.jsonl"


class Records(Target):
    name = "records"
    deadline = 10.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bases = [self._written(number, record) for number, record in enumerate(_records())]
        self.scores = {
            "model": "m", "data": "mref", "split": "test", "n": 100, "seed": 0, "protocol": "p", "note": "x",
            "metrics": {"accuracy": 0.5, "by": {"red": 0.25}}, "attention": {"pointing": 0.5,
                                                                             "by_look": {"a": {"iou": 0.1}}},
            "baselines": {"uniform": {"accuracy": 0.1}}, "intervals": {"accuracy": [0.4, 0.6]},
            "counts": {"accuracy": 100},
        }  # fmt: skip
        row = {"step": 1, "phase": "main", "kind": "train", "values": {"loss": 1.5}, "seconds": 1.0}
        self.rows = [row, {**row, "step": 2, "kind": "validation", "values": {"accuracy": 0.5}}]

    def _written(self, number: int, record: Record) -> Files:
        place = self.folder / f"base-{number}"
        place.mkdir(exist_ok=True)
        write_record(place / "r", record)
        return {path.name: path.read_bytes() for path in place.iterdir()}

    def corpus(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {f"good {number}": base for number, base in enumerate(self.bases)}
        shapes = ([["a"]], [["a", 0.5, 1]], "ab", {"a": 0.5}, [[[], {}]], 5, [["a", None]], [[1, 1e400]])
        keys = ("alternatives", "labels", "words", "captions", "slots", "supporting", "confidence", "size", "answer")
        found |= {f"{key} {shape}": self._with_info(0, {key: shape}) for key in keys for shape in shapes}
        for depth in (50, 100_000):
            lists = b"[" * depth + b"]" * depth
            text = b'{"format": "saccade-record", "schema_version": 1, "info": ' + lists + b"}"
            found[f"{depth} brackets"] = {**self.bases[0], JSON: text}
            found[f"scores of {depth} brackets"] = {SCORES: lists}
            found[f"metrics of {depth} brackets"] = {METRICS: lists + b"\n{}"}
        kinds = (torch.complex64, torch.int64, torch.float16, torch.bool)
        weights = [torch.ones(1, 5, 7).to(kind) for kind in kinds]
        weights += [torch.zeros(shape) for shape in ((1, 0, 5), (0, 5, 7), (1, 1, 1), (5,), (1, 1, 1, 1, 1))]
        frames = [torch.eye(2, 3).double() * scale for scale in (0, torch.nan, 1e300, 1e-300)]
        sizes = [torch.tensor([size]) for size in ([0, 0], [-1, 5], [10**6, 10**6], [2**62, 2**62])]
        shapes_of_pictures = ((0, 0, 3), (1, 1, 3), (5, 5, 4), (1, 3000, 3), (5, 5))
        pictures = [torch.zeros(shape, dtype=torch.uint8) for shape in shapes_of_pictures]
        tensors = {"looks.0.weights": weights, "looks.0.frame": frames, "canvas": [frame[None] for frame in frames]}
        for name, values in {**tensors, "image_size": sizes, "picture": pictures}.items():
            found |= {f"{name} {number}": self._with_tensor(name, value) for number, value in enumerate(values)}
        for key in (*self.scores, "x"):
            for number, value in enumerate((*shapes, None, {"a": {"b": {"c": 1}}}, {"accuracy": None}, nested(70))):
                found[f"scores {key} {number}"] = {SCORES: as_json({**self.scores, key: value})}
        return found | self.odd_files(self.bases[0], JSON, TENSORS)

    def drawn(self, rng: random.Random) -> Files:
        what = rng.randrange(10)
        if what == 0:
            return {SCORES: as_json(spoilt_values(rng, self.scores))}
        if what == 1:
            rows = [as_json(row) for row in spoilt_values(rng, self.rows, 1) or [{}]] if rng.random() < 0.7 else [b"x"]
            return {METRICS: spoilt_bytes(rng, b"\n".join(rows)) if rng.random() < 0.3 else b"\n".join(rows)}
        number = rng.randrange(len(self.bases))
        base = self.bases[number]
        if what < 5:
            document = json.loads(bytes(base[JSON]))  # type: ignore[arg-type]
            if rng.random() < 0.5:
                document["info"] = spoilt_values(rng, document["info"])
            else:
                document = spoilt_values(rng, document)
            return {**base, JSON: as_json(document)}
        if what == 5:
            return self._with_info(number, {rng.choice(("alternatives", "labels", "size", "captions")): odd(rng)})
        if what == 6:
            return {**base, JSON: spoilt_bytes(rng, bytes(base[JSON]))}  # type: ignore[arg-type]
        tensors: bytes = base[TENSORS]  # type: ignore[assignment]
        length = int.from_bytes(tensors[:8], "little")
        if what == 7:
            text = as_json(spoilt_values(rng, json.loads(tensors[8 : 8 + length])))
            tensors = struct.pack("<Q", len(text)) + text + tensors[8 + length :]
        else:  # the numbers
            tensors = tensors[: 8 + length] + spoilt_bytes(rng, tensors[8 + length :])[: len(tensors) - 8 - length]
        return self._with_file(number, tensors)

    def run(self, case: Files) -> None:
        place = self.lay(case)
        if SCORES in case:
            sections, _ = _score_sections(place / SCORES, place, "cpu")
            Report("t", "l", sections).save(place / "out.html")
        elif METRICS in case:
            read_metrics(place / METRICS)
        else:
            report([place / JSON]).save(place / "out.html")

    def _with_info(self, number: int, info: Mapping[str, Any]) -> Files:
        document = json.loads(bytes(self.bases[number][JSON]))  # type: ignore[arg-type]
        return {**self.bases[number], JSON: as_json({**document, "info": {**document["info"], **info}})}

    def _with_tensor(self, name: str, tensor: torch.Tensor) -> Files:
        from safetensors.torch import load, save

        tensors = load(bytes(self.bases[0][TENSORS]))  # type: ignore[arg-type]
        return self._with_file(0, save({**tensors, name: tensor}))

    def _with_file(self, number: int, tensors: bytes) -> Files:
        """Other tensors with a digest that fits."""
        document = json.loads(bytes(self.bases[number][JSON]))  # type: ignore[arg-type]
        document["tensors"]["sha256"] = hashlib.sha256(tensors).hexdigest()
        return {JSON: as_json(document), TENSORS: tensors}


def _records() -> list[Record]:
    """A soft look, a crop, slots, and words."""
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 255, (10, 14, 3), np.uint8))
    placed = {"canvas": scale_shift((1.0, 1.0), (0.0, 0.0))[None], "image_size": torch.tensor([[10, 14]])}
    frame = scale_shift((2.0, 2.0), (0.0, 0.0))
    weights = torch.softmax(torch.arange(35.0), 0).view(1, 5, 7)
    soft = Look("hop", "soft", "multiplier", weights, norm="softmax", frame=frame)
    gate = Look("gate", "gate", "multiplier", torch.full((1, 5, 7), 0.5), norm="sigmoid", frame=frame)
    crop = Look("cut", "crop", "crop", frame=frame[None], grid=(4, 4))
    slots = Look("slot", "slots", "multiplier", torch.full((1, 3), 1 / 3), norm="softmax")
    steps = Look("word", "soft", "multiplier", weights[:, None].repeat(1, 3, 1, 1), norm="softmax", frame=frame,
                 emits=torch.tensor([[1, 2, 0]]), active=torch.tensor([[True, True, False]]))  # fmt: skip
    info = {"model": "m", "question": "where?", "answer": "here", "confidence": 0.5, "alternatives": [["there", 0.25]],
            "size": [10, 14],
            "peak": [3.0, 4.0], "picture": "a/b.png"}  # fmt: skip
    words = [{"word": "a", "log_probability": -0.5}, {"word": "b", "log_probability": -1.0}]
    return [
        Record(AttentionTrace((soft,), torch.tensor([1]), **placed), info, picture),
        Record(AttentionTrace((gate, soft), torch.tensor([1]), total="product", **placed), info, picture),
        Record(AttentionTrace((crop, soft), torch.tensor([1]), **placed), {**info, "captions": {"hop": "h"}}, picture),
        Record(AttentionTrace((slots,)), {**info, "sentences": ["a", "b", "c"], "supporting": [1]}),
        Record(AttentionTrace((steps,), torch.tensor([[1, 2, 0]]), **placed), {**info, "words": words}, picture),
    ]
