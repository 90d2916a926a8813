"""The examples of the founding slides and the tables of their two papers, and what became of each here."""

from __future__ import annotations

from saccade.families.contract import PaperItem

_SLIDES = "slides on attention"
_SUKHBAATAR = "Sukhbaatar et al. 2015"
_KUMAR = "Kumar et al. 2016"
_TABLE = "saccade reproduce memory-table"

COVERAGE = (
    PaperItem(
        _SLIDES,
        "the three stories",
        "reproduced",
        "saccade look with memn2n-babi; the third lacks the sentences that its answer needs, so nobody can answer it",
    ),
    PaperItem(_SUKHBAATAR, "the networks", "drawing", "docs/papers.md leads from their equations to files"),
    PaperItem(
        _SUKHBAATAR, "errors on bAbI, 1,000 questions", "reproduced", f"{_TABLE}: best of ten restarts, as there"
    ),
    PaperItem(
        _SUKHBAATAR,
        "errors on bAbI, 10,000 questions",
        "reproduced",
        f"{_TABLE}: one network for each task; the training file of task 3 was missing and is generated",
    ),
    PaperItem(_SUKHBAATAR, "hops on example stories", "reproduced", "saccade look STORY --ask QUESTION"),
    PaperItem(_SUKHBAATAR, "language modelling", "no data", "no question about a story: there is no such task here"),
    PaperItem(_KUMAR, "the network", "drawing", "docs/papers.md leads from its equations to files"),
    PaperItem(
        _KUMAR,
        "Table 1, bAbI",
        "differs",
        f"{_TABLE}: of all tasks together ours errs less and fails more tasks; task by task it errs more",
    ),
    PaperItem(_KUMAR, "sentiment and parts of speech", "no data", "no question about a story: no such task here"),
)
"""Paper by paper."""
