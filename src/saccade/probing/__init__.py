"""Probes of a frozen backbone: features once, rivals trained side by side, and a verdict that names its error."""
