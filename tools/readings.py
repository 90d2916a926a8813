"""Score the shipped models under every reading of Table 1b, and keep it for the tables.

python tools/readings.py mref mdist
"""

from __future__ import annotations

import argparse
import json

from saccade.atomic import make_folder
from saccade.config import to_dict
from saccade.families.question.reproduction.readings import FOLDER, SYSTEMS, study_readings
from saccade.predict import load
from saccade.recorded import results_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", help="mref, mdist or mbg")
    parser.add_argument("--count", type=int, default=2000, help="test questions")
    options = parser.parse_args()
    folder = make_folder(results_folder() / FOLDER)
    for data in options.data:
        study = study_readings({system: load(f"{system}-{data}") for system in SYSTEMS}, data, options.count)
        (folder / f"{data}.json").write_text(json.dumps(to_dict(study), indent=1) + "\n")


if __name__ == "__main__":
    main()
