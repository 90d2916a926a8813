"""Every table and figure of Xu et al. (2015, arXiv:1502.03044), and what became of each here."""

from __future__ import annotations

from saccade.families.contract import PaperItem

_XU = "Xu et al. 2015"
_FIGURES = "saccade reproduce sat-figures --out DIR"
_ABSENT = (
    "is not fetched by saccade and was not at hand: no run exists. The reader ({}:FOLDER) and the recipes are there"
)
_OTHER_PICTURES = f"{_FIGURES}: hard and soft attention word by word, on generated scenes and not on the paper's COCO"

COVERAGE = (
    PaperItem(_XU, "Figure 1", "drawing", "the model; docs/papers.md leads from its equations to files"),
    PaperItem(_XU, "Figure 2", "differs", _OTHER_PICTURES),
    PaperItem(_XU, "Figure 3", "differs", f"{_FIGURES}: words and what they name, on generated scenes"),
    PaperItem(_XU, "Figure 4", "drawing", "the LSTM cell"),
    PaperItem(_XU, "Figure 5", "differs", f"{_FIGURES}: wrong sentences, of generated scenes and shipped photographs"),
    PaperItem(
        _XU,
        "Table 1, Flickr8k",
        "differs",
        "saccade reproduce sat-table1 --protocol dev: measured on the dev pictures. Soft attention in the paper's "
        "setting (frozen VGG-19, RMSprop) stays below every published number; with an encoder that learns, tuned "
        "by its own captions, it is above them. Hard attention in the paper's setting has no finished run",
    ),
    PaperItem(_XU, "Table 1, Flickr30k", "no data", "Flickr30k " + _ABSENT.format("flickr30k")),
    PaperItem(_XU, "Table 1, COCO", "no data", "COCO " + _ABSENT.format("coco")),
    PaperItem(_XU, "Figures 6 to 15", "differs", _OTHER_PICTURES),
)
"""In the order of the paper."""
