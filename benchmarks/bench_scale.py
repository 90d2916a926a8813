"""Rows of many pictures: how fast one machine and a Ray cluster write them, and what the engine costs.

saccade data make mref --split train --count 10000 --out scenes
python benchmarks/bench_scale.py scenes --counts 2500 10000 --batches 32 --nodes 0 1 2
python benchmarks/bench_scale.py scenes --counts 2500 --batches 1 32 256 --nodes 0 1
python benchmarks/bench_scale.py scenes --idle 1000      # parts that cost nothing: the engine alone

Needs the extra ``ray``, but for ``--nodes 0``, the local engine. Nodes are those of ``ray.cluster_utils`` on this
machine, with one CPU each: two of them share what the machine has, and stand for two machines only in what Ray does.
Each line is JSON: seconds of the job from the call to the last file, and CPU seconds of this process (of the local
engine they are all but those of the decoders). With two counts, the slope between them is the cost of a picture, and
the rest that of a start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from saccade import scale


@contextmanager
def cluster(nodes: int) -> Iterator[None]:
    if not nodes:
        yield
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 << 20}
    found = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            found.add_node(**node)
        ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
        yield
    finally:
        ray.shutdown()
        found.shutdown()


def measured(files: list[Path], nodes: int, batch: int, model: str, ask: str | None, device: str) -> dict[str, Any]:
    out = Path(tempfile.mkdtemp()) / "out"
    busy, started = time.process_time(), time.monotonic()
    try:
        engine = {"engine": "ray" if nodes else "local"}
        looked = scale.look(files, model=model, ask=ask, out=out, batch_size=batch, device=device, **engine)
        seconds, busy = time.monotonic() - started, time.process_time() - busy
        stored = sum(file.stat().st_size for file in out.glob("part-*"))
    finally:
        shutil.rmtree(out.parent)
    told = {"rows": looked.rows, "errors": looked.errors, "seconds": round(seconds, 2), "cpu_here": round(busy, 2)}
    rates = {"per_second": round(looked.rows / seconds, 1), "bytes_a_row": round(stored / looked.rows)}
    return {"nodes": nodes, "batch_size": batch, **told, **rates, "load": os.getloadavg()[0]}


class Idle:
    """An actor that does nothing with a part."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The part as it came."""
        return {"item": batch["item"]}


def idle(parts: int) -> dict[str, Any]:
    """Seconds that Ray Data takes for parts that cost nothing, in which a thousand names travel."""
    import ray

    text = json.dumps([[f"/somewhere/{number:08d}.png", f"{number:08d}", "12345-1234567890"] for number in range(1024)])
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=1)
    rows = ray.data.from_items([{"item": text} for _ in range(parts)], override_num_blocks=parts)
    started = time.monotonic()
    count = sum(1 for _ in rows.map_batches(Idle, batch_size=1, compute=pool, num_cpus=1).iter_rows())
    seconds = time.monotonic() - started
    return {"idle_parts": count, "seconds": round(seconds, 2), "ms_a_part": round(1e3 * seconds / count, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[1000])
    parser.add_argument("--batches", type=int, nargs="+", default=[32])
    parser.add_argument("--nodes", type=int, nargs="+", default=[0])
    parser.add_argument("--model", default="soft-mref")
    parser.add_argument("--ask", default="7")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--idle", type=int, nargs="*", default=[])
    asked = parser.parse_args()
    torch.set_num_threads(1)  # as in an actor with one CPU
    files = sorted(asked.pictures.glob("*.png"))
    for nodes in asked.nodes if not asked.idle else [1]:
        with cluster(nodes):
            for parts in asked.idle:
                print(json.dumps(idle(parts)), flush=True)
            if asked.idle:
                continue
            for batch in asked.batches:
                for count in asked.counts:
                    found = measured(files[:count], nodes, batch, asked.model, asked.ask or None, asked.device)
                    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
