"""Models that learned from both drawings: each scored on both."""

from fake_runs import fake_run
from saccade.families.question.reproduction.drawings import drawings_table

FRESH = {"protocol": "unlimited", "glyphs": "disjoint"}


def both(system, accuracy, scored_on, drawing="both"):
    return fake_run(system, **FRESH, drawing=drawing, scored_on=scored_on, accuracy=accuracy)


def test_the_difference_by_hand():
    """90.0 and 89.8 lie 0.2 points apart, which is close; 96.0 and 95.0 do not."""
    runs = [both("soft", 0.900, "blend"), both("soft", 0.898, "authors")]
    runs += [both("hattnet", 0.96, "blend"), both("hattnet", 0.95, "authors")]
    assert drawings_table(runs).rows == [
        ["SOFT", "MREF", "½", "90.00", "89.80", "-0.20", "1 × 10,000"],
        ["HAttNet", "MREF", "½", "96.00", "95.00", "-1.00 *", "1 × 10,000"],
    ]


def test_runs_of_one_drawing_or_scored_on_one_have_no_row():
    runs = [fake_run("soft", **FRESH), both("hard", 0.9, "blend")]
    assert drawings_table(runs).rows == []


def test_a_model_that_learned_from_more_of_the_authors_scenes_has_a_row_of_its_own():
    runs = [both("soft", 0.900, "blend"), both("soft", 0.898, "authors")]
    runs += [both("soft", 0.890, "blend", "mostly-authors"), both("soft", 0.890, "authors", "mostly-authors")]
    assert drawings_table(runs).rows == [
        ["SOFT", "MREF", "½", "90.00", "89.80", "-0.20", "1 × 10,000"],
        ["SOFT", "MREF", "¾", "89.00", "89.00", "+0.00", "1 × 10,000"],
    ]
