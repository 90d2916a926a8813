"""Every number that ``saccade.evaluate`` gives for the shipped models, stored and compared.

Scenes are made of the shipped glyphs and backgrounds and the cache is left out, so that the numbers depend on the code
alone. Two models were trained on pictures that do not ship: hsal-svhn-multiset is scored on scenes of digits, crown-cub
on a table of the golden pictures. hsal-mnist-multiset is scored on such a table too.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from golden_sightings import GOLDEN, PICTURES, shipped

import saccade

STORED = GOLDEN / "evaluations.json"
NEAR = 1e-6
"""Largest difference of a fraction that is none; of larger numbers, the largest share."""
LIMIT, SWEEPS = 200, 10
ON_PHOTOGRAPHS = {"crown-cub", "ran-56-cifar10", "sat-soft-photos"}
"""Models that scenes of digits tell nothing about."""
ON_STORIES = {"memn2n-babi", "memn2n-stories", "dmn-babi"}
"""Models that read stories: they are scored on generated ones."""
ON_DETAILS = {"racnn-details"}
"""Models that are scored on scenes without digits."""
ON_FILES = {"crown-cub": "parts", "hsal-mnist-multiset": "labels"}
"""Models that are scored on a table of the golden pictures: its name."""


def cases() -> dict[str, dict[str, Any]]:
    """Arguments of ``evaluate`` by the name of the case: a model, or MODEL@TABLE."""
    found: dict[str, dict[str, Any]] = {}
    for model in shipped():
        if model in ON_STORIES:
            found[model] = {"model": model, "data": "stories", "limit": LIMIT, "sweeps": SWEEPS}
        elif model in ON_DETAILS:
            found[model] = {"model": model, "limit": LIMIT // 5}  # its pictures are large
        elif model not in ON_PHOTOGRAPHS:
            scenes: dict[str, Any] = {"model": model, "glyphs": "pack", "limit": LIMIT}
            scenes |= {} if model.startswith(("hsal", "sat")) else {"sweeps": SWEEPS, "twins": 0}
            scenes |= {"data": "mnist-multiset"} if model == "hsal-svhn-multiset" else {}
            found[model] = scenes
        if model in ON_FILES:
            files: dict[str, Any] = {"model": model, "data": f"jsonl:{PICTURES / ON_FILES[model]}.jsonl"}
            found[f"{model}@{ON_FILES[model]}"] = files | ({} if model.startswith("hsal") else {"sweeps": 2})
    return found


def evaluations(only: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """The scores of every case, or of those named, one after the other."""
    chosen = {name: given for name, given in cases().items() if not only or name in only or given["model"] in only}
    for name, given in chosen.items():
        started = time.monotonic()
        with _without_cache():
            scores = saccade.evaluate(**given, device="cpu")
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
        scores.pop("seconds")
        scores.pop("mistakes", None)  # they name files by where they lie
        yield name, json.loads(json.dumps(scores))


def write_evaluations(only: Sequence[str] = ()) -> None:
    """Store the scores of every case, or of those named; the others stay as they are stored."""
    found = dict(evaluations(only))
    if only:
        found = json.loads(STORED.read_text(encoding="utf-8")) | found
    if left := sorted(set(cases()) - set(found)):
        raise SystemExit(f"nothing is written: no scores of {', '.join(left)}")
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in cases()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def check_evaluations(only: Sequence[str] = ()) -> list[str]:
    """Score again, and return every difference with its path."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return [line for name, found in evaluations(only) for line in differences(stored.get(name), found, name)]


def differences(stored: Any, found: Any, where: str) -> list[str]:
    """Where two plain values differ, one line for each place."""
    if isinstance(stored, dict) and isinstance(found, dict):
        keys = [*stored, *(key for key in found if key not in stored)]
        return [
            line for key in keys for line in differences(stored.get(key, _NO), found.get(key, _NO), f"{where}.{key}")
        ]
    if isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        pairs = enumerate(zip(stored, found))
        return [line for number, pair in pairs for line in differences(*pair, f"{where}.{number}")]
    return [] if _same(stored, found) else [f"{where}: stored {stored}, found {found}"]


_NO = "nothing"


def _same(stored: Any, found: Any) -> bool:
    """Whether two values that hold no others are equal; numbers within ``NEAR``, and NaN is NaN."""
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (stored, found)):
        return bool(stored == found)
    if not (math.isfinite(stored) and math.isfinite(found)):
        return repr(float(stored)) == repr(float(found))
    return abs(stored - found) <= NEAR * max(1.0, abs(stored))


@contextmanager
def _without_cache() -> Iterator[None]:
    """An empty cache folder: glyphs and photographs of one's own then do not count."""
    before = os.environ.get("SACCADE_HOME")
    with tempfile.TemporaryDirectory() as empty:
        os.environ["SACCADE_HOME"] = empty
        try:
            yield
        finally:
            os.environ.pop("SACCADE_HOME", None)
            if before is not None:
                os.environ["SACCADE_HOME"] = before
