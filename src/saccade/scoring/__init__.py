"""Scores of maps that anyone made: how maps find their truth, what is left out, and what is told about it."""
