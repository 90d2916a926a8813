"""Runs that an earlier saccade left in the middle: today's goes on with them, and ends as the earlier one did.

The folders were moved since, so this also says that a run can be resumed where it was copied to. Bits depend on the
processor and on torch; on other ones than the goldens were written with, weights and scores are near instead.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from golden_runs import GOLDEN_RUNS, RUNS, digests, go_on, last_state, last_validation, machine
from safetensors.torch import load_file
from torch import Tensor

import saccade

pytestmark = pytest.mark.slow
OFF_THE_WAY = 0.1
"""How far from its end a run may end on another processor, as a share of the way from the stop to the end.

Not less: a bias that a softmax cancels has a gradient of rounding errors alone, and Adam makes steps of these too.
"""


@dataclass(frozen=True)
class GoneOn:
    """A run that was taken up again."""

    name: str
    out: Path
    result: Any
    final: dict[str, Any]


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Root of the sum of squared differences of all weights; counters of batches are none."""
    pairs = [(each.double(), other[name].double()) for name, each in one.items() if each.is_floating_point()]
    return math.sqrt(sum(float((left - right).square().sum()) for left, right in pairs))


@pytest.fixture(scope="module", params=GOLDEN_RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GoneOn:
    name, place = request.param, tmp_path_factory.mktemp("golden")
    torch.rand(7)  # another process would not have the same random state either
    result = go_on(name, place / "run", place / "home")
    return GoneOn(name, place / "run", result, json.loads((RUNS / name / "final.json").read_text(encoding="utf-8")))


def test_it_goes_on_to_the_end(run: GoneOn) -> None:
    assert (run.result.stopped, run.result.step) == ("finished", run.final["steps"])
    steps = [json.loads(line) for line in (run.out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = [row["step"] for row in steps if row["kind"] == "train"]
    assert trained == list(range(1, run.final["steps"] + 1))  # each step once, those before the stop among them


def test_it_ends_with_the_same_bits(run: GoneOn) -> None:
    if run.final["machine"] != machine():
        pytest.skip("another processor or torch than the goldens were written with: bits may differ")
    found = digests(run.out)
    assert found.keys() == run.final["sha256"].keys()
    assert [name for name in found if found[name] != run.final["sha256"][name]] == []
    assert last_validation(run.out) == run.final["validation"]


def test_it_ends_near_on_any_machine(run: GoneOn) -> None:
    found = load_file(run.out / "model" / "model.safetensors")
    wanted = load_file(RUNS / run.name / "final.safetensors")
    state = last_state(RUNS / run.name / "run")
    stopped = {name: state.get(f"ema/{name}", state[f"model/{name}"]) for name in wanted}
    assert [(name, each.dtype) for name, each in found.items()] == [(name, each.dtype) for name, each in wanted.items()]
    assert distance(found, wanted) < OFF_THE_WAY * distance(stopped, wanted)
    assert last_validation(run.out) == pytest.approx(run.final["validation"], abs=1e-2)


def test_its_model_can_be_asked(run: GoneOn) -> None:
    predictor = saccade.load(run.out, device="cpu")
    seen = predictor.look(RUNS.parent / "pictures" / "mref-0.png", ask=7)
    assert seen.trace.image_map("total").isfinite().all()
