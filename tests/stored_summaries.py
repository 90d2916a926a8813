"""Summaries of models whose scores are known beforehand, stored in ``summaries.json``: a change of code keeps them.

``STORE_SUMMARIES=1 pytest PATH`` stores what is found now. A test that stored something fails, so that nobody takes it
for a check; run it until it passes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

STORED = Path(__file__).with_name("summaries.json")
NEAR = 1e-6


def check_summary(name: str, found: dict[str, Any]) -> None:
    """Fail unless ``found`` has the keys and the numbers that are stored under ``name``."""
    plain = _flat(json.loads(json.dumps(found, allow_nan=False)))
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if os.environ.get("STORE_SUMMARIES") and plain != stored.get(name):
        told = json.dumps(dict(sorted({**stored, name: plain}.items())), indent=1) + "\n"
        STORED.write_text(told, encoding="utf-8")
        pytest.fail(f"'{name}' is stored; run the test again")
    assert plain.keys() == stored[name].keys()
    for path, value in stored[name].items():
        assert plain[path] == (pytest.approx(value, abs=NEAR) if isinstance(value, float) else value), path


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every number of nested dictionaries and lists by the way to it; an empty dictionary is told too."""
    if isinstance(value, list):
        value = {str(place): item for place, item in enumerate(value)}
    if not isinstance(value, dict) or not value:
        return {path: value}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= _flat(item, f"{path}/{key}")
    return found
