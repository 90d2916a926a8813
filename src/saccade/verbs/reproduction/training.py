"""Cells without a run, trained: recipe by recipe, seed by seed, each evaluated in full and recorded."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.engine.recipe import packaged_recipes
from saccade.recorded import RecordedRun, keep, recorded_runs
from saccade.verbs.evaluate import evaluate
from saccade.verbs.reproduction.confirm import Progress
from saccade.verbs.reproduction.table1 import Setting, Table1
from saccade.verbs.train import train

RUNS, RESULTS = "runs", "results"


@dataclass(frozen=True)
class Job:
    """One run that is not there yet."""

    recipe: str
    system: str
    data: str
    setting: Setting
    seed: int

    @property
    def name(self) -> str:
        """``hard-mref-authors-merged-seed0``, as recorded runs are called."""
        glyphs = "" if self.setting.glyphs == "disjoint" else f"-{self.setting.glyphs}"
        return f"{self.system}-{self.data}-{self.setting.protocol}{glyphs}-seed{self.seed}"

    @property
    def overrides(self) -> tuple[str, ...]:
        """What the setting changes in the recipe."""
        return (f"data.glyphs={self.setting.glyphs}",)

    def command(self, overrides: Sequence[str], out: Path) -> str:
        """What a user would type to train it."""
        sets = [word for text in (*self.overrides, *overrides) for word in ("--set", text)]
        words = ["saccade", "train", self.recipe, "--protocol", self.setting.protocol, "--seed", str(self.seed)]
        return shlex.join([*words, *sets, "--out", str(out)])


def missing_jobs(table: Table1, seeds: int) -> list[Job]:
    """The runs that the cells of ``table`` lack of seeds 0 … ``seeds`` − 1, where saccade has a recipe for them."""
    recipes = packaged_recipes()
    jobs = []
    for data in table.data:
        for row in table.rows:
            if (recipe := f"{row.system}-{data}") not in recipes:
                continue
            for setting in table.settings:
                there = {run.seed for run in table.of(row.system, data, setting)}
                jobs += [Job(recipe, row.system, data, setting, seed) for seed in range(seeds) if seed not in there]
    return jobs


def train_missing(
    jobs: Sequence[Job],
    out: Path,
    *,
    limit: int | None = None,
    device: str = "auto",
    overrides: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> tuple[RecordedRun, ...]:
    """Train, evaluate and record each job under ``out``; runs that were begun there go on, finished ones are kept.

    Args:
        jobs: see :func:`missing_jobs`.
        out: gets ``runs/NAME`` and ``results/NAME.json``.
        limit: test examples; all of them by default.
        device: auto, cpu, cuda, cuda:N or mps.
        overrides: further ``key=value`` texts for every recipe.
        progress: called with what is done and how many jobs there are.
    """
    for number, job in enumerate(jobs):
        progress(f"training {job.name}", number, len(jobs))
        record, run = out / RESULTS / f"{job.name}.json", out / RUNS / job.name
        if record.is_file():
            continue
        if (run / "config.yaml").is_file():
            train(out=run, resume=True, device=device, quiet=True)
        else:
            sets = [*job.overrides, *overrides]
            protocol = job.setting.protocol
            train(job.recipe, out=run, protocol=protocol, overrides=sets, seed=job.seed, device=device, quiet=True)
        progress(f"scoring {job.name}", number, len(jobs))
        found = evaluate(run, limit=limit, device=device, allow_pack=False)
        keep(found, run, name=job.name, command=job.command(overrides, run), folder=record.parent)
    return recorded_runs(out / RESULTS)
