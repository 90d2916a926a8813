"""The leaderboard of maps, ``results/causal.csv``: what is about the scene and what is about the model, apart."""

from __future__ import annotations

from saccade.papers.results import results_folder, rows
from saccade.show.tables import Table

SCENE = (
    "map_follow", "map_turn", "map_specific", "map_hold",
    "true_positive_strength", "selectivity", "pointing", "iou",
)  # fmt: skip
"""Does the map lie on what was asked for, and go along with it?"""
MODEL = ("cause_top", "cause_pairs", "misplaced", "off_objects", "deletion", "insertion")
"""Does the map show what the answer depends on? Of the last four but insertion, less is better."""
KINDS = ("map", "rival", "truth")
"""A map competes; a rival knows nothing of the model; truth was told the answer."""


def causal_tables() -> list[Table]:
    """Two tables for each set of scenes, best maps first; below each, how far two halves of the scenes agree."""
    known = list(rows(results_folder() / "causal.csv"))
    tables = []
    for name in dict.fromkeys(row["set"] for row in known):
        of_set = [row for row in known if (row["set"], row["what"]) == (name, "value")]
        halves = next(row for row in of_set if row["method"] == "split-half tau")
        maps = [row for row in of_set if row["kind"]]
        for title, scores in (("about the scene", SCENE), ("about the model", MODEL)):
            ordered = sorted(maps, key=lambda row: (KINDS.index(row["kind"]), -float(row[scores[0]] or "-inf")))
            lines = [[row["model"], row["method"], *(percent(row[score]) for score in scores)] for row in ordered]
            taus = ", ".join(f"{score} {float(halves[score]):.2f}" for score in scores if halves[score])
            note = f"n = {int(halves['n']):,} questions, one seed. Kendall's τ of two halves of the scenes: {taus}."
            columns = ["model", "map", *(score.replace("_", " ") for score in scores)]
            tables.append(Table(columns, lines, f"{title}, {name}, %", note))
    return tables


def percent(text: str) -> str:
    """A fraction as it stands in a CSV, in percent; a dash where there is none."""
    return f"{100 * float(text):.1f}" if text else "–"
