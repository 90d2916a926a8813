"""Goldens: what saccade computes, written to a file, so that a change that should change nothing proves it.

::

    python tools/goldens.py record quick --out after.json                       # with the saccade that is installed
    PYTHONPATH=../before/src python tools/goldens.py record quick --out before.json   # with another commit
    python tools/goldens.py compare before.json after.json                      # exit 1 if a value differs
    python tools/goldens.py store      # tests/golden anew, after a change that is meant

Both sides are recorded on one machine, by one copy of this file, so bits are compared. Only what users may call is
called: everything inside may move. ``record`` names parts, of golden_quick.py and golden_slow.py, or ``quick`` or
``slow`` for all of either. ``store`` makes anew what tests/golden compares in the suite.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NEAR = {"evaluations": 1e-9}
"""Parts whose floats may differ by this share; whole numbers and words never."""


def record(parts: list[str], out: Path) -> None:
    """Compute the parts and write them as one JSON file."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import golden_quick
    import golden_slow
    import torch

    torch.set_num_threads(1)  # sums of floats depend on how they are split
    known = golden_quick.PARTS | golden_slow.PARTS
    groups = {"quick": [*golden_quick.PARTS], "slow": [*golden_slow.PARTS]}
    wanted = [name for part in parts for name in groups.get(part, [part])]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    found["machine"] = golden_quick.machine()
    for name in wanted:
        part, _, only = name.partition(":")  # PART:WORD records those cases alone whose names hold the word
        if part not in known:
            raise SystemExit(f"no part '{part}'; there are {', '.join(known)}")
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as home:  # glyphs and pictures that are kept elsewhere do not count
            os.environ["SACCADE_HOME"] = home
            values = golden_quick.plain(known[part](only))
        found[part] = found.get(part, {}) | values if only else values
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def compare(before: Path, after: Path, allowed: list[str]) -> list[str]:
    """One line for each value that differs, but not for paths that hold an allowed pattern."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    lines = differences(old, new, "")
    return [line for line in lines if not any(re.search(pattern, line.split(": ")[0]) for pattern in allowed)]


def differences(before: Any, after: Any, where: str) -> list[str]:
    """Where two plain values differ, one line for each place: ``part/case/key: before, after``."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        pairs = [(key, before.get(key, "(nothing)"), after.get(key, "(nothing)")) for key in keys]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(str(number), *pair) for number, pair in enumerate(zip(before, after, strict=True))]
    else:
        near = NEAR.get(where.split("/")[0], 0.0)
        old, new = (json.dumps(value)[:100] for value in (before, after))
        return [] if same(before, after, near) else [f"{where}: {old}, {new}"]
    return [line for key, *pair in pairs for line in differences(*pair, f"{where}/{key}" if where else key)]


def same(before: Any, after: Any, near: float) -> bool:
    """Whether two values that hold no others are equal; two floats as near as ``near``, and NaN is NaN."""
    if not (isinstance(before, float) and isinstance(after, float)):
        return bool(before == after)
    if not (math.isfinite(before) and math.isfinite(after)):
        return repr(before) == repr(after)
    return abs(before - after) <= near * max(abs(before), abs(after))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="compute parts and write them")
    recording.add_argument("parts", nargs="+")
    recording.add_argument("--out", type=Path, required=True, help="parts that it holds and that are not named stay")
    verbs.add_parser("store", help="make tests/golden anew: sightings, the digest of causal-v1, the stopped run")
    comparing = verbs.add_parser("compare", help="report every value that differs")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--except", dest="allowed", action="append", default=[], help="regular expression of paths")
    given = parser.parse_args()
    if given.verb == "record":
        record(given.parts, given.out)
        return 0
    if given.verb == "store":
        import golden_slow
        import golden_stored

        golden_stored.store()
        golden_slow.store_run(golden_stored.RUN)
        return 0
    lines = compare(given.before, given.after, given.allowed)
    print("\n".join(lines) or "no value differs")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
