"""The leaderboard of maps as tables, from recorded boards.

Two questions are kept apart, in two tables: does the map lie on what was asked for (*about the scene*: a segmenter
that never saw the model can win it), and does it say what the answer rests on (*about the model*). Scores that render
scenes again come first. A third table has right and wrong answers apart, a fourth the models whose cause is known
because it was planted: there the digit asked for must lose, and the planted cause must win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from saccade.families.question.board.measuring import FOREGROUND, NO_MODEL
from saccade.families.question.board.rows import ASKED, LESS_IS_BETTER, MODEL, PLACES, SCENE, SWEPT
from saccade.families.question.reproduction.board.entrants import UNTAUGHT
from saccade.families.question.reproduction.board.recording import BoardRecord
from saccade.recorded import RecordedRun
from saccade.verbs.plain_table import PlainTable

HEADS = {
    "map_follow": "follow",
    "map_turn": "turn",
    "map_specific": "specific",
    "map_hold": "hold",
    "true_positive_strength": "strength",
    "selectivity": "selective",
    "pointing": "pointing",
    "iou": "IoU",
    "cause_top": "top cause",
    "cause_pairs": "pairs",
    "misplaced": "misplaced ↓",
    "off_objects": "off objects ↓",
    "deletion": "deletion ↓",
    "insertion": "insertion",
}
PLANTED = {
    "corner": "the colour of a patch in the corner",
    "largest": "the colour of the largest digit",
    "blind": "the colour of some digit; the question names one at random",
}
"""What the answer is, whatever is asked."""
STABLE = 0.9
"""Kendall's τ of two halves of the scenes, as it should be at least."""
LEGEND = (
    "All in %. About the scene: follow, the digit asked for is moved and the map goes with it, less what it does for "
    "another digit; turn, two questions about a scene; specific, the map changes more with the digit asked for than "
    "with another (50 by chance); hold, it stays when something else changes, and a map that never moves has 100. "
    "strength, selective, pointing, IoU: where it lies, without rendering again. About the model: top cause, the "
    "digit with the most of the map is the one whose recolouring moves the answer most; pairs, the same for pairs of "
    "digits; misplaced, of the map on digits, what lies on digits that the answer does not rest on (a map that lies on "
    "no digit does not count); off objects, what lies on none; deletion and insertion, of blackened pixels (a model "
    "that is never sure has a low deletion). ↓: "
    "less is better. * leads its column among the maps of models; = cannot be told from the leader (paired by scene, "
    "p > .05 after Holm's correction for all maps). Rows of 'no model' know nothing of one: beside the effects of the "
    "first model. 'own × foreground' is a map times 'pixel brighter than 5 %'. 'the digit asked for' and 'all digits' "
    "are told where things are, as a segmenter would know. specific reads when a map changes and not where it lies: "
    "maps of another scene and of its own twins keep it."
)


def board_tables(boards: Sequence[BoardRecord]) -> list[PlainTable]:
    """For each data set the two tables and right and wrong answers apart; then planted causes."""
    sets = [board for board in boards if board.planted == "none"]
    found = [make(board) for board in sets for make in (about_scene, about_model, by_answer)]
    planted = [board for board in boards if board.planted != "none"]
    return [*found, planted_table(planted)] if planted else found


def about_scene(board: BoardRecord) -> PlainTable:
    """Does the map lie on what was asked for?"""
    scores = (*SCENE, *PLACES)
    note = f"{_how(board)} {_stable(board, scores)}"
    return _table(
        f"about the scene, {board.data.upper()}: does the map lie on what was asked for?", board, scores, note
    )


def about_model(board: BoardRecord) -> PlainTable:
    """Does the map show what the answer depends on?"""
    scores = (*MODEL, *SWEPT)
    note = f"{_stable(board, scores)} {_asked(board)}".strip()
    title = f"about the model, {board.data.upper()}: does the map show what the answer depends on?"
    return _table(title, board, scores, note)


