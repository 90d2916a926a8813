"""Backbones: named stages, each with the frame that says where its cells lie in the picture."""

from saccade.backbones.small import small_stack
from saccade.backbones.stages import Stages

__all__ = ["Stages", "small_stack"]
