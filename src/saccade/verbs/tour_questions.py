"""A stop of the tour at a model of photographs: what was recorded of it, as its pictures do not ship with it."""

from __future__ import annotations

from collections.abc import Callable

from saccade.errors import CheckpointError
from saccade.models.facts import Score, read_facts
from saccade.show.report import Code, Section
from saccade.show.report_tables import Cell, Table, percent
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.tour import Stop
from saccade.zoo import shipped

SHOWN = {
    "accuracy": "right answers",
    "weighted_map": "weighted mAP",
    "swapped_query": "same answer when asked for another part",
    "pointing_at": "maximum near the click",
    "attention_near": "attention near the click",
    "true_positive_strength": "attention on the evidence",
}
"""Scores of the table, where the record has them."""


def question_stop(name: str, *, quick: bool, device: str, progress: Callable[[str, int, int], None]) -> Stop:
    """Say what is recorded of the shipped model ``name``; nothing is computed, on whatever ``device``."""
    facts = read_facts(shipped()[name])
    if not facts.scores:
        raise CheckpointError(f"{name}: shipped without a recorded score; record one with tools/record.py")
    record = facts.scores[0]
    progress(name, record.n, record.n)
    asked, answers = ", ".join(facts.queries[:8]), ", ".join(facts.answers[:8])
    section = Section(
        f"{name}: what colour is the {facts.queries[0]}?",
        f"A model of photographs, {facts.parameters:,} parameters. Asked about {asked}, it answers {answers}. "
        "Its test pictures do not come with the package, so this table was recorded when the model was made.",
        [_table(record), Code(f"saccade look bird.jpg --model {name} --ask {facts.queries[0]} --out out")],
    )
    return Stop(section, _headline(name, record), [_terminal_table(name, record)])


def _rows(record: Score) -> list[tuple[str, dict[str, float | None]]]:
    """The model and its baselines, each with those of the shown scores that the model has."""
    own = {**record.metrics, **record.attention}
    scores = [score for score in SHOWN if isinstance(own.get(score), (int, float))]
    held = {"this model": own, **record.baselines}
    found = [(who.replace("_", " "), {score: values.get(score) for score in scores}) for who, values in held.items()]
    return [(who, values) for who, values in found if any(value is not None for value in values.values())]


def _table(record: Score) -> Table:
    rows = _rows(record)
    where = f"{record.data}, {record.split} split, {record.protocol or 'its own splits'}, seed {record.seed}"
    cells: list[list[Cell | str]] = [
        [
            who,
            *(
                percent(value, note=f"n = {record.counts.get(score, record.n)} {where}")
                for score, value in held.items()
            ),
        ]
        for who, held in rows
    ]
    columns = ["", *(SHOWN[score] for score in rows[0][1])]
    return Table(columns, cells, caption="Recorded scores beside baselines and bounds", source=where, best_row=0)


def _headline(name: str, record: Score) -> list[str]:
    metric = "weighted_map" if "weighted_map" in record.metrics else "accuracy"
    return [name, metric, "–", "–", f"{100 * record.metrics[metric]:.2f} ({record.n:,})", "–"]


def _terminal_table(name: str, record: Score) -> PlainTable:
    rows = _rows(record)
    shown = [[who, *("–" if value is None else f"{100 * value:.1f}" for value in held.values())] for who, held in rows]
    columns = ("", *(score.replace("_", " ") for score in rows[0][1]))
    return PlainTable(f"{name}: recorded %, beside baselines and bounds", columns, shown)
