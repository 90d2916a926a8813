"""The training loop: a task and a recipe in, a run folder out.

From top to bottom: `fit` picks device and processes, `Run.set_up` makes everything ready, and then ::

    for phase in phases:                                              Run.train
        for step in steps:                                            Run.train_phase
            batch, forward, loss, backward, optimiser, average        TrainStep
            log, validate, save a checkpoint, stop?

A checkpoint is written *after* the validation of its step, so resuming from it repeats and skips nothing.
"""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from saccade.config import to_dict
from saccade.engine.checkpoint import Best, Checkpoint, Position, capture_rng, isolated_rng, pack, seed_all
from saccade.engine.cuda_graph import GraphedStep
from saccade.engine.hardware import agree, explain_lost_rank, gather_rng, on_rank_zero, pick_hardware, shutdown
from saccade.engine.journal import Journal, ProgressMode, StopRequest
from saccade.engine.loggers import Logger, open_loggers
from saccade.engine.phases import apply_phase, build_optimizer, make_learner, plan_phases, train_mode
from saccade.engine.recipe import Phase, Recipe
from saccade.engine.replicas import compare_replicas
from saccade.engine.run_folder import RunFolder, made_with, versions
from saccade.engine.step import Fault, TrainStep, WeightAverage
from saccade.errors import ConfigError, DataError, TrainingStopped
from saccade.files import folder_in_place

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from saccade.tasks.task import Task

Stopped = Literal["finished", "early", "time", "signal"]


@dataclass
class RunResult:
    """How a run ended; not frozen, because Fabric refuses such results of spawned processes."""

    out: Path
    #: 'finished', 'early' (patience ran out in the last phase), 'time' or 'signal' (both can be resumed)
    stopped: Stopped
    step: int
    phase: str
    best: Best | None  #: best validation of the last phase reached
    validation: dict[str, float]  #: the last validation
    seconds: float
    checkpoint: Path | None
    model: Path | None
    compared: str = ""  #: how the model stands beside its best rival on the validation split, where that is cheap
    described: str = ""  #: whether it can tell unlike inputs, and whether its confidences are calibrated


def fit(
    task: Task,
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    accept_changed_data: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    strategy: str = "auto",
    progress: ProgressMode = "auto",
    loggers: Sequence[str | Logger] = (),
) -> RunResult:
    """Train ``task`` by ``recipe`` into the run folder ``out``.

    The task's model is trained in place unless processes are spawned. With ``resume``, a run goes on from its newest
    whole checkpoint, bit for bit on the CPU.
    """
    chosen = open_loggers((*loggers, "tensorboard") if recipe.tensorboard else loggers)
    folder = RunFolder(Path(out), keep_checkpoints=recipe.keep_checkpoints)
    fabric = pick_hardware(recipe, device, devices, nodes, strategy)
    run = TrainingRun(task, recipe, folder, resume, accept_changed_data, max_minutes, progress, chosen)
    result: RunResult = fabric.launch(run)
    return result


