"""Errors of memory networks on the twenty bAbI tasks from recorded runs, beside the published ones.

A record holds all tasks of one system, trained task by task or jointly on 1,000 or 10,000 questions each. It has the
test error of every restart, and of the one that was kept: the one with the lowest training error, as published.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from saccade.errors import ConfigError, nearest
from saccade.families.story.published import PUBLISHED, TASKS
from saccade.families.story.reproduction.systems import ROWS, Row
from saccade.families.story.scores import has_failed
from saccade.recorded import RecordedRun, errors_by_restart, kept_errors
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import NO_RUN
from saccade.verbs.reproduction.request import ALL

DATA = "babi"
SIZES = ("1k", "10k")
PROTOCOLS = ("task", "joint")
SETTINGS = tuple(f"{protocol}-{size}" for protocol in PROTOCOLS for size in SIZES)


@dataclass(frozen=True)
class Errors:
    """One cell: errors of one system in one setting, as fractions."""

    kept: dict[str, float]
    """By task, of the weights that were kept."""
    restarts: list[dict[str, float]]
    """By task, of every restart."""
    generated: tuple[str, ...]
    """Tasks whose training questions were generated."""

    @property
    def mean(self) -> float:
        """The mean error of the kept weights over the tasks."""
        return statistics.fmean(self.kept.values())

    @property
    def others(self) -> float | None:
        """The same without generated tasks; None where there are none."""
        left = [error for task, error in self.kept.items() if task not in self.generated]
        return statistics.fmean(left) if self.generated and left else None

    @property
    def is_generated(self) -> bool:
        """Whether no official training question was seen."""
        return set(self.kept) <= set(self.generated)

    @property
    def failed(self) -> int:
        """Tasks that the kept weights fail."""
        return sum(map(has_failed, self.kept.values()))

    def over_restarts(self, task: str | None = None) -> tuple[float, float | None]:
        """Mean and standard deviation over the restarts of the error in a task, or of the mean error over all."""
        values = [each[task] if task else statistics.fmean(each.values()) for each in self.restarts]
        return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None

    @property
    def failed_by_restart(self) -> float:
        """Tasks that a restart fails, on the mean."""
        return statistics.fmean(sum(map(has_failed, each.values())) for each in self.restarts)


def errors_of(run: RecordedRun) -> Errors | None:
    """The errors that a record holds; None for one without restarts."""
    if not run.restarts:
        return None
    generated = tuple(task for each in run.restarts for task in each.generated)
    return Errors(kept_errors(run.restarts), errors_by_restart(run.restarts), generated)


@dataclass(frozen=True)
class MemoryTable:
    """The recorded runs, and the tables that are made of them.

    Args:
        runs: of any systems and data sets.
        protocol: one of ``SETTINGS``, such as ``joint-1k``; ``task`` or ``joint``; or all.
    """

    runs: Sequence[RecordedRun]
    protocol: str = ALL
    cells: Mapping[tuple[str, str], RecordedRun] = field(init=False)

    def __post_init__(self) -> None:
        known = (*SETTINGS, *PROTOCOLS, ALL)
        if self.protocol not in known:
            raise ConfigError(f"protocol '{self.protocol}': {nearest(self.protocol, known)}")
        found: dict[tuple[str, str], RecordedRun] = {}
        for run in self.runs:
            if run.on == DATA and run.restarts:  # of several seeds the first stands
                found.setdefault((run.system, f"{run.protocol}-{run.data.get('size')}"), run)
        object.__setattr__(self, "cells", found)

    def with_runs(self, more: Iterable[RecordedRun]) -> MemoryTable:
        """The same table with further runs; a cell that has one keeps it."""
        return replace(self, runs=(*self.runs, *more))

    @property
    def settings(self) -> tuple[str, ...]:
        """What is shown."""
        return tuple(each for each in SETTINGS if self.protocol in (ALL, each, each.partition("-")[0]))

    def rows(self, setting: str) -> list[Row]:
        """Rows with a published number or a record in a setting, and recorded systems that no row names.

        Systems that were trained on generated stories alone are shown by :meth:`carried_over`.
        """
        strangers = {system for system, own in self.cells if own == setting and not self.is_generated(system, own)}
        others = sorted(strangers - {row.system for row in ROWS})
        return [row for row in ROWS if self.wanted(row, setting) or (row.system, setting) in self.cells] + [
            Row(system, system) for system in others
        ]

    @staticmethod
    def wanted(row: Row, setting: str) -> bool:
        """Whether a cell belongs to the table even without a record."""
        return (row.system, f"{DATA}-{setting}") in PUBLISHED or setting.partition("-")[0] in row.protocols

    def errors(self, system: str, setting: str) -> Errors | None:
        """What is recorded of a cell."""
        run = self.cells.get((system, setting))
        return None if run is None else errors_of(run)

    def is_generated(self, system: str, setting: str) -> bool:
        """Whether the record of a cell is of generated training stories alone."""
        found = self.errors(system, setting)
        return found is not None and found.is_generated

    def missing(self) -> list[tuple[Row, str]]:
        """Cells without a record that can be trained here."""
        return [
            (row, setting)
            for setting in self.settings
            for row in ROWS
            if row.recipe and self.wanted(row, setting) and (row.system, setting) not in self.cells
        ]

    def overview(self, setting: str) -> PlainTable:
        """Mean errors of one setting, beside the published ones."""
        rows, marked = [], False
        for row in self.rows(setting):
            told = PUBLISHED.get((row.system, f"{DATA}-{setting}"))
            line = [
                row.label,
                "–" if told is None else _mean(told.metrics["mean_error"], told.metrics.get("failed_tasks")),
            ]
            found = self.errors(row.system, setting)
            if found is None:
                rows.append([*line, NO_RUN if row.recipe else "–", "–", "–", "–"])
                continue
            marked |= bool(found.generated)
            mean, std = found.over_restarts()
            spread = "" if std is None else f"±{100 * std:.1f}"
            rows.append([
                *line,
                _mean(found.mean, found.failed, len(found.kept)) + ("*" if found.generated else ""),
                f"{100 * mean:.1f}{spread} ({found.failed_by_restart:.1f})",
                "–" if found.others is None else f"{100 * found.others:.1f}",
                str(len(found.restarts)),
            ])  # fmt: skip
        columns = ["system", "published", "kept", "mean of restarts", "kept, tasks\nnot generated", "restarts"]
        if not marked:
            for line in (columns, *rows):
                del line[4]
        return PlainTable(f"mean error % (failed tasks), {_said(setting)}", columns, rows)

    def by_task(self, setting: str) -> PlainTable | None:
        """The error of every task in one setting; None where nothing is recorded."""
        shown = [row for row in self.rows(setting) if (row.system, setting) in self.cells]
        told = {row.system: self._published(row.system, setting) for row in shown}
        lines = []
        for number, title in enumerate(TASKS, 1):
            task, line = f"qa{number}", [f"{number} {title}"]
            for row in shown:
                found, printed = self.errors(row.system, setting), told[row.system].get(task)
                line.append(_task_cell(found, task, printed))
            lines.append(line)
        if not shown:
            return None
        note = "Kept (published), and below it mean ± standard deviation over the restarts."
        return PlainTable(f"error %, {_said(setting)}", ["task", *(row.label for row in shown)], lines, note)

    def carried_over(self) -> PlainTable | None:
        """Errors on the official files after training on generated stories, beside those after official ones.

        None where no system is recorded that was trained on generated stories alone.
        """
        shown = [key for key in self.cells if key[1] in self.settings and self.is_generated(*key)]
        columns, cells = ["task"], []
        for system, setting in shown:
            same = str(self.cells[system, setting].recipe["model"]["name"])
            label = next((row.label for row in ROWS if row.system == same), same)
            columns += [f"{label}, {setting},\ngenerated stories ({system})", f"{label}, {setting},\nofficial stories"]
            cells += [self.errors(system, setting), self.errors(same, setting)]
        if not cells:
            return None
        lines = [
            [f"{number} {title}", *(_percent(None if each is None else each.kept.get(f"qa{number}")) for each in cells)]
            for number, title in enumerate(TASKS, 1)
        ]
        lines.append(["mean (failed)", *("–" if each is None else _mean(each.mean, each.failed) for each in cells)])
        note = (
            "Kept weights. The left column of each pair never saw an official story in training: it shows how near the "
            "generator comes to the official files, task by task."
        )
        return PlainTable("official test files, error %, after training on generated stories", columns, lines, note)

    def looking(self) -> PlainTable | None:
        """Where the kept weights looked, beside maps that need no model."""
        columns = ("support_hit", "support_found", "support_rank", "support_mass", "empty_mass", "end_mass")
        lines: list[list[str]] = []
        rivals: dict[str, list[str]] = {}
        for row, setting, run in self.recorded():
            if run.value("support_hit") is None:
                continue
            lines.append([row.label, setting, *(_percent(run.value(name)) for name in columns)])
            for name in run.evaluation.baselines:
                rivals.setdefault(name, [name.replace("_", " "), "–", *(_percent(run.value(c, name)) for c in columns)])
        if not lines:
            return None
        named = ("system", "training", "hit", "found", "rank", "mass", "on empty slots", "on the end")
        note = (
            "Of all looks together. hit: the heaviest sentence is a supporting fact. found: share of the supporting "
            "facts that are the heaviest sentence of a look; random looks: as many looks as the system made, each at a "
            "sentence drawn at random. rank: mean of 1 / rank of the supporting facts. mass: "
            "share of the weight on sentences that lies on them. A supervised system was taught them. Below: maps "
            "that need no model. A DMN's facts carry the sentences before them, so its looks are not about one "
            "sentence alone."
        )
        return PlainTable("supporting facts, %", named, [*lines, *rivals.values()], note)

    def changing(self) -> list[PlainTable]:
        """What answers and weights of the kept weights do when the story is changed."""
        answers = {
            "changes": "causal_change",
            "follows": "causal_follow",
            "holds": "causal_hold",
            "names": "swap_follow",
            "no names": "swap_hold",
        }
        edits = {
            "edit": "edit_agrees_all",
            "at random": "edit_agrees_all_random",
            "where it\nmatters": "edit_agrees_where",
            "there,\nat random": "edit_agrees_where_random",
        }
        weights = {
            "follows": "weight_follow",
            "to nothing": "weight_to_nothing",
            "holds": "weights_hold",
            "names": "swap_weights_hold",
        }
        parts = (
            (
                "answers",
                answers,
                "A supporting fact is removed. changes: the answer changes, among questions whose answer is then "
                "another one by the rules. follows: it becomes that one. holds: another sentence is removed, reworded "
                "or replaced, and the answer stays. names: two names are exchanged everywhere, and the answer goes "
                "with them, among questions whose answer is one of the two; no names: it stays, among the others.",
            ),
            (
                "weights",
                weights,
                "In the same tests. follows: share of the weight gained elsewhere that lies on the facts which the new "
                "answer follows from, 0 where none was gained; to nothing: on empty slots or the end. holds: 1 − total "
                "variation over the sentences that stayed when another one was removed, reworded or replaced. names: "
                "the same when two names are exchanged. Weights that hold count only beside weights that follow: those "
                "of a constant map hold too. Below: maps that need no model, on the same changes.",
            ),
            (
                "edited weights",
                edits,
                "edit: taking all weight from the heaviest sentence, in all looks, gives the answer to the story "
                "without it; at random: taking it from another sentence does. Where it matters: among questions whose "
                "answer changes when the heaviest sentence is removed. Agreement near that at random means that "
                "the weights do not tell what the answer rests on.",
            ),
        )
        found = []
        for title, columns, note in parts:
            lines, lacking = [], []
            rivals: dict[str, list[str]] = {}
            for row, setting, run in self.recorded():
                values = [run.value(name) for name in columns.values()]
                if all(value is None for value in values):
                    continue
                lines.append([row.label, setting, *(_counted(run, name) for name in columns.values())])
                lacking += _without(f"{row.label}, {setting}", run, columns)
                for name in run.evaluation.baselines:
                    own = [_percent(run.value(score, name)) for score in columns.values()]
                    if any(each != "–" for each in own):
                        rivals.setdefault(name, [name.replace("_", " "), "–", *own])
            told = f"{note} Below each score: its questions."
            told += f" Tasks without a score: {'; '.join(lacking)}." if lacking else ""
            table = PlainTable(
                f"changed stories, {title}, %", ("system", "training", *columns), [*lines, *rivals.values()], told
            )
            found += [table] if lines else []
        return found

    def cost(self) -> PlainTable | None:
        """What training took, all restarts together."""
        lines = []
        for row, setting, run in self.recorded():
            steps, minutes = int(run.training["steps"]), float(run.training["minutes"])
            restarts = run.restarts[0].count
            asked = steps * int(run.recipe.get("batch_size", 0)) * restarts
            speed = f"{asked / (60 * minutes):,.0f}" if minutes else "–"
            machine = str(run.training.get("machine", "not told"))
            lines.append([row.label, setting, f"{restarts}", f"{steps:,}", f"{minutes:.1f}", speed, machine])
        if not lines:
            return None
        columns = ("system", "training", "restarts", "steps", "minutes", "questions × restarts\na second", "machine")
        note = "Minutes are of whole runs, all tasks added up: starting, training, validating."
        return PlainTable("what training took", columns, lines, note)

    def plain(self) -> list[dict[str, Any]]:
        """Every number of the tables as plain values; fractions."""
        found = []
        for setting in self.settings:
            for row in self.rows(setting):
                told = PUBLISHED.get((row.system, f"{DATA}-{setting}"))
                held = self.errors(row.system, setting)
                mean, std = (None, None) if held is None else held.over_restarts()
                found.append(
                    {
                        "metric": "mean_error",
                        "system": row.system,
                        "data": DATA,
                        "protocol": setting,
                        "kept": held and held.mean,
                        "failed": held and held.failed,
                        "without_generated": held and held.others,
                        "mean": mean,
                        "std": std,
                        "restarts": len(held.restarts) if held else 0,
                        "by_task": held and held.kept,
                        "generated": list(held.generated) if held else [],
                        "published": told and told.metrics["mean_error"],
                        "published_failed": told and told.metrics.get("failed_tasks"),
                        "source": told.source if told else "",
                    }
                )
        return found

    def recorded(self) -> list[tuple[Row, str, RecordedRun]]:
        """Every cell that is shown and has a record."""
        return [
            (row, setting, self.cells[row.system, setting])
            for setting in self.settings
            for row in self.rows(setting)
            if (row.system, setting) in self.cells
        ]

    @staticmethod
    def _published(system: str, setting: str) -> dict[str, float]:
        """Published errors by task; those that are known."""
        row = PUBLISHED.get((system, f"{DATA}-{setting}"))
        held = {} if row is None else row.metrics
        return {name.removeprefix("accuracy_"): 1 - each for name, each in held.items() if name.startswith("accuracy_")}


def _said(setting: str) -> str:
    protocol, _, size = setting.partition("-")
    questions = {"1k": "1,000", "10k": "10,000"}[size]
    how = "one model for each task" if protocol == "task" else "one model for all tasks"
    return f"{how}, {questions} training questions of each"


def _mean(error: float, failed: float | None, tasks: int = len(TASKS)) -> str:
    """``12.4 (11)``; small errors have two digits, and a mean over fewer tasks says so."""
    told = f"{100 * error:.2g}" if error < 0.01 else f"{100 * error:.1f}"
    return told + ("" if failed is None else f" ({failed:.0f})") + ("" if tasks == len(TASKS) else f"\n{tasks} tasks")


def _task_cell(found: Errors | None, task: str, published: float | None) -> str:
    beside = "" if published is None else f" ({100 * published:.1f})"
    if found is None or task not in found.kept:
        return f"–{beside}"
    mean, std = found.over_restarts(task)
    star = "*" if task in found.generated else ""
    spread = "" if std is None else f"\n{100 * mean:.1f}±{100 * std:.1f}"
    return f"{100 * found.kept[task]:.1f}{star}{beside}{spread}"


def _counted(run: RecordedRun, score: str) -> str:
    """A score in percent, and below it how many questions it rests on."""
    value = run.value(score)
    return "–" if value is None else f"{_percent(value)}\n{run.count(score):,}"


def _without(label: str, run: RecordedRun, columns: Mapping[str, str]) -> list[str]:
    """Which tasks have no question with a score, said for every column; a record may not tell."""
    told = run.evaluation.counts.get("tasks_without", {})
    named = {column.replace("\n", " "): told[score] for column, score in columns.items() if score in told}
    parts = ", ".join(f"{column}: {' '.join(task.removeprefix('qa') for task in own)}" for column, own in named.items())
    return [f"{label} ({parts})"] if parts else []


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
