"""Look at many pictures, on one machine or on a cluster, and write one row each to Parquet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from saccade.checks import check_numbers
from saccade.errors import ConfigError, SaccadeError, nearest

if TYPE_CHECKING:
    from saccade.families.responder import Question
    from saccade.predict import Predictor
    from saccade.scale.job import Job, KeptMaps, Part
    from saccade.scale.output import LookJobResult, Receipt
    from saccade.scale.stores import Folder

ENGINES = ("local", "ray")
PART = 1024
"""Picture files in a part."""


def look(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    model: str = "soft-mref",
    out: str | os.PathLike[str],
    ask: Question | None = None,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    actors: int | None = None,
    batch_size: int = 32,
    part: int = PART,
    column: str | None = None,
    maps: Literal["total", "all", "none"] = "total",
    side: int = 64,
    resume: bool = False,
    device: str = "auto",
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    **options: object,
) -> LookJobResult:
    """Ask a model about many pictures; a row for each goes to Parquet files in ``out``.

    Both engines call the same row-maker on the same parts. On the same kind of device, with the same batch and the same
    number of threads, their rows are equal to the last bit.

    Args:
        sources: folders, picture files, globs, .parquet files with a column of pictures, .tar shards; paths, or URIs of
            stores that fsspec knows. Not pictures in memory.
        model: a zoo name, a folder that all machines see, ``timm:NAME`` or ``hf:NAME``.
        out: a new folder, or the URI of one; of several machines one that they share.
        ask: one question for all. None: none.
        engine: write rows to Parquet: local, or ray on a cluster.
        address: of the Ray cluster: HOST:PORT or auto. None: the one that is connected, else this machine alone.
        actors: processes of Ray. None: one a GPU, or else a CPU.
        batch_size: how many go through the model together.
        part: with ``engine``, picture files in an output file. A part is what is done again when a machine is lost.
        column: of Parquet files: the pictures. None: image and the like.
        maps: with ``engine``, keep the total map, all maps or none. All are those of every look and step too.
        side: longer side of a kept map, in cells.
        resume: with ``engine``, go on with what is in ``out``.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_progress: called with parts done and parts in all.
        options: those of the model's family, such as beam.

    Returns:
        Counts of rows, errors and parts.

    Raises:
        ConfigError: no such engine, cluster or option; a batch that does not fit into memory.
        DataError: there are no pictures, or the question cannot be asked.
        OutputError: ``out`` holds something already, or something else than what is to be resumed.
    """
    from saccade.predict import load
    from saccade.scale.local_engine import run_here
    from saccade.scale.output import begin, discard_if_unstarted, finish, held
    from saccade.scale.sources import parts_of
    from saccade.scale.stores import Folder

    check_numbers(least=1, batch_size=batch_size, part=part, actors=actors)
    check_numbers(least=1, most=1024, side=side)
    if engine not in ENGINES:
        raise ConfigError(f"engine: no '{engine}': {nearest(engine, ENGINES)}")
    if engine == "local" and (address is not None or actors is not None):
        raise ConfigError("`address` and `actors` are for `engine=ray`; leave them out")
    if engine == "ray":
        from saccade.scale.ray_engine import ray_module

        ray_module()  # before the folder is made
    started = time.monotonic()
    asked = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    predictor = load(model, device if engine == "local" else "cpu")
    job = job_of(predictor, model, ask, maps, side, options)
    parts = parts_of(asked, part, column)
    folder = Folder(os.fspath(out))
    with held(folder):
        todo = begin(folder, job, parts, resume=resume)
        on_progress(len(parts) - len(todo), len(parts))
        if engine == "local":
            running = run_here(job, todo, folder.where, batch=batch_size, device=device, predictor=predictor)
        else:
            running = _on_ray(job, todo, folder, batch=batch_size, device=device, address=address, actors=actors)
        try:
            receipts = _gathered(running, len(parts) - len(todo), len(parts), on_progress)
        except SaccadeError:
            discard_if_unstarted(folder)
            raise
        looked = finish(folder, job, parts, receipts, time.monotonic() - started)
        told = predictor.of_unlike(looked.unlike, looked.rows - looked.errors)
        return replace(looked, remarks=(*filter(None, [told]), *predictor.caveats))


def job_of(
    predictor: Predictor, model: str, ask: Question | None, maps: KeptMaps, side: int, options: dict[str, object]
) -> Job:
    """What is asked, once it is known that the model can answer it."""
    from saccade.scale.job import Job
    from saccade.scale.worker import digest_of

    if predictor.facts.preprocessing is None:
        raise ConfigError(f"engine: '{predictor.name}' does not read pictures, and a row is about a picture")
    predictor.question(ask)
    predictor.responder.options(dict(options))
    chosen = {name: value for name, value in options.items() if value is not None}
    name = model if not os.path.isdir(model) else os.path.abspath(model)
    return Job(name, digest_of(model), None if ask is None else str(ask), chosen, maps, side).checked()


def _on_ray(job: Job, parts: Sequence[Part], folder: Folder, **options: Any) -> Generator[Receipt, None, None]:
    from saccade.scale.ray_engine import run_on_ray

    where = folder.where if folder.is_remote else str(folder.path.absolute())
    if parts:
        yield from run_on_ray(job, parts, where, **options)


def _gathered(
    running: Generator[Receipt, None, None], done: int, total: int, progress: Callable[[int, int], None]
) -> list[Receipt]:
    """All receipts; a part that failed ends the job, and what is done stays."""
    receipts: dict[int, Receipt] = {}
    with closing(running):
        for receipt in running:
            if receipt.failed:
                raise ConfigError(f"{receipt.failed} (finished parts are kept; `resume=True` continues)")
            receipts[receipt.part] = receipt
            progress(done + len(receipts), total)
    return list(receipts.values())
