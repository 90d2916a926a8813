"""What the papers printed, cell by cell, so that every measured number can stand beside it.

All values are fractions. A published number says nothing of the projection, the seeds or the size of the test set
unless its paper does; ``note`` says what is known, and ``comparable`` why a cell measured here is another thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from saccade.models.io.facts import ModelFacts

SEO_2016 = "Seo et al. 2016, Table 1 (arXiv:1606.02393)"
SEO_2016_TABLE_2 = "Seo et al. 2016, Table 2 (arXiv:1606.02393)"

WELLECK_2017 = "Welleck et al. 2017, Table 1 (arXiv:1711.05165)"

XU_2015 = "Xu et al. 2015, Table 1 (arXiv:1502.03044)"

OTHER_PHOTOGRAPHS = "not comparable: other photographs than SUN"
"""What stands beside every number measured on MBG: the paper's backgrounds are the SUN database."""


@dataclass(frozen=True)
class Published:
    """One row of a paper's table for one data set."""

    metrics: dict[str, float]
    source: str
    note: str = ""
    not_comparable: str = ""
    """Why what is measured here cannot be compared with it; empty where it can."""


_NOTE = "one run, sizes and seeds not given; glyphs shared between training and test in the released code"
_EVENLY = "attention spread evenly"
_OTHERWISE = {"mbg": OTHER_PHOTOGRAPHS}

_TABLE_1: dict[str, dict[str, tuple[float | None, float | None]]] = {  # accuracy (1a), true-positive strength (1b)
    "stn": {"mref": (0.3910, None), "mdist": (0.3832, None), "mbg": (0.3227, None)},
    "soft": {"mref": (0.8294, 0.1361), "mdist": (0.7573, 0.1256), "mbg": (0.5377, 0.0673)},
    "hard": {"mref": (0.8184, 0.1395), "mdist": (0.7849, 0.1381), "mbg": (0.5584, 0.0764)},
    "hattnet": {"mref": (0.9592, 0.1739), "mdist": (0.9165, 0.1310), "mbg": (0.6946, 0.0862)},
    "hattnet-ctx": {"mref": (0.9851, 0.2259), "mdist": (0.9602, 0.2280), "mbg": (0.8101, 0.1101)},
    "uniform": {"mref": (None, 0.0234), "mdist": (None, 0.0235), "mbg": (None, 0.0239)},
}

_TABLE_2: dict[str, tuple[float, float]] = {  # weighted mAP: attention only, with the prior of the object class
    "soft": (0.2484, 0.2888),
    "hard": (0.2381, 0.2804),
    "hattnet-ctx": (0.2704, 0.3038),
}

_MULTISETS: dict[str, dict[str, tuple[float, float]]] = {  # F1, 0-1
    "hsal": {"mnist-set": (0.990, 0.960), "mnist-multiset": (0.978, 0.935), "svhn": (0.973, 0.947)},
    "hsal-ce": {"mnist-set": (0.735, 0.478), "mnist-multiset": (0.726, 0.477), "svhn": (0.589, 0.307)},
}
_MULTISET_NOTE = "one run on 60,000 / 10,000 pictures; how the F1 is averaged and whether glyphs are shared: not stated"
_SVHN_NOTE = "one run on the official splits; how the F1 is averaged is not stated"

_CAPTIONS: dict[str, dict[str, tuple[float | None, ...]]] = {  # BLEU-1 … 4 without brevity penalty, METEOR
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
CAPTION_METRICS = ("bleu_1_nobp", "bleu_2_nobp", "bleu_3_nobp", "bleu_4_nobp", "meteor")
"""The columns of Xu et al., Table 1; METEOR is that of the jar, version 1.5."""
_CAPTION_NOTE = "one model on VGG-19 features, 5 references a picture; the width of the beam is not stated"
_OTHERS_NOTE = "as Xu et al. quote it; some of these systems are ensembles, or on other splits or features"


def _rows() -> dict[tuple[str, str], Published]:
    rows = {}
    for system, cells in _TABLE_1.items():
        note = _EVENLY if system == "uniform" else _NOTE
        for data, values in cells.items():
            named = zip(("accuracy", "true_positive_strength"), values)
            metrics = {name: value for name, value in named if value is not None}
            rows[system, data] = Published(metrics, SEO_2016, note, _OTHERWISE.get(data, ""))
    for system, both in _TABLE_2.items():
        metrics = dict(zip(("weighted_map", "weighted_map_with_prior"), both))
        rows[system, "vg"] = Published(metrics, SEO_2016_TABLE_2, "one run; how the prior enters is not stated")
    for system, by_data in _MULTISETS.items():
        for data, both in by_data.items():
            metrics = dict(zip(("macro_f1", "exact_match"), both))
            rows[system, data] = Published(metrics, WELLECK_2017, _SVHN_NOTE if data == "svhn" else _MULTISET_NOTE)
    for system, printed in _CAPTIONS.items():
        note = _CAPTION_NOTE if system.startswith("sat-") else _OTHERS_NOTE
        for data, line in printed.items():
            metrics = {name: value for name, value in zip(CAPTION_METRICS, line) if value is not None}
            rows[system, data] = Published(metrics, XU_2015, note)
    return rows


PUBLISHED: dict[tuple[str, str], Published] = _rows()
"""(system, data set) → its row."""


def published_for(facts: ModelFacts) -> Published | None:
    """What is published of the system that ``facts`` are of; None of one that was taught or built in another way.

    Its recipe tells: ``hsal-mnist-set`` and ``sat-soft`` are systems of the papers, ``hsal-ordered-mnist-set`` and
    ``sat-soft-tuned`` are not.
    """
    system, data = facts.architecture, str(facts.data.get("name"))
    recipe = facts.recipe.get("name", system)
    return PUBLISHED.get((system, data)) if recipe == system or recipe.startswith(f"{system}-{data}") else None
