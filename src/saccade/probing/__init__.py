"""Probes of a frozen backbone: features once, heads trained side by side, and a verdict with its uncertainty."""
