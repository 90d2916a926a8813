"""Losses: plain functions of tensors, one idea per file."""

from saccade.losses.likelihood import binary_cross_entropy, cross_entropy, log_likelihood_of_set
from saccade.losses.reinforce import leave_one_out, reinforce

__all__ = ["binary_cross_entropy", "cross_entropy", "leave_one_out", "log_likelihood_of_set", "reinforce"]
