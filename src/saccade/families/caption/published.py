"""Table 1 of Xu et al. (2015, arXiv:1502.03044), cell by cell; all values are fractions."""

from __future__ import annotations

from saccade.tasks.published import Published

XU_2015 = "Xu et al. 2015, Table 1 (arXiv:1502.03044)"

METRICS = ("bleu_1_nobp", "bleu_2_nobp", "bleu_3_nobp", "bleu_4_nobp", "meteor")
"""The columns of the table: BLEU without brevity penalty; METEOR is that of the jar, version 1.5."""

_TABLE_1: dict[str, dict[str, tuple[float | None, ...]]] = {  # in the order of METRICS
    "google-nic": {
        "flickr8k": (0.63, 0.41, 0.27, None, None),
        "flickr30k": (0.663, 0.423, 0.277, 0.183, None),
        "coco": (0.666, 0.461, 0.329, 0.246, None),
    },
    "log-bilinear": {
        "flickr8k": (0.656, 0.424, 0.277, 0.177, 0.1731),
        "flickr30k": (0.600, 0.38, 0.254, 0.171, 0.1688),
        "coco": (0.708, 0.489, 0.344, 0.243, 0.2003),
    },
    "cmu": {"coco": (None, None, None, None, 0.2041)},
    "msr": {"coco": (None, None, None, None, 0.2071)},
    "brnn": {"coco": (0.642, 0.451, 0.304, 0.203, None)},
    "sat-soft": {
        "flickr8k": (0.67, 0.448, 0.299, 0.195, 0.1893),
        "flickr30k": (0.667, 0.434, 0.288, 0.191, 0.1849),
        "coco": (0.707, 0.492, 0.344, 0.243, 0.2390),
    },
    "sat-hard": {
        "flickr8k": (0.67, 0.457, 0.314, 0.213, 0.2030),
        "flickr30k": (0.669, 0.439, 0.296, 0.199, 0.1846),
        "coco": (0.718, 0.504, 0.357, 0.250, 0.2304),
    },
}
for _system in ("sat-soft", "sat-hard"):  # recipes of the paper's own setting, which is for Flickr8k
    _TABLE_1[f"{_system}-paper"] = {"flickr8k": _TABLE_1[_system]["flickr8k"]}
_NOTE = "one model on VGG-19 features, 5 references a picture; the width of the beam is not stated"
_QUOTED_NOTE = "as Xu et al. quote it; some of these systems are ensembles, or on other splits or features"

PUBLISHED: dict[tuple[str, str], Published] = {
    (system, data): Published(
        {name: value for name, value in zip(METRICS, line) if value is not None},
        XU_2015,
        _NOTE if system.startswith("sat-") else _QUOTED_NOTE,
    )
    for system, cells in _TABLE_1.items()
    for data, line in cells.items()
}
"""(system, data set) → its row."""
