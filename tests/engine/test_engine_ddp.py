"""Two gloo processes on loopback equal gradient accumulation over the same micro-batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe

from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.loop import fit

PHASES = (
    {"name": "head", "steps": 5, "train": ["head.*"], "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}},
    {"name": "all", "steps": 15, "optimizer": {"name": "adam", "lr": 0.01}, "clip_norm": 0.5, "select": {}},
)

SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from engine_fakes import TinyTask, tiny_recipe
from test_engine_ddp import PHASES
from saccade.engine.loop import fit

if __name__ == "__main__":
    task = TinyTask(norm=False)
    task.signal_at = int(sys.argv[4]) if sys.argv[4] != "-" else None
    result = fit(
        task, tiny_recipe(*PHASES), sys.argv[2], device="cpu", devices=2, strategy=sys.argv[3], progress="quiet",
        resume=sys.argv[5] == "resume",
    )
    # One write: both processes share the pipe, and print() may hand over its words one by one.
    os.write(1, f"stopped {result.stopped} {result.step}\\n".encode())
"""


def two_processes(tmp_path: Path, out: Path, strategy: str, signal_at: str = "-", resume: str = "-") -> str:
    script = tmp_path / "train_ddp.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, str(script), here, str(out), strategy, signal_at, resume],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def accumulated(tmp_path_factory):
    out = tmp_path_factory.mktemp("accumulated") / "run"
    fit(TinyTask(norm=False), tiny_recipe(*PHASES, accumulate=2), out, device="cpu", progress="quiet")
    return CheckpointStore(out / "checkpoints").load_newest()[0]


def assert_equal_state(out: Path, expected) -> None:
    found = CheckpointStore(out / "checkpoints").load_newest()[0]
    names = [name for name in expected.tensors if not name.startswith("rng/")]
    assert len(names) > 8
    for name in names:
        assert torch.allclose(found.tensors[name], expected.tensors[name], atol=1e-6), name
    assert {name.split("/")[1] for name in found.tensors if name.startswith("rng/")} == {"0", "1"}


@pytest.mark.slow
def test_two_processes_equal_two_micro_batches(tmp_path, accumulated):
    """Spawned here; started as scripts in the next test, which compares the same state."""
    said = two_processes(tmp_path, tmp_path / "run", "ddp_spawn")
    assert "stopped finished 20" in said
    assert_equal_state(tmp_path / "run", accumulated)