def by_answer(board: BoardRecord) -> PlainTable:
    """Right and wrong answers apart, of the maps of models."""
    scores = ("map_turn", "cause_top", "misplaced")
    columns = ["model", "map", *(f"{HEADS[score]}, {part}" for part in ("right", "wrong") for score in scores), "n"]
    rows = []
    for row in board.rows:
        if row["kind"] == "map" and not row["model"].endswith(UNTAUGHT):
            right, wrong = row["parts"]["right"], row["parts"]["wrong"]
            told = [_percent(part.get(score)) for part in (right, wrong) for score in scores]
            rows.append([row["model"], row["method"], *told, f"{right['n']} + {wrong['n']}"])
    note = "n: questions answered right + wrong. Effects need an answer that moves: where none does, – stands."
    return PlainTable(f"right and wrong answers apart, {board.data.upper()}, %", columns, rows, note)


def planted_table(boards: Sequence[BoardRecord]) -> PlainTable:
    """What maps say of models whose cause is known."""
    scores = MODEL
    rows = []
    for board in boards:
        (model, facts), *_ = board.models.items()
        accuracy = f"{model}\n{_percent(facts['accuracy'])} % right"
        wanted = [row for row in board.rows if row["kind"] != "rival" or row["method"] in ("uniform", "noise")]
        for row in wanted:
            who = accuracy if row["model"] == model else row["model"]
            rows.append([board.planted, who, row["method"], *(_percent(row["scores"].get(score)) for score in scores)])
    told = "; ".join(f"{name}: {PLANTED[name]}" for name in (board.planted for board in boards))
    note = (
        f"The answer is, whatever is asked: {told}. The scores measure the model only if here the digit asked for "
        "loses and the planted cause wins. The largest digit has the largest area, too: an even map ranks it first. "
        f"{_how(boards[0])}"
    )
    columns = ["planted", "model", "map", *(HEADS[score] for score in scores)]
    return PlainTable("planted causes: models of which it is known what they use, %", columns, rows, note)


def parts_table(runs: Sequence[RecordedRun]) -> PlainTable | None:
    """Attention on the parts of birds, from recorded runs: photographs cannot be rendered again."""
    metrics = ("pointing_at", "attention_near", "distance", "accuracy")
    found = [run for run in runs if run.on == "cub" and run.protocol == "pictures"]
    if not found:
        return None
    rows = [[run.system, "own", *(_percent(run.value(metric)) for metric in metrics)] for run in found]
    for name in ("uniform", "box_centre", "part_prior", "grid_oracle"):
        held = found[0].evaluation.baselines.get(name, {})
        rows.append([NO_MODEL, name.replace("_", " "), *(_percent(held.get(metric)) for metric in metrics)])
    note = (
        f"New pictures of known species, n = {found[0].evaluation.n:,} questions, one seed; clicks of people are the "
        "truth. No causal columns: nobody can render a photograph again."
    )
    columns = ["model", "map", *(metric.replace("_", " ") for metric in metrics)]
    return PlainTable("about the scene, parts of birds (CUB-200-2011), %", columns, rows, note)


def _table(title: str, board: BoardRecord, scores: Sequence[str], note: str) -> PlainTable:
    shown = [score for score in scores if any(score in row["scores"] for row in board.rows)]
    marks = {score: _marks(board, score) for score in shown}
    order = sorted(board.rows, key=lambda row: _place(row, shown[0]))
    rows = []
    for row in order:
        name = f"{row['model']}: {row['method']}"
        cells = [_percent(row["scores"].get(score)) + marks[score].get(name, "") for score in shown]
        rows.append([row["model"], row["method"], *cells, _counted(row, shown)])
    columns = ["model", "map", *(HEADS[score] for score in shown), "n"]
    return PlainTable(f"{title} %", columns, rows, f"{note} {_counts(order[0], shown)}".strip())


