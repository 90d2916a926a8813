"""Boards as files: one JSON for each data set and each planted cause."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from saccade.atomic import make_folder, write_text
from saccade.config import from_dict, to_dict
from saccade.devices import pick_device
from saccade.errors import ConfigError, DataError
from saccade.families.question.board.measuring import Board
from saccade.families.question.board.methods import METHODS
from saccade.families.question.reproduction.board.entrants import DATA, entrants, planted_entrant
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from saccade.recorded import results_folder

FOLDER = "board"
"""Folder of the recorded boards."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BoardRecord:
    """What was measured of many maps on one set of scenes."""

    data: str
    planted: str
    split: str
    n: int
    """Questions."""
    seed: int
    """Seed of the scenes."""
    glyphs: str
    backgrounds: str
    machine: str
    command: str
    seconds: float
    least_move: int
    """Pixels that a digit moved at least."""
    models: dict[str, dict[str, Any]]
    """By label: where each came from, and its accuracy on these questions."""
    rows: list[dict[str, Any]]
    """See :meth:`saccade.families.question.board.rows.Row.summary`."""
    kendall_tau: dict[str, float | None]
    """By score: how far two halves of the scenes agree on the order of the maps."""
    comparisons: dict[str, dict[str, Any]]
    """By score: the leader, and every other map beside it."""

    @property
    def name(self) -> str:
        """Name of its file."""
        return self.data if self.planted == "none" else f"{self.data}-{self.planted}"

    def row(self, model: str, method: str) -> dict[str, Any] | None:
        """The row of that model and method."""
        return next((row for row in self.rows if (row["model"], row["method"]) == (model, method)), None)


def measure_board(
    name: str,
    *,
    count: int,
    runs: Path | None = None,
    device: str = "auto",
    sweeps: int = 0,
    split: str = "test",
    command: str = "",
    methods: Sequence[str] = METHODS,
    untaught: bool = True,
    progress: Progress = lambda what, done, total: None,
) -> BoardRecord | None:
    """Score the maps of all models for a data set, or of the model with a planted cause; None where there is no model.

    Args:
        name: mref, mdist or mbg; or corner, largest or blind for MREF with that planted cause.
        count: questions.
        runs: folder of runs called SYSTEM-DATA, which go before the shipped models.
        device: where.
        sweeps: questions for deletion and insertion.
        split: val or test.
        command: that is written down.
        methods: those that are measured; a model that has none of them is left out.
        untaught: whether random weights stand there too.
        progress: told what is scored, and how far it is.
    """
    started, on = time.monotonic(), pick_device(device)
    planted = "none" if name in DATA else name
    data = SceneData(
        # checked when it is built
        SceneDataConfig(name=name if planted == "none" else "mref", planted=planted),  # type: ignore[arg-type]
        split,  # type: ignore[arg-type]  # checked when it is opened
        device=on,
        allow_pack=True,
    )
    if planted == "none":
        found = list(entrants(name, runs, str(on), untaught=untaught))
    else:
        found = [entrant for entrant in [planted_entrant(planted, runs, str(on))] if entrant is not None]
    chosen = [tuple(method for method in entrant.methods if method in methods) for entrant in found]
    found = [replace(entrant, methods=kept) for entrant, kept in zip(found, chosen) if kept]
    if not found:
        return None
    board = Board(found, data, sweeps=sweeps)
    board.measure(count, lambda done, total: progress(f"scoring maps on {name}", done, total))
    measured = board.record()
    return BoardRecord(
        data=data.config.name,
        planted=planted,
        split=split,
        n=max(row["n"] for row in measured["rows"]),
        seed=data.config.seed,
        glyphs=data.glyphs.name,
        backgrounds=data.backgrounds,
        machine=torch.cuda.get_device_name(on) if on.type == "cuda" else f"{platform.machine()} CPU",
        command=command,
        seconds=round(time.monotonic() - started, 1),
        **measured,
    )


def write_board(record: BoardRecord, folder: Path) -> Path:
    """Write a board into a folder of boards, its numbers to five digits, each row on a line of its own."""
    told = _rounded(to_dict(record))
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in told.pop("rows"))
    rest = json.dumps(told, separators=(",", ":"))
    return write_text(make_folder(folder) / f"{record.name}.json", f'{rest[:-1]},\n"rows":[\n{rows}\n]}}\n')


def recorded_boards(folder: Path | None = None) -> list[BoardRecord]:
    """The boards that come with saccade, or those of another folder of results; planted causes after the rest."""
    found = []
    for file in sorted(((folder or results_folder()) / FOLDER).glob("*.json")):
        try:
            found.append(from_dict(BoardRecord, json.loads(file.read_text(encoding="utf-8")), where=str(file)))
        except (OSError, ValueError, ConfigError) as error:
            raise DataError(f"{file}: no board of maps ({error}); measure it again with tools/board.py") from error
    return sorted(found, key=lambda board: (board.name not in DATA, DATA.index(board.data)))


def _rounded(value: object) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
