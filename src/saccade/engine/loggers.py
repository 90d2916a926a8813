"""Where curves of a run go besides its own ``metrics.jsonl``: TensorBoard, Weights & Biases, MLflow, or an object.

A logger has the three methods of :class:`Logger`. It is given to :func:`saccade.train` by its name here, or as an
object. It runs in one process. One that fails on the way is left out, and training goes on.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from saccade.config import by_path
from saccade.errors import ConfigError, MissingExtraError, nearest
from saccade.files import write_json

Status = Literal["finished", "failed"]
IDS = "loggers.json"  # in the run folder: what services call the run, so that a resumed one goes on there
_MOST_PARAMETERS, _LONGEST_PARAMETER = 100, 500  # that MLflow takes at once, and characters of one


class Logger(Protocol):
    """Takes the curves of a run."""

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Before the first step of a run, or of one that is resumed: its folder, and its recipe as plain values."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one step, by names such as ``train/loss`` and ``validation/accuracy``."""

    def close(self) -> None:
        """After the last step. One that takes a ``status`` learns how it went: "finished" or "failed"."""


class TensorBoard:
    """Writes events into ``tensorboard`` in the run folder."""

    _writer: Any = None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Nothing is written before the first numbers."""
        self._folder = folder / "tensorboard"

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Scalars; of a run that is resumed they stand in place of those from this step on."""
        if self._writer is None:
            tensorboard = importlib.import_module("torch.utils.tensorboard")
            self._writer = tensorboard.SummaryWriter(self._folder, purge_step=step)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandB:
    """A run of Weights & Biases, in the project ``saccade`` if ``WANDB_PROJECT`` names no other."""

    _run: Any = None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Begin a run, or go on with it."""
        project = os.environ.get("WANDB_PROJECT", "saccade")
        known = {"id": _ids(folder).get("wandb"), "resume": "allow"}
        wandb = importlib.import_module("wandb")
        self._run = wandb.init(project=project, name=folder.absolute().name, config=dict(settings), **known)
        _note_id(folder, "wandb", self._run.id)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """A row; the service keeps none of a step that it has passed, as after a resume."""
        self._run.log(dict(values), step=step)

    def close(self, status: Status = "finished") -> None:
        """Send what is left."""
        if self._run is not None:
            self._run.finish(exit_code=int(status == "failed"))


class MLflow:
    """A run of MLflow, where its own settings say (``MLFLOW_TRACKING_URI``, ``MLFLOW_EXPERIMENT_NAME``)."""

    _id = ""

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Begin a run, or go on with it; settings become its parameters."""
        self._mlflow = importlib.import_module("mlflow")
        name = folder.absolute().name
        known = _ids(folder).get("mlflow")
        self._id = str(self._mlflow.start_run(run_id=known, run_name=None if known else name, nested=True).info.run_id)
        _note_id(folder, "mlflow", self._id)
        parameters = [(key, str(value)[:_LONGEST_PARAMETER]) for key, value in by_path(settings).items()]
        for first in range(0, len(parameters), _MOST_PARAMETERS):
            self._mlflow.log_params(dict(parameters[first : first + _MOST_PARAMETERS]))

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Metrics."""
        self._mlflow.log_metrics(dict(values), step=step, run_id=self._id)

    def close(self, status: Status = "finished") -> None:
        """End the run."""
        if self._id:
            self._mlflow.end_run(status=status.upper())


LOGGERS: dict[str, Callable[[], Logger]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
"""By name, which is that of its package and of its extra too."""


def open_loggers(chosen: Sequence[str | Logger]) -> list[Logger]:
    """Loggers by name or as objects; an error where there is no such logger, or where its package is missing."""
    loggers = [logger for logger in chosen if not isinstance(logger, str)]
    for logger in loggers:
        if missing := [name for name in ("start", "log", "close") if not hasattr(logger, name)]:
            raise ConfigError(f"loggers: {type(logger).__name__} has no {', '.join(missing)}")
    for name in dict.fromkeys(name for name in chosen if isinstance(name, str)):
        if name not in LOGGERS:
            raise ConfigError(f"loggers: no '{name}'; {nearest(name, LOGGERS)}")
        if not _is_installed(name):
            raise MissingExtraError(f"the logger '{name}'", name)
        loggers.append(LOGGERS[name]())
    return loggers


def close_logger(logger: Logger, status: Status) -> None:
    """Close it, with the status if it takes one."""
    options = {"status": status} if "status" in inspect.signature(logger.close).parameters else {}
    logger.close(**options)


def _is_installed(package: str) -> bool:
    """Not so a folder of that name in the working directory, which Python would import as an empty package."""
    spec = find_spec(package)
    return spec is not None and (spec.origin is not None or spec.submodule_search_locations is None)


def _ids(folder: Path) -> dict[str, str]:
    try:
        return dict(json.loads((folder / IDS).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _note_id(folder: Path, name: str, number: str) -> None:
    write_json(folder / IDS, {**_ids(folder), name: number})
