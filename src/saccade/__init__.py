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

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade import attention as attention
    from saccade import data as data
    from saccade import families as families
    from saccade import metrics as metrics
    from saccade import models as models
    from saccade.adapters.folder import look_folder as look_folder
    from saccade.attention.scores import AdditiveScorer as AdditiveScorer
    from saccade.attention.soft import SoftAttention as SoftAttention
    from saccade.commands.evaluate import evaluate as evaluate
    from saccade.commands.export import export as export
    from saccade.commands.list import list_models as list_models
    from saccade.commands.look import look as look
    from saccade.commands.probe import probe as probe
    from saccade.commands.report import report as report
    from saccade.commands.reproduce import reproduce as reproduce
    from saccade.commands.score import score as score
    from saccade.commands.serve import serve as serve
    from saccade.commands.tour import tour as tour
    from saccade.commands.train import train as train
    from saccade.data.pictures.reading import read_picture as read_picture
    from saccade.errors import CheckpointError as CheckpointError
    from saccade.errors import ConfigError as ConfigError
    from saccade.errors import DataError as DataError
    from saccade.errors import MissingExtraError as MissingExtraError
    from saccade.errors import OutputError as OutputError
    from saccade.errors import SaccadeError as SaccadeError
    from saccade.errors import ShapeError as ShapeError
    from saccade.predict import Predictor as Predictor
    from saccade.predict import from_pretrained as from_pretrained
    from saccade.predict import load as load
    from saccade.probing.probe import Probe as Probe
    from saccade.record import Record as Record
    from saccade.record import read_record as read_record
    from saccade.record import write_record as write_record
    from saccade.show.filmstrip import contact_sheet as contact_sheet
    from saccade.show.filmstrip import filmstrip as filmstrip
    from saccade.show.overlay import overlay as overlay
    from saccade.sighting import Sighting as Sighting
    from saccade.trace import AttentionTrace as AttentionTrace
    from saccade.trace import Look as Look
    from saccade.trace import Output as Output
    from saccade.tracing.trace_of import trace_of as trace_of
    from saccade.zoo.folders import example as example

__version__ = "0.2.0"


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` (PEP 562) of the package called ``package``: its names are imported on first use.

    They are written once, as imports below ``if TYPE_CHECKING:``. At run time the block is read, not executed:
    ``saccade.attention.SoftAttention`` imports ``saccade.attention.soft``.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:  # name → (module, its name there)
        blocks = (node for node in ast.parse(inspect.getsource(sys.modules[package])).body if isinstance(node, ast.If))
        imports = (node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom))
        return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name.startswith("_") or name not in homes():  # the import system asks for dunders and submodules
            # with these, Python names the nearest
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules[package])
        home, its_name = homes()[name]
        is_module = home == package or not hasattr(import_module(home), its_name)
        value = import_module(f"{home}.{its_name}") if is_module else getattr(import_module(home), its_name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    def names() -> list[str]:
        namespace = vars(sys.modules[package])
        public = namespace.get("__all__") or homes()
        return sorted({*public, *(name for name in namespace if name.startswith("__"))})

    return get, names


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__)
