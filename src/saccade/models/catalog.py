"""Every model by name: one dictionary, readable without importing torch.

A model joins saccade by a line here; the common test suite, ``saccade list``, recipes and the zoo find it by that line.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saccade.config import from_dict
from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ModelSpec:
    """What is known of a model before it is built."""

    target: str
    """``module:Class``; the class has ``Config``, ``tiny()`` and ``example_batch(count, seed)``."""
    task: str
    """The task that trains and scores it."""
    summary: str
    paper: str

    def resolve(self) -> Any:
        """The model class."""
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def build(self, config: Mapping[str, Any] | None = None) -> nn.Module:
        """The model, from a dictionary of its settings."""
        cls = self.resolve()
        model: nn.Module = cls(from_dict(cls.Config, config or {}, where="model"))
        return model


CATALOG: dict[str, ModelSpec] = {
    "soft": ModelSpec(
        target="saccade.models.soft:SoftModel",
        task="attribute",
        summary="one soft attention on the last feature map",
        paper="Seo et al. 2016, arXiv:1606.02393",
    ),
}


def model_spec(name: str) -> ModelSpec:
    """The entry called ``name``, or a ConfigError that names the nearest."""
    if name not in CATALOG:
        raise ConfigError(f"no model '{name}': {nearest(name, CATALOG)}")
    return CATALOG[name]
