"""Backbones: named stages, each with the frame that says where its cells lie in the picture.

Names are loaded on first use, so that ``catalog`` can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.backbones.catalog import build_backbone
    from saccade.backbones.small import small_stack
    from saccade.backbones.stages import Stages

__all__ = ["Stages", "build_backbone", "small_stack"]

_HOMES = {"Stages": "stages", "build_backbone": "catalog", "small_stack": "small"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade.backbones' has no attribute '{name}'")
    return getattr(import_module(f"saccade.backbones.{_HOMES[name]}"), name)
