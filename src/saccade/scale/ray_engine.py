"""The engine of many machines: Ray Data hands parts to a pool of actors, each with a GPU or a CPU of its own.

Only the names of files travel: an actor reads, decodes, asks and writes, and returns a receipt. So no picture and no
map goes through Ray's object store, pictures of mixed sizes need no common tensor type, and one bad picture is a row
with an error. Ray restarts a dead actor and its part without end; the worker counts the tries of a part and gives up
after some. The file of a part has one name, so that a second try overwrites nothing but itself.

Ray can keep a checkpoint of a pipeline itself (``DataContext.checkpoint_config``): it notes the id of every row that
was written, and holds all ids in memory when it resumes. Here the part files say the same with one name for a thousand
rows, without a second list that must agree with them, and for both engines alike.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from saccade.errors import ConfigError, MissingExtraError, SaccadeError
from saccade.scale.job import Job, Part
from saccade.scale.output import Receipt

OLDEST = (2, 51)
"""The first version in which actor pools are given as ``compute=ActorPoolStrategy(...)`` and nothing else."""
_ANSWER_SECONDS = 10.0
"""For a cluster to answer at all; Ray itself would try for minutes."""
_BLOCKS = 10_000


def run_on_ray(
    job: Job,
    parts: Sequence[Part],
    out: str,
    *,
    batch: int,
    device: str,
    address: str | None = None,
    actors: int | None = None,
) -> Generator[Receipt, None, None]:
    """What becomes of each part, as they are done.

    Args:
        job: what is asked.
        parts: what is left to do.
        out: a folder that all machines share, or a store.
        batch: pictures that go through the model together.
        device: auto, cpu or cuda; auto: a GPU for each actor where the cluster has any.
        address: of the cluster; None: the one that this process is connected to or ``RAY_ADDRESS`` names, else one is
            started here.
        actors: how many; None: as many as the cluster has GPUs, or else CPUs.
    """
    told = {"job": job, "out": out, "batch": batch}
    items = [part.to_json() for part in parts]
    for text in on_actors(Looker, told, items, device=device, address=address, actors=actors):
        yield Receipt.from_json(text)


def on_actors(
    actor: type,
    told: dict[str, object],
    items: Sequence[str],
    *,
    device: str,
    address: str | None = None,
    actors: int | None = None,
) -> Generator[Any, None, None]:
    """What actors make of each item, as they are done; an actor takes and gives the column ``item`` of a batch.

    Args:
        actor: a class that is made with ``told`` and ``device``, and called with batches.
        told: arguments for all actors.
        items: one for each call.
        device: see :func:`run_on_ray`.
        address: see :func:`run_on_ray`.
        actors: see :func:`run_on_ray`.
    """
    ray = ray_module()
    with _cluster(ray, address):
        share, many, on = resources(ray, device, actors)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        rows = ray.data.from_items([{"item": item} for item in items], override_num_blocks=min(len(items), _BLOCKS))
        done = rows.map_batches(
            actor,
            fn_constructor_kwargs={**told, "device": on},
            batch_size=1,
            batch_format="numpy",
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=many, initial_size=many),
            **share,
        )
        try:
            for row in done.iter_rows():
                yield row["item"]
        except ray.exceptions.RayError as error:
            raise _in_one_line(error) from error


class Looker:
    """The actor: a worker that takes and gives rows of Ray Data."""

    def __init__(self, job: Job, out: str, batch: int, device: str) -> None:
        from saccade.scale.worker import Worker

        self._failed = ""
        self._worker: Worker | None = None
        try:
            self._worker = Worker(job, out, batch=batch, device=device, decoders=1, counts_tries=True)
        except SaccadeError as error:  # told with the first part: an actor that cannot start would be started forever
            self._failed = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Receipts for parts."""
        parts = [Part.from_json(str(text)) for text in batch["item"]]
        if self._worker is None:
            return {"item": [Receipt(part.number, failed=self._failed).to_json() for part in parts]}
        return {"item": [self._worker.do(part).to_json() for part in parts]}


def ray_module() -> Any:
    """The package ``ray`` with Ray Data, of a version that has what is needed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that we start tells nobody
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or its C++ parts write on our stderr
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError as error:
        raise MissingExtraError("Ray", "ray") from error
    check_version(ray.__version__)
    return ray


def check_version(version: str) -> None:
    """Refuse a version of Ray that is too old."""
    try:
        found = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return  # a build of one's own; the first call says what it lacks
    if found < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise MissingExtraError("Ray", "ray", f"Ray {version} is here and {wanted} is the oldest that is used")


@contextmanager
def _cluster(ray: Any, address: str | None) -> Iterator[None]:
    """Be connected to the cluster; a connection that the caller has is used, and kept."""
    if ray.is_initialized():
        if address not in (None, "auto"):
            raise ConfigError(f"`address={address}`: this process is connected to a cluster already; leave it out")
        yield
        return
    _check_answers(address)
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError, OSError) as error:
        raise _no_cluster(address, str(error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_answers(address: str | None) -> None:
    """Refuse an address at which nobody listens."""
    host, _, port = (address or "auto").rpartition("/")[2].rpartition(":")
    if not port.isdigit():
        return  # auto and the like: Ray looks for it
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from error


def _no_cluster(address: str | None, reason: str) -> ConfigError:
    place = address or os.environ.get("RAY_ADDRESS", "this machine")
    return ConfigError(
        f"no Ray cluster at '{place}' ({' '.join(reason.split())[:160]}); start one with 'ray start --head', or leave "
        "`address` out to use this machine alone"
    )


def resources(ray: Any, device: str, actors: int | None) -> tuple[dict[str, float], int, str]:
    """What an actor gets, how many there are, and their device."""
    held = ray.cluster_resources()
    gpus, cpus = int(held.get("GPU", 0)), int(held.get("CPU", 0))
    kind = device.partition(":")[0]
    if kind == "cuda" and not gpus:
        raise ConfigError("device: the cluster has no GPUs; use `device=cpu`, or start its machines with GPUs")
    on_gpu = kind == "cuda" or (kind == "auto" and gpus > 0)
    whole = gpus if on_gpu else cpus
    if not whole:
        raise ConfigError("the cluster has no CPUs to give; start its machines with 'ray start --num-cpus N'")
    many = whole if actors is None else actors
    if not 1 <= many <= whole:
        raise ConfigError(
            f"actors: {many} are too many: the cluster has {whole} {'GPUs' if on_gpu else 'CPUs'}, and each takes one"
        )
    return {"num_gpus": 1} if on_gpu else {"num_cpus": 1}, many, "cuda" if on_gpu else "cpu"


def _in_one_line(error: Exception) -> ConfigError:
    """What Ray raised, in words; the parts that are done stay."""
    said = " ".join(str(error).split())
    return ConfigError(
        f"Ray ended the job ({type(error).__name__}: {said[:200]}); finished parts are kept; `resume=True` continues"
    )
