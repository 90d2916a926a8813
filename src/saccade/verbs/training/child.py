"""One run of several, in a process of its own: ``python -m saccade.verbs.training.child``.

The first line of standard input is the job, the second says that training may begin; without a second line the process
ends and has written nothing. Events go to standard output (`saccade.engine.event_lines`): ``ready``, the progress,
``refused`` with a reason, or ``result``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import warnings
from pathlib import Path
from typing import IO

from saccade.config import from_dict
from saccade.engine.event_lines import LineReporter
from saccade.engine.parallel_runs import REFUSED
from saccade.errors import SaccadeError
from saccade.verbs.training.run import Settings, describe, prepare


def train_child(orders: IO[str], reporter: LineReporter) -> int:
    """Train what ``orders`` say; the exit code."""
    # takes seconds, so before it is told to begin
    import torch._dynamo  # optimisers import it, compiled or not  # noqa: F401

    from saccade.engine.loop import fit

    job = json.loads(orders.readline())
    out, resume = Path(job["out"]), bool(job["resume"])
    try:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always", UserWarning)
            task, recipe = prepare(job["recipe"], from_dict(Settings, job["settings"]), out=out, resume=resume)
        reporter.emit("ready")
        line = orders.readline()
        if not line:
            return 0
        begin = json.loads(line)
        for doubt in doubts:
            if issubclass(doubt.category, UserWarning):
                reporter.note(f"warning: {' '.join(str(doubt.message).split())}")
        result = fit(
            task,
            recipe,
            out,
            resume=resume,
            accept_changed_data=bool(job["accept_changed_data"]),
            max_minutes=begin["max_minutes"],
            device=begin["device"],
            progress=reporter,
        )
        describe(task, result)
    except SaccadeError as error:
        reporter.emit("refused", text=" ".join(str(error).split()))
        return REFUSED
    told = {name: str(value) if isinstance(value, Path) else value for name, value in vars(result).items()}
    reporter.emit("result", **told | {"best": None if result.best is None else dataclasses.asdict(result.best)})
    return 0


def main() -> int:
    """Keep standard output for events: what else is printed goes to standard error."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return train_child(sys.stdin, LineReporter(events))


if __name__ == "__main__":
    sys.exit(main())
