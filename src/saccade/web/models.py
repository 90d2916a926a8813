"""The models of a server: found by name, loaded when first asked, each with a queue and a thread of its own.

A thread cannot be stopped from outside. Work is given up when it takes too long, or when the client hangs up. What was
given up before it began is never started. What has begun ends at its next :meth:`Worker.check`, and then the next piece
starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import TypeVar

from saccade.errors import CheckpointError, ConfigError, MissingExtraError, nearest
from saccade.families import families, headline
from saccade.models.facts import ModelFacts, read_facts
from saccade.predict import Encoded, Predictor, load
from saccade.web.errors import ApiError, problem_of
from saccade.web.family_page import page_entry
from saccade.web.schemas import ModelEntry, ScoreEntry
from saccade.web.serve import Limits
from saccade.web.store import LruStore, StoredPicture
from saccade.zoo import resolve, shipped

Result = TypeVar("Result")


class Cancelled(Exception):  # noqa: N818 (no error: nobody waits for the result)
    """Ends a piece of work whose result is no longer needed."""


class _Piece:
    """A piece of work."""

    is_wanted = True


class Worker:
    """A queue of work for one thread.

    Args:
        name: of what it works for; said when it is too busy.
        waiting: pieces of work in hand at most.
        seconds: for a piece of work, its wait included.
    """

    def __init__(self, name: str, waiting: int, seconds: float) -> None:
        self._name, self._waiting, self._seconds = name, waiting, seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"saccade-{name}")
        self._places = Semaphore(waiting)
        self._now = _Piece()  # set and read in the thread alone

    async def run(self, work: Callable[[], Result]) -> Result:
        """What ``work`` returns; an ApiError if there is no place for it or it takes too long."""
        if not self._places.acquire(blocking=False):
            raise ApiError(429, "busy", f"'{self._name}' has {self._waiting} requests in hand; try again in a moment")
        piece = _Piece()
        job: Future[Result] = self._thread.submit(self._do, piece, work)
        job.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._seconds)  # cancels a job that has not begun
        except TimeoutError as error:
            raise ApiError(
                503, "too_slow", f"'{self._name}' did not answer within {self._seconds:g} s; try again later"
            ) from error
        finally:
            piece.is_wanted = False

    def check(self) -> None:
        """Go on if the piece of work in hand is still wanted; called by that piece itself."""
        if not self._now.is_wanted:
            raise Cancelled

    def _do(self, piece: _Piece, work: Callable[[], Result]) -> Result:
        self._now = piece
        self.check()
        return work()

    def close(self) -> None:
        """Take no more work; what waits is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class ServedModel:
    """One model: its facts at once, its weights when it is first needed."""

    def __init__(self, folder: Path, facts: ModelFacts, name: str, device: str, limits: Limits) -> None:
        self.facts, self.name = facts, name
        self._told = page_entry(facts)  # now: a family that tells it wrongly must not be found out by the page
        self._folder, self._device = folder, device
        self._predictor: Predictor | None = None
        self._problem: str | None = None
        self._encodings: LruStore[Encoded] = LruStore("encoded", limits.encodings_bytes)
        self.worker = Worker(name, limits.waiting, limits.answer_seconds)

    async def run(self, work: Callable[[Predictor], Result]) -> Result:
        """What ``work`` makes of the model, once it is its turn."""

        def loaded() -> Result:
            predictor = self.predictor()
            self.worker.check()
            return work(predictor)

        return await self.worker.run(loaded)

    def predictor(self) -> Predictor:
        """The loaded model; called in its own thread only."""
        if self._predictor is None:
            try:
                self._predictor = load(self._folder, self._device)
            except (CheckpointError, MissingExtraError) as error:
                self._problem = problem_of(error)
                raise
        return self._predictor

    @property
    def takes_json(self) -> bool:
        """Whether what it reads is sent as JSON."""
        return self._told.takes == "json"

    def reading_pictures(self) -> ServedModel:
        """The model itself, where it reads pictures; otherwise an ApiError."""
        if self._told.takes == "picture":
            return self
        how = (
            "; send that as 'input' of /api/ask"
            if self.takes_json
            else ", and nothing else can be sent to this server; ask it with 'saccade look'"
        )
        raise ApiError(
            422, "reads_no_pictures", f"'{self.name}' does not read pictures; it reads: {self._told.reads}{how}"
        )

    def encoded(self, predictor: Predictor, kept: StoredPicture) -> Encoded:
        """What the model makes of a picture before any question: computed once, asked many times."""
        encoded = self._encodings.get(kept.id)
        if encoded is None:
            encoded = predictor.encode(kept.picture)
            self._encodings.put(kept.id, encoded, encoded.features.nbytes + kept.size)
            self.worker.check()
        return encoded

    def entry(self) -> ModelEntry:
        """As the API tells it."""
        score = None
        for first in self.facts.scores[:1]:
            if (best := headline(self.facts.family, first.metrics)) is not None:
                score = ScoreEntry(metric=best[0], value=best[1], data=first.data, split=first.split, n=first.n)
        return ModelEntry(name=self.name, **vars(self._told), score=score, problem=self._problem)


class Models(dict[str, ServedModel]):
    """The models of one server by name, in order."""

    def __missing__(self, name: str) -> ServedModel:
        raise ApiError(404, "unknown_model", f"no model '{name}' here: {nearest(name, self)}")


def served_models(names: Sequence[str | Path], device: str, limits: Limits) -> Models:
    """The models of a server.

    Args:
        names: zoo names, model folders or run folders; none means every model that ships with saccade, those first that
            their families feature.
        device: where they compute.
        limits: of queues and memory.
    """
    models, ships = Models(), shipped()
    featured = [name for family in families().values() for name in family.featured if name in ships]
    for folder in map(resolve, names or dict.fromkeys([*featured, *ships])):
        facts = read_facts(folder)
        own = folder.parent.name if folder.name == "model" else folder.name  # a run keeps its model in model/
        name = facts.name or own
        if name in models:
            raise ConfigError(f"two models are called '{name}': serve one of them")
        models[name] = ServedModel(folder, facts, name, device, limits)
    return models
