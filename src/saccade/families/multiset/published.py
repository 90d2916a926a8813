"""Table 1 of Welleck et al. (2017, arXiv:1711.05165), cell by cell; all values are fractions."""

from __future__ import annotations

from saccade.tasks.published import Published

WELLECK_2017 = "Welleck et al. 2017, Table 1 (arXiv:1711.05165)"

_TABLE_1: dict[str, dict[str, tuple[float, float]]] = {  # F1, 0-1
    "hsal": {"mnist-set": (0.990, 0.960), "mnist-multiset": (0.978, 0.935), "svhn": (0.973, 0.947)},
    "hsal-ce": {"mnist-set": (0.735, 0.478), "mnist-multiset": (0.726, 0.477), "svhn": (0.589, 0.307)},
}
_TABLE_1["hsal-plain"] = _TABLE_1["hsal"]  # one published row: the system as published, and the improved one
_MNIST_NOTE = (
    "one run on 60,000 / 10,000 pictures; F1 is macro-F1 as in Li et al. 2017; whether glyphs are shared: not stated"
)
_SVHN_NOTE = "one run on the official splits; F1 is macro-F1 as in Li et al. 2017"

PUBLISHED: dict[tuple[str, str], Published] = {
    (system, data): Published(
        {"macro_f1": f1, "exact_match": exact}, WELLECK_2017, _SVHN_NOTE if data == "svhn" else _MNIST_NOTE
    )
    for system, cells in _TABLE_1.items()
    for data, (f1, exact) in cells.items()
}
"""(system, data set) → its row."""
