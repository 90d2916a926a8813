"""Causal sets of photographs: objects are marked, twins made, and all of it written and read back."""
