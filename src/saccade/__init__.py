"""saccade: models that answer, and show where they looked.

>>> import saccade                                      # doctest: +SKIP
>>> seen = saccade.load("soft-mref").look("scene.png", ask=7)  # doctest: +SKIP
>>> seen.answer, seen.confidence                        # doctest: +SKIP

Names are loaded on first use: importing saccade imports neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saccade.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    MissingExtraError,
    OutputError,
    SaccadeError,
    ShapeError,
)
from saccade.quick_imports import quick_imports

if TYPE_CHECKING:
    from saccade.attention.scores import AdditiveScorer
    from saccade.attention.soft import SoftAttention
    from saccade.data.gallery import example
    from saccade.data.pictures.reading import read_picture
    from saccade.predict import Predictor, load
    from saccade.record import Record, read_record, write_record
    from saccade.sighting import Sighting
    from saccade.trace import AttentionTrace, Look, Output
    from saccade.tracing.trace_of import trace_of
    from saccade.verbs.average import average
    from saccade.verbs.compare import compare
    from saccade.verbs.evaluate import evaluate
    from saccade.verbs.score import score
    from saccade.verbs.tour import tour
    from saccade.verbs.train import train

__version__ = "0.2.0"

__all__ = [
    "AdditiveScorer",
    "AttentionTrace",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Look",
    "MissingExtraError",
    "Output",
    "OutputError",
    "Predictor",
    "Record",
    "SaccadeError",
    "ShapeError",
    "Sighting",
    "SoftAttention",
    "average",
    "compare",
    "evaluate",
    "example",
    "load",
    "read_picture",
    "read_record",
    "score",
    "tour",
    "trace_of",
    "train",
    "write_record",
]

_HOMES = {
    "AdditiveScorer": "attention.scores",
    "AttentionTrace": "trace",
    "Look": "trace",
    "Output": "trace",
    "Predictor": "predict",
    "Record": "record",
    "Sighting": "sighting",
    "SoftAttention": "attention.soft",
    "average": "verbs.average",
    "compare": "verbs.compare",
    "evaluate": "verbs.evaluate",
    "example": "data.gallery",
    "load": "predict",
    "read_picture": "data.pictures.reading",
    "read_record": "record",
    "score": "verbs.score",
    "tour": "verbs.tour",
    "trace_of": "tracing.trace_of",
    "train": "verbs.train",
    "write_record": "record",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade' has no attribute '{name}'")
    with quick_imports():
        value = getattr(import_module(f"saccade.{_HOMES[name]}"), name)
    globals()[name] = value  # found once, found for good
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
