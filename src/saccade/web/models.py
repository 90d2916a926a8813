"""The models of a server: found by name, loaded when first asked, each with a queue and a thread of its own.

A thread cannot be stopped from outside. Work that takes too long, or whose client hung up, ends at its next
:meth:`Worker.check`; if it has not begun, it never starts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock, Semaphore
from typing import Generic, TypeVar

from torch.utils._pytree import tree_leaves

from saccade.errors import CheckpointError, ConfigError, MissingExtraError, nearest
from saccade.families.registry import families, headline
from saccade.models.facts import ModelFacts, read_facts
from saccade.predict import Encoded, Predictor, load
from saccade.web.guard import Limits
from saccade.web.page import page_entry
from saccade.web.pictures import StoredPicture
from saccade.web.schemas import ApiError, ModelEntry, ScoreEntry
from saccade.zoo.folders import resolve, shipped

Thing = TypeVar("Thing")
Result = TypeVar("Result")


class LruStore(Generic[Thing]):
    """Things by name, least recently used first to go, within a ``budget`` of bytes; the latest stays."""

    def __init__(self, kind: str, budget: int, places: int = 4096) -> None:
        self._kind, self._budget, self._places = kind, budget, places
        self._things: OrderedDict[str, tuple[Thing, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, name: str, thing: Thing, size: int) -> Thing:
        """Keep ``thing``, which takes ``size`` bytes, under ``name``."""
        with self._lock:
            self._bytes -= self._things.pop(name, (None, 0))[1]
            self._things[name] = (thing, size)
            self._bytes += size
            while len(self._things) > 1 and (self._bytes > self._budget or len(self._things) > self._places):
                self._bytes -= self._things.popitem(last=False)[1][1]
        return thing

    def get(self, name: str) -> Thing | None:
        """The thing called ``name``, now the latest used; None if it is not (or no longer) there."""
        with self._lock:
            if name not in self._things:
                return None
            self._things.move_to_end(name)
            return self._things[name][0]

    def find(self, name: str) -> Thing:
        """The same; an ApiError if it is not there."""
        thing = self.get(name)
        if thing is None:
            raise ApiError(404, f"unknown_{self._kind}", f"no {self._kind} '{name}' here (any more); send or ask again")
        return thing


class Worker:
    """A queue of work for one thread: at most ``waiting`` pieces, each for ``seconds``, its wait included."""

    def __init__(self, name: str, waiting: int, seconds: float) -> None:
        self._name, self._waiting, self._seconds = name, waiting, seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"saccade-{name}")
        self._places = Semaphore(waiting)
        self._given_up = Event()  # of the piece in hand; set and read in the thread alone

    async def run(self, work: Callable[[], Result]) -> Result:
        """What ``work`` returns; an ApiError if there is no place for it or it takes too long."""
        if not self._places.acquire(blocking=False):
            raise ApiError(429, "busy", f"'{self._name}' has {self._waiting} requests in hand; try again in a moment")
        given_up = Event()

        def do() -> Result:
            self._given_up = given_up
            self.check()
            return work()

        job = self._thread.submit(do)
        job.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._seconds)  # cancels a job that has not begun
        except TimeoutError as error:
            message = f"'{self._name}' did not answer within {self._seconds:g} s; try again later"
            raise ApiError(503, "too_slow", message) from error
        finally:
            given_up.set()

    def check(self) -> None:
        """Go on if this piece of work is still wanted; called by that piece itself."""
        if self._given_up.is_set():
            raise CancelledError

    def close(self) -> None:
        """Take no more work; what waits is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class ServedModel:
    """One model: its facts at once, its weights when it is first needed."""

    def __init__(self, folder: Path, facts: ModelFacts, name: str, device: str, limits: Limits) -> None:
        self.facts, self.name = facts, name
        self.page_entry = page_entry(facts)  # now: a family that tells it wrongly must not be found out by the page
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

    def reading_pictures(self) -> ServedModel:
        """The model itself, where it reads pictures; otherwise an ApiError."""
        if self.page_entry.takes == "picture":
            return self
        how = "send that as 'input' of /api/ask" if self.page_entry.takes == "json" else "ask it with 'saccade look'"
        message = f"'{self.name}' does not read pictures; it reads: {self.page_entry.reads}; {how}"
        raise ApiError(422, "reads_no_pictures", message)

    def encoded(self, predictor: Predictor, stored: StoredPicture) -> Encoded:
        """What the model makes of a picture before any question: computed once, asked many times."""
        encoded = self._encodings.get(stored.id)
        if encoded is None:
            encoded = predictor.encode(stored.picture)
            size = sum(tensor.nbytes for tensor in tree_leaves(encoded.features))  # one tensor, or several by name
            self._encodings.put(stored.id, encoded, size + stored.size)
            self.worker.check()
        return encoded

    def entry(self) -> ModelEntry:
        """As the API returns it."""
        score = None
        for first in self.facts.scores[:1]:
            if (best := headline(self.facts.family, first.metrics)) is not None:
                score = ScoreEntry(metric=best[0], value=best[1], data=first.data, split=first.split, n=first.n)
        return ModelEntry(name=self.name, **vars(self.page_entry), score=score, problem=self._problem)


class Models(dict[str, ServedModel]):
    """The models of one server by name, in order."""

    def __missing__(self, name: str) -> ServedModel:
        raise ApiError(404, "unknown_model", f"no model '{name}' here: {nearest(name, self)}")


def problem_of(error: CheckpointError | MissingExtraError) -> str:
    """Why a model cannot be loaded, without saying where on this machine it lies."""
    is_here = isinstance(error, CheckpointError)
    return "its folder cannot be loaded; the server's log says why" if is_here else str(error)


def served_models(names: Sequence[str | Path], device: str, limits: Limits) -> Models:
    """The models of a server; without ``names`` every one that ships, those first that their families feature."""
    models, ships = Models(), shipped()
    featured = [name for family in families().values() for name in family.featured if name in ships]
    for folder in map(resolve, names or dict.fromkeys([*featured, *ships])):
        facts = read_facts(folder)
        folder_name = folder.parent.name if folder.name == "model" else folder.name  # a run keeps its model in model/
        name = facts.name or folder_name
        if name in models:
            raise ConfigError(f"two models are called '{name}': serve one of them")
        models[name] = ServedModel(folder, facts, name, device, limits)
    return models
