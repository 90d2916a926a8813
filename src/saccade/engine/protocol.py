"""The interface that the engine needs from a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from saccade.engine.recipe import Phase


class Trainable(Protocol):
    """Data, model, loss and metric of one experiment, as the engine sees them.

    Attributes:
        model: has ``forward_raw(**inputs) -> dict[str, Tensor]``: plain tensors, batch axis first.
        on_progress: set by the engine, called by a task whose first batch of a phase takes long to prepare: with what
            it prepares, and how much of how much is done.
    """

    model: nn.Module
    on_progress: Callable[[str, int, int], None]

    def new_model(self, seed: int) -> nn.Module:
        """A freshly initialised model, a function of ``seed`` alone; asked for only when ``replicas`` > 1."""
        ...

    def train_batches(
        self,
        start: int,
        *,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        data: str = "default",
        features: str = "auto",
    ) -> Iterator[Any]:
        """Batches number ``start``, ``start + 1``, … without end, on the device that `to` named.

        Asked for anew whenever a phase begins, with what the phase says of ``data`` and ``features``; what it freezes
        is frozen by then. ``start`` goes on counting over the whole run.

        Batch ``n`` is a function of (recipe seed, data, features, n) alone: this is what makes resuming exact. Batch
        ``n`` of all ranks together holds ``batch_size * world_size`` samples, of which this rank takes the ``rank``-th
        slice, so that ``world_size`` ranks see in one batch what one rank sees in ``world_size`` consecutive ones.

        With ``graph: true`` every batch has the same shapes and is built from tensors, numbers, strings, lists,
        tuples, dicts and dataclasses.
        """
        ...

    def summary(self) -> str:
        """A one-line summary of the training data for the terminal; may be empty.

        Further lines say what looks wrong with it.
        """
        ...

    def data_parts(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """What is learned from, part by part, as names and values in order; see :mod:`saccade.engine.run_folder`.

        Asked once when a run begins or goes on, before anything else and on one process only.
        """
        ...

    def steps_per_epoch(self, batch_size: int) -> int | None:
        """Optimiser steps of ``batch_size`` samples in one pass over the data; None when the data has no end."""
        ...

    def inputs(self, batch: Any) -> dict[str, Tensor]:
        """Keyword arguments of ``model.forward_raw``."""
        ...

    def forward_options(self, loss: Any) -> dict[str, Any]:
        """Further keyword arguments of ``model.forward_raw`` in a phase that is taught by ``loss``, such as a switch.

        They are the same for every step of the phase. ``loss`` is what `phase_loss` gave for it.
        """
        ...

    def phase_loss(self, phase: Phase, learning: Sequence[str] = ()) -> Any:
        """The loss of ``phase``, built from its settings; asked once for each phase, before the first step.

        ``learning`` names the parameters that the phase trains. Raises a ConfigError if there is no such loss, or if
        the phase, the model or the data cannot be taught by it.
        """
        ...

    def loss(self, raw: Any, batch: Any, loss: Any) -> dict[str, Tensor]:
        """Scalars by name; ``"loss"`` is minimised, the others are logged. Runs under ``vmap`` with replicas.

        ``loss`` is what `phase_loss` gave for the phase.
        """
        ...

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Metrics of ``model`` (in eval mode, without gradients) on the validation split."""
        ...

    def metric_names(self) -> Sequence[str]:
        """Names of all metrics that `validate` may tell, by which a phase may choose; asked before training.

        The first is what a recipe calls ``score``.
        """
        ...

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """Fill ``folder`` (which may be there, empty).

        ``facts`` holds recipe, step, phase, replica, metrics, minutes, machine, versions and revision.
        """
        ...

    def check_model(self, folder: Path) -> None:
        """Raise a SaccadeError if ``folder`` is not, whole, what `save_model` wrote."""
        ...

    def to(self, device: torch.device) -> None:
        """Make batches on ``device`` from now on."""
        ...
