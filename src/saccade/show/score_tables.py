"""What ``evaluate`` measured, as tables: each score with interval and n, then beside its baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saccade.show.report_tables import Cell, Table, percent

Scores = Mapping[str, Any]

LOW_IS_GOOD = (
    "deletion",
    "distance",
    "swapped_query",
    "mean_error",
    "failed_tasks",
    "misplaced",
    "off_objects",
    "edit_farthest",
)
ORACLE, BOUNDED = "grid_oracle", ("true_positive_strength",)
"""The best map that weights on a model's grids can make, and what it is the best at: of other scores it is no bound."""
_LOW_NOTE = "↓ low is good"
_OLD = "baselines and bound were made on the last grid alone, by an older version: evaluate again before comparing"


def score_tables(result: Scores, *, columns: int | None = None) -> list[Table]:
    """The tables of one result: answers, attention, look by look, and both beside their baselines.

    Args:
        result: what :func:`saccade.evaluate` gives, or its JSON read again.
        columns: scores side by side in one table; None: all of them.
    """
    attention = {name: value for name, value in result.get("attention", {}).items() if name != "by_look"}
    looks = result.get("attention", {}).get("by_look", {})
    groups = (("answers", result.get("metrics", {})), ("attention", attention))
    remark = "; ".join(filter(None, (result.get("note"), _OLD if _is_on_one_grid(result) else "")))
    taught = f"the maps were taught where to look {how}" if (how := result.get("maps_supervised")) else ""
    tables = [
        _one_by_one(_title(result), result.get("metrics", {}), result, remark),
        _one_by_one("attention", attention, result, taught),
        rests_on_table(result.get("rests_on", {})),
    ]
    tables += _side_by_side("attention, look by look", "look", looks, columns)
    for name, group in groups:
        rivals = {"model": group, **result.get("baselines", {})}
        tables += _side_by_side(f"{name} beside baselines", "who", rivals, columns, first="model")
    for under in intervention_tables(result, columns=columns).values():
        tables += under
    return [table for table in tables if table.rows]


def interventions(result: Scores) -> dict[str, Scores]:
    """The groups of scores of maps under intervention, by name; none in results that are older.

    About the scene: does the map lie on what was asked for? About the model: does it say what the answer rests on?
    """
    return {name: held for name, held in result.get("interventions", {}).items() if isinstance(held, Mapping)}


def is_rerendered(result: Scores) -> bool:
    """Whether scenes were rendered again; else attention was edited alone, which gives one group of scores."""
    return len(interventions(result)) > 1


def under_intervention(result: Scores) -> str:
    """What was done: scenes rendered again, or attention edited alone where no map was scored on such scenes."""
    return "maps of re-rendered scenes" if is_rerendered(result) else "edited attention"


def intervention_tables(result: Scores, *, columns: int | None = None) -> dict[str, list[Table]]:
    """The scores of maps under intervention by group: two groups, which answer two questions, never in one table.

    With few ``columns``, as in a terminal, answers that are right after an edit are left out: they go with those that
    change.
    """
    found: dict[str, list[Table]] = {}
    for group, held in interventions(result).items():
        title, asked = f"about the {group}", QUESTIONS.get(group, "")
        tables = [_one_by_one(f"{under_intervention(result)}, {title}", held["scores"], held, asked)]
        rivals = {"model": held["scores"], **held.get("baselines", {})}
        compared = [name for name in held["scores"] if not name.startswith("map_hold_")]
        for what, scores in (
            (title, [name for name in compared if not name.startswith("edit_")]),
            (f"{title}, attention edited", [name for name in compared if name.startswith("edit_")]),
        ):
            tables += _with_gaps(f"{what}, beside baselines", rivals, scores, columns)
        edits = held.get("edits", {})
        kinds = {"changed": "answers that change", "right": "answers that are right"}
        for what, told in kinds.items():
            if what == "changed" or columns is None:
                tables += _side_by_side(f"{told} when attention is edited", "looks", edits.get(what, {}), columns)
        found[group] = [table for table in tables if table.rows]
    return found


def _with_gaps(title: str, rivals: Mapping[str, Scores], scores: Sequence[str], columns: int | None) -> list[Table]:
    """One row for everyone that has one of these scores, a dash for what it has not."""
    tables, together = [], columns or max(1, len(scores))
    parts = [scores[start : start + together] for start in range(0, len(scores), together)]
    for number, part in enumerate(parts, 1):
        rows: list[tuple[Cell | str, ...]] = [
            (_spaced(who), *(_cell(score, held.get(score)) for score in part))
            for who, held in rivals.items()
            if any(isinstance(held.get(score), (int, float)) for score in part)
        ]
        caption = title if len(parts) == 1 else f"{title}, {number} of {len(parts)}"
        told = (_note(part), *(told for score, told in REMARKS.items() if score in part), _oracle(rivals, part))
        note = "; ".join(filter(None, told))
        tables.append(Table(("who", *(_spaced(_marked(score)) for score in part)), rows, caption=caption, note=note))
    return tables


QUESTIONS = {
    "scene": "does the map lie on what was asked for? a segmenter that knows the question passes",
    "model": "does the map show what the answer depends on?",
}
"""What the groups of scores under intervention ask."""
REMARKS = {
    "map_hold": "a map that never moves holds by 100 %: read map hold beside the others",
    "map_specific": "shuffled maps move with a scene of their own",
}
"""What must be known to read a column."""
WAYS = {
    "unchanged": "the whole picture",
    "evidence_blurred": "evidence blurred",
    "evidence_swapped": "evidence from another picture",
    "rest_blurred": "all but the evidence blurred",
    "rest_swapped": "all but the evidence from another picture",
    "guess": "guessing",
}
"""What ``saccade.metrics.verdict`` changes, in words."""


