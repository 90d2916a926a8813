"""Losses: plain functions of tensors, one idea per file."""

from saccade.losses.likelihood import cross_entropy

__all__ = ["cross_entropy"]
