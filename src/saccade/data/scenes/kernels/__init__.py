"""Triton kernels that make scenes on a GPU: place and paint digits, scatter distractors, crop photographs.

Each of the four is one kernel: torch's own operations are small, and a GPU would spend its time on starting them.
The results are those of the host to the last bit.

The kernels need a GPU, Triton (which comes with torch for CUDA) and pictures of at most 128 px. Elsewhere, or if a
kernel cannot be built, the host places digits and torch's own operations paint them, more slowly; a warning says so
once, and :func:`why_no_kernels` from then on.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import TypeVar

import torch

# Side of the largest picture that the kernels can make.
MAX_PICTURE = 128

Result = TypeVar("Result")
_failure = ""


def why_no_kernels(device: torch.device, size: int = 100) -> str:
    """Why the kernels do not make scenes of side ``size`` on ``device``; empty where they do."""
    if device.type != "cuda":
        return f"the kernels are for a GPU, and scenes are made on {device.type}"
    if size > MAX_PICTURE:
        return f"the kernels make pictures of up to {MAX_PICTURE} px, and these have {size}"
    if not _has_triton():
        return "Triton is not installed; it comes with torch for CUDA"
    return _failure


def renderer_description(device: torch.device, size: int = 100) -> str:
    """In words, what makes scenes of side ``size`` on ``device``."""
    if device.type == "cpu":
        return "NumPy"
    reason = why_no_kernels(device, size)
    return f"NumPy and torch's own operations, more slowly: {reason}" if reason else "kernels"


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def try_kernel(work: Callable[[], Result], device: torch.device, size: int) -> Result | None:
    """What ``work`` makes by a kernel, or None where torch's own operations must do it."""
    if why_no_kernels(device, size):
        return None
    global _failure
    try:
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():  # Triton asks which is current
            return work()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # building a kernel fails in many ways: no C compiler, an old GPU, a read-only cache
        if "CUDA error" in str(error):  # the device is in no state to go on
            raise
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        _failure = f"the kernels cannot be used ({reason})"
        warnings.warn(f"scenes are the same but made more slowly: {_failure}", RuntimeWarning, stacklevel=2)
        return None
