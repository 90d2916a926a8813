"""Published error rates of residual attention networks on CIFAR-10; all values are fractions.

Wang et al. 2017 (arXiv:1704.06904): Table 1, mask types; Table 3, residual against naive learning. Attention-92 with
4.99 % is also in the paper's text.
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

PUBLISHED: dict[tuple[str, str], Published] = {
    (system, DATA): Published({"accuracy": 1 - error}, WANG_2017, _NOTE) for system, error in _ERROR.items()
}
"""(system, data set) → its row."""
