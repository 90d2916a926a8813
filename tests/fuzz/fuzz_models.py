"""Model folders: settings, words and weights of strangers, loaded and asked once."""

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
from fuzzing import Content, Odd, Target
from mutate import as_json, spoilt_bytes, spoilt_values

import saccade
from saccade.config import to_dict
from saccade.families import family, model_spec
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from tiny_models import tiny_config

Files = dict[str, Content]
CONFIG, WEIGHTS, WORDS = "config.json", "model.safetensors", "vocab.json"
ARCHITECTURES = dict.fromkeys(("soft", "hattnet", "stn"), "question") | {"hsal": "multiset", "sat-soft": "caption"}


class Models(Target):
    name = "model folders"
    deadline = 10.0
    memory = 1500
    slow = frozenset({"input 4096"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bases = {name: self._saved(name, kind) for name, kind in ARCHITECTURES.items()}
        self.bases["soft int8"] = self._saved("soft", "question", dtype="int8")
        self.picture = np.zeros((31, 34, 3), np.uint8)

    def _saved(self, name: str, kind: str, **more: Any) -> Files:
        """A tiny model of this architecture, as bytes."""
        spec = model_spec(name)
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
        save_model(spec.load()(config), place, facts)
        return {path.name: path.read_bytes() for path in place.iterdir() if path.name != "card.md"}

    def corpus(self) -> Mapping[str, Any]:
        soft = self.bases["soft"]
        found: dict[str, Any] = {f"good {name}": base for name, base in self.bases.items()}
        found |= self.odd_files(soft, CONFIG, WEIGHTS) | {"sparse and accounted for": self._sparse()}
        for base, settings in (
            *(("soft", {"channels": number}) for number in (8192, 10_000, 2**63)),
            *(("soft", {"depth": number}) for number in (64, 100_000)),
            *(("soft", {"hidden": 10**30}), ("soft", {"backbone": "timm:resnet18\0"}), ("soft", {"queries": 10**6})),
            *(("sat-soft", {"longest": number}) for number in (10**5, 10**30)),
            *(("stn", {"crop": [10**6, 10**6]}), ("hsal", {"glimpses": 1000, "most": 1000})),
        ):
            found[f"{base} {settings}"] = self._with_settings(base, settings)
        found["input 4096"] = self._edited("soft", preprocessing={"size": [4096, 4096]})
        for depth in (100, 100_000):
            found[f"config of {depth} brackets"] = {**soft, CONFIG: b"[" * depth}
            found[f"header of {depth} brackets"] = self._with_header(b"[" * depth)
        beside = {"name": "input", "sha256": "0"}
        changes = ({"name": "a\0b"}, {"name": "\ud800"}, {"seed": 2**63}, {"beside": beside}, {"answers": ["a", "a"]})
        found |= {f"{change}": self._edited("soft", **change) for change in changes}
        return found | {f"weights {value}": self._filled(value) for value in (float("nan"), float("inf"), 3e38, 1e-45)}

    def drawn(self, rng: random.Random) -> Files:
        base = self.bases[rng.choice(list(self.bases))]
        what = rng.randrange(10)
        if what < 5:
            values = json.loads(bytes(base[CONFIG]))  # type: ignore[arg-type]
            part = rng.random()
            if part < 0.5:
                values["model"] = spoilt_values(rng, values["model"])
            elif part < 0.6:
                values["preprocessing"] = spoilt_values(rng, values["preprocessing"])
            else:
                values = spoilt_values(rng, values)
            return {**base, CONFIG: as_json(values)}
        if what == 5:
            return {**base, CONFIG: spoilt_bytes(rng, base[CONFIG])}  # type: ignore[arg-type]
        if what == 6 and WORDS in base:
            return {**base, WORDS: as_json(spoilt_values(rng, json.loads(bytes(base[WORDS]))))}  # type: ignore[arg-type]
        weights: bytes = base[WEIGHTS]  # type: ignore[assignment]
        if what < 9:
            length = int.from_bytes(weights[:8], "little")
            header = spoilt_values(rng, json.loads(weights[8 : 8 + length]))
            text = as_json(header)
            return self._with_weights(struct.pack("<Q", len(text)) + text + weights[8 + length :], base)
        weights = spoilt_bytes(rng, weights)
        return self._with_weights(weights, base) if rng.random() < 0.8 else {**base, WEIGHTS: weights, "x.pt": b"x"}

    def run(self, case: Files) -> None:
        predictor = saccade.load(self.lay(case), "cpu")
        asked = predictor.facts.queries[0] if predictor.facts.queries else None
        predictor.look(self.picture, asked)

    def _edited(self, base: str, **changes: Any) -> Files:
        files = self.bases[base]
        return {**files, CONFIG: as_json(json.loads(bytes(files[CONFIG])) | changes)}  # type: ignore[arg-type]

    def _with_settings(self, base: str, settings: Mapping[str, Any]) -> Files:
        values = json.loads(bytes(self.bases[base][CONFIG]))  # type: ignore[arg-type]
        return self._edited(base, model=values["model"] | settings)

    def _with_weights(self, data: bytes, base: Files) -> Files:
        """Other weights with a digest that fits."""
        try:
            values = json.loads(bytes(base[CONFIG]))  # type: ignore[arg-type]
        except ValueError:
            return {**base, WEIGHTS: data}
        return {**base, WEIGHTS: data, CONFIG: as_json(values | {"sha256": hashlib.sha256(data).hexdigest()})}

    def _with_header(self, text: bytes) -> Files:
        return self._with_weights(struct.pack("<Q", len(text)) + text, self.bases["soft"])

    def _sparse(self) -> Files:
        """A weights file of holes whose header accounts for every byte."""
        size = 2**29
        text = as_json({"head.classify.weight": {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}})
        return {
            **self.bases["soft"],
            WEIGHTS: Odd("sparse", 8 + len(text) + 4 * size, struct.pack("<Q", len(text)) + text),
        }

    def _filled(self, value: float) -> Files:
        from safetensors.torch import load, save

        tensors = load(bytes(self.bases["soft"][WEIGHTS]))  # type: ignore[arg-type]
        filled = {
            name: torch.full_like(each, value) if each.is_floating_point() else each for name, each in tensors.items()
        }
        return self._with_weights(save(filled), self.bases["soft"])
