"""A real Ray cluster of two nodes on this machine: the rows of the local engine, even if a worker is killed."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_pictures import folder_of

from saccade import look_folder, score
from saccade.adapters.folder import read_rows
from saccade.adapters.ray import look_dataset
from saccade.errors import ConfigError
from tiny_models import save_tiny

pytestmark = pytest.mark.extras
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

PARTS = 24


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A folder with a bad picture, a model, and the rows of the local engine."""
    home = tmp_path_factory.mktemp("job")
    source = folder_of(home / "in", 2 * PARTS)
    (source / "007.png").write_bytes(b"not a picture")
    options = {"model": str(save_tiny(home / "tiny")), "ask": 1, "part": 2, "batch_size": 2, "device": "cpu"}
    look_folder(source, out=home / "local", **options)
    return {"source": source, "options": options, "rows": list(read_rows(home / "local"))}


NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each; one cluster for all tests, because each takes twenty seconds to start."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        here = str(Path(__file__).parent)
        patched.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        try:
            found.second = found.add_node(**NODE)
            ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
            yield found
        finally:
            ray.shutdown()
            found.shutdown()


def in_the_middle(act: Callable[[], None]) -> Callable[[int, int], None]:
    """A progress that does something once, when the first part is done."""
    left = [act]

    def progress(what: str, done: float, total: float | None) -> None:
        if done and left:
            left.pop()()

    return progress


def kill_an_actor(killed: list[int]) -> None:
    """SIGKILL to the process of one actor, as the kernel does when memory is short."""
    held = ray._private.state.actors().values()
    pids = [each["Pid"] for each in held if each["State"] == "ALIVE" and "MapWorker" in each["ActorClassName"]]
    for pid in pids[:1]:
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)


def test_a_cluster_that_nobody_answers_for_is_one_line(job, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:9"):
        look_folder(job["source"], out=tmp_path / "out", engine="ray", address="127.0.0.1:9", **job["options"])
    assert not (tmp_path / "out").exists()


def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(cluster, job, tmp_path: Path) -> None:
    killed: list[int] = []
    progress = in_the_middle(lambda: kill_an_actor(killed))
    looked = look_folder(job["source"], out=tmp_path / "out", engine="ray", on_progress=progress, **job["options"])
    assert killed
    assert (looked.rows, looked.errors, looked.parts) == (len(job["rows"]), 1, PARTS)
    assert list(read_rows(tmp_path / "out")) == job["rows"]


def test_a_job_goes_on_where_the_other_engine_ended(cluster, job, tmp_path: Path) -> None:
    """And what cannot be is said in one line: too many actors, no GPU, a model that is gone."""
    whole = look_folder(job["source"], out=tmp_path / "out", **job["options"])
    for file in sorted((tmp_path / "out").glob("*.parquet"))[5:]:
        file.unlink()
    looked = look_folder(job["source"], out=tmp_path / "out", engine="ray", resume=True, **job["options"])
    assert (looked.rows, looked.resumed) == (whole.rows, 5)
    assert list(read_rows(tmp_path / "out")) == job["rows"]
    for wrong, said in (({"actors": 3}, "has 2 CPUs"), ({"device": "cuda"}, "no GPUs")):
        with pytest.raises(ConfigError, match=said):
            look_folder(job["source"], out=tmp_path / "no", engine="ray", **{**job["options"], **wrong})


def test_maps_score_the_same_on_a_cluster(cluster, job, tmp_path: Path) -> None:
    look_folder(job["source"], out=tmp_path / "out", **job["options"])
    masks = {f"{n:03d}": np.arange(620).reshape(20, 31) % (n + 3) == 0 for n in range(40)}
    np.savez(tmp_path / "masks.npz", **masks)
    here = score(tmp_path / "out", tmp_path / "masks.npz", broken="skip")
    there = score(tmp_path / "out", tmp_path / "masks.npz", broken="skip", engine="ray")
    assert here.counts["scored"] == 39
    assert json.dumps(here.to_json()) == json.dumps(there.to_json())
    assert here.csv_text() == there.csv_text()


def test_a_dataset_of_ray_becomes_a_dataset_of_rows(cluster, job, tmp_path: Path) -> None:
    files = [str(file) for file in sorted(job["source"].glob("*.png"))[:8]]
    pictures = ray.data.read_binary_files(files, include_paths=True)
    found = look_dataset(pictures, model=job["options"]["model"], ask=1, batch_size=4, device="cpu")
    rows = sorted(found.take_all(), key=lambda row: row["source"])
    wanted = {row["source"]: row for row in job["rows"]}
    assert [row["source"] for row in rows] == files
    assert [row["answer"] for row in rows] == [wanted[row["source"]]["answer"] for row in rows]
    assert [row["source"][-7:] for row in rows if row["error"]] == ["007.png"]
