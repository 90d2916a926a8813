"""Rows of many pictures: how fast one process and a Ray cluster on this machine write them.

saccade data make mref --split train --count 2500 --out scenes
python benchmarks/bench_scale.py scenes --nodes 0 1 2      # 0: the local engine; others need the extra ``ray``

A node has one CPU. Each line is JSON: seconds from the call to the last row, the start of Ray not among them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from saccade import look_folder


@contextmanager
def cluster(nodes: int) -> Iterator[None]:
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


def measure(pictures: Path, nodes: int, part: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows"
        engine = "ray" if nodes else "local"
        started = time.monotonic()
        looked = look_folder(pictures, ask=7, out=out, part=part, device="cpu", engine=engine)
        seconds = time.monotonic() - started
        size = sum(file.stat().st_size for file in out.glob("*.parquet"))
    rates = {"per_second": round(looked.rows / seconds, 1), "bytes_a_row": round(size / looked.rows)}
    print(json.dumps({"nodes": nodes, "rows": looked.rows, "seconds": round(seconds, 2), **rates}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=[0])
    parser.add_argument("--part", type=int, default=128)
    asked = parser.parse_args()
    torch.set_num_threads(1)  # as in an actor with one CPU
    for nodes in asked.nodes:
        if not nodes:
            measure(asked.pictures, nodes, asked.part)
            continue
        with cluster(nodes):
            measure(asked.pictures, nodes, asked.part)


if __name__ == "__main__":
    main()
