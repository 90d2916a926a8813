"""Scores of an evaluation as tables and as sections of a page.

Each score stands with its interval and n, then beside its baselines. ``score_words.yaml`` says what each score asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from saccade.config import quick_yaml
from saccade.show.report import Block, Figure, Gallery, Section
from saccade.show.tables import Cell, ShownRow, ShownTable, percent, spaced

Scores = Mapping[str, Any]

WORDS: Any = quick_yaml(files("saccade.show").joinpath("score_words.yaml").read_text("utf-8"))
"""What scores ask (``asks``), whom they are compared with (``rivals``), and so on, in words."""
LOW_IS_GOOD = ("deletion", "distance", "swapped_query", "mean_error", "failed_tasks", "misplaced", "off_objects")
ORACLE, BOUNDED = "grid_oracle", "true_positive_strength"
"""Name of the grid oracle, and the only score for which it is an upper bound."""


def score_tables(result: Scores, *, columns: int | None = None) -> list[ShownTable]:
    """The tables of one result: answers, attention, look by look, and both beside their baselines."""
    attention = {name: value for name, value in result.get("attention", {}).items() if name != "by_look"}
    looks = result.get("attention", {}).get("by_look", {})
    taught = f"the maps were taught where to look {how}" if (how := result.get("maps_supervised")) else ""
    tables = [
        _one_by_one(_title(result), result.get("metrics", {}), result, result.get("note", "")),
        _one_by_one("attention", attention, result, taught),
        questions_table(result.get("against", {}).get("answers", {}).get("by_question", {})),
        rests_on_table(result.get("rests_on", {})),
        *_side_by_side("attention, look by look", "look", looks, columns),
    ]
    for name, group in (("answers", result.get("metrics", {})), ("attention", attention)):
        rivals = {"model": group, **result.get("baselines", {})}
        scores = [score for score in group if sum(_is_there(rival, score) for rival in rivals.values()) > 1]
        tables += _side_by_side(f"{name} beside baselines", "who", rivals, columns, scores)
    for under in intervention_tables(result, columns=columns).values():
        tables += under
    return [table for table in tables if table.rows]


def intervention_tables(result: Scores, *, columns: int | None = None) -> dict[str, list[ShownTable]]:
    """The scores of maps under intervention, in two groups which answer two questions, never in one table.

    With few ``columns``, as in a terminal, answers that are right after an edit are left out.
    """
    parts = {name: part for name, part in result.get("interventions", {}).items() if isinstance(part, Mapping)}
    groups: dict[str, list[ShownTable]] = {}
    for group, part in parts.items():
        title = f"about the {group}"
        heading = f"{_done(parts)[0]}, {title}"
        tables = [_one_by_one(heading, part["scores"], part, WORDS["questions"].get(group, ""))]
        rivals = {"model": part["scores"], **part.get("baselines", {})}
        compared = [name for name in part["scores"] if not name.startswith("map_hold_")]
        drawn = [name for name in compared if not name.startswith("edit_")]
        edited = [name for name in compared if name.startswith("edit_")]
        tables += _side_by_side(f"{title}, beside baselines", "who", rivals, columns, drawn)
        tables += _side_by_side(f"{title}, attention edited, beside baselines", "who", rivals, columns, edited)
        for what in ("changed", "right") if columns is None else ("changed",):
            name = f"answers that {'change' if what == 'changed' else 'are right'} when attention is edited"
            tables += _side_by_side(name, "looks", part.get("edits", {}).get(what, {}), columns)
        groups[group] = [table for table in tables if table.rows]
    return groups


def _done(groups: Collection[str]) -> tuple[str, str]:
    """What was done, shortly and in words: attention edited alone where no map was scored on re-rendered scenes."""
    if len(groups) > 1:
        return "maps of re-rendered scenes", "Scenes are rendered again with one thing changed"
    return "edited attention", "Weights, windows or glimpses are edited, and the rest of the model runs on them"


def questions_table(by_question: Mapping[str, Scores]) -> ShownTable:
    """The model beside the best rival on each question; no rows where nothing, one thing or very much is asked."""
    rows: list[ShownRow] = [
        (
            word,
            Cell(part["n"], f"{part['n']:,}"),
            percent(part["accuracy"]),
            spaced(part["rival"]),
            percent(part["rival_accuracy"]),
            _interval("difference", part["interval"]),
        )
        for word, part in by_question.items()
    ]
    columns = ("question", "n", "model", "best rival", "has", "difference, 95 %")
    return ShownTable(columns, rows, caption="answers beside the best rival, question by question")


def rests_on_table(rests_on: Scores) -> ShownTable:
    """What answers rest on: how many are right when a part of the picture is gone; no rows where nothing is known."""
    accuracy, intervals = rests_on.get("accuracy", {}), rests_on.get("intervals", {})
    rows = [
        (words, percent(accuracy[name]), _interval(name, intervals.get(name)))
        for name, words in WORDS["ways"].items()
        if name in accuracy
    ]
    n = f", n {rests_on['n']:,}" if "n" in rests_on else ""
    return ShownTable(("what is there", "right", "95 % interval"), rows, caption=f"what the answers depend on{n}")


def _title(result: Scores) -> str:
    protocol = f" ({result['protocol']})" if result.get("protocol") else ""
    seed = f", seed {result['seed']}" if result.get("seed") is not None else ""
    drawn = f", drawing {result['drawing']}" if result.get("drawing", "blend") != "blend" else ""
    return f"{result['model']} on {result['data']} {result['split']}{protocol}{drawn}, n {result['n']:,}{seed}"


def _one_by_one(title: str, scores: Scores, result: Scores, remark: str = "") -> ShownTable:
    """One row a score: its value, its interval, and how many it is the mean of, where known."""
    intervals, counts, units = result.get("intervals", {}), flat(result.get("counts", {})), result.get("units", {})
    rows: list[ShownRow] = []
    for name, value in flat(scores).items():
        n = Cell(counts[name], f"{counts[name]:,}") if name in counts else ""
        unit = units.get(name)
        rows.append((_marked(name), _cell(name, value, unit), _interval(name, intervals.get(name), unit), n))
    note = "; ".join(filter(None, (_note(scores), remark)))
    return ShownTable(("metric", "value", "95 % interval", "n"), rows, caption=title, note=note)


def _side_by_side(
    title: str, what: str, contenders: Mapping[str, Scores], columns: int | None, scores: Sequence[str] | None = None
) -> list[ShownTable]:
    """One row a contender, a dash for what it has not; in several tables where there are more than ``columns``."""
    if scores is None:
        scores = list(dict.fromkeys(name for row in contenders.values() for name in row))
    width = columns or max(1, len(scores))
    parts = [scores[start : start + width] for start in range(0, len(scores), width)]
    tables = []
    for number, part in enumerate(parts, 1):
        names = [who for who, row in contenders.items() if any(_is_there(row, score) for score in part)]
        notes = [_note(part), *(text for score, text in WORDS["remarks"].items() if score in part)]
        if ORACLE in names and set(part) == {BOUNDED}:
            notes.append("grid oracle: the bound, the most that weights on the model's grids can have")
        elif ORACLE in names:
            best = f"the map of the model's grids with the best {spaced(BOUNDED)}"
            notes.append(f"grid oracle: {best}; a bound of that score only")
        tables.append(
            ShownTable(
                (what, *(spaced(_marked(score)) for score in part)),
                [(spaced(who), *(_cell(score, contenders[who].get(score)) for score in part)) for who in names],
                caption=title if len(parts) == 1 else f"{title}, {number} of {len(parts)}",
                note="; ".join(filter(None, notes)),
            )
        )
    return tables


def _is_there(scores: Scores, name: str) -> bool:
    return isinstance(scores.get(name), (int, float))


def _marked(score: str) -> str:
    return f"{score} ↓" if score in LOW_IS_GOOD else score


def _note(scores: Iterable[str]) -> str:
    return "↓ low is good" if not set(LOW_IS_GOOD).isdisjoint(scores) else ""


def _cell(score: str, value: float | None, unit: str | None = None) -> Cell:
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
    is_fraction = unit is None and not score.endswith("_raw")
    return "–".join(f"{100 * end:.1f}" if is_fraction else f"{end:.3g}" for end in ends) if len(ends) == 2 else ""


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


MATRIX_CLASSES = 20  # Classes of a confusion matrix that fits a page; of more, the most confused pairs are listed.
CLASSES = 200  # Rows of the table of classes at most: the worst come first.


def confusion_section(confusion: Mapping[str, Any], classes: int) -> Section | None:
    """The matrix of up to 20 classes, else the most confused pairs; None where nothing is known."""
    names, matrix, pairs = (confusion.get(key, ()) for key in ("classes", "matrix", "mistakes"))
    if matrix and len(names) <= MATRIX_CLASSES:
        rows: list[ShownRow] = [[name, *map(int, row)] for name, row in zip(names, matrix)]
        table = ShownTable(["true \\ said", *names], rows)
        return Section("Confusion matrix", "A row for each true class, a column for each answer.", [table])
    if not pairs:
        return None
    text = f"The most confused pairs; a matrix of {classes} classes would not fit the page."
    rows = [[pair["true"], pair["said"], int(pair["n"])] for pair in pairs]
    return Section("Confusions", text, [ShownTable(("true", "said", "times"), rows)])


def classes_section(per_class: Mapping[str, Mapping[str, Any]], elsewhere: str) -> Section | None:
    """Recall and precision of each class, the worst first; ``elsewhere`` names the file that has all of them."""
    if not per_class:
        return None
    recall = {name: 1.0 if score["recall"] is None else score["recall"] for name, score in per_class.items()}
    rows: list[ShownRow] = []
    for name in sorted(per_class, key=lambda name: (recall[name], name))[:CLASSES]:
        score = per_class[name]
        rows.append([name, score["pictures"], percent(score["recall"]), percent(score["precision"])])
    left = len(per_class) - len(rows)
    text = "The worst come first." + (f" {left} better ones are in {elsewhere}." if left else "")
    columns = ("class", "pictures", "found (recall)", "right when said (precision)")
    return Section("Scores of classes", text, [ShownTable(columns, rows, dash="no such picture, or never said")])


def mistakes_section(pictures: Sequence[Figure], what: str, missing: str = "") -> Section:
    """The worst mistakes with their maps, on ``what`` ("test pictures"); ``missing`` says why some cannot be shown."""
    if not pictures and not missing:
        return Section("Worst mistakes", f"No mistake was made on {what}.")
    text = f"The surest wrong answers on {what}, with where the model looked." + (f" {missing}" if missing else "")
    blocks: list[Block] = [Gallery(pictures)] if pictures else []
    return Section("Worst mistakes", text, blocks)


def rests_on_section(rests_on: Mapping[str, object]) -> Section | None:
    """How many answers are right without the evidence, and without the rest; None where no evidence is known."""
    table = rests_on_table(rests_on)
    if not table.rows:
        return None
    summary = str(rests_on.get("says") or "")
    text = (
        "Where your boxes or masks say what the answer is about, pictures were changed and asked about again: the "
        "evidence blurred, or taken from a picture with another answer; and everything else in the same way. A "
        "model that stays right without the evidence uses something else."
    )
    return Section("What the answer depends on", f"{summary}.\n\n{text}" if summary else text, [table])


def caption(mistake: Mapping[str, Any]) -> str:
    """What stands below a mistake."""
    question = f"{mistake['asked']}: " if mistake.get("asked") else ""
    share = f"; {mistake['true']} {mistake['of_true']:.0%}" if isinstance(mistake.get("of_true"), float) else ""
    return f"{question}{mistake['true']}, said {mistake['said']} ({mistake['confidence']:.0%}{share})"


TITLE = "Is it right, and is its attention faithful?"


def scores_section(result: Scores) -> Section:
    """The tables of answers and attention, and in words what was asked and compared."""
    names = {name.split(".")[-1] for group in ("metrics", "attention") for name in flat(result.get(group, {}))}
    words = _words(names, {name.removesuffix("_exact") for name in result.get("baselines", {})})
    text = "Intervals are for 95 %, with the picture as the unit; n is what a mean was taken over."
    verdict = f"{result['verdict']}.\n\n" if result.get("verdict") else ""
    overall = {**result, "rests_on": {}, "interventions": {}}  # which have sections of their own
    return Section(TITLE, f"{verdict}{text}", [*score_tables(overall), *words])


def _words(scores: Collection[str], rivals: Collection[str]) -> list[ShownTable]:
    rows = [(spaced(name), text) for name, text in WORDS["asks"].items() if name in scores]
    rows += [(spaced(name), text) for name, text in WORDS["rivals"].items() if name in rivals]
    return [ShownTable(("in the tables", "meaning"), rows, caption="What the words mean")] if rows else []


def answer_sections(result: Scores) -> list[Section]:
    """Maps under intervention, what the answers depend on, confusions, classes: those that ``result`` tells of."""
    sections: list[Section | None] = []
    groups = intervention_tables(result)
    what, done = _done(groups)
    for group, tables in groups.items():
        part, question = result["interventions"][group], WORDS["questions"].get(group, "")
        words = _words(part.get("scores", {}), part.get("baselines", {}))
        setup = f"{done}, and the model is asked again; {result['interventions'].get('n', 0):,} questions."
        text = f"{question[:1].upper()}{question[1:]}\n\n{setup}"
        sections.append(Section(f"{what[:1].upper()}{what[1:]}: about the {group}", text, [*tables, *words]))
    per_class = result.get("per_class", {})
    sections += [
        rests_on_section(result.get("rests_on", {})),
        confusion_section(result.get("confusion", {}), len(per_class)),
        classes_section(per_class, "the file of scores"),
    ]
    return [section for section in sections if section is not None]
