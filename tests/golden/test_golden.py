"""What saccade computed when the goldens were stored, it computes still."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from golden_quick import machine, of_a_run
from golden_stored import CAUSAL, PICTURES, RUN, SIGHTINGS, causal_digest, rounded
from safetensors.torch import load_file

import saccade

STORED: dict[str, dict[str, Any]] = json.loads(SIGHTINGS.read_text(encoding="utf-8"))
NEAR = 2e-4  # How far a share may be off on another processor.
OFF_THE_WAY = 0.1
"""How far from its end a run may end on another processor, as a share of the way from the stop to the end.

Not less: a bias that a softmax cancels has a gradient of rounding errors alone, and Adam makes steps of these too.
"""


def words(value: Any) -> Any:
    """A plain value with every float replaced by its type: what must be equal."""
    if isinstance(value, dict):
        return {key: words(part) for key, part in value.items()}
    if isinstance(value, list):
        return [words(part) for part in value]
    return float if isinstance(value, float) else value


def shares(value: Any) -> list[float]:
    """The floats of a plain value, in order: what must be near."""
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in shares(part)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("model", STORED)
def test_a_shipped_model_sees_what_it_saw(model: str) -> None:
    found = json.loads(json.dumps(rounded(model)))
    assert found.keys() == STORED[model].keys()
    for name, row in found.items():
        assert words(row) == words(STORED[model][name]), name
        assert shares(row) == pytest.approx(shares(STORED[model][name]), abs=NEAR), name


def test_the_first_scenes_of_causal_v1_are_drawn_as_ever() -> None:
    stored = json.loads(CAUSAL.read_text(encoding="utf-8"))
    assert causal_digest(stored["count"]) == stored


@pytest.mark.slow
def test_a_stopped_run_is_gone_on_with_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    stored = tmp_path / "stored"
    shutil.unpack_archive(RUN, stored)
    final = json.loads((stored / "final.json").read_text(encoding="utf-8"))
    run = shutil.copytree(stored / "run", tmp_path / "run")
    torch.rand(7)  # another process would not have the same random state either
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums of floats depend on how they are split
    try:
        assert saccade.train(out=run, resume=True, device="cpu", quiet=True).stopped == "finished"
    finally:
        torch.set_num_threads(threads)
    found = of_a_run(run)
    assert [row["step"] for row in found["measured"]] == [row["step"] for row in final["measured"]]
    if machine() == final["machine"]:
        assert found == {key: final[key] for key in found}
    ends, wanted = load_file(run / "model" / "model.safetensors"), load_file(stored / "final.safetensors")
    before = load_file(stored / "run" / "model" / "model.safetensors")
    assert distance(ends, wanted) < OFF_THE_WAY * distance(before, wanted)
    seen = saccade.load(run, device="cpu").look(PICTURES / "mref-0.png", ask=7)
    assert seen.trace.image_map("total").isfinite().all()


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Root of the sum of squared differences of all weights; counters of batches are none."""
    pairs = [(values.double(), other[name].double()) for name, values in one.items() if values.is_floating_point()]
    return math.sqrt(sum(float((left - right).square().sum()) for left, right in pairs))
