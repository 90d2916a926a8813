"""The training loop: phases, steps, validation, checkpoints, in the order that makes resuming exact.

After every step: log, validate, save, check whether to stop. So a checkpoint is always written *after* the validation
of its step, and resuming from it repeats nothing and skips nothing.
"""

from __future__ import annotations

import shlex
import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from saccade.config import to_dict
from saccade.engine.checkpoint import Checkpoint
from saccade.engine.ema import WeightAverage
from saccade.engine.hardware import gather_rng, is_full_precision, max_over_ranks, run_on_rank_zero
from saccade.engine.health import Fault, TrainingStopped, origin
from saccade.engine.phases import apply_phase, build_optimizer, phase_plans, train_mode
from saccade.engine.progress import Reporter
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Phase, Recipe
from saccade.engine.replicas import Learner, ReplicaStack
from saccade.engine.run_folder import RunFolder, machine, versions
from saccade.engine.seeding import capture_rng, restore_rng, seed_all
from saccade.engine.state import Best, Position, pack, unpack_model, unpack_optimizer, unpack_position, unpack_rng
from saccade.engine.step import GraphedStep, TrainStep
from saccade.engine.stop import StopRequest
from saccade.engine.validation import best_replica, by_replica, measure, publish_model, summary
from saccade.errors import ConfigError, SaccadeError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Stopped = Literal["finished", "early", "time", "signal"]
STOP_CODES: dict[int, Stopped | None] = {0: None, 1: "time", 2: "signal"}
AGREE_EVERY = 16  # steps between two looks at each other's stop requests, with several processes


@dataclass
class RunResult:
    """How a run ended; not frozen, because Fabric refuses such results of spawned processes."""

    out: Path
    stopped: Stopped
    """'finished', 'early' (patience ran out in the last phase), 'time' or 'signal' (both can be resumed)"""
    step: int
    phase: str
    best: Best | None
    """best validation of the last phase reached"""
    validation: dict[str, float]
    """the last validation"""
    seconds: float
    checkpoint: Path | None
    model: Path | None


