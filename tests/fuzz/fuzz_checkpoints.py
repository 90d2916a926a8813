"""Checkpoints of a run: the newest is spoilt, so the one before is taken, or one line says why none is."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from fuzzing import Content, Target
from mutate import as_json, spoilt_bytes, spoilt_values
from torch import nn

from saccade.engine.checkpoint import CheckpointStore, Position, capture_rng, pack
from saccade.engine.step import Learner
from saccade.errors import CheckpointError

FACTS, TENSORS = "step-00000002/state.json", "step-00000002/state.safetensors"
Files = dict[str, Content]


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward_raw(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.norm(self.inner(x))}


class Checkpoints(Target):
    name = "checkpoints"
    deadline = 5.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        torch.manual_seed(0)
        self.learner = Learner(_Model())
        self.parameters = dict(self.learner.model.named_parameters())
        self.optimizer = torch.optim.AdamW(self.parameters.values())
        self.learner(x=torch.ones(4, 3))["logits"].sum().backward()
        self.optimizer.step()
        store = CheckpointStore(folder / "base")
        for step in (1, 2):
            position = Position(step=step, phase_step=step, batches=step, seconds=1.0, validation={"accuracy": 0.5})
            tensors, facts = pack(
                position, self.learner, optimizer=self.optimizer, parameters=self.parameters, ema=None,
                rng=[capture_rng(torch.device("cpu"))],
            )  # fmt: skip
            store.save(step, tensors, facts)
        paths = [path for path in store.folder.rglob("*") if path.is_file()]
        self.base: Files = {str(path.relative_to(store.folder)): path.read_bytes() for path in paths}

    def corpus(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {"good": self.base, **self.odd_files(self.base, FACTS, TENSORS)}
        for depth in (50, 100_000):
            for name, (left, right) in {"lists": (b"[", b"]"), "mappings": (b'{"a":', b"}")}.items():
                found[f"{depth} {name}"] = {**self.base, FACTS: b'{"facts": ' + left * depth + b"1" + right * depth}
        for file in (FACTS, TENSORS):
            found[f"no {file}"] = {name: data for name, data in self.base.items() if name != file}
        wrong = {"step": -1, "phase": 99, "phase_step": 2**63, "batches": "x", "best": [], "seconds": -1e400}
        wrong |= {"validation": [1], "phase_ended": 5, "stale": None, "beside": {}}
        found |= {f"position {key}": self._with_position({key: value}) for key, value in wrong.items()}
        scalars = ([], {"inner.weight": []}, {"inner.weight": {"step": "x"}}, 7, {"inner.weight": {"exp_avg": 1}})
        return found | {f"scalars {value}": self._with_facts({"optimizer_scalars": value}) for value in scalars}

    def drawn(self, rng: random.Random) -> Files:
        what = rng.randrange(6)
        if what == 0:
            return {**self.base, FACTS: spoilt_bytes(rng, self._bytes(FACTS))}
        if what == 1:
            return {**self.base, TENSORS: spoilt_bytes(rng, self._bytes(TENSORS))}
        header = json.loads(self._bytes(FACTS))
        if what == 2:
            return {**self.base, FACTS: as_json(spoilt_values(rng, header))}
        if what == 3:
            facts = spoilt_values(rng, header["facts"])
            return self._with_facts(facts) if isinstance(facts, dict) else {**self.base, FACTS: as_json(facts)}
        data = self._bytes(TENSORS)
        length = int.from_bytes(data[:8], "little")
        if what == 4:
            text = as_json(spoilt_values(rng, json.loads(data[8 : 8 + length])))
            return self._with_tensors(struct.pack("<Q", len(text)) + text + data[8 + length :])
        return self._with_tensors(data[: 8 + length] + spoilt_bytes(rng, data[8 + length :])[: len(data) - 8 - length])

    def run(self, case: Files) -> None:
        place = self.lay(case)
        checkpoint, problems = CheckpointStore(place).load_newest()
        if checkpoint.step == 1 and not problems:
            raise AssertionError("an older checkpoint was taken without a word")
        checkpoint.position(1)
        checkpoint.restore_model(self.learner, None)
        checkpoint.restore_optimizer(self.optimizer, self.parameters)
        checkpoint.restore_rng(0, torch.device("cpu"))
        if problems:
            raise CheckpointError(problems[0])

    def _bytes(self, name: str) -> bytes:
        data = self.base[name]
        assert isinstance(data, bytes)
        return data

    def _with_position(self, changes: Mapping[str, Any]) -> Files:
        position = json.loads(self._bytes(FACTS))["facts"]["position"]
        return self._with_facts({"position": {**position, **changes}})

    def _with_facts(self, changes: Mapping[str, Any]) -> Files:
        """Other facts with a digest that fits."""
        header = json.loads(self._bytes(FACTS))
        facts = {**header["facts"], **changes}
        text = json.dumps([header["step"], facts], sort_keys=True, separators=(",", ":")).encode()
        digests = {**header["sha256"], "facts": hashlib.sha256(text).hexdigest()}
        return {**self.base, FACTS: as_json({**header, "facts": facts, "sha256": digests})}

    def _with_tensors(self, data: bytes) -> Files:
        header = json.loads(self._bytes(FACTS))
        digests = {**header["sha256"], "state.safetensors": hashlib.sha256(data).hexdigest()}
        return {**self.base, TENSORS: data, FACTS: as_json({**header, "sha256": digests})}
