"""Mean, spread and interval of a cell by hand; and what comes with saccade can be read."""

from __future__ import annotations

import dataclasses
from math import sqrt

import pytest

from saccade.papers.results import Run, Score, measure, recorded_runs, results_folder, rows

FIELDS = tuple(field.name for field in dataclasses.fields(Run) if field.name != "scores")


def run(value: float = 0.8, seed: int = 0, half: float | None = 0.01, n: int = 10_000) -> Run:
    ends = (None, None) if half is None else (value - half, value + half)
    return Run({"accuracy": Score(value, *ends, n, "test")}, **{**dict.fromkeys(FIELDS, ""), "seed": str(seed)})


def test_one_seed_has_no_spread_and_its_own_interval() -> None:
    found = measure([run()], "accuracy")
    assert found is not None
    assert (found.mean, found.std, found.seeds, found.n) == (0.8, None, (0,), 10_000)
    assert (found.low, found.high) == (pytest.approx(0.79), pytest.approx(0.81))


def test_three_seeds_by_hand() -> None:
    """0.80, 0.82, 0.84: mean 0.82, std 0.02; t(2) · 0.02/√3 = 0.04969; with 0.01 of the pictures: 0.05068."""
    found = measure([run(value, seed) for seed, value in enumerate((0.80, 0.84, 0.82))], "accuracy")
    assert found is not None
    assert (found.mean, found.std) == (pytest.approx(0.82), pytest.approx(0.02))
    half = sqrt(0.01**2 + (4.303 * 0.02 / sqrt(3)) ** 2)
    assert half == pytest.approx(0.05068, abs=1e-5)
    assert (found.low, found.high) == (pytest.approx(0.82 - half), pytest.approx(0.82 + half))


def test_what_is_missing_is_not_made_up() -> None:
    assert measure([], "accuracy") is None
    assert measure([run()], "bleu_4") is None
    without = measure([run(half=None), run(seed=1, n=300)], "accuracy")
    assert without is not None
    assert (without.low, without.high) == (None, None), "one interval is missing, so there is none for the mean"
    assert without.n == 300, "the smallest"


def test_every_recorded_score_is_of_a_run_and_within_its_interval() -> None:
    runs = recorded_runs()
    main = [each for each in runs.values() if each.kind == "main"]
    assert len(main) > 200
    assert all(each.command.startswith("saccade ") and each.machine and each.scores for each in main)
    cells = {(each.table, each.system, each.data, each.protocol, each.glyphs, each.drawing, each.seed) for each in main}
    assert len(cells) == len(main), "two runs of one seed in one cell"
    for each in main:
        for name, score in each.scores.items():
            if score.low is not None and score.high is not None:
                assert score.low - 1e-6 <= score.value <= score.high + 1e-6, (each.run, name)


def test_the_leaderboard_has_six_sets_and_how_stable_each_is() -> None:
    board = list(rows(results_folder() / "causal.csv"))
    sets = {row["set"] for row in board}
    assert sets == {"mref", "mdist", "mbg", "mref-corner", "mref-largest", "mref-blind"}
    assert {row["set"] for row in board if row["method"] == "split-half tau"} == sets
    truth = [row for row in board if (row["set"], row["kind"], row["what"]) == ("mref", "truth", "value")]
    assert max(float(row["map_follow"]) for row in truth) == pytest.approx(1)
