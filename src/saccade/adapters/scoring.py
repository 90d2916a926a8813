"""Scores the maps of a folder of rows file by file, here or on Ray, and brings the files together.

Files add up values of maps and whole numbers of pixels, so it does not matter who scored which file, or when. Only the
baseline of exchanged maps knows the files: maps are exchanged inside a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.adapters.folder import row_files, rows_in
from saccade.adapters.rows import TOTAL, decode_map
from saccade.data.maps import SEPARATOR, by_short_name
from saccade.errors import ConfigError, DataError, SaccadeError
from saccade.progress import OnProgress, no_progress
from saccade.scoring.results import Policies, ScoreResult
from saccade.scoring.score import MapScoring, Shard, score_maps
from saccade.scoring.sources import Maps, Named, open_truth


class RowMaps(Maps):
    """The total maps of rows; a row with an error is a map that cannot be read.

    Rows are called by the column ``name``, with the question behind it: ``cats/1__colour``.
    """

    def __init__(self, out: str, files: Sequence[Path] | None = None) -> None:
        self.files, self._short = row_files(out) if files is None else list(files), False
        names = [_called(row) for file in self.files for row in rows_in(file, ["name", "question"])]
        super().__init__(out, names)

    def name(self, short: bool) -> None:
        """Call maps by the last part of their names, or by all of it."""
        self._short = short

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """Maps in the order in which they lie in the files: one way through, whatever ``first`` asks."""
        for file in self.files:
            for row in rows_in(file, ["name", "question", "maps", "error"]):
                (name,) = by_short_name([_called(row)], self._short)
                total = next((stored for stored in row["maps"] or () if stored["look"] == TOTAL), None)
                why = row["error"] or f"{row['name']}: no map was kept; look again with `maps=total`"
                yield name, DataError(why) if total is None else torch.from_numpy(decode_map(total))

    def read(self, name: str) -> Tensor | None:
        """One map again; the files are read until it comes."""
        values = next((values for called, values in self.each() if called == name), None)
        return None if isinstance(values, SaccadeError) else values


def _called(row: Mapping[str, Any]) -> str:
    return row["name"] if row["question"] is None else f"{row['name']}{SEPARATOR}{row['question']}"


def score_rows(
    out: str | os.PathLike[str],
    truth: Any,
    policies: Policies,
    *,
    objects: Any = None,
    key: str | None = None,
    engine: str = "local",
    address: str | None = None,
    on_progress: OnProgress = no_progress,
) -> ScoreResult:
    """How the total maps of the folder of rows ``out`` lie on their truth; both engines give the same.

    Arguments are those of :func:`saccade.score`; with Ray, all machines see truth and objects under their paths.
    """
    opened = open_truth(truth, objects=objects, key=key)
    maps = RowMaps(os.fspath(out))
    if opened.kind == "points" or opened.pool(policies) is not None:  # these need the maps of all files together
        if engine == "ray":
            raise ConfigError("`engine=ray` scores against masks and boxes; leave it out for points and causal sets")
        return score_maps(maps, opened, policies, on_progress=on_progress)
    scoring = MapScoring(maps, opened, policies, on_progress)
    arguments: dict[str, Any] = {"out": os.path.abspath(out), "policies": policies, "key": key, "short": scoring.short}
    if engine == "ray":
        from saccade.adapters.ray import on_tasks

        if not all(isinstance(value, (str, os.PathLike)) for value in (truth, objects or "")):
            raise ConfigError("truth and objects: `engine=ray` takes paths of files that all machines see")
        arguments |= {"truth": os.path.abspath(truth), "objects": objects and os.path.abspath(objects)}
        shards = on_tasks(score_file, arguments, [str(file.absolute()) for file in maps.files], address)
    else:
        shards = (score_file(**arguments, truth=truth, objects=objects, item=str(file)) for file in maps.files)
    for number, shard in enumerate(shards, 1):
        scoring.shard.join(shard)
        on_progress("scoring parts", number, len(maps.files))
    return scoring.finish()


def score_file(
    *, out: str, truth: Any, objects: Any, key: str | None, policies: Policies, short: bool, item: str
) -> Shard:
    """What is found of the file ``item``."""
    opened = open_truth(truth, objects=objects, key=key)
    scoring = MapScoring(RowMaps(out, [Path(item)]), opened, policies, no_progress, short=short)
    scoring.gather()
    scoring.score_waiting()
    return scoring.shard
