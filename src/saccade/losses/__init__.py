"""Losses: plain functions of tensors, one idea per file."""
