"""Triton kernels that make scenes on a GPU: place and paint digits, scatter distractors, crop photographs.

Imported only where Triton is there, see ``fused.py``. The operations of ``placement.py`` and ``render.py`` are small,
and a GPU spends its time on starting them. Here each of the four is one kernel. Its results are those of the other
files to the last bit.
"""
