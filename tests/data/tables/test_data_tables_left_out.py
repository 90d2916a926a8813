"""What a reader leaves out: when that is an error, and how it is said."""

import pytest

from saccade.data.tables.left_out import check_usable, summarised
from saccade.errors import DataError

LEFT_OUT = ("empty label: line 2", "empty label: line 3")


@pytest.mark.parametrize("strict", [False, True])
def test_a_table_with_nothing_to_use_is_refused_strict_or_not(strict):
    with pytest.raises(DataError, match=r"^csv:x: it is empty; add a row for each picture$"):
        check_usable("csv:x", [], (), strict=strict)
    with pytest.raises(DataError, match=r"^csv:x: no caption can be used; left out 2 × empty label \(line 2; line 3\)"):
        check_usable("csv:x", [], LEFT_OUT, strict=strict, thing="caption")


def test_what_is_left_out_beside_something_to_use_is_an_error_for_the_strict_alone():
    check_usable("csv:x", ["row"], LEFT_OUT, strict=False)
    check_usable("csv:x", ["row"], (), strict=True)
    with pytest.raises(DataError, match=r"^csv:x: strict, and 2 rows cannot be used: 2 × empty label"):
        check_usable("csv:x", ["row"], LEFT_OUT, strict=True)
    with pytest.raises(DataError, match=r"strict, and 1 caption cannot be used"):
        check_usable("csv:x", ["row"], LEFT_OUT[:1], strict=True, thing="caption")


def test_a_summary_counts_every_reason_and_names_three():
    left_out = ["duplicate: line 7"] + [f"no such picture: line {n}, {n}.png" for n in range(2, 1_302)]
    assert summarised(left_out) == (
        "1,300 × no such picture (line 2, 2.png; line 3, 3.png; line 4, 4.png; …), 1 × duplicate (line 7)"
    )


def test_of_nothing_there_is_no_summary():
    assert summarised([]) == ""
