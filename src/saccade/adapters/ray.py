"""Ray: rows of many pictures, and scores of their maps, on the machines of a cluster.

Ray Data hands parts to a pool of actors, each with a GPU or a CPU of its own. Only names of files travel to them: an
actor reads, decodes and asks, and Ray writes the rows to Parquet. Ray starts a lost actor again, with its part.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saccade.adapters.rows import FolderJob, KeptMaps, digest_of, job_of, table_of
from saccade.data.pictures.reading import Picture, read_picture
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError, SaccadeError
from saccade.families.answering import Question
from saccade.predict import Predictor, load
from saccade.progress import OnProgress, no_progress

# Columns of a Dataset that hold encoded pictures, and that say where a picture is from; the first that is there counts.
BYTES = ("bytes", "image", "picture", "jpg", "jpeg", "png", "webp")
SOURCES = ("path", "source", "file_name", "__key__", "id")
_ANSWER_SECONDS = 10.0  # For a cluster to answer at all; Ray itself would try for minutes


@dataclass(frozen=True)
class Pool:
    """Actors of a cluster: how many, on what, and what each takes."""

    actors: int
    device: str
    share: dict[str, int]

    def map(self, dataset: Any, actor: type, arguments: dict[str, object], batch_size: int) -> Any:
        """The batches of a Dataset, as actors answer them."""
        how = {"compute": _ray().data.ActorPoolStrategy(min_size=1, max_size=self.actors), "batch_format": "pyarrow"}
        arguments = {**arguments, "device": self.device}
        return dataset.map_batches(actor, fn_constructor_kwargs=arguments, batch_size=batch_size, **how, **self.share)


def write_parts(
    pool: Pool,
    job: FolderJob,
    parts: Mapping[int, Sequence[tuple[str, str]]],
    folder: Path,
    on_progress: OnProgress = no_progress,
) -> None:
    """Write the rows of parts, source and name of their pictures by number: Parquet files of one part each.

    All machines share ``folder``. ``on_progress`` is called now and then with files that are there and in all.
    """
    if not parts:
        return
    ray = _ray()
    items = [{"part": number, "pictures": json.dumps(list(members))} for number, members in parts.items()]
    dataset = ray.data.from_items(items, override_num_blocks=len(items))
    before = len(list(folder.glob("*.parquet")))
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.5):
            on_progress("parts", len(list(folder.glob("*.parquet"))), before + len(parts))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        rows = pool.map(dataset, PartLooker, {"job": job}, batch_size=1)
        with _in_one_line(ray):
            rows.write_parquet(str(folder), compression="zstd")
    finally:
        is_done.set()
        watcher.join()


def look_dataset(
    dataset: Any,
    *,
    model: str = "soft-mref",
    ask: Question | None = None,
    column: str | None = None,
    actors: int | None = None,
    batch_size: int = 32,
    maps: KeptMaps = "total",
    side: int = 64,
    device: str = "auto",
    **options: Any,
) -> Any:
    """A Ray Dataset with a row for each picture of ``dataset``, made when it is read or written.

    For pictures in stores and in shards: ``ray.data.read_binary_files("s3://…", include_paths=True)`` reads them,
    ``write_parquet`` writes the rows.

    ``column`` holds encoded pictures, bytes or ``{bytes, path}``; paths are not followed. By default it is the first of
    :data:`BYTES` that is there. The other arguments are those of :func:`saccade.look_folder`.
    """
    predictor = load(model, "cpu")
    job = job_of(predictor, model, ask, options, batch_size=batch_size, maps=maps, side=side)
    pool = _pool(_ray(), device, actors)
    return pool.map(dataset, PictureLooker, {"job": job, "column": column}, batch_size=batch_size)


class PartLooker:
    """The actor that looks at parts. The model is loaded with the first: Ray starts failing actors again and again."""

    def __init__(self, job: FolderJob, device: str) -> None:
        self._job, self._device = job, device
        self._loaded: Predictor | None = None

    @property
    def predictor(self) -> Predictor:
        """The model, once it is known to be the one that was asked for."""
        if self._loaded is None:
            predictor = load(self._job.model, self._device)
            if digest_of(predictor) != self._job.digest:
                raise CheckpointError(f"{self._job.model}: another model on this machine; all machines need the same")
            self._loaded = predictor
        return self._loaded

    def __call__(self, parts: Any) -> Iterator[Any]:
        """A table of rows for each part."""
        for part in parts.to_pylist():
            pictures = [(source, name, source) for source, name in json.loads(part["pictures"])]
            yield table_of(self.predictor, self._job, pictures, part["part"])


class PictureLooker(PartLooker):
    """The actor that looks at encoded pictures."""

    def __init__(self, job: FolderJob, device: str, column: str | None) -> None:
        super().__init__(job, device)
        self._column = column

    def __call__(self, table: Any) -> Iterator[Any]:
        """A row for each picture; ``part`` is 0 and ``row`` its place in the batch."""
        names = table.column_names
        column = self._column or next((name for name in BYTES if name in names), None)
        if column not in names:
            raise DataError(f"no column of pictures '{column or 'bytes'}'; found {', '.join(names)[:200]}")
        where = next((name for name in SOURCES if name in names and name != column), None)
        sources = [None] * len(table) if where is None else table.column(where).to_pylist()
        pictures = []
        for number, (value, source) in enumerate(zip(table.column(column).to_pylist(), sources)):
            data, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
            called = str(source or path or f"row {number}")
            pictures.append((called, called, _decoded(data, called, number)))
        yield table_of(self.predictor, self._job, pictures)


def _decoded(data: object, source: str, number: int) -> Picture | DataError:
    """A picture of a batch, called by its number there; or why it cannot be read."""
    if not isinstance(data, bytes):
        return DataError(f"{source}: expected the bytes of a picture, found {type(data).__name__}")
    try:
        return replace(read_picture(data, name=source), name=str(number))
    except DataError as error:
        return error


def on_tasks(
    function: Callable[..., Any], arguments: Mapping[str, object], items: Sequence[str], address: str | None
) -> Iterator[Any]:
    """What ``function`` makes of each item in a process of the cluster, in order."""
    ray = _ray()
    with _cluster(ray, address), _in_one_line(ray):
        tasks = [ray.remote(function).remote(**arguments, item=item) for item in items]
        for task in tasks:
            yield ray.get(task)


@contextmanager
def actor_pool(address: str | None, device: str, actors: int | None) -> Iterator[Pool]:
    """A pool on the cluster at ``address``; one is started on this machine where there is none."""
    ray = _ray()
    with _cluster(ray, address):
        yield _pool(ray, device, actors)


def _pool(ray: Any, device: str, actors: int | None) -> Pool:
    resources = ray.cluster_resources()
    gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
    kind = device.partition(":")[0]
    if kind == "cuda" and not gpus:
        raise ConfigError("device: the cluster has no GPUs; use `device=cpu`, or start its machines with GPUs")
    on_gpu = kind == "cuda" or (kind == "auto" and gpus > 0)
    whole = gpus if on_gpu else cpus
    if (actors or 1) > whole:
        raise ConfigError(f"actors: the cluster has {whole} {'GPUs' if on_gpu else 'CPUs'}, and each actor takes one")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    return Pool(actors or whole, "cuda" if on_gpu else "cpu", {"num_gpus": 1} if on_gpu else {"num_cpus": 1})


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that we start tells nobody
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or its C++ parts write on our stderr
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError as error:
        raise MissingExtraError("Ray", "ray") from error
    return ray


@contextmanager
def _cluster(ray: Any, address: str | None) -> Iterator[None]:
    """Be connected to the cluster; a connection that the caller has is used, and kept."""
    if ray.is_initialized():
        yield
        return
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        host, _, port = (address or "").rpartition("/")[2].rpartition(":")
        if port.isdigit():
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ValueError, RuntimeError, OSError, OverflowError) as error:
        raise ConfigError(
            f"no Ray cluster at '{address or 'this machine'}' ({' '.join(str(error).split())[:160]}); start one with "
            "'ray start --head', or leave `address` out to use this machine alone"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _in_one_line(ray: Any) -> Iterator[None]:
    """What went wrong in an actor, or in Ray, as an error of saccade."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SaccadeError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        why = cause or f"Ray ended the work ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        raise ConfigError(f"{why}; finished parts are kept; `resume=True` continues") from error
