"""Scores maps from any tool: how maps find their truth, what is left out, and how it is reported."""
