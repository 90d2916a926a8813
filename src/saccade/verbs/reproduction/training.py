"""Cells without a run, trained: recipe by recipe, seed by seed, each evaluated in full and recorded."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saccade.commands.train import train
from saccade.engine.health import TrainingStopped
from saccade.metrics.result import Evaluation
from saccade.recorded import RecordedRun, recorded_runs, save_run_record
from saccade.verbs.evaluate import evaluate
from saccade.verbs.reproduction.cells import Setting

RUNS, RESULTS = "runs", "results"
Progress = Callable[[str, int, int], None]
"""Called with what is going on, how far it is, and how far it goes."""


@dataclass(frozen=True)
class Job:
    """One run that is not there yet."""

    recipe: str
    system: str
    data: str
    setting: Setting
    """Protocol and glyphs; empty words: those of the recipe."""
    seed: int
    source: str | None = None
    """READER:PATH of its pictures, if they are not generated."""

    @property
    def name(self) -> str:
        """``hard-mref-authors-merged-authors-drawing-seed0``, as recorded runs are called."""
        glyphs = "" if self.setting.glyphs == "disjoint" else self.setting.glyphs
        drawn = "" if self.setting.drawing == "blend" else f"{self.setting.drawing}-drawing"
        parts = (self.system, self.data, self.setting.protocol, glyphs, drawn, f"seed{self.seed}")
        return "-".join(part for part in parts if part)

    @property
    def protocol(self) -> str | None:
        """Sizes and splits; None: those of the recipe."""
        return self.setting.protocol or None

    @property
    def overrides(self) -> tuple[str, ...]:
        """What the setting changes in the recipe."""
        return (f"data.glyphs={self.setting.glyphs}",) if self.setting.glyphs else ()

    def command(self, overrides: Sequence[str], out: Path) -> str:
        """What a user would type to train it, without the path of the pictures: records are public."""
        told = replace(self, source=f"{self.data}:PATH") if self.source is not None else self
        return shlex.join(told.words(overrides, out))

    def words(self, overrides: Sequence[str], out: Path) -> list[str]:
        """The command word by word, with the path of the pictures."""
        sets = [word for text in (*self.overrides, *overrides) for word in ("--set", text)]
        source = [] if self.source is None else ["--data", self.source]
        protocol = [] if self.protocol is None else ["--protocol", self.protocol]
        chosen = [self.recipe, *source, *protocol, "--seed", str(self.seed)]
        return ["saccade", "train", *chosen, *sets, "--out", str(out)]


def train_missing(
    jobs: Sequence[Job],
    out: Path,
    *,
    side_by_side: int = 1,
    limit: int | None = None,
    device: str = "auto",
    overrides: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> tuple[RecordedRun, ...]:
    """Train, evaluate and record each job under ``out``; runs that were begun there go on, finished ones are kept.

    Args:
        jobs: the runs that a table lacks.
        out: gets ``runs/NAME`` and ``results/NAME.json``.
        side_by_side: how many at a time, each in a process of its own; small networks share a large GPU well.
        limit: test examples; all of them by default.
        device: auto, cpu, cuda, cuda:N or mps.
        overrides: further ``key=value`` texts for every recipe.
        progress: called with what is done and how many jobs there are.

    Raises:
        TrainingStopped: jobs that run side by side have failed; the others are done and recorded.
    """
    waiting = [job for job in jobs if not (out / RESULTS / f"{job.name}.json").is_file()]
    done = itertools.count(len(jobs) - len(waiting))
    scored = _in_turn if side_by_side == 1 else _apart

    def one(job: Job) -> None:
        run = out / RUNS / job.name
        found = scored(job, run, device, overrides, limit)
        save_run_record(found, run, name=job.name, command=job.command(overrides, run), folder=out / RESULTS)
        progress(f"recorded {job.name}", next(done) + 1, len(jobs))

    progress("training", len(jobs) - len(waiting), len(jobs))
    if side_by_side == 1:
        for job in waiting:
            one(job)
    else:
        with ThreadPoolExecutor(side_by_side) as lanes:
            started = {job.name: lanes.submit(one, job) for job in waiting}
        failed = {name: error for name, future in started.items() if (error := future.exception()) is not None}
        if failed:
            raise TrainingStopped("\n".join(f"{name}: {error}" for name, error in failed.items()))
    return recorded_runs(out / RESULTS)


def _in_turn(job: Job, run: Path, device: str, overrides: Sequence[str], limit: int | None) -> Evaluation:
    """Train and evaluate in this process."""
    if (run / "config.yaml").is_file():
        train(out=run, resume=True, device=device, quiet=True)
    else:
        given: dict[str, Any] = {"data": job.source, "protocol": job.protocol, "seed": job.seed}
        train(job.recipe, out=run, overrides=[*job.overrides, *overrides], device=device, quiet=True, **given)
    return evaluate(run, data=job.source, limit=limit, device=device, allow_pack=False)


def _apart(job: Job, run: Path, device: str, overrides: Sequence[str], limit: int | None) -> Evaluation:
    """Train and evaluate in processes of their own, as the command line does."""
    begun = (run / "config.yaml").is_file()
    words = ["train", "--resume", "--out", str(run)] if begun else job.words(overrides, run)[1:]
    _saccade(*words, "--device", device, "--quiet")
    more = [] if limit is None else ["--limit", str(limit)]
    more += [] if job.source is None else ["--data", job.source]
    found: Evaluation = json.loads(_saccade("evaluate", str(run), "--json", "--device", device, *more))
    return found


def _saccade(*words: str) -> str:
    """What a command prints; a TrainingStopped with the last thing it said when it fails."""
    done = subprocess.run([sys.executable, "-m", "saccade", *words], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise TrainingStopped(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"failed: {words}")
    return done.stdout