@dataclass(eq=False)
class TrainingRun:
    """One run: each process that is launched with it sets it up and trains."""

    task: Task
    recipe: Recipe
    folder: RunFolder
    goes_on: bool
    accept_changed_data: bool
    max_minutes: float | None
    progress: ProgressMode
    loggers: Sequence[Logger]

    def __call__(self, fabric: Fabric) -> RunResult:
        """Lock the folder, set everything up, train, and part."""
        recipe, folder, asked_to_resume = self.recipe, self.folder, self.goes_on
        with ExitStack() as stack:  # holds the lock, in the first process
            run_with = {"seed": recipe.seed, "device": str(fabric.device), "processes": fabric.world_size}
            self.goes_on = on_rank_zero(fabric, lambda: folder.open(stack, recipe, run_with, resume=asked_to_resume))
            if fabric.world_size > 1:  # spawned processes are born with their weights in shared memory
                for tensor in (*self.task.model.parameters(), *self.task.model.buffers()):
                    tensor.data = tensor.data.clone()
            # Before the seed: importing rich draws a number.
            writes = fabric.is_global_zero
            self.journal = Journal(folder, self.progress, writes=writes, loggers=self.loggers if writes else ())
            seed_all(recipe.seed, rank=fabric.global_rank)
            with explain_lost_rank(fabric), StopRequest(self.max_minutes) as self.stop, self.journal:
                try:
                    if asked_to_resume and not self.goes_on:
                        self.journal.say("nothing to resume: the run had no checkpoint yet; it begins anew")
                    self.set_up(fabric)
                    with isolated_rng(recipe.seed, fabric.device):  # a package may draw numbers
                        on_rank_zero(fabric, lambda: self.journal.start_loggers(to_dict(recipe)))
                    result = self.train()
                except (ConfigError, DataError):
                    if fabric.is_global_zero and not self.goes_on:
                        folder.discard_if_unstarted()
                    raise
            del self.step  # what wraps the model goes before the processes part
            shutdown(fabric)
        return result

    def set_up(self, fabric: Fabric) -> None:
        """Make ready: data, model, average, phases, and where a run that goes on stands."""
        task, recipe, folder = self.task, self.recipe, self.folder
        self.fabric = fabric
        task.on_progress = self.journal.preparing
        data, accepted, changes = on_rank_zero(
            fabric, lambda: folder.compare_data(task.data_parts(), resume=self.goes_on, accept=self.accept_changed_data)
        )
        task.to(fabric.device)
        self.learner = make_learner(task, recipe, fabric.device)
        state = self.learner.model.state_dict(keep_vars=True)  # the tensors themselves, running statistics among them
        self.ema = WeightAverage(state, recipe.ema) if recipe.ema is not None else None
        # The moving average in place of the weights, for the length of a block.
        self.averaged = nullcontext if self.ema is None else self.ema.applied
        parts = recipe.accumulate * fabric.world_size
        self.micro_batch, left = divmod(recipe.batch_size, parts)
        if left:
            raise ConfigError(
                f"batch_size {recipe.batch_size} cannot be split into accumulate × processes = {parts} equal parts"
            )
        self.epoch, self.phases, self.losses = plan_phases(task, recipe, self.learner)
        self.at = Position()
        self._loaded: Checkpoint | None = None
        self._saved: Path | None = None
        self._started, self._seconds_before = time.monotonic(), 0.0
        if self.goes_on:
            self.resume()
        self._was_over = self.is_over
        # Changes of the data that were accepted since the run began, in words.
        self.data_changes = (*accepted, *(f"from step {self.at.step} on: {change}" for change in changes))
        if changes:
            self.journal.say(f"warning: the data changed, which was accepted: {'; '.join(changes)}")
        if fabric.is_global_zero and (changes or not self.goes_on):
            folder.note_data(data, self.data_changes)

    def resume(self) -> None:
        """Take up the newest whole checkpoint."""
        checkpoint, problems = self.folder.checkpoints.load_newest()
        for problem in problems:
            self.journal.say(f"warning: {problem}; falling back to an earlier checkpoint")
        self.at = checkpoint.position(len(self.phases))
        self._seconds_before = self.at.seconds
        checkpoint.restore_model(self.learner, self.ema)
        self._loaded, self._saved = checkpoint, checkpoint.path
        on_rank_zero(self.fabric, lambda: self.folder.rewind(self.at.step))
        self.journal.say(f"resumed at step {self.at.step} from {checkpoint.path}")

    @property
    def is_over(self) -> bool:
        """Whether the last phase has ended."""
        return self.at.phase_ended is not None and self.at.phase == len(self.phases) - 1

    def train(self) -> RunResult:
        """Go through the phases from wherever the run stands."""
        if self.fabric.is_global_zero and self.at.step == 0 and (described := self.task.summary()):
            summary, *doubts = described.splitlines()
            epoch = "" if self.epoch is None else f"; an epoch is {self.epoch:,} step{'s' if self.epoch != 1 else ''}"
            for line in (summary + epoch, *doubts):
                self.journal.say(line)
        while (interrupted := self.train_phase(phase := self.phases[self.at.phase])) is None and not self.is_over:
            self.at = self.at.next_phase()
            if self.ema is not None:
                self.ema.adopt()  # what was validated is what goes on, in frozen parts above all
        stopped: Stopped = "early" if self.at.phase_ended == "early" else "finished"
        if self.is_over:
            self._complete_model(phase)
            for replica in range(self.learner.replicas if self.learner.replicas > 1 else 0):
                self.publish(replica, self.at.validation, self.folder.path / "replicas" / str(replica))
            self.journal.say(f"{stopped} after step {self.at.step} in {self.seconds():.1f} s")
        elif interrupted is not None:
            stopped = interrupted
            how = "SIGINT or SIGTERM" if stopped == "signal" else "the time limit"
            again = f"saccade train --resume --out {shlex.quote(str(self.folder.path))}"
            self.journal.say(f"stopped by {how} after step {self.at.step}; continue with: {again}")
        return RunResult(
            out=self.folder.path,
            stopped=stopped,
            step=self.at.step,
            phase=phase.name,
            best=self.at.best,
            validation=self.at.validation,
            seconds=self.seconds(),
            checkpoint=self._saved,
            model=self.folder.model if self.folder.model.is_dir() else None,
        )

    def train_phase(self, phase: Phase) -> Stopped | None:
        """Take the steps of a phase that are left, and return why it was interrupted, if it was."""
        self._begin_phase(phase)
        if self.at.phase_ended is not None:
            return None
        total = phase.total_steps(self.epoch)
        self.journal.begin(phase.name, self.at.phase_step, total, self.recipe.batch_size)
        batches = self._batches(phase)
        self._mark = (time.monotonic(), self.at.step)
        interrupted: Stopped | None = None
        while self.at.phase_step < total and self.at.phase_ended is None and interrupted is None:
            micro = [next(batches) for _ in range(self.recipe.accumulate)]
            lr = phase.optimizer.lr * phase.schedule.scale(self.at.phase_step, total=total, steps_per_epoch=self.epoch)
            fault = self.step(micro, lr)
            if fault is not None:
                raise self._broken(phase, fault, micro)
            self.at.step += 1
            self.at.phase_step += 1
            self.at.batches += len(micro)

            is_last = self.at.phase_step == total
            validates = is_last or self.at.phase_step % phase.validation_steps(self.epoch) == 0
            saves = self.at.step % self.recipe.checkpoint_every == 0
            interrupted = agree(self.fabric, self.stop.reason(), self.at.step, is_last=is_last)
            if validates or saves or interrupted is not None or self.at.step % self.recipe.log_every == 0:
                self.log(phase, lr)
            if validates:
                if phase.refits_at(self.at.phase_step, self.epoch):
                    self._refit(phase)
                saves |= self.validate(phase)
            self.journal.advance(self.at.phase_step)
            if (saves or interrupted is not None) and not (is_last or self.at.phase_ended):
                self.save()
            if validates or saves:
                self._mark = (time.monotonic(), self.at.step)  # neither counts as training speed
        if self.at.phase_step < total and self.at.phase_ended is None:
            return interrupted
        self.at.phase_ended = self.at.phase_ended or "finished"
        if phase.restore_best and self.at.best is not None and self.at.best.step != self.at.step:
            self.folder.checkpoints.load_step(self.at.best.step).restore_model(self.learner, self.ema)
        if phase.refit is not None:
            self._refit(phase)
            self.at.best = None  # of the phase as it is now
            self.validate(phase)
        self.save()
        return interrupted

    def _begin_phase(self, phase: Phase) -> None:
        """What learns, its optimiser and its step; in a run that was resumed, all as it was saved."""
        fabric, checkpoint = self.fabric, self._loaded
        self.parameters = apply_phase(self.learner, phase)
        graphed = self.recipe.graph and fabric.device.type == "cuda" and fabric.world_size == 1
        self.optimizer = build_optimizer(phase.optimizer, list(self.parameters.values()), capturable=graphed)
        if checkpoint is not None:
            checkpoint.restore_optimizer(self.optimizer, self.parameters)
        module, optimizer = fabric.setup(self.learner, self.optimizer)
        self.step = (GraphedStep if graphed else TrainStep)(
            self.task,
            self.learner,
            phase,
            self.losses[self.at.phase],
            self.parameters,
            fabric=fabric,
            module=module,
            optimizer=optimizer,
            ema=self.ema,
            first_step=self.at.step,
        )
        train_mode(self.learner, phase)
        self._loaded = None
        if checkpoint is None:
            if phase.refit is not None:
                self.task.training_split(phase.data, phase.features)  # opened now, as the weights are frozen
                self._refit(phase)
            if self.at.step == 0:
                self.save()  # so that there is a good state from the first step on
            return
        if fabric.world_size > 1 and self.at.phase_step and self.at.phase_ended is None:
            self.step.arrange_buckets(next(self._batches(phase)))
        if not checkpoint.restore_rng(fabric.global_rank, fabric.device):  # more ranks than when it was saved
            seed_all(self.recipe.seed + self.at.step, rank=fabric.global_rank)

    def _refit(self, phase: Phase) -> None:
        """Let the task fit the classifier to the present weights."""
        self.task.refit(self.learner.model)
        train_mode(self.learner, phase)

    def _batches(self, phase: Phase) -> Iterator[Any]:
        return iter(
            self.task.train_batches(
                self.at.batches,
                batch_size=self.micro_batch,
                rank=self.fabric.global_rank,
                world_size=self.fabric.world_size,
                data=phase.data,
                features=phase.features,
            )
        )

    def log(self, phase: Phase, lr: float) -> None:
        """Read the sums of the last steps and write them down."""
        means = self.step.drain()
        self._stop_if_faulty()
        now, (then, step) = time.monotonic(), self._mark
        self._mark = (now, self.at.step)
        rate = (self.at.step - step) * self.recipe.batch_size / max(now - then, 1e-9)
        values = {name: statistics.fmean(numbers) for name, numbers in means.items()} | {"lr": lr}
        replicas = means if self.learner.replicas > 1 else None
        self.journal.record("train", self.at.step, phase.name, values, self.seconds(), replicas=replicas, rate=rate)

    def validate(self, phase: Phase) -> bool:
        """Validate every replica; publish the weights if they are the best of the phase, and say whether."""
        with self.averaged():
            metrics = on_rank_zero(self.fabric, self._measure)
        train_mode(self.learner, phase)
        winner, self.at.validation, replicas = 0, metrics[0], None
        if len(metrics) > 1:
            winner, self.at.validation, replicas = compare_replicas(metrics, phase.select)
        self.journal.record(
            "validation", self.at.step, phase.name, self.at.validation, self.seconds(), replicas=replicas
        )
        if phase.select is None:
            return False
        still_gains = self.at.note_beside(phase.select, metrics[winner])
        if phase.select.beats(metrics[winner], self.at.best.metrics if self.at.best else None):
            score = metrics[winner].get(phase.select.metric, math.nan)
            self.at.best, self.at.stale = Best(score, self.at.step, winner, metrics[winner]), 0
            self.publish(winner, metrics[winner])
            return True
        self.at.stale = 0 if still_gains else self.at.stale + 1
        if phase.patience is not None and self.at.stale >= phase.patience:
            self.at.phase_ended = "early"
            names = " or ".join(filter(None, (phase.select.metric, phase.select.beside)))
            so_long = f"{self.at.stale} validation{'s' if self.at.stale != 1 else ''}"
            self.journal.say(f"{phase.name}: no better {names} for {so_long}, ending it")
        return False

    def _measure(self) -> list[dict[str, float]]:
        """The task's metrics of each replica, in eval mode and on a random stream of its own."""
        metrics = []
        for index in range(self.learner.replicas):
            model = self.learner.replica(index).eval()
            with torch.no_grad(), isolated_rng(self.recipe.seed, self.fabric.device):
                metrics.append({name: float(value) for name, value in self.task.validate(model).items()})
        return metrics

    def save(self) -> None:
        """Write a checkpoint."""
        self._stop_if_faulty()
        self.at.seconds = self.seconds()
        rng = gather_rng(self.fabric, capture_rng(self.fabric.device))
        tensors, facts = pack(self.at, self.learner, self.optimizer, self.parameters, self.ema, rng)
        facts["versions"] = versions()
        protect = [self.at.best.step] if self.at.best else []
        self._saved = on_rank_zero(
            self.fabric, lambda: self.folder.checkpoints.save(self.at.step, tensors, facts, protect=protect)
        )

    def publish(self, replica: int, metrics: dict[str, float], folder: Path | None = None) -> None:
        """Let the task write the model folder, beside its place and then there as a whole."""
        facts = {
            "recipe": to_dict(self.recipe),
            "step": self.at.step,
            "phase": self.phases[self.at.phase].name,
            "replica": replica,
            "metrics": metrics,
            "minutes": round(self.seconds() / 60, 2),
            **made_with(self.fabric.device),
        }
        facts |= {"data_changes": list(self.data_changes)} if self.data_changes else {}

        def write() -> None:
            with folder_in_place(folder or self.folder.model) as draft:
                self.task.save_model(self.learner.replica(replica), draft, facts)

        with self.averaged():
            on_rank_zero(self.fabric, write)

    def _complete_model(self, phase: Phase) -> None:
        """At the end the model folder holds the best weights, or the last ones; a run that went on may lack it."""
        if phase.select is None and not self._was_over:
            self.publish(0, self.at.validation)
        elif self.goes_on and not on_rank_zero(self.fabric, self.folder.model.is_dir):
            best, step = self.at.best, self.at.step
            self.journal.say(f"the model is written again, from step {best.step if best else step}")
            if best is not None and best.step != step:
                self.folder.checkpoints.load_step(best.step).restore_model(self.learner, self.ema)
                self.at.step = best.step  # as its facts have it
            self.publish(best.replica if best else 0, best.metrics if best else self.at.validation)
            self.at.step = step

    def _stop_if_faulty(self) -> None:
        """Stop if the device remembers a non-finite gradient (on the CPU it never gets that far)."""
        if self.fabric.device.type != "cpu" and (fault := self.step.fault()) is not None:
            raise self._broken(self.phases[self.at.phase], fault, [])

    def _broken(self, phase: Phase, fault: Fault, micro: list[Any]) -> TrainingStopped:
        where = fault.describe(phase.name, self.learner, [self.task.inputs(batch) for batch in micro])
        text = (
            f"training stopped at {where}. The last good state is {self._saved}. Try a lower learning rate, a "
            "clip_norm, or look at the data of that step"
        )
        if self.fabric.is_global_zero:
            self.folder.log(text)  # who waits for the run is told by the error
        return TrainingStopped(text)

    def seconds(self) -> float:
        """Spent training, over all sittings."""
        return self._seconds_before + time.monotonic() - self._started
