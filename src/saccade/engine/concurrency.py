"""How many runs train at the same time: set by option, by cores, and by the memory that the first run used.

On the CPU as many begin at once as there are cores. On a GPU the first begins alone. After a few steps it says how much
memory it took and how much is free; the others begin as far as they fit. A run of another recipe may need more, so on a
GPU no two recipes that were not measured yet begin together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

SPARE = 1.25
"""A run is taken to need this times what it took so far: validation may need more than training."""
KEPT_FREE = 0.1
"""Share of the memory that is left alone."""
CONTEXT = 700 * 2**20
"""Bytes of the GPU that a process takes besides its tensors, for CUDA itself and captured graphs."""


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def threads_each(runs: int, at_once: int | None, available: int) -> int:
    """CPU threads of each run, so that those side by side share the cores.

    >>> threads_each(5, None, 16), threads_each(5, 2, 16), threads_each(5, None, 2)
    (3, 8, 1)
    """
    return max(1, available // max(1, min(runs, at_once or available)))


class Concurrency:
    """The number of runs that may train at the same time, and why.

    Args:
        runs: how many there are.
        chosen: as the user said; None: found out.
        measured_first: let the first begin alone and wait for its memory.
        available: cores.
    """

    def __init__(self, runs: int, *, chosen: int | None, measured_first: bool, available: int) -> None:
        self._runs, self._cores, self._is_fixed = runs, available, chosen is not None
        self.waits_for_memory = measured_first and chosen is None and runs > 1
        self._most = min(runs, available)
        self._room: dict[str, int] = {}  # bytes for all runs, by kind of memory
        self._used: dict[str, int] = {}  # the most that one run took
        self._measured: set[str] = set()
        if chosen is not None:
            self.limit, self.why = min(chosen, runs), "as asked"
        elif self.waits_for_memory:
            self.limit, self.why = 1, "the first alone, until its memory is known"
        else:
            self.limit, self.why = self._most, self._by_cores()

    def may_begin(self, recipe: str, running: list[str]) -> bool:
        """Whether a run of ``recipe`` may begin beside ``running``, the recipes of those that train now."""
        if len(running) >= self.limit:
            return False
        is_unknown = recipe not in self._measured
        return not (self.waits_for_memory and is_unknown and any(each not in self._measured for each in running))

    def measured(self, recipe: str, memory: Mapping[str, Mapping[str, int]]) -> bool:
        """Take note of what a run took; whether the number changed, or was found out."""
        is_first = not self._measured
        self._measured.add(recipe)
        grew = False
        for kind, found in memory.items():
            used = found["used"] + (CONTEXT if kind == "device" else 0)
            self._room.setdefault(kind, found["free"] + used)
            if used > self._used.get(kind, 0):
                self._used[kind], grew = used, True
        if self._is_fixed or not (grew or is_first) or self._runs == 1:
            return False
        before = self.limit
        self.limit, self.why = self._found()
        return self.limit != before or (is_first and self.waits_for_memory)

    def too_many(self, running: int) -> None:
        """A run of ``running`` at once ran out of memory: from now on there is one fewer."""
        if running - 1 < self.limit:
            self.limit, self.why = max(1, running - 1), f"{running} at once ran out of memory"
            self._most = self.limit

    def _found(self) -> tuple[int, str]:
        limit, why = self._most, self._by_cores()
        for kind, room in self._room.items():
            used = self._used[kind]
            fit = max(1, int(room * (1 - KEPT_FREE) / (used * SPARE)))
            if fit < limit or (fit == limit and kind == "device"):
                limit = fit
                why = f"{room / 2**30:.1f} GiB of the {kind}'s memory, {used / 2**30:.1f} GiB for a run so far"
        return limit, why

    def _by_cores(self) -> str:
        return f"{self._runs} runs, {self._cores} core{'s' if self._cores != 1 else ''}"
