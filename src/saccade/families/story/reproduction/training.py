"""Cells of the memory table that lack a record: all restarts are trained as one stack, tested and recorded.

Training questions that the pack lacks are made, as ``data.fill`` says.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from saccade.commands.train import train
from saccade.data.tables.references import split_reference
from saccade.errors import ConfigError
from saccade.families.story.data import READERS
from saccade.families.story.readers.babi import Size, babi_files
from saccade.families.story.reproduction.memory_table import DATA
from saccade.families.story.reproduction.record import record_runs
from saccade.families.story.reproduction.systems import Row
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.training import RESULTS, RUNS


def train_cells(cells: Sequence[tuple[Row, str]], request: Request) -> None:
    """Train and record every cell into ``request.folder``; runs that were begun there go on.

    Raises:
        ConfigError: no official files are named, or runs are wanted side by side.
    """
    named = [each for each in request.data or () if each.partition(":")[0] == DATA]
    if len(named) != 1 or request.folder is None:
        raise ConfigError(f"training needs the official files: name them with `data={DATA}:PATH`")
    if request.jobs != 1:
        raise ConfigError("jobs: the restarts of a memory network are trained as one stack; leave it out")
    for done, (row, setting) in enumerate(cells):
        request.progress(f"training {row.system}, {setting}", done, len(cells))
        protocol, _, size = setting.partition("-")
        tasks = official_tasks(named[0], size)  # type: ignore[arg-type]  # a size of the table
        own = request.folder / RUNS / f"{row.system}-{DATA}-{setting}"
        runs = [own / f"qa{task}" for task in tasks] if protocol == "task" else [own]
        settings = (f"data.size={size}", "data.fill=true", f"replicas={request.seeds}")
        for number, run in enumerate(runs):
            changes = [*row.changes, *settings, *request.overrides]
            changes += [f"data.tasks=[{tasks[number]}]"] if protocol == "task" else []
            _train(row.recipe, run, named[0], protocol, changes, request.device)
        words = [f"--set {shlex.quote(change)}" for change in (*row.changes, *settings)]
        each = " --set 'data.tasks=[N]'" if protocol == "task" else ""
        record_runs(
            runs,
            system=row.system,
            data=named[0],
            command=f"saccade train {row.recipe} --data {DATA}:PATH --protocol {protocol} {' '.join(words)}{each}",
            folder=request.folder / RESULTS,
            device=request.device,
        )
    request.progress("training", len(cells), len(cells))


def _train(recipe: str, run: Path, data: str, protocol: str, changes: Sequence[str], device: str) -> None:
    if (run / "config.yaml").is_file():
        train(out=run, resume=True, device=device, quiet=True)
    else:
        train(recipe, out=run, data=data, protocol=protocol, overrides=changes, device=device, quiet=True)


def official_tasks(data: str, size: Size) -> list[int]:
    """Numbers of the tasks that have official test questions."""
    _, root = split_reference(data, READERS)
    return [int(task[2:]) for task, files in babi_files(root, size).items() if "test" in files]
