"""Backbones: named stages, each with the frame that says where its cells lie in the picture.

Names are loaded on first use, so that ``catalog`` can be read without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.backbones.catalog import build_backbone
    from saccade.backbones.stages import Stages, small_stack
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = ["Stages", "build_backbone", "small_stack"]
