"""Round the weights of runs to the type they will ship in, before they are evaluated and recorded.

python tools/store_as.py int8 RUN…
saccade evaluate RUN --json > evaluation.json

A run that is trained with ``--set stored=int8`` is stored so from the beginning and needs none of this.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from saccade.models.facts import WEIGHTS, StoredType
from saccade.models.folder import store_as


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtype", choices=get_args(StoredType))
    parser.add_argument("--whole", action="store_true", help="write the ImageNet weights too: it loads anywhere")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    options = parser.parse_args()
    for run in options.runs:
        weights = run / "model" / WEIGHTS
        before = weights.stat().st_size
        store_as(run / "model", options.dtype, whole=options.whole)
        print(f"{run}: {before:,} → {weights.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
