"""Goldens: what saccade computes today, stored in tests/golden, so that a change that should change nothing proves it.

    python tools/golden.py write pictures sightings   # these parts anew

This file is the command; the parts have files of their own.
"""

from __future__ import annotations

import argparse

import golden_runs
import golden_sightings
import torch

PARTS = {
    "pictures": golden_sightings.write_pictures,
    "sightings": golden_sightings.write_sightings,
    "runs": golden_runs.write_runs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["write"])
    parser.add_argument("parts", nargs="*", choices=list(PARTS))
    given = parser.parse_args()
    torch.set_num_threads(1)  # sums of floats depend on how they are split
    for part in given.parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
