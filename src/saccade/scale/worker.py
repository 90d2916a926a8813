"""One worker: loads the model once, then turns parts into files. Engines differ in how many there are, and where."""

from __future__ import annotations

from typing import Any

import saccade
from saccade.errors import CheckpointError, SaccadeError
from saccade.predict import Predictor, load
from saccade.scale.job import Job, Part, model_digest
from saccade.scale.output import Receipt, begin_try, end_tries, part_counts, write_part
from saccade.scale.reading_ahead import PictureReader
from saccade.scale.rows import RowMaker
from saccade.scale.stores import Folder

TRIES = 5
"""How often a part is tried whose worker ends: machines get lost, but not five times with the same part."""


class Worker:
    """Does parts of a job.

    Args:
        job: what is asked.
        out: where the files go.
        batch: pictures that go through the model together.
        device: auto, cpu, cuda …
        decoders: processes that decode; None: one a core, four at most.
        counts_tries: note when a part is begun, so that one that ends its worker again and again is given up.
        predictor: the model, where the caller has it already.
    """

    def __init__(
        self,
        job: Job,
        out: str,
        *,
        batch: int,
        device: str,
        decoders: int | None = None,
        counts_tries: bool = False,
        predictor: Predictor | None = None,
    ) -> None:
        self._job, self._folder, self._counts_tries, self._batch = job, Folder(out), counts_tries, batch
        predictor = loaded(job, device) if predictor is None else predictor
        self._reader = PictureReader(decoders)
        self._rows = RowMaker(predictor, job, self._reader, batch)

    def do(self, part: Part) -> Receipt:
        """Write the file of a part, if it is not there; an error of the input or the model is told, not raised."""
        try:
            name = part.file(self._job)
            if self._folder.has(name):  # an earlier try wrote it, and its worker ended before it could say so
                rows, errors, unlike = part_counts(self._folder, name)
                return Receipt(part.number, rows, errors, unlike=unlike)
            if self._counts_tries and (tries := begin_try(self._folder, name)) > TRIES:
                return Receipt(part.number, failed=self._given_up(part, tries - 1))
            receipt = write_part(self._folder, part, self._job, self._rows.rows(part))
            if self._counts_tries:
                end_tries(self._folder, name)
            return receipt
        except SaccadeError as error:
            return Receipt(part.number, failed=str(error))

    def _given_up(self, part: Part, tries: int) -> str:
        return (
            f"part {part.number} (from {part.members[0].uri}) ended its worker {tries} times, as happens when memory "
            f"runs out; take a smaller `batch_size` than {self._batch}, fewer `actors`, or machines with more memory"
        )

    def close(self) -> None:
        """End the processes that decode."""
        self._reader.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *told: Any) -> None:
        self.close()


def loaded(job: Job, device: str) -> Predictor:
    """The model of a job, once it is known to be the one that the job was begun with."""
    predictor = load(job.model, device)
    if (found := digest_of(job.model)) != job.digest:
        raise CheckpointError(
            f"{job.model}: another model here than where the job was begun ({found[:8]}, not {job.digest[:8]}; saccade "
            f"{saccade.__version__}); all machines need the same"
        )
    return predictor


def digest_of(model: str) -> str:
    """Digest of the model called ``model``."""
    from saccade.tracing.published import is_published
    from saccade.zoo import resolve

    return model_digest(None if is_published(model) else resolve(model), model)
