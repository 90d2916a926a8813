"""The engine of one machine: the parts one after the other, in this process."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from saccade.predict import Predictor
from saccade.scale.job import Job, Part
from saccade.scale.output import Receipt
from saccade.scale.worker import Worker


def run_here(
    job: Job, parts: Sequence[Part], out: str, *, batch: int, device: str, predictor: Predictor
) -> Generator[Receipt, None, None]:
    """What becomes of each part."""
    with Worker(job, out, batch=batch, device=device, predictor=predictor) as worker:
        for part in parts:
            yield worker.do(part)
