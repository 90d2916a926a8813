"""Keep what the runs of a system of stories gave: test all restarts on the official bAbI files, write one record.

python tools/record_stories.py RUN … --data babi:PATH --command "saccade train …"

A RUN is a run folder, or a folder of run folders (one for each task). The record goes to docs/results, or to --out. It
needs no drawing and no web library.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from saccade.errors import SaccadeError
from saccade.families.story.reproduction.record import record_runs, run_folders
from saccade.recorded.runs import VARIANTS

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders of run folders")
    parser.add_argument("--data", required=True, help="babi:PATH of the official files")
    parser.add_argument("--system", help="the row of the table, as memn2n-ls-1hop; by default the name of the recipe")
    parser.add_argument("--command", required=True, help="the command that trained them")
    parser.add_argument("--generated", type=int, nargs="*", default=(), help="tasks whose training file was generated")
    parser.add_argument("--revision", help="commit of the code, where the runs could not know it")
    parser.add_argument("--variant", action="store_true", help="other settings than the recipe's: into variants/")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        record = record_runs(
            run_folders(options.runs),
            system=options.system,
            data=options.data,
            command=options.command,
            folder=options.out / VARIANTS if options.variant else options.out,
            generated=options.generated,
            device=options.device,
            revision=options.revision,
            progress=lambda what, done, total: print(f"{done}/{total} {what}", file=sys.stderr),
        )
    except SaccadeError as error:
        print(error, file=sys.stderr)
        return 2
    held = record.evaluation.metrics
    told = f"mean error {100 * held['mean_error']:.2f} %, failed {held['failed_tasks']}"
    print(f"{record.name}: {told}, in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
