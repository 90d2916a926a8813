"""One device computes as Lightning Fabric does, two processes as micro-batches; nodes go on after a kill."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_fakes import DeviceTask, TinyTask, tiny_recipe

from saccade.engine import loop
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.hardware import pick_hardware
from saccade.engine.loop import fit
from saccade.errors import ConfigError, MissingExtraError

QUIET = {"device": "cpu", "progress": "quiet"}


def trained_by_fabric(monkeypatch, task, recipe, out, *, device="cpu"):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator=device, devices=1, precision=recipe.precision)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "pick_hardware", lambda *_: fabric)
        fit(task, recipe, out, progress="quiet", device=device)
    return task.model.state_dict()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_one_device_computes_as_fabric_does(tmp_path, monkeypatch, precision):
    one, other = TinyTask(norm=False), TinyTask(norm=False)
    recipe = tiny_recipe({"steps": 6}, precision=precision)
    fit(one, recipe, tmp_path / "one", **QUIET)
    found = trained_by_fabric(monkeypatch, other, recipe, tmp_path / "other")
    assert all(torch.equal(value, found[name]) for name, value in one.model.state_dict().items())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("graph", [False, True])
def test_a_gpu_computes_as_fabric_does(tmp_path, monkeypatch, graph):
    one, other = DeviceTask(norm=False), DeviceTask(norm=False)
    recipe = tiny_recipe({"steps": 8}, precision="bf16-mixed", graph=graph)
    fit(one, recipe, tmp_path / "one", device="cuda", progress="quiet")
    found = trained_by_fabric(monkeypatch, other, recipe, tmp_path / "other", device="cuda")
    assert all(torch.equal(value, found[name]) for name, value in one.model.state_dict().items())


def test_several_devices_without_fabric_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(MissingExtraError, match="distributed"):
        fit(TinyTask(), tiny_recipe(), tmp_path / "run", devices=2, **QUIET)
    assert not (tmp_path / "run").exists()


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
from test_engine_devices import PHASES
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


RANKS, STEPS = 4, 20

NODES_SCRIPT = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from engine_fakes import TinyTask, tiny_recipe
from test_engine_devices import PHASES
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
    script.write_text(NODES_SCRIPT)
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
