"""The shipped recipe cut down to a few steps of a small model on shipped glyphs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import saccade
import saccade.data.scenes.stream as stream
import saccade.families.question.scenes as attributes
from saccade.engine.loop import RunResult

STEPS = 6
TINY = (
    "data.glyphs=pack",
    "model.config.channels=4",
    "model.config.hidden=4",
    "model.config.dropout=0.5",
    "batch_size=8",
    "log_every=2",
    "checkpoint_every=2",
    "phases.0.schedule.warmup=0",
)
FRESH = (f"phases.0.steps={STEPS}", "phases.0.validate_every=3")


@contextmanager
def short_splits() -> Iterator[None]:
    """Inside, splits are short and chunks small; a fixture of more than one test has to ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(stream._CHUNK, "cpu", 32)
        patch.setitem(attributes._SIZES["unlimited"], "val", 30)
        patch.setitem(attributes._SIZES["authors"], "train", 45)
        patch.setitem(attributes._SIZES["authors"], "val", 30)
        yield


def train_tiny(out: Path, *more: str, **options: Any) -> RunResult:
    """Train it on the CPU, quietly; ``more`` are further overrides."""
    length = () if options.get("protocol") == "authors" else FRESH
    options = {"device": "cpu", "quiet": True} | options
    return saccade.train("soft-mref", out=out, overrides=[*TINY, *length, *more], **options)
