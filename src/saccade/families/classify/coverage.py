"""Tables of Wang et al. (2017, arXiv:1704.06904) and Fu et al. (CVPR 2017) that the founding slides name."""

from __future__ import annotations

from saccade.families.contract import PaperItem

_WANG, _FU = "Wang et al. 2017", "Fu et al. 2017"
_ABSENT = "is not fetched by saccade and was not at hand: no run exists"

COVERAGE = (
    PaperItem(_WANG, "errors on CIFAR-10", "no data", "recipes ran-56 and ran-92 are there; no run is recorded yet"),
    PaperItem(_WANG, "errors on CIFAR-100", "no data", f"CIFAR-100 {_ABSENT}"),
    PaperItem(_WANG, "errors on ImageNet", "no data", f"ImageNet {_ABSENT}"),
    PaperItem(_WANG, "noisy labels, mask structures", "no data", "no run exists"),
    PaperItem(_FU, "accuracy on CUB-200-2011", "no data", "the recipe racnn is there; no run is recorded yet"),
    PaperItem(_FU, "accuracy on Stanford Dogs", "no data", f"Stanford Dogs {_ABSENT}"),
    PaperItem(_FU, "accuracy on Stanford Cars", "no data", f"Stanford Cars {_ABSENT}"),
)
"""Paper by paper."""
