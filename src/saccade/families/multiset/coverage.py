"""Every table and figure of Welleck et al. (2017, arXiv:1711.05165), and what became of each here."""

from __future__ import annotations

from saccade.families.contract import PaperItem

_WELLECK = "Welleck et al. 2017"
_TABLE = "saccade reproduce hsal-table1"
_OTHER_BACKBONE = (
    f"{_TABLE}: HSAL-RL as published agrees on the paper's 60,000 / 10,000 pictures (protocol authors), with a small "
    "backbone of our own at 100 px instead of an ImageNet ResNet-34 at 224 px; the cross-entropy baseline reads fewer"
)

COVERAGE = (
    PaperItem(_WELLECK, "Figure 1", "drawing", "the components; docs/papers.md leads from their equations to files"),
    PaperItem(_WELLECK, "Table 1, MNIST Set", "differs", _OTHER_BACKBONE),
    PaperItem(_WELLECK, "Table 1, MNIST Multiset", "differs", _OTHER_BACKBONE),
    PaperItem(
        _WELLECK,
        "Table 1, SVHN Multiset",
        "differs",
        f"{_TABLE}: measured on held-out training pictures, cut out around the true boxes of the digits; the paper "
        "measures on the test pictures and does not say how they were cut",
    ),
    PaperItem(
        _WELLECK, "Figure 2", "reproduced", "saccade look with hsal-mnist-multiset draws every step of a reading"
    ),
    PaperItem(_WELLECK, "Figure 3", "reproduced", f"{_TABLE} --out DIR: a salient cell that several digits share"),
    PaperItem(
        _WELLECK,
        "Figure 4",
        "differs",
        f"{_TABLE} --out DIR: an object that stands out less than its surroundings, a digit instead of a cat",
    ),
    PaperItem(
        _WELLECK,
        "Figure 5",
        "reproduced",
        f"{_TABLE} --out DIR: saliency at the glimpses rises with reinforcement, not with cross-entropy; other units",
    ),
    PaperItem(
        _WELLECK,
        "Figure 6",
        "reproduced",
        f"{_TABLE} --out DIR: macro-F1 over training; overall precision and recall (OP, OR) of runs that validate them",
    ),
    PaperItem(_WELLECK, "Figures 7 to 11", "drawing", "the architecture in detail"),
    PaperItem(_WELLECK, "Figure 12", "reproduced", f"{_TABLE} --out DIR, from the shipped readers"),
)
"""In the order of the paper."""
