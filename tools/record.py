"""Keep what a run gave: join its evaluation with how it was trained, as one file in docs/results.

saccade evaluate RUN --json > evaluation.json
python tools/record.py evaluation.json RUN --name soft-mref-unlimited-seed0 --command "saccade train …"
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from saccade.recorded import save_run_record

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("run", type=Path, help="the run folder that was evaluated")
    parser.add_argument("--name", required=True, help="SYSTEM-DATA-…: what stands before the data set is its row")
    parser.add_argument("--command", required=True, help="the command that trained it")
    parser.add_argument("--revision", help="commit of the code, where the run could not know it")
    parser.add_argument("--variant", action="store_true", help="other settings than the recipe's: into variants/")
    options = parser.parse_args()
    save_run_record(
        json.loads(options.evaluation.read_text()),
        options.run,
        name=options.name,
        command=options.command,
        folder=RESULTS / "variants" if options.variant else RESULTS,
        revision=options.revision,
    )


if __name__ == "__main__":
    main()