def _counted(row: Mapping[str, Any], scores: Sequence[str]) -> str:
    """Questions behind the numbers of a row: the fewest and the most, where scores differ in it."""
    counts = [row["counts"].get(score) for score in scores]
    known = sorted(count for count in counts if count) or [row["n"]]
    return f"{known[-1]}" if known[0] == known[-1] else f"{known[0]}–{known[-1]}"


def _counts(row: Mapping[str, Any], scores: Sequence[str]) -> str:
    """What n means in a table, with the counts of one row as an example."""
    listed = ", ".join(
        f"{HEADS[score].removesuffix(' ↓')} {row['counts'][score]:,}" for score in scores if row["counts"].get(score)
    )
    return (
        "n: the fewest and the most questions behind a number of the row, as a score counts only where it is defined; "
        f"in the first row {listed}."
    )


def _place(row: Mapping[str, Any], score: str) -> tuple[int, float]:
    """Maps of models first, then rivals, then what was told the truth; in each group the best first."""
    value = row["scores"].get(score)
    kinds = ("map", FOREGROUND, "rival", "truth")
    kind = kinds.index(FOREGROUND if row["method"] == FOREGROUND else row["kind"])
    return kind, math.inf if value is None else value if score in LESS_IS_BETTER else -value


def _marks(board: BoardRecord, score: str) -> dict[str, str]:
    """By row: whether it leads a score, or cannot be told from what leads."""
    compared = board.comparisons.get(score)
    if not compared:
        return {}
    alike = {each["row"]: " =" for each in compared["others"] if each["p_holm"] is None or each["p_holm"] > 0.05}
    return {compared["leader"]: " *", **alike}


def _how(board: BoardRecord) -> str:
    scenes = max(row["scenes"] for row in board.rows)
    return (
        f"{board.data.upper()}, {board.split}, n = {board.n:,} questions about {scenes:,} scenes (fewer for ig and "
        f"occlusion), seed {board.seed}, moves of {board.least_move} pixels at least; {board.machine}, "
        f"{board.seconds:.0f} s: `{board.command}`.{_outdated(board)}"
    )


def _outdated(board: BoardRecord) -> str:
    """Which rows are not of the weights that ship today; their cards have the scores of those."""
    if not board.outdated:
        return ""
    return (
        f" Trained further since, and not measured again here: {', '.join(board.outdated)}; their cards have today's."
    )


def _stable(board: BoardRecord, scores: Sequence[str]) -> str:
    """How far two halves of the scenes agree on the order of the maps."""
    found = {score: tau for score in scores if (tau := board.kendall_tau.get(score)) is not None}
    if not found:
        return ""
    below = [HEADS[score] for score, tau in found.items() if tau < STABLE]
    listed = ", ".join(f"{HEADS[score].removesuffix(' ↓')} {tau:.2f}" for score, tau in found.items())
    verdict = f"below {STABLE:g}: {', '.join(below)}" if below else f"all are {STABLE:g} or more"
    return f"Kendall's τ between two halves of the scenes: {listed}; {verdict}."


def _asked(board: BoardRecord) -> str:
    """What Grad-CAM does with a question, where the last map has not met it."""
    rows = {row["model"]: row for row in board.rows if row["method"] == "gradcam" and ASKED in row["scores"]}
    own = {row["model"]: row["scores"].get(ASKED) for row in board.rows if row["method"] == "own"}
    told = [
        f"{model} {_percent(row['scores'][ASKED])} (its own attention {_percent(own.get(model))})"
        for model, row in rows.items()
        if row["scores"][ASKED] is not None and not model.endswith(UNTAUGHT)
    ]
    if not told:
        return ""
    return (
        "Grad-CAM weighs channels and never places: on a last map that has not met the query (SOFT, cross, ViT) a "
        "query can change these weights at most, and where they follow from the answer alone, as with cross-attention, "
        "it is the same for every query. Two questions with the same answer about one scene move it by a TV of (%): "
        f"{', '.join(told)}."
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{round(100 * value, 1) + 0.0:.1f}"
