"""Records the result of a run: its evaluation and how it was trained, as one JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from saccade.atomic import make_folder, write_json_by_key
from saccade.config import from_dict
from saccade.errors import CheckpointError
from saccade.recorded.recipe_versions import migrate_recipe
from saccade.recorded.runs import RecordedRun

DIGITS = 5
"""Digits of intermediate numbers: more than a curve can show, and records stay short."""
MOST_VALIDATIONS = 30
"""Validations of a run that are kept at most, but for the last of each phase: a curve shows no more."""
MOST_CLASSES = 100
"""Classes whose scores are kept one by one at most."""
_TRAINING_FACTS = (
    "machine", "step", "phase", "metrics", "versions", "replica", "data_changes", "photographs", "maps_supervised",
)  # fmt: skip


def save_run_record(
    evaluation: Mapping[str, object], run: Path, *, name: str, command: str, folder: Path, revision: str | None = None
) -> RecordedRun:
    """Write ``folder/NAME.json`` and give back what stands in it.

    Args:
        evaluation: as ``saccade evaluate --json`` prints it; its mistakes are left out, which name files, and the
            scores of single classes where there are more than :data:`MOST_CLASSES`.
        run: the run folder that was evaluated.
        name: ``SYSTEM-DATA-…``, see :mod:`saccade.recorded.runs`.
        command: what trained it.
        folder: made if it is not there.
        revision: commit of the code, where the run could not know it.
    """
    try:
        config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        last = rows[-1]
    except (OSError, ValueError, IndexError) as error:
        raise CheckpointError(f"{run}: not a finished run ({error}); continue with 'saccade train --resume'") from error
    facts = {key: config["training"][key] for key in _TRAINING_FACTS if key in config["training"]}
    facts |= {"minutes": round(last["seconds"] / 60, 2), "steps": last["step"]}
    classes = cast("Mapping[str, object]", evaluation.get("per_class") or {})
    left_out = {"mistakes", "per_class"} if len(classes) > MOST_CLASSES else {"mistakes"}
    values = {
        "name": name,
        "command": command,
        "recipe": migrate_recipe(config["recipe"], what=f"{run}: recipe"),
        "data": config["data"],
        "training": {**facts, "revision": revision or config.get("revision"), "sha256": config["sha256"]},
        "evaluation": {**{key: each for key, each in evaluation.items() if key not in left_out}, "model": name},
        "course": [_short(row) for row in _thinned([row for row in rows if row["kind"] == "validation"])],
    }
    kept = from_dict(RecordedRun, values, where=name)  # before it is written: a file that cannot be read helps nobody
    write_json_by_key(make_folder(folder) / f"{name}.json", values)
    return kept


def _thinned(validations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Some of them, evenly spaced, and the last of each phase."""
    count, kept = len(validations), min(len(validations), MOST_VALIDATIONS)
    phases = [row["phase"] for row in validations]
    spaced = {(number + 1) * count // kept - 1 for number in range(kept)}
    ends = {number for number in range(count) if phases[number : number + 2] != [phases[number]] * 2}
    return [validations[number] for number in sorted(spaced | ends)]


def _short(row: Mapping[str, Any]) -> dict[str, object]:
    """A validation without its time of day, its numbers rounded; one that is not finite has no place in JSON."""
    values = {name: round(value, DIGITS) for name, value in row["values"].items() if math.isfinite(value)}
    return {"step": row["step"], "phase": row["phase"], "kind": row["kind"], "values": values}
