"""Score a shipped model's maps under every projection, and keep it for the docs.

python tools/projections.py soft-mref hattnet-ctx-mref
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from saccade.config import to_dict
from saccade.families.question.reproduction.projections import study_projections
from saccade.predict import load

PROJECTIONS = Path(__file__).parent.parent / "docs" / "results" / "projections"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="zoo names")
    parser.add_argument("--count", type=int, default=2000, help="test examples")
    options = parser.parse_args()
    PROJECTIONS.mkdir(exist_ok=True)
    for name in options.models:
        values = to_dict(study_projections(load(name), options.count))
        (PROJECTIONS / f"{name}.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
