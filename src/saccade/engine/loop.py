"""`fit`: a task and a recipe in, a run folder out.

This file prepares a run (device, processes, run folder, resume, stopping); `saccade.engine.trainer` trains.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.atomic import writing
from saccade.engine.data_note import Parts, compare_data, write_note
from saccade.engine.hardware import explain_lost_rank, pick_hardware, run_on_rank_zero, shutdown
from saccade.engine.progress import ProgressMode, Reporter, make_reporter
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Recipe
from saccade.engine.run_folder import CONFIG, LOCK, RunFolder, versions
from saccade.engine.seeding import seed_all
from saccade.engine.stop import StopRequest
from saccade.engine.trainer import RunResult, Trainer
from saccade.errors import ConfigError, DataError, MissingExtraError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["RunResult", "fit"]


def fit(
    task: Trainable,
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
    progress: ProgressMode | Reporter = "auto",
) -> RunResult:
    """Train ``task`` by ``recipe`` into the run folder ``out``.

    Args:
        task: model, data, loss and metric; its model is trained in place unless processes are spawned.
        recipe: what to do; resolved, as `load_recipe` gives it.
        out: a new or empty folder; with ``resume`` the folder of the run to continue.
        resume: go on from the newest whole checkpoint, bit for bit on the CPU; a run that was killed before its first
            checkpoint begins anew.
        accept_changed_data: with ``resume``, go on although the data is not what the run began with; every model that
            is saved from there on says so.
        max_minutes: stop cleanly after this long; the run can be resumed.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        devices: how many, on each of ``nodes`` machines.
        nodes: machines.
        strategy: a Fabric strategy, such as ``ddp``, ``ddp_spawn`` or ``ddp_find_unused_parameters_true``.
        progress: ``auto`` shows a bar on a terminal and plain lines elsewhere; a `Reporter` is used as it is.

    Returns:
        Where the run ended, why, and its best validation.

    Raises:
        ConfigError: the recipe does not fit the task, or not the run to resume.
        DataError: the data cannot be used, or is not what the run to resume began with.
        OutputError: ``out`` cannot be written, already holds something, or another process trains into it.
        TrainingStopped: the loss or a gradient stopped being finite, or another process of the run ended.
    """
    folder = RunFolder(Path(out), keep_checkpoints=recipe.keep_checkpoints)
    if recipe.tensorboard and find_spec("tensorboard") is None:
        raise MissingExtraError("tensorboard: true", "tensorboard")
    fabric = pick_hardware(recipe, device, devices, nodes, strategy)
    if (accept_changed_data and not resume) or (max_minutes is not None and not max_minutes > 0):
        found = f"{accept_changed_data=}, {resume=}, {max_minutes=}"
        raise ConfigError(f"accept_changed_data needs `resume=True`, and max_minutes is above 0; found {found}")
    result: RunResult = fabric.launch(_Run(task, recipe, folder, resume, accept_changed_data, max_minutes, progress))
    return result


class _Run:
    """The run as one process sees it; an object, because Fabric looks into the arguments of what it launches."""

    def __init__(
        self,
        task: Trainable,
        recipe: Recipe,
        folder: RunFolder,
        resume: bool,
        accept_changed_data: bool,
        max_minutes: float | None,
        progress: ProgressMode | Reporter,
    ) -> None:
        self.task, self.recipe, self.folder, self.resume = task, recipe, folder, resume
        self.accept_changed_data, self.max_minutes, self.progress = accept_changed_data, max_minutes, progress
        self._parts: Parts = {}
        self._remarks: list[str] = []

    def __call__(self, fabric: Fabric) -> RunResult:
        with ExitStack() as held:  # the lock, in the first process
            self.resume = run_on_rank_zero(fabric, lambda: self._prepare_folder(fabric, held))
            if fabric.world_size > 1:  # spawned processes are born with their weights in shared memory
                for tensor in (*self.task.model.parameters(), *self.task.model.buffers()):
                    tensor.data = tensor.data.clone()
            seed_all(self.recipe.seed, rank=fabric.global_rank)
            with explain_lost_rank(fabric):
                result = self._train(fabric)
            shutdown(fabric)
        return result

    def _train(self, fabric: Fabric) -> RunResult:
        reporter = make_reporter(self.progress) if fabric.is_global_zero else Reporter()
        with StopRequest(self.max_minutes) as stop, reporter:
            try:
                for remark in self._remarks:  # of the first process
                    self.folder.log(remark)
                    reporter.note(remark)
                self.task.on_progress = reporter.preparing
                accepted, changes = run_on_rank_zero(fabric, self._check_data)
                trainer = Trainer(fabric, self.task, self.recipe, self.folder, reporter, stop)
                if self.resume:
                    trainer.resume()
                trainer.data_changes = (*accepted, *(f"from step {trainer.at.step} on: {change}" for change in changes))
                if changes:
                    trainer.say(f"warning: the data changed, which was accepted: {'; '.join(changes)}")
                if fabric.is_global_zero and (changes or not self.resume):
                    write_note(self.folder.path, self._parts, trainer.data_changes)
                return trainer.run()
            except (ConfigError, DataError):
                if fabric.is_global_zero and not self.resume:
                    self.folder.discard_if_unstarted()
                raise

    def _prepare_folder(self, fabric: Fabric, held: ExitStack) -> bool:
        """Lock the folder and make it what a run begins with; whether there is something to resume."""
        with writing(self.folder.path):  # it may not even be allowed to look into it
            if self.resume and not self.folder.has_no_state:
                self.folder.check_same(self.recipe)
            elif not (self.folder.path / LOCK).is_file():
                self.folder.check_free()  # before a lock is put into somebody's folder
        held.enter_context(self.folder.locked())
        if self.resume and self.folder.has_no_state:
            if (self.folder.path / CONFIG).is_file():
                self.folder.check_same(self.recipe)
            self._remarks.append("nothing to resume: the run was stopped before its first checkpoint; it begins anew")
        elif self.resume:
            return True
        run = {"seed": self.recipe.seed, "device": str(fabric.device), "processes": fabric.world_size}
        self.folder.create(self.recipe, {**run, "versions": versions()})
        return False

    def _check_data(self) -> tuple[list[str], list[str]]:
        """Compare what the task learns from with what the run began with, and remember it."""
        self._parts = self.task.data_parts()
        return compare_data(self.folder.path, self._parts, accept=self.accept_changed_data) if self.resume else ([], [])
