"""A bounded store: the most recently used entries are kept, the oldest are dropped."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class LruStore(Generic[Thing]):
    """Things by name, least recently used first to go; threads may share one.

    Args:
        budget: bytes of all things together; one that is larger by itself is kept until the next comes.
        places: how many things at most.
    """

    def __init__(self, budget: int, places: int = 4096) -> None:
        self._budget, self._places = budget, places
        self._things: OrderedDict[str, tuple[Thing, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, name: str, thing: Thing, size: int) -> None:
        """Keep ``thing``, which takes ``size`` bytes, under ``name``."""
        with self._lock:
            self._bytes -= self._things.pop(name, (None, 0))[1]
            self._things[name] = (thing, size)
            self._bytes += size
            while len(self._things) > 1 and (self._bytes > self._budget or len(self._things) > self._places):
                self._bytes -= self._things.popitem(last=False)[1][1]

    def get(self, name: str) -> Thing | None:
        """The thing called ``name``, now the latest used; None if it is not (or no longer) there."""
        with self._lock:
            if name not in self._things:
                return None
            self._things.move_to_end(name)
            return self._things[name][0]

    @property
    def bytes(self) -> int:
        """Bytes of all entries."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._things)
