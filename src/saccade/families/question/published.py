"""Tables 1 and 2 of Seo et al. (2016, arXiv:1606.02393), cell by cell; all values are fractions."""

from __future__ import annotations

from saccade.tasks.published import Published

SEO_2016 = "Seo et al. 2016, Table 1 (arXiv:1606.02393)"
SEO_2016_TABLE_2 = "Seo et al. 2016, Table 2 (arXiv:1606.02393)"

OTHER_PHOTOGRAPHS = "not comparable: other photographs than SUN"
"""Stands beside every number measured on MBG: the paper's backgrounds are the SUN database."""

_NOTE = "one run, sizes and seeds not given; glyphs shared between training and test in the released code"
_EVENLY = "attention spread evenly"
_NOT_COMPARABLE = {"mbg": OTHER_PHOTOGRAPHS}

_TABLE_1: dict[str, dict[str, tuple[float | None, float | None]]] = {  # accuracy (1a), true-positive strength (1b)
    "stn": {"mref": (0.3910, None), "mdist": (0.3832, None), "mbg": (0.3227, None)},
    "soft": {"mref": (0.8294, 0.1361), "mdist": (0.7573, 0.1256), "mbg": (0.5377, 0.0673)},
    "hard": {"mref": (0.8184, 0.1395), "mdist": (0.7849, 0.1381), "mbg": (0.5584, 0.0764)},
    "hattnet": {"mref": (0.9592, 0.1739), "mdist": (0.9165, 0.1310), "mbg": (0.6946, 0.0862)},
    "hattnet-ctx": {"mref": (0.9851, 0.2259), "mdist": (0.9602, 0.2280), "mbg": (0.8101, 0.1101)},
    "uniform": {"mref": (None, 0.0234), "mdist": (None, 0.0235), "mbg": (None, 0.0239)},
}

_TABLE_1["stn-plain"] = _TABLE_1["stn"]  # two readings of one published row: a free window, and a bounded one

_TABLE_2: dict[str, tuple[float, float]] = {  # weighted mAP: attention only, with the prior of the object class
    "soft": (0.2484, 0.2888),
    "hard": (0.2381, 0.2804),
    "hattnet-ctx": (0.2704, 0.3038),
}


def _rows() -> dict[tuple[str, str], Published]:
    rows = {}
    for system, cells in _TABLE_1.items():
        note = _EVENLY if system == "uniform" else _NOTE
        for data, values in cells.items():
            named = zip(("accuracy", "true_positive_strength"), values)
            metrics = {name: value for name, value in named if value is not None}
            rows[system, data] = Published(metrics, SEO_2016, note, _NOT_COMPARABLE.get(data, ""))
    for system, both in _TABLE_2.items():
        metrics = dict(zip(("weighted_map", "weighted_map_with_prior"), both))
        rows[system, "vg"] = Published(metrics, SEO_2016_TABLE_2, "one run; how the prior enters is not stated")
    return rows


PUBLISHED: dict[tuple[str, str], Published] = _rows()
"""(system, data set) → its row."""
