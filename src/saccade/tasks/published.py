"""What the papers printed, cell by cell, so that every measured number can stand beside it.

All values are fractions. A published number says nothing of the projection, the seeds or the size of the test set
unless its paper does; ``note`` says what is known.
"""

from __future__ import annotations

from dataclasses import dataclass

SEO_2016 = "Seo et al. 2016, Table 1 (arXiv:1606.02393)"


@dataclass(frozen=True)
class Published:
    """One row of a paper's table for one data set."""

    metrics: dict[str, float]
    source: str
    note: str = ""


_NOTE = "one run, sizes and seeds not given; glyphs shared between training and test in the released code"

PUBLISHED: dict[tuple[str, str], Published] = {
    ("stn", "mref"): Published({"accuracy": 0.3910}, SEO_2016, _NOTE),
    ("soft", "mref"): Published({"accuracy": 0.8294, "true_positive_strength": 0.1361}, SEO_2016, _NOTE),
    ("hard", "mref"): Published({"accuracy": 0.8184, "true_positive_strength": 0.1395}, SEO_2016, _NOTE),
    ("hattnet", "mref"): Published({"accuracy": 0.9592, "true_positive_strength": 0.1739}, SEO_2016, _NOTE),
    ("hattnet-ctx", "mref"): Published({"accuracy": 0.9851, "true_positive_strength": 0.2259}, SEO_2016, _NOTE),
    ("uniform", "mref"): Published({"true_positive_strength": 0.0234}, SEO_2016, "attention spread evenly"),
}
