"""Scores the maps of a job part by part, here or on Ray actors, and brings the parts together.

What is added up over parts is a value for each map and whole numbers of pixels, so nothing depends on who scored which
part, or when. Only the baseline of exchanged maps knows the parts: maps are exchanged inside a part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from saccade.errors import ConfigError, SaccadeError, nearest
from saccade.scale.look_folder import LookMaps
from saccade.scoring.policies import Policies
from saccade.scoring.results import ScoreResult
from saccade.scoring.score import OnProgress, Scoring, score_maps
from saccade.scoring.shard import Shard
from saccade.scoring.truths import open_truth

ENGINES = ("local", "ray")


def score_rows(
    out: str | Path,
    truth: Any,
    policies: Policies,
    *,
    objects: Any = None,
    key: str | None = None,
    engine: str = "local",
    address: str | None = None,
    actors: int | None = None,
    on_progress: OnProgress = lambda what, done, total: None,
) -> ScoreResult:
    """How the total maps of a job lie on their truth; both engines find the same.

    Args:
        out: the folder of the job.
        truth: see :func:`saccade.score`; with Ray a path that all machines see.
        policies: what to do with maps and truths that are not as they should be.
        objects: masks of all objects, for ``selectivity``.
        key: of the array in files of masks that hold several.
        engine: local, or ray.
        address: of the Ray cluster.
        actors: of Ray; None: one for each CPU.
        on_progress: called with what is going on, how far it is, and how far it goes.
    """
    if engine not in ENGINES:
        raise ConfigError(f"engine: no '{engine}': {nearest(engine, ENGINES)}")
    told = open_truth(truth, objects=objects, key=key)
    maps = LookMaps(out)
    if told.kind == "points" or told.pool(policies) is not None:  # these need the maps of all parts together
        if engine == "ray":
            raise ConfigError("`engine=ray` scores against masks and boxes; leave it out for points and causal sets")
        return score_maps(maps, told, policies, on_progress=on_progress)
    scoring = Scoring(maps, told, policies, on_progress)
    settings = {"out": os.path.abspath(out), "truth": _path(truth), "objects": _path(objects), "key": key}
    settings |= {"policies": asdict(policies), "short": scoring.short}
    if engine == "ray":
        for each, text in (("truth", truth), ("objects", objects)):
            if text is not None and not isinstance(text, (str, os.PathLike)):
                raise ConfigError(f"{each}: `engine=ray` takes the path of a file that all machines see")
        shards = _on_ray(settings, maps.files, address, actors)
    else:
        here = ShardScorer(**{**settings, "truth": truth, "objects": objects})
        shards = (here.shard(file) for file in maps.files)
    for number, shard in enumerate(shards, 1):
        scoring.join(shard)
        on_progress("scoring parts", number, len(maps.files))
    return scoring.finish()


def _path(value: object) -> object:
    return os.path.abspath(value) if isinstance(value, (str, os.PathLike)) else value


class ShardScorer:
    """Scores parts of a job; as a Ray actor it takes and gives rows of Ray Data."""

    def __init__(
        self,
        out: str,
        truth: object,
        objects: object,
        key: str | None,
        policies: dict[str, str],
        short: bool,
        device: str = "cpu",
    ) -> None:
        self._out, self._truth, self._objects, self._key = out, truth, objects, key
        self._policies, self._short = Policies(**policies), short

    def shard(self, file: str) -> Shard:
        """What is found of one part."""
        told = open_truth(self._truth, objects=self._objects, key=self._key)
        scoring = Scoring(LookMaps(self._out, [file]), told, self._policies, lambda *_: None, short=self._short)
        scoring.gather()
        return scoring.shard()

    def __call__(self, batch: dict[str, Any]) -> dict[str, object]:
        """Parts by name → (name, shard), or (name, what is wrong)."""
        found = np.empty(len(batch["item"]), dtype=object)
        for at, file in enumerate(batch["item"]):
            try:
                found[at] = (str(file), self.shard(str(file)))
            except SaccadeError as error:
                found[at] = (str(file), str(error))
        return {"item": found}


def _on_ray(settings: dict[str, object], files: list[str], address: str | None, actors: int | None) -> Iterator[Shard]:
    """The shards in the order of their files; those that come early wait."""
    from saccade.scale.ray_engine import on_actors

    early: dict[str, Shard] = {}
    wanted = iter(files)
    following = next(wanted, None)
    for file, shard in on_actors(ShardScorer, settings, files, device="cpu", address=address, actors=actors):
        if isinstance(shard, str):
            raise ConfigError(shard)
        early[file] = shard
        while following in early:
            yield early.pop(following)
            following = next(wanted, None)
