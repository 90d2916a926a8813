"""What training took, from hand-made records; and how tables of words become tables of a page."""

from __future__ import annotations

import dataclasses
from typing import Any

from fake_runs import fake_run
from saccade.recorded import RecordedRun
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cost import cost_table
from saccade.verbs.reproduction.page import table_block

LABELS = {"soft": "SOFT"}


def timed(system: str, data: str = "mref", *, seed: int = 0, accuracy: float = 0.9, **training: Any) -> RecordedRun:
    run = fake_run(system, data, "unlimited", "disjoint", seed, accuracy=accuracy)
    return dataclasses.replace(run, recipe={**run.recipe, "batch_size": 256}, training={"machine": "H1", **training})


def test_the_quickest_comes_first_and_rates_are_of_the_whole_run() -> None:
    """16,000 steps of 256 are 4.10 M examples; in 4 minutes, the mean of 3 and 5, 17,067 a second."""
    slow = timed("hattnet-ctx", minutes=8.0, steps=16_000)
    quick = [
        timed("soft", seed=seed, accuracy=accuracy, minutes=minutes, steps=16_000)
        for seed, (minutes, accuracy) in enumerate([(3.0, 0.89), (5.0, 0.91)])
    ]
    table = cost_table([slow, *quick], ["mref"], labels=LABELS)
    assert [row[0] for row in table.rows] == ["SOFT\nMREF, unlimited", "hattnet-ctx\nMREF, unlimited"]
    assert table.rows[0][1:] == ["2", "16,000", "4.10 M", "4.0", "17,067", "90.00±1.41"]
    assert table.note.endswith("On H1.")


def test_runs_that_do_not_say_their_time_and_other_data_are_left_out() -> None:
    runs = [timed("soft", steps=10), timed("hard", minutes=1.0), timed("soft", "mdist", minutes=1.0, steps=5)]
    assert cost_table(runs, ["mref"], labels=LABELS).rows == []
    assert len(cost_table(runs, ["mref", "mdist"], labels=LABELS).rows) == 1


def test_the_score_of_another_kind_of_answer_is_named() -> None:
    run = timed("soft", minutes=1.0, steps=5)
    scored = dataclasses.replace(run.evaluation, metrics={"exact_match": 0.5})
    table = cost_table([dataclasses.replace(run, evaluation=scored)], ["mref"], labels=LABELS, metric="exact_match")
    assert (table.columns[-1], table.rows[0][-1]) == ("exact match %", "50.00")


def test_numbers_of_a_page_are_not_broken_and_notes_are_no_sources() -> None:
    block = table_block(PlainTable("t", ("a\nb", "c"), [("a word\n1 × 10,000", "+1.00\n[+0.50, +1.50]")], "read it so"))
    assert block.columns == ["a, b", "c"]
    assert block.rows == [["a word · 1\u00a0×\u00a010,000", "+1.00 · [+0.50,\u00a0+1.50]"]]
    assert (block.note, block.source) == ("read it so", "")
