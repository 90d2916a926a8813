"""One recorded run: its evaluation, its recipe, how it was trained; read from JSON and checked on the way.

A run is called ``SYSTEM-DATA-…``: what stands before its data set is its row in a table (``hattnet-ctx-sparse`` in
``hattnet-ctx-sparse-mref-unlimited-seed0``). Protocol, glyphs and seed are read from what the run itself wrote.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.errors import ConfigError, DataError
from saccade.models.io.facts import Score
from saccade.recorded.recipe_versions import migrate_recipe
from saccade.recorded.restarts import Restarts
from saccade.untrusted import parse_json, read_regular

VARIANTS = "variants"
"""Sub-folder of runs with other settings than their recipe's."""
SUPERSEDED = "superseded"
"""Sub-folder of runs whose numbers no table shows any more; each says why."""


@dataclass(frozen=True)
class RecordedRun:
    """What one training run gave."""

    name: str
    command: str
    """What trained it, as it was typed; see :attr:`again`."""
    recipe: dict[str, Any]
    """Resolved: every setting that it was trained with, as today's recipes have it."""
    data: dict[str, Any]
    training: dict[str, Any]
    """Minutes, machine, versions, steps, digest of the weights."""
    evaluation: Score
    pins: str = ""
    """Options to add to ``command`` today, as in ``--set stored=float32``: its recipe has changed these since."""
    superseded: str = ""
    """Why its numbers stand in no table any more; empty for a run that counts."""
    course: tuple[dict[str, Any], ...] = ()
    """Its validations in the order of their steps, as rows of a metrics.jsonl; () of runs that did not keep them."""
    restarts: tuple[Restarts, ...] = ()
    """What each restart gave, one entry for each training run; () of a record of one run without restarts."""

    def __post_init__(self) -> None:
        for group, keys in (("recipe", ("name", "model", "seed")), ("data", ("name",))):
            missing = [key for key in keys if key not in getattr(self, group)]
            if missing:
                raise ValueError(f"{group} does not say its {', '.join(missing)}")

    @property
    def system(self) -> str:
        """The row it belongs to."""
        before, found, _ = self.name.partition(f"-{self.on}-")
        return before if found else str(self.recipe["model"]["name"])

    @property
    def on(self) -> str:
        """The data set."""
        return str(self.data["name"])

    @property
    def protocol(self) -> str:
        """Sizes and splits it was trained and scored with."""
        return self.evaluation.protocol or str(self.data.get("protocol", ""))

    @property
    def glyphs(self) -> str:
        """``disjoint`` between training and test, or ``merged``."""
        return str(self.data.get("glyphs", ""))

    @property
    def drawing(self) -> str:
        """How its scenes were drawn; ``blend`` where nothing is said: old records, and data with one drawing.

        Of a run that was scored on another drawing than it was trained on, both: ``both, scored on authors``.
        """
        trained = str(self.data.get("drawing", "blend"))
        scored = self.evaluation.drawing or trained
        return trained if scored == trained else f"{trained}, scored on {scored}"

    @property
    def seed(self) -> int:
        """Seed of the weights and of the order of training."""
        return int(self.recipe["seed"])

    @property
    def again(self) -> str:
        """The command that trains it with the same settings by the recipes of today."""
        return f"{self.command} {self.pins}".strip()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of its model that were given; the rest are the model's defaults."""
        return dict(self.recipe["model"].get("config", {}))

    def value(self, metric: str, of: str | None = None) -> float | None:
        """A score of the run, or of a baseline on the same footing; None where there is none."""
        held = self._scores() if of is None else self.evaluation.comparable_baselines.get(of, {})
        found = held.get(metric)
        return float(found) if isinstance(found, (int, float)) else None

    def interval(self, metric: str) -> tuple[float, float] | None:
        """The 95 % interval of a score over the test pictures."""
        both = self.evaluation.intervals.get(metric)
        return None if both is None or None in both else (float(both[0]), float(both[1]))

    def count(self, metric: str) -> int:
        """How many examples a score rests on."""
        found = self.evaluation.counts.get(metric)
        return found if isinstance(found, int) else self.evaluation.n

    def _scores(self) -> Mapping[str, Any]:
        return {**self.evaluation.metrics, **self.evaluation.attention}


def read_run(path: Path) -> RecordedRun:
    """The run that was recorded in ``path``, or a DataError that says what is wrong with the file."""
    try:
        values = parse_json(read_regular(path).decode("utf-8"))
        if isinstance(values, dict) and isinstance(values.get("recipe"), dict):  # records keep the schema of their time
            values["recipe"] = migrate_recipe(values["recipe"], what="recipe")
        return from_dict(RecordedRun, values)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, ConfigError) as error:
        raise DataError(f"{path}: not a recorded run ({error}); write it with 'tools/record.py'") from error


def recorded_runs(folder: Path | None = None, *, variants: bool = False) -> tuple[RecordedRun, ...]:
    """Every run in ``folder`` (by default those that come with saccade), by name; or those of other settings."""
    folder = results_folder() if folder is None else folder
    return _read_all(folder / VARIANTS if variants else folder)


def superseded_runs(folder: Path | None = None) -> tuple[RecordedRun, ...]:
    """Every run whose numbers no table shows any more, by name."""
    return _read_all((results_folder() if folder is None else folder) / SUPERSEDED)


def _read_all(folder: Path) -> tuple[RecordedRun, ...]:
    return tuple(_kept_run(path, *_stamp(path)) for path in sorted(folder.glob("*.json")))


@functools.lru_cache(maxsize=1024)
def _kept_run(path: Path, changed: int, size: int) -> RecordedRun:
    """The run in ``path``, read again when the file has changed: a page has twenty tables of the same records."""
    return read_run(path)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    return found.st_mtime_ns, found.st_size


def results_folder() -> Path:
    """Where the results are: inside an installed package, or ``docs/results`` of the checkout it runs from."""
    here = Path(__file__).parent
    packed = here / "results"
    return packed if packed.is_dir() else here.parents[2] / "docs" / "results"
