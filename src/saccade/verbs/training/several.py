"""Several runs side by side: seeds of one recipe, several recipes, or both; each is an ordinary run folder.

::

    DIR/seed-0 … seed-4           one recipe, ``seeds=5``
    DIR/RECIPE                    several recipes
    DIR/RECIPE/seed-0 …           several recipes, ``seeds=5``
    DIR/runs.json                 which they are, what they were told, how they ended
    DIR/logs/NAME.txt             what each wrote to standard error

Every run has a process of its own, so it is what it would be alone: bit for bit, if it has the same number of CPU
threads (``threads`` in runs.json), because sums on the CPU depend on it.

The seeds are S, S + R, S + 2R, …, where S is the recipe's seed or ``seed``, and R the recipe's ``replicas``: a stack of
R restarts uses the seeds S … S + R − 1 itself, so no restart occurs twice.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.atomic import is_draft, make_folder, write_json, writing
from saccade.checks import check_numbers
from saccade.engine.concurrency import Concurrency, cores, threads_each
from saccade.engine.mps import shared_gpu
from saccade.engine.multi_run_progress import multi_run_progress
from saccade.engine.parallel_runs import ParallelRuns, Run, State
from saccade.engine.progress import ProgressMode
from saccade.engine.stop import Reason
from saccade.errors import ConfigError, DataError, OutputError, SaccadeError
from saccade.lock import locked
from saccade.verbs.training.length import naming
from saccade.verbs.training.plan import (
    LOGS,
    SCHEMA,
    PlannedRun,
    PreviousRuns,
    digest,
    finite,
    make_plan,
    read_runs,
    result_of,
)
from saccade.verbs.training.run import RUNS, Settings, build_task, prepare

if TYPE_CHECKING:
    from saccade.engine.trainer import RunResult
    from saccade.metrics.seeds import Spread

COMMAND = (sys.executable, "-m", "saccade.verbs.training.child")
LOCK = "saccade.lock"
_MAX_SEEDS = 1000


class RunsFailed(SaccadeError):  # noqa: N818 - an outcome more than a mistake
    """Some of several runs failed; ``results`` are those of the others."""

    def __init__(self, text: str, results: list[RunResult]) -> None:
        self.results = results
        super().__init__(text)


@dataclass(frozen=True)
class TrainedRun:
    """One of several runs, and how it ended."""

    name: str
    recipe: str
    seed: int
    out: Path
    state: State
    result: RunResult | None
    """None if it failed or was not begun."""
    metric: str | None
    """What ``score`` is."""
    score: float | None
    """The best validation of the last phase it reached; the last validation where nothing is chosen by."""
    error: str | None
    log: Path
    attempts: int
    used: dict[str, int]
    """Bytes at the peak, of the machine and of the device."""


@dataclass(frozen=True)
class SeveralRuns:
    """What came of several runs."""

    out: Path
    runs: tuple[TrainedRun, ...]
    over_seeds: dict[str, tuple[str, Spread]]
    """By recipe: the metric, and its mean and spread over the seeds that are finished."""
    stopped: Reason | None
    """Why not all of them are finished, if they were stopped."""
    threads: int
    at_once: int
    why: str
    sharing: str

    @property
    def failed(self) -> list[TrainedRun]:
        """Those that ended in an error."""
        return [run for run in self.runs if run.state == "failed"]

    def results(self) -> list[RunResult]:
        """The result of each run, in order.

        Raises:
            RunsFailed: some have none.
        """
        from saccade.engine.trainer import RunResult

        results = [
            run.result or RunResult(run.out, self.stopped or "signal", 0, "", None, {}, 0.0, None, None)
            for run in self.runs
            if run.state != "failed"
        ]
        if self.failed:
            text = "; ".join(f"{run.name}: {run.error} (see {run.log})" for run in self.failed)
            raise RunsFailed(f"{len(self.failed)} of {len(self.runs)} runs failed: {text}", results)
        return results


def train_several(
    recipes: Sequence[str | Path] | None,
    *,
    out: Path | str,
    settings: Settings,
    seeds: int | None = None,
    at_once: int | None = None,
    resume: bool = False,
    accept_changed_data: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    one_device: bool = True,
    progress: ProgressMode = "auto",
) -> SeveralRuns:
    """Train ``recipes`` with ``settings`` and ``seeds`` into folders below ``out``; see the module.

    Everything is checked before anything is written. A run that fails does not end the others.

    Args:
        recipes: names or YAML files; None, with ``resume``: those that ``out`` was begun with.
        out: a new folder; with ``resume`` one that holds several runs.
        settings: for all of them.
        seeds: how many of each recipe; None: one run of each, with its own seed.
        at_once: how many train at the same time; None: as many as cores and memory allow.
        resume: go on with what is not finished; more seeds and recipes than before are begun.
        accept_changed_data: with ``resume``, go on although the data changed.
        max_minutes: stop all of them cleanly after this long.
        device: auto, cpu, cuda, cuda:N or mps; all runs share it.
        one_device: whether a run asks for one device on one machine; more are refused.
        progress: ``auto`` shows a line for each run on a terminal and plain lines elsewhere.
    """
    if not one_device:
        raise ConfigError("several runs train on one device each: leave out `devices` and `nodes`, or train one by one")
    check_numbers(least=1, most=_MAX_SEEDS, seeds=seeds, at_once=at_once)
    if max_minutes is not None and not max_minutes > 0:
        raise ConfigError(f"max_minutes must be above 0, found {max_minutes}")
    if accept_changed_data and not resume:
        raise ConfigError("changed data can be accepted for resumed runs only: add `resume=True`")
    folder, settings = Path(out), settings.anywhere()
    before = read_runs(folder) if resume else None
    if recipes is None:
        if before is None:
            raise ConfigError("no recipe: name one or more (see 'saccade list recipes')")
        if settings != Settings() or seeds is not None:
            raise ConfigError("resumed runs keep their recipes: leave out `seeds`, `overrides`, `data` and the like")
        recipes, settings, seeds = before.recipes, before.settings, before.seeds
    plan = make_plan(recipes, settings, seeds, folder)
    if before is None:
        _check_free(folder)
    else:
        before.check_same(plan, settings)
    return _Several(folder, plan, settings, seeds, before, accept_changed_data).train(
        at_once=at_once, max_minutes=max_minutes, device=device, progress=progress
    )


class _Several:
    """The runs of one call."""

    def __init__(
        self,
        folder: Path,
        plan: list[PlannedRun],
        settings: Settings,
        seeds: int | None,
        before: PreviousRuns | None,
        accept_changed_data: bool,
    ) -> None:
        self.folder, self.plan, self.settings, self.seeds, self.before = folder, plan, settings, seeds, before
        self.accept_changed_data = accept_changed_data
        self.runs = [planned.run for planned in plan]
        self._by_name = {planned.run.name: planned for planned in plan}
        self._metrics: dict[str, dict[str, str]] = {}  # recipe → phase → what is chosen by
        if before is not None:
            before.restore(self.runs)

    def train(
        self, *, at_once: int | None, max_minutes: float | None, device: str, progress: ProgressMode
    ) -> SeveralRuns:
        """Get ready, check, train, sum up."""
        waiting = sum(run.state == "waiting" for run in self.runs)
        self.threads = self._threads(at_once)
        shares_gpu = waiting > 1 and at_once != 1 and device.partition(":")[0] in ("auto", "cuda")
        with ExitStack() as held:
            environment: dict[str, str] = {}
            self.sharing = ""
            if shares_gpu:
                environment, self.sharing = held.enter_context(shared_gpu())
            shown = multi_run_progress(progress, [run.name for run in self.runs])
            children = ParallelRuns(
                self.runs,
                command=COMMAND,
                job=self._job,
                environment={"OMP_NUM_THREADS": str(self.threads), **environment},
                on_event=lambda run, event: shown.event(None if run is None else run.name, event),
                changed=self._write,
            )
            held.callback(children.end)
            children.start_children(min(at_once or cores(), cores()))
            chosen = self._check(device)
            on_gpu = chosen.startswith("cuda")
            self.sharing = self.sharing if on_gpu else ""
            self.at_once = Concurrency(waiting, chosen=at_once, measured_first=on_gpu, available=cores())
            make_folder(self.folder)
            held.enter_context(locked(self.folder / LOCK, f"trains several runs into {self.folder}"))
            held.enter_context(shown)
            shown.event(None, {"event": "note", "text": self._in_words() if waiting else "all runs are finished"})
            self.stopped = children.train(self.at_once, chosen, max_minutes)
            self._write()
        return self._summed_up()

    def _threads(self, at_once: int | None) -> int:
        """Threads of each run: as before, as the environment says, or a share of the cores."""
        if self.before is not None:
            return self.before.threads
        said = os.environ.get("OMP_NUM_THREADS", "")
        return int(said) if said.isdigit() and int(said) else threads_each(len(self.runs), at_once, cores())

    def _job(self, run: Run) -> dict[str, Any]:
        planned = self._by_name[run.name]
        goes_on = self.before is not None or run.attempts > 0
        resume = goes_on and run.is_begun
        settings = Settings() if resume else replace(self.settings, seed=planned.seed)
        return {
            "recipe": None if resume else planned.recipe,
            "settings": asdict(settings),
            "out": str(run.folder),
            "resume": resume,
            "accept_changed_data": resume and self.accept_changed_data,
        }

    def _check(self, device: str) -> str:
        """Build what every recipe asks for, so that a mistake in the last is found before the first begins."""
        from saccade.devices import pick_device
        from saccade.engine.learner import Learner
        from saccade.engine.phase_plans import phase_plans

        chosen = pick_device(device)
        recipes = {each.run.recipe: each for each in self.plan}
        for label, planned in recipes.items():
            with naming(planned.recipe, [*recipes]), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the run itself says it
                if self.before is None:
                    task, _ = prepare(planned.recipe, replace(self.settings, seed=planned.seed), out=planned.run.folder)
                else:
                    task = build_task(planned.resolved)
                phases = phase_plans(task, planned.resolved, Learner(task.model)).phases
            first = next(iter(task.metric_names()))
            self._metrics[label] = {phase.name: phase.select.metric if phase.select else first for phase in phases}
        return device if device != "auto" or chosen.type != "cuda" else "cuda"

    def _in_words(self) -> str:
        threads = f"{self.threads} CPU thread{'s' * (self.threads > 1)} each"
        shared = f"; they share the GPU {self.sharing}" if self.sharing else ""
        return f"{len(self.runs)} runs, {self.at_once.limit} at once: {self.at_once.why}; {threads}{shared}"

    def _trained(self, planned: PlannedRun) -> TrainedRun:
        run = planned.run
        result = result_of(run)
        metric = score = None
        if result is not None:
            metric = self._metrics.get(run.recipe, {}).get(result.phase)
            score = result.best.value if result.best is not None else result.validation.get(metric or "")
        seed = planned.resolved.seed if planned.seed is None else planned.seed
        told = (run.state, result, metric, score, run.error, run.log, run.attempts, dict(run.used))
        return TrainedRun(run.name, run.recipe, seed, run.folder, *told)

    def _over_seeds(self, runs: Sequence[TrainedRun]) -> dict[str, tuple[str, Spread]]:
        from saccade.metrics.seeds import spread

        found: dict[str, tuple[str, dict[int, float]]] = {}
        for run in runs:
            if run.state == "finished" and run.metric is not None and run.score is not None and run.score == run.score:
                found.setdefault(run.recipe, (run.metric, {}))[1][run.seed] = run.score
        return {recipe: (metric, spread(values)) for recipe, (metric, values) in found.items()}

    def _write(self) -> None:
        """Write runs.json as things stand."""
        runs = [self._trained(planned) for planned in self.plan]
        document = {
            "schema_version": SCHEMA,
            "recipes": {
                planned.run.recipe: {"recipe": planned.recipe, "digest": digest(planned.resolved)}
                for planned in self.plan
            },
            "settings": asdict(self.settings),
            "seeds": self.seeds,
            "threads": self.threads,
            "at_once": {"count": self.at_once.limit, "why": self.at_once.why},
            "sharing": self.sharing,
            "runs": [
                {
                    "name": run.name,
                    "recipe": run.recipe,
                    "seed": run.seed,
                    "state": run.state,
                    "metric": run.metric,
                    "score": run.score,
                    "result": {name: each for name, each in (planned.run.result or {}).items() if name != "event"}
                    or None,
                    "error": run.error,
                    "log": run.log.relative_to(self.folder).as_posix() if run.log.is_file() else None,
                    "attempts": run.attempts,
                    "used": run.used,
                }
                for run, planned in zip(runs, self.plan)
            ],
            "over_seeds": {
                recipe: {"metric": metric, **asdict(found)}
                for recipe, (metric, found) in self._over_seeds(runs).items()
            },
        }
        write_json(self.folder / RUNS, finite(document))

    def _summed_up(self) -> SeveralRuns:
        runs = tuple(self._trained(planned) for planned in self.plan)
        if all(run.state == "failed" for run in runs) and not any(run.is_begun for run in self.runs):
            self._discard()  # all were refused for their input: a mistake leaves nothing behind
            raise DataError(runs[0].error or "every run was refused")
        told = (self._over_seeds(runs), self.stopped, self.threads, self.at_once.limit, self.at_once.why, self.sharing)
        return SeveralRuns(self.folder, runs, *told)

    def _discard(self) -> None:
        with writing(self.folder):
            (self.folder / RUNS).unlink(missing_ok=True)
        shutil.rmtree(self.folder / LOGS, ignore_errors=True)
        for place in (*{run.folder.parent for run in self.runs} - {self.folder}, self.folder):
            with suppress(OSError):
                place.rmdir()  # what holds something stays


def _check_free(folder: Path) -> None:
    """Refuse a place that holds something."""
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder} is a file; `out` needs a folder")
        found = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    if [name for name in found if name != LOCK and not is_draft(name)]:
        raise OutputError(f"{folder} is not empty; continue it with `resume=True`, or choose another `out`")
