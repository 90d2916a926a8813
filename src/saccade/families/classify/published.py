"""Published rates of residual attention networks on CIFAR-10, and of RA-CNN on birds; all values are fractions.

Wang et al. 2017 (arXiv:1704.06904): Table 1, mask types; Table 3, residual against naive learning. Attention-92 with
4.99 % is also in the paper's text. Fu et al., CVPR 2017: Table 2, the scales of RA-CNN on CUB-200-2011.
"""

from __future__ import annotations

from saccade.tasks.published import Published

WANG_2017 = "Wang et al. 2017 (arXiv:1704.06904)"
DATA = "cifar10"

_ERROR: dict[str, float] = {
    "ran-56": 0.0552,
    "ran-56-naive": 0.0589,
    "ran-56-channel": 0.0624,
    "ran-56-spatial": 0.0633,
    "ran-92": 0.0499,
    "ran-92-naive": 0.0535,
}
_NOTE = "one run of 160,000 steps of 64 pictures; here the batch is larger and the schedule shorter"

FU_2017 = "Fu et al. 2017 (CVPR), Table 2"
ZOOM: dict[tuple[str, str], Published] = {
    ("racnn", "cub"): Published(
        {"scale1_accuracy": 0.778, "scale2_accuracy": 0.824, "scale3_accuracy": 0.812, "accuracy": 0.853},
        FU_2017,
        "VGG-19 on pictures of 448 pixels, crops at 224; one run; scale 1 is the plain network",
    )
}
"""RA-CNN: (system, data set) → its row."""
PUBLISHED: dict[tuple[str, str], Published] = ZOOM | {
    (system, DATA): Published({"accuracy": 1 - error}, WANG_2017, _NOTE) for system, error in _ERROR.items()
}
"""(system, data set) → its row."""
