"""Losses: plain functions of tensors, one idea per file."""

from saccade.losses.likelihood import cross_entropy
from saccade.losses.reinforce import leave_one_out, reinforce

__all__ = ["cross_entropy", "leave_one_out", "reinforce"]
