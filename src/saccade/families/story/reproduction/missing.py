"""Cells of the memory table that lack a record: all restarts are trained as one stack, tested and recorded."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from saccade.atomic import make_folder, write_text
from saccade.data.tables.references import split_reference
from saccade.errors import ConfigError
from saccade.families.story.babi import Size, babi_files
from saccade.families.story.data import READERS, StoryDataConfig, generated
from saccade.families.story.reproduction.memory_table import DATA, Row
from saccade.families.story.reproduction.record import record_runs
from saccade.families.story.stories import Asked
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.training import RESULTS, RUNS
from saccade.verbs.train import train

COUNT = {"1k": 1000, "10k": 10_000}


def train_cells(cells: Sequence[tuple[Row, str]], request: Request) -> None:
    """Train and record every cell into ``request.folder``; runs that were begun there go on.

    Raises:
        ConfigError: no official files are named, or runs are wanted side by side.
    """
    named = [each for each in request.data or () if each.partition(":")[0] == DATA]
    if len(named) != 1 or request.folder is None:
        raise ConfigError(f"training needs the official files: name them with --data {DATA}:PATH")
    if request.jobs != 1:
        raise ConfigError("--jobs: the restarts of a memory network are trained as one stack; leave it out")
    for done, (row, setting) in enumerate(cells):
        request.progress(f"training {row.system}, {setting}", done, len(cells))
        protocol, _, size = setting.partition("-")
        data, made = with_missing_files(named[0], size, request.folder / "data")  # type: ignore[arg-type]
        tasks = official_tasks(named[0], size)  # type: ignore[arg-type]
        own = request.folder / RUNS / f"{row.system}-{DATA}-{setting}"
        runs = [own / f"qa{task}" for task in tasks] if protocol == "task" else [own]
        for number, run in enumerate(runs):
            changes = [*row.changes, f"data.size={size}", f"replicas={request.seeds}", *request.overrides]
            changes += [f"data.tasks=[{tasks[number]}]"] if protocol == "task" else []
            _train(row.recipe, run, data, protocol, changes, request.device)
        words = [
            f"--set {shlex.quote(change)}"
            for change in (*row.changes, f"data.size={size}", f"replicas={request.seeds}")
        ]
        each = " --set 'data.tasks=[N]'" if protocol == "task" else ""
        record_runs(
            runs,
            system=row.system,
            data=named[0],
            command=f"saccade train {row.recipe} --data {DATA}:PATH --protocol {protocol} {' '.join(words)}{each}",
            folder=request.folder / RESULTS,
            generated=made,
            device=request.device,
        )
    request.progress("training", len(cells), len(cells))


def _train(recipe: str, run: Path, data: str, protocol: str, changes: Sequence[str], device: str) -> None:
    if (run / "config.yaml").is_file():
        train(out=run, resume=True, device=device, quiet=True)
    else:
        train(recipe, out=run, data=data, protocol=protocol, overrides=changes, device=device, quiet=True)


# ---------------------------------------------------------------- files that the pack lacks


def official_tasks(data: str, size: Size) -> list[int]:
    """Numbers of the tasks that have official test questions."""
    _, root = split_reference(data, READERS)
    return [int(task[2:]) for task, files in babi_files(root, size).items() if "test" in files]


def with_missing_files(data: str, size: Size, folder: Path) -> tuple[str, list[int]]:
    """The data with generated training files where the pack has none, and the numbers of these tasks.

    Official files are linked into ``folder``, and generated ones written beside them.
    """
    _, root = split_reference(data, READERS)
    files = babi_files(root, size)
    lacking = [task for task, have in files.items() if "train" not in have]
    if not lacking:
        return data, []
    place = make_folder(folder / size)
    for have in files.values():
        for path in have.values():
            link = place / path.name
            if not link.exists():
                link.symlink_to(path.absolute())
    for task in lacking:
        made = place / f"{task}_generated_train.txt"
        if not made.exists():
            settings = StoryDataConfig(tasks=(int(task[2:]),), questions=COUNT[size])
            write_text(made, babi_text(generated(settings, "train")))
    return f"{DATA}:{place}", [int(task[2:]) for task in lacking]


def babi_text(asked: Sequence[Asked]) -> str:
    """Questions in the form of the official files: numbered lines, a question after what was told before it."""
    lines: list[str] = []
    told: tuple[str, ...] = ()
    places: list[int] = []  # line number of each sentence of the story
    number = 0
    for each in asked:
        if not told or each.sentences[: len(told)] != told:
            told, places, number = (), [], 0
        for sentence in each.sentences[len(told) :]:
            number += 1
            places.append(number)
            lines.append(f"{number} {sentence}")
        told = each.sentences
        number += 1
        facts = " ".join(str(places[place]) for place in each.supporting)
        lines.append(f"{number} {each.question}\t{each.answer}\t{facts}")
    return "\n".join(lines) + "\n"
