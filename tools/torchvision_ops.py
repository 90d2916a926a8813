"""A pytest plugin that lets torchvision load beside a torch it was not built for: two of its operators are declared.

timm imports torchvision for its transforms, which need none of its compiled operators. Where they do not load, as
beside a CPU build of torch, ``import torchvision`` fails because two of their names are missing. Only ``make
test-extras`` uses this, in an environment of its own.
"""

from __future__ import annotations

import importlib

import torch

try:
    importlib.import_module("torchvision")
except ModuleNotFoundError:
    pass  # what needs it is skipped
except (ImportError, RuntimeError):
    DECLARED = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        DECLARED.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    importlib.import_module("torchvision")
