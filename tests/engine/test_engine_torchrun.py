"""Two nodes of two processes, started by torchrun on loopback: equal to accumulation, to a repeat and to a resume."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe
from test_engine_ddp import PHASES

from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.hardware import pick_hardware
from saccade.engine.loop import fit
from saccade.errors import ConfigError

RANKS, STEPS = 4, 20

SCRIPT = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from engine_fakes import TinyTask, tiny_recipe
from test_engine_ddp import PHASES
from saccade.engine.loop import fit
from saccade.errors import SaccadeError

class WatchedTask(TinyTask):
    '''One rank may be killed on its way.'''
    kill_at = None

    def train_batches(self, start, *, batch_size, rank=0, world_size=1, **rest):
        for number, batch in enumerate(super().train_batches(
            start, batch_size=batch_size, rank=rank, world_size=world_size, **rest), start):
            if number == self.kill_at and rank == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

if __name__ == "__main__":
    out, kill_at, resume, rank = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "resume", os.environ["RANK"]
    task = WatchedTask(norm=False)
    task.kill_at = int(kill_at) if kill_at != "-" else None
    # Batches of 2 on each of 4 ranks, checkpoints every 6 steps.
    recipe = tiny_recipe(*PHASES, batch_size=8, checkpoint_every=6, keep_checkpoints=9)
    options = {"device": "cpu", "devices": 2, "nodes": 2, "strategy": "ddp", "progress": "quiet", "resume": resume}
    try:
        result = fit(task, recipe, out, **options)
    except SaccadeError as error:
        os.write(1, f"rank {rank} said {error}\\n".encode())
        sys.exit(2)
    os.write(1, f"rank {rank} stopped {result.stopped} {result.step}\\n".encode())
"""


def torchrun(
    tmp_path: Path, out: Path, kill_at: str = "-", resume: str = "-", seconds: float = 150
) -> list[tuple[int, str]]:
    """Exit code and output of each node; both must have ended by then."""
    script = tmp_path / "train_nodes.py"
    script.write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *sys.path])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": paths}
    environment |= {"TORCH_CPP_LOG_LEVEL": "ERROR", "TORCHELASTIC_ERROR_FILE": ""}
    nodes = []
    for node in range(2):
        asked = ["--nnodes=2", "--nproc-per-node=2", f"--node-rank={node}", "--master-addr=127.0.0.1"]
        command = [sys.executable, "-m", "torch.distributed.run", *asked, f"--master-port={port}", str(script)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
        nodes.append(subprocess.Popen([*command, str(out), kill_at, resume], **pipes))
    try:
        said = [node.communicate(timeout=120)[0] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return [(node.returncode, text) for node, text in zip(nodes, said)]


def newest(out: Path) -> dict[str, torch.Tensor]:
    return CheckpointStore(out / "checkpoints").load_newest()[0].tensors


@pytest.mark.extras
@pytest.mark.long
def test_two_nodes_of_two_processes(tmp_path: Path) -> None:
    """One test for all of it, because a start of four processes takes longer than their training."""
    ended = torchrun(tmp_path, tmp_path / "whole")
    assert [code for code, _ in ended] == [0, 0], ended
    assert sum(text.count(f"stopped finished {STEPS}") for _, text in ended) == RANKS
    whole = newest(tmp_path / "whole")

    # equal to gradient accumulation over the same micro-batches
    alone = tiny_recipe(*PHASES, batch_size=8, accumulate=RANKS)
    fit(TinyTask(norm=False), alone, tmp_path / "alone", device="cpu", progress="quiet")
    accumulated = newest(tmp_path / "alone")
    learned = [name for name in accumulated if not name.startswith("rng/")]
    assert len(learned) > 8
    for name in learned:
        assert torch.allclose(whole[name], accumulated[name], rtol=0, atol=1e-6), name

    # one run folder, written by rank 0: a row for each step and checkpoint, not four
    lines = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if line["kind"] == "train"]
    assert steps == sorted(set(steps))

    # a rank that is killed ends all in bounded time, and the others say why
    ended = torchrun(tmp_path, tmp_path / "killed", kill_at="15")
    assert all(code != 0 for code, _ in ended), ended
    assert "another process of this run has ended" in ended[0][1], ended
    half = CheckpointStore(tmp_path / "killed" / "checkpoints").load_newest()[0]
    assert 0 < half.step < STEPS

    # what it had done by then is bit-equal to the whole run, and so is what it does when it goes on, to the random
    # states of all ranks
    before = CheckpointStore(tmp_path / "whole" / "checkpoints").load_step(half.step).tensors
    assert all(torch.equal(before[name], half.tensors[name]) for name in half.tensors)
    ended = torchrun(tmp_path, tmp_path / "killed", resume="resume")
    assert [code for code, _ in ended] == [0, 0], ended
    resumed = newest(tmp_path / "killed")
    assert {name.split("/")[1] for name in whole if name.startswith("rng/")} == {str(rank) for rank in range(RANKS)}
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize(
    ("here", "devices", "nodes", "said"),
    [("2", 1, 1, "`devices=2` and `nodes=2`"), ("4", 2, 2, "`devices=4` and `nodes=1`")],
)
def test_what_torchrun_started_must_be_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, here: str, devices: int, nodes: int, said: str
) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": here}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=said):
        pick_hardware(tiny_recipe(), "cpu", devices, nodes, "auto")