class Trainer:
    """One run in one process."""

    def __init__(
        self,
        fabric: Fabric,
        task: Trainable,
        recipe: Recipe,
        folder: RunFolder,
        reporter: Reporter,
        stop: StopRequest,
    ) -> None:
        self.fabric, self.task, self.recipe = fabric, task, recipe
        self.folder, self.reporter, self.stop = folder, reporter, stop
        task.on_progress = reporter.preparing
        task.to(fabric.device)
        self.learner = self._make_learner().to(fabric.device)
        state = self.learner.model.state_dict(keep_vars=True)  # the tensors themselves, running statistics among them
        self.ema = WeightAverage(state, recipe.ema) if recipe.ema is not None else None
        self.micro_batch = self._micro_batch()
        self.board = self._make_board() if recipe.tensorboard and fabric.is_global_zero else None
        self.epoch, self.phases, self.losses = phase_plans(task, recipe, self.learner)
        self.at = Position()
        self.data_changes: tuple[str, ...] = ()
        """Changes of the data that were accepted since the run began, in words."""
        self._loaded: Checkpoint | None = None
        self._is_resumed = self._was_over = False
        self._saved: Path | None = None
        self._started = time.monotonic()
        self._seconds_before = 0.0

    def resume(self) -> None:
        """Take up the newest whole checkpoint of the run folder."""
        checkpoint, problems = self.folder.checkpoints.load_newest()
        for problem in problems:
            self.say(f"warning: {problem}; falling back to an earlier checkpoint")
        self.at = unpack_position(checkpoint, len(self.phases))
        self._seconds_before = self.at.seconds
        unpack_model(checkpoint, self.learner, self.ema)
        self._loaded, self._saved, self._is_resumed = checkpoint, checkpoint.path, True
        run_on_rank_zero(self.fabric, lambda: self.folder.rewind(self.at.step))
        self.say(f"resumed at step {self.at.step} from {checkpoint.path}")

    def run(self) -> RunResult:
        """Go through the phases from wherever the run stands."""
        stopped: Stopped = "finished"
        if self.fabric.is_global_zero and self.at.step == 0 and (described := self.task.summary()):
            summary, *doubts = described.splitlines()
            epoch = "" if self.epoch is None else f"; an epoch is {self.epoch:,} step{'s' if self.epoch != 1 else ''}"
            for line in (summary + epoch, *doubts):
                self.say(line)
        self._was_over = self.at.phase_ended is not None and self.at.phase == len(self.phases) - 1
        while True:
            phase = self.phases[self.at.phase]
            interrupted = self._run_phase(phase)
            is_over = self.at.phase_ended is not None and self.at.phase == len(self.phases) - 1
            if interrupted is not None and not is_over:
                stopped = interrupted
                how = "SIGINT or SIGTERM" if stopped == "signal" else "the time limit"
                again = f"saccade train --resume --out {shlex.quote(str(self.folder.path))}"
                self.say(f"stopped by {how} after step {self.at.step}; continue with: {again}")
                break
            if is_over:
                stopped = "early" if self.at.phase_ended == "early" else "finished"
                self._complete_model(phase)
                self._publish_replicas()
                self.say(f"{stopped} after step {self.at.step} in {self._seconds():.1f} s")
                break
            self.at = self.at.next_phase()
            if self.ema is not None:
                self.ema.adopt()  # what was validated is what goes on, in frozen parts above all
        if self.board is not None:
            self.board.close()
        model = self.folder.model if self.folder.model.is_dir() else None
        return RunResult(
            out=self.folder.path,
            stopped=stopped,
            step=self.at.step,
            phase=phase.name,
            best=self.at.best,
            validation=self.at.validation,
            seconds=self._seconds(),
            checkpoint=self._saved,
            model=model,
        )

    def _run_phase(self, phase: Phase) -> Stopped | None:
        """Run one phase to its end or to an interruption, and return why it was interrupted."""
        self.parameters = apply_phase(self.learner, phase)
        graphed = self.recipe.graph and self.fabric.device.type == "cuda" and self.fabric.world_size == 1
        self.optimizer = build_optimizer(phase.optimizer, list(self.parameters.values()), capturable=graphed)
        checkpoint, self._loaded = self._loaded, None
        if checkpoint is not None:
            unpack_optimizer(checkpoint, self.optimizer, self.parameters)
        module, optimizer = self.fabric.setup(self.learner, self.optimizer)
        if is_full_precision(self.fabric):  # then the wrapper only puts a hook on each output: much, for a small model
            module = self.learner
        kind = GraphedStep if graphed else TrainStep
        self.step = kind(
            self.task,
            self.learner,
            phase,
            self.losses[self.at.phase],
            self.parameters,
            fabric=self.fabric,
            module=module,
            optimizer=optimizer,
            ema=self.ema,
            first_step=self.at.step,
        )
        train_mode(self.learner, phase)
        if checkpoint is not None:
            if self.fabric.world_size > 1 and self.at.phase_step and self.at.phase_ended is None:
                self.step.arrange_buckets(next(self._batches(phase)))
            self._restore_rng(checkpoint)
        elif self.at.step == 0:
            self._save()  # so that there is a good state from the first step on
        if self.at.phase_ended is not None:
            return None
        total = phase.total_steps(self.epoch)
        self.reporter.begin(phase.name, self.at.phase_step, total, self.recipe.batch_size)
        batches = self._batches(phase)
        self._mark = (time.monotonic(), self.at.step)
        interrupted: Stopped | None = None
        while self.at.phase_step < total and self.at.phase_ended is None:
            interrupted = self._one_step(phase, batches, total)
            if interrupted is not None:
                break
        if self.at.phase_step < total and self.at.phase_ended is None:
            return interrupted
        self.at.phase_ended = self.at.phase_ended or "finished"
        if phase.restore_best and self.at.best is not None and self.at.best.step != self.at.step:
            unpack_model(self.folder.checkpoints.load_step(self.at.best.step), self.learner, self.ema)
        self._save()
        return interrupted

    def _one_step(self, phase: Phase, batches: Iterator[object], total: int) -> Stopped | None:
        """One step and everything that may follow it."""
        micro = [next(batches) for _ in range(self.recipe.accumulate)]
        scale = phase.schedule.scale(self.at.phase_step, total=total, steps_per_epoch=self.epoch)
        fault = self.step(micro, phase.optimizer.lr * scale)
        if fault is not None:
            raise self._broken(phase, fault, micro)
        self.at.step += 1
        self.at.phase_step += 1
        self.at.batches += len(micro)
        is_last = self.at.phase_step == total
        validates = is_last or self.at.phase_step % phase.validation_steps(self.epoch) == 0
        saves = self.at.step % self.recipe.checkpoint_every == 0
        interrupted = self._interruption(is_last)
        if validates or saves or interrupted is not None or self.at.step % self.recipe.log_every == 0:
            self._log(phase, phase.optimizer.lr * scale)
        if validates:
            saves |= self._validate(phase)
        self.reporter.advance(self.at.phase_step)
        if (saves or interrupted is not None) and not (is_last or self.at.phase_ended):
            self._save()  # the end of a phase is saved by _run_phase
        if validates or saves:
            self._mark = (time.monotonic(), self.at.step)  # neither counts as training speed
        return interrupted

    def _validate(self, phase: Phase) -> bool:
        """Validate every replica; publish the weights if they are the best of the phase, and say whether."""
        with self._averaged():
            found = run_on_rank_zero(
                self.fabric, lambda: measure(self.task, self.learner, self.recipe.seed, self.fabric.device)
            )
        train_mode(self.learner, phase)
        self.at.validation = summary(found)
        self._record(phase, "validation", self.at.validation, by_replica(found))
        if phase.select is None:
            return False
        winner, score = best_replica(found, phase.select)
        still_gains = self.at.note_beside(phase.select, found[winner])
        if phase.select.beats(found[winner], self.at.best.metrics if self.at.best else None):
            self.at.best, self.at.stale = Best(score, self.at.step, winner, found[winner]), 0
            self._publish(winner, found[winner])
            return True
        self.at.stale = 0 if still_gains else self.at.stale + 1
        if phase.patience is not None and self.at.stale >= phase.patience:
            self.at.phase_ended = "early"
            metrics = " or ".join(filter(None, (phase.select.metric, phase.select.beside)))
            so_long = f"{self.at.stale} validation{'s' if self.at.stale != 1 else ''}"
            self.say(f"{phase.name}: no better {metrics} for {so_long}, ending it")
        return False

    def _complete_model(self, phase: Phase) -> None:
        """At the end the model folder holds the best weights, or the last ones; of a resumed run it may be damaged."""
        if phase.select is None and not self._was_over:
            self._publish(0, self.at.validation)
        elif self._is_resumed and (wrong := self._wrong_with_model()):
            best, step = self.at.best, self.at.step
            self.say(f"warning: {wrong}; the model is written again, from step {best.step if best else step}")
            if best is not None and best.step != step:
                unpack_model(self.folder.checkpoints.load_step(best.step), self.learner, self.ema)
                self.at.step = best.step  # as its facts have it
            self._publish(best.replica if best else 0, best.metrics if best else self.at.validation)
            self.at.step = step

    def _wrong_with_model(self) -> str | None:
        """Why the model folder cannot be used, if so."""

        def look() -> str | None:
            try:
                self.task.check_model(self.folder.model)
            except SaccadeError as error:
                return str(error)
            return None

        return run_on_rank_zero(self.fabric, look)

    def _publish_replicas(self) -> None:
        """Write every restart of a stack as a model folder of its own, so that each can be scored."""
        for replica in range(self.learner.replicas if self.learner.replicas > 1 else 0):
            self._publish(replica, self.at.validation, self.folder.replica(replica))

    def _publish(self, replica: int, metrics: dict[str, float], folder: Path | None = None) -> None:
        facts = {
            "recipe": to_dict(self.recipe),
            "step": self.at.step,
            "phase": self.phases[self.at.phase].name,
            "replica": replica,
            "metrics": metrics,
            "minutes": round(self._seconds() / 60, 2),
            "machine": machine(self.fabric.device),
            "versions": versions(),
            "revision": versions()["revision"],
        }
        facts |= {"data_changes": list(self.data_changes)} if self.data_changes else {}
        with self._averaged():
            run_on_rank_zero(
                self.fabric,
                lambda: publish_model(self.task, self.learner, replica, folder or self.folder.model, facts),
            )

    def _averaged(self) -> AbstractContextManager[None]:
        """The moving average in place of the weights, if the recipe keeps one."""
        return nullcontext() if self.ema is None else self.ema.applied()

    def _save(self) -> None:
        self._check()
        self.at.seconds = self._seconds()
        rng = gather_rng(self.fabric, capture_rng(self.fabric.device))
        tensors, facts = pack(
            self.at,
            self.learner,
            optimizer=self.optimizer,
            parameters=self.parameters,
            ema=self.ema,
            rng=rng,
        )
        facts["versions"] = versions()
        protect = [self.at.best.step] if self.at.best else []
        self._saved = run_on_rank_zero(
            self.fabric, lambda: self.folder.checkpoints.save(self.at.step, tensors, facts, protect=protect)
        )

    def _log(self, phase: Phase, lr: float) -> None:
        """Read the sums of the last steps and write them down."""
        means = self.step.drain()
        self._check()
        now, (then, step) = time.monotonic(), self._mark
        self._mark = (now, self.at.step)
        rate = (self.at.step - step) * self.recipe.batch_size / max(now - then, 1e-9)
        values = {name: statistics.fmean(numbers) for name, numbers in means.items()} | {"lr": lr}
        self._record(phase, "train", values, means if self.learner.replicas > 1 else None, rate)

    def _record(
        self,
        phase: Phase,
        kind: Literal["train", "validation"],
        values: dict[str, float],
        replicas: dict[str, list[float]] | None,
        rate: float | None = None,
    ) -> None:
        entry: dict[str, object] = {"step": self.at.step, "phase": phase.name, "kind": kind, "values": values}
        if replicas is not None:
            entry["replicas"] = replicas
        if rate is not None:
            entry["images_per_second"] = round(rate, 2)
        entry["seconds"] = round(self._seconds(), 3)
        if self.fabric.is_global_zero:
            self.folder.measure(entry)
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(f"{kind}/{name}", value, self.at.step)
        self.reporter.values(kind, values)

    def _check(self) -> None:
        """Stop if the device remembers a non-finite gradient (on the CPU it never gets that far)."""
        if self.fabric.device.type != "cpu":
            fault = self.step.fault()
            if fault is not None:
                raise self._broken(self.phases[self.at.phase], fault, [])

    def _broken(self, phase: Phase, fault: Fault, micro: list[object]) -> TrainingStopped:
        """The error that says where it broke and what is still good."""
        model = self.learner.replica(fault.replica)
        causes = (origin(model, self.task.inputs(batch)) for batch in micro)
        cause = next((cause for cause in causes if cause is not None), None)
        which = f" of replica {fault.replica}" if self.learner.replicas > 1 else ""
        text = (
            f"training stopped at step {fault.step + 1} (phase '{phase.name}'): the gradient of "
            f"'{fault.parameter}'{which} is not finite{f'; {cause}' if cause else ''}. The last good state is "
            f"{self._saved}. Try a lower learning rate, a clip_norm, or look at the data of that step"
        )
        if self.fabric.is_global_zero:
            self.folder.log(text)  # who waits for the run is told by the error
        return TrainingStopped(text)

    def _interruption(self, is_last: bool) -> Stopped | None:
        reason = self.stop.reason()
        if self.fabric.world_size == 1:
            return reason
        if not is_last and self.at.step % AGREE_EVERY:
            return None
        return STOP_CODES[max_over_ranks(self.fabric, {None: 0, "time": 1, "signal": 2}[reason])]

    def _restore_rng(self, checkpoint: Checkpoint) -> None:
        state = unpack_rng(checkpoint, self.fabric.global_rank)
        if state is not None:
            restore_rng(state, self.fabric.device)
        else:  # more ranks than when it was saved
            seed_all(self.recipe.seed + self.at.step, rank=self.fabric.global_rank)

    def _batches(self, phase: Phase) -> Iterator[object]:
        """The data of a phase, from where the run stands."""
        rank, ranks = self.fabric.global_rank, self.fabric.world_size
        return iter(
            self.task.train_batches(
                self.at.batches,
                batch_size=self.micro_batch,
                rank=rank,
                world_size=ranks,
                data=phase.data,
                features=phase.features,
            )
        )

    def _make_learner(self) -> Learner:
        recipe = self.recipe
        if recipe.replicas > 1:
            return ReplicaStack([self.task.new_model(recipe.seed + index) for index in range(recipe.replicas)])
        if recipe.channels_last:
            # torch types no memory_format alone
            self.task.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return Learner(self.task.model, compiled=recipe.compile and self.fabric.device.type == "cuda")

    def _make_board(self) -> Any:
        from torch.utils.tensorboard import SummaryWriter  # needs the extra

        return SummaryWriter(self.folder.path / "tensorboard")

    def _micro_batch(self) -> int:
        parts = self.recipe.accumulate * self.fabric.world_size
        if self.recipe.batch_size % parts:
            raise ConfigError(
                f"batch_size {self.recipe.batch_size} cannot be split into accumulate × processes = {parts} equal parts"
            )
        return self.recipe.batch_size // parts

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def say(self, text: str) -> None:
        """Tell whoever watches, and the log."""
        if self.fabric.is_global_zero:
            self.folder.log(text)
        self.reporter.note(text)
