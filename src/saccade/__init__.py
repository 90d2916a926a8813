"""saccade: models that answer, and show where they looked.

>>> import saccade                                             # doctest: +SKIP
>>> seen = saccade.load("soft-mref").look("scene.png", ask=7)  # doctest: +SKIP
>>> seen.answer, seen.confidence                               # doctest: +SKIP

Every verb of the command line is a function here, with the same arguments: ``saccade.train("soft-mref", out="run")``
is ``saccade train soft-mref --out run``. The building blocks are in five packages: ``saccade.attention`` (mechanisms
for your own network), ``saccade.metrics``, ``saccade.data``, ``saccade.models`` and ``saccade.families``.

Names are imported on first use: importing saccade imports neither torch nor numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from saccade.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    MissingExtraError,
    OutputError,
    SaccadeError,
    ShapeError,
)

if TYPE_CHECKING:
    from saccade import attention, data, families, metrics, models
    from saccade.adapters.folder import look_folder
    from saccade.attention.scores import AdditiveScorer
    from saccade.attention.soft import SoftAttention
    from saccade.commands.evaluate import evaluate
    from saccade.commands.export import export
    from saccade.commands.list import list_models
    from saccade.commands.look import look
    from saccade.commands.probe import probe
    from saccade.commands.report import report
    from saccade.commands.reproduce import reproduce
    from saccade.commands.score import score
    from saccade.commands.serve import serve
    from saccade.commands.tour import tour
    from saccade.commands.train import train
    from saccade.data.gallery import example
    from saccade.data.pictures.reading import read_picture
    from saccade.predict import Predictor, load
    from saccade.record import Record, read_record, write_record
    from saccade.show.filmstrip import contact_sheet, filmstrip
    from saccade.show.overlay import overlay
    from saccade.sighting import Sighting
    from saccade.trace import AttentionTrace, Look, Output
    from saccade.tracing.trace_of import trace_of
else:
    from saccade.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

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
    "attention",
    "contact_sheet",
    "data",
    "evaluate",
    "example",
    "export",
    "families",
    "filmstrip",
    "list_models",
    "load",
    "look",
    "look_folder",
    "metrics",
    "models",
    "overlay",
    "probe",
    "read_picture",
    "read_record",
    "report",
    "reproduce",
    "score",
    "serve",
    "tour",
    "trace_of",
    "train",
    "write_record",
]
