"""Models that were asked for absent digits too."""

from fake_runs import fake_run
from saccade.families.question.reproduction.absent import absent_table

FRESH = {"protocol": "unlimited", "glyphs": "disjoint"}


def test_only_runs_that_were_asked_for_absent_digits_have_a_row():
    asked = fake_run("hattnet-ctx-sparse", **FRESH, drawing="both", scored_on="authors", accuracy=0.98)
    asked.evaluation.metrics["accuracy_absent"] = 0.941
    assert absent_table([fake_run("soft", **FRESH), asked]).rows == [
        ["hattnet-ctx-sparse", "MREF", "authors", "98.00", "94.10", "0", "10,000"]
    ]


def test_scenes_of_both_drawings_are_called_so():
    asked = fake_run("hattnet-ctx-sparse", **FRESH, drawing="both", scored_on="both", accuracy=0.98)
    asked.evaluation.metrics["accuracy_absent"] = 0.941
    assert absent_table([asked]).rows[0][2] == "both"
