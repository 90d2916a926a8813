"""Goldens: what saccade computes today, stored in tests/golden, so that a change that should change nothing proves it.

::

    python tools/golden.py check                         # score the shipped models again; exit 1 if a number differs
    python tools/golden.py check soft-mref crown-cub     # these models alone
    python tools/golden.py write                         # store the scores anew
    python tools/golden.py write --models soft-mref      # of these models alone
    python tools/golden.py write pictures sightings runs # store anew what tests/golden compares in `make test`

This file is the command; the parts have files of their own.
"""

from __future__ import annotations

import argparse
import sys

import golden_evaluations
import golden_runs
import golden_sightings
import torch

PARTS = {
    "pictures": golden_sightings.write_pictures,
    "sightings": golden_sightings.write_sightings,
    "runs": golden_runs.write_runs,
    "evaluations": golden_evaluations.write_evaluations,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="store parts anew")
    write.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; evaluations if none is named")
    write.add_argument("--models", nargs="*", default=[], help="scores of these alone are stored anew")
    check = verbs.add_parser("check", help="score the shipped models again and report every difference")
    check.add_argument("models", nargs="*", help="these alone")
    given = parser.parse_args()
    torch.set_num_threads(1)  # sums of floats depend on how they are split
    if given.verb == "check":
        found = golden_evaluations.check_evaluations(_known(parser, given.models, golden_evaluations.cases()))
        print("\n".join(found) or "every number is as stored")
        return 1 if found else 0
    models = _known(parser, given.models, golden_evaluations.cases())
    parts = _known(parser, given.parts, PARTS) or ["evaluations"]
    if models and parts != ["evaluations"]:
        parser.error("--models is for evaluations alone; the other parts are written whole")
    for part in parts:
        PARTS[part](*([models] if part == "evaluations" else []))
    return 0


def _known(parser: argparse.ArgumentParser, names: list[str], known: dict) -> list[str]:
    """The names, all of which must be known; of a case MODEL@TABLE the model is enough."""
    for name in names:
        if name not in known and not any(each.partition("@")[0] == name for each in known):
            parser.error(f"unknown: '{name}'; one of {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