def rests_on_table(rests_on: Scores) -> Table:
    """What answers rest on: how many are right when a part of the picture is gone; no rows where nothing is known."""
    accuracy, intervals = rests_on.get("accuracy", {}), rests_on.get("intervals", {})
    rows = [
        (told, percent(accuracy[name]), _interval(name, intervals.get(name)))
        for name, told in WAYS.items()
        if name in accuracy
    ]
    n = f", n {rests_on['n']:,}" if "n" in rests_on else ""
    return Table(("what is there", "right", "95 % interval"), rows, caption=f"what the answers depend on{n}")


def _is_on_one_grid(result: Scores) -> bool:
    """Whether baselines are of the first definition, which made them on the last of several grids."""
    return result.get("definition", 1) < 2 and len(result.get("attention", {}).get("by_look") or ()) > 1


def _title(result: Scores) -> str:
    protocol = f" ({result['protocol']})" if result.get("protocol") else ""
    seed = f", seed {result['seed']}" if result.get("seed") is not None else ""
    drawn = f", drawing {result['drawing']}" if result.get("drawing", "blend") != "blend" else ""
    return f"{result['model']} on {result['data']} {result['split']}{protocol}{drawn}, n {result['n']:,}{seed}"


def _one_by_one(title: str, scores: Scores, result: Scores, remark: str = "") -> Table:
    """One row a score: its value, its interval, and of how many it is the mean, where that is told."""
    intervals, counts = result.get("intervals", {}), flat(result.get("counts", {}))
    units = result.get("units", {})
    rows: list[tuple[Cell | str, ...]] = []
    for name, value in flat(scores).items():
        told = Cell(counts[name], f"{counts[name]:,}") if name in counts else ""
        cell = _cell(name, value, units.get(name))
        rows.append((_marked(name), cell, _interval(name, intervals.get(name), units.get(name)), told))
    note = "; ".join(filter(None, (_note(scores), remark)))
    return Table(("metric", "value", "95 % interval", "n"), rows, caption=title, note=note)


def _side_by_side(
    title: str, what: str, contenders: Mapping[str, Scores], columns: int | None, *, first: str | None = None
) -> list[Table]:
    """One row a contender, in tables for scores that the same ones have; with ``first``, only those that it has too."""
    together: dict[tuple[str, ...], list[str]] = {}
    for score in dict.fromkeys(name for held in contenders.values() for name in held):
        holders = tuple(who for who, held in contenders.items() if isinstance(held.get(score), (int, float)))
        if first is None or (first in holders and len(holders) > 1):
            together.setdefault(holders, []).append(score)
    parts = [
        (holders, scores[start : start + (columns or len(scores))])
        for holders, scores in together.items()
        if holders
        for start in range(0, len(scores), columns or len(scores))
    ]
    return [
        Table(
            (what, *(_spaced(_marked(score)) for score in scores)),
            [(_spaced(who), *(_cell(score, contenders[who][score]) for score in scores)) for who in holders],
            caption=title if len(parts) == 1 else f"{title}, {number} of {len(parts)}",
            note="; ".join(filter(None, (_note(scores), _oracle(holders, scores)))),
        )
        for number, (holders, scores) in enumerate(parts, 1)
    ]


def _marked(score: str) -> str:
    return f"{score} ↓" if score in LOW_IS_GOOD else score


def _note(scores: Sequence[str] | Scores) -> str:
    return _LOW_NOTE if any(score in LOW_IS_GOOD for score in scores) else ""


def _oracle(holders: Iterable[str], scores: Sequence[str]) -> str:
    """What the oracle of the grids is, where it stands in a table: a bound of one score, and a map like others else."""
    if ORACLE not in holders:
        return ""
    if set(scores) <= set(BOUNDED):
        return "grid oracle: the bound, the most that weights on the model's grids can have"
    only = " and ".join(map(_spaced, BOUNDED))
    return f"grid oracle: the map of the model's grids with the best {only}; a bound of that score only"


def _spaced(name: str) -> str:
    """A name that can be wrapped in a narrow column."""
    return name.replace("_", " ")


def _cell(score: str, value: float | None, unit: str | None = None) -> Cell:
    """A fraction in percent; what has a unit with it; what is called _raw in units of its own."""
    if value is None or value != value:
        return Cell(None)
    if unit is not None:
        return Cell(value, f"{value:,.3g} {unit}{'' if value == 1 else 's'}")
    return Cell(value, f"{value:.3g}") if score.endswith("_raw") else percent(value)


def _interval(score: str, bounds: Sequence[float | None] | None, unit: str | None = None) -> str:
    """Both ends, in the units of the score; nothing where one is not known.

    >>> _interval("accuracy", [0.25, 0.75]), _interval("length_raw", [8.5, 9.25]), _interval("accuracy", None)
    ('25.0–75.0', '8.5–9.25', '')
    """
    ends = [bound for bound in bounds or () if bound is not None]
    if len(ends) < 2:
        return ""
    is_fraction = unit is None and not score.endswith("_raw")
    return "–".join(f"{100 * end:.1f}" if is_fraction else f"{end:.3g}" for end in ends)


def flat(values: Scores, prefix: str = "") -> dict[str, Any]:
    """Nested groups as one level of dotted names.

    >>> flat({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    result: dict[str, object] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        result |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return result
