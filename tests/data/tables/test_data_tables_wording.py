"""Numbers of things and long lists in messages."""

import pytest

from saccade.data.tables.wording import counted, first_few


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (0, ("picture",), "0 pictures"),
        (1, ("picture",), "1 picture"),
        (28_463, ("picture",), "28,463 pictures"),
        (1, ("query", "queries"), "1 query"),
        (2, ("query", "queries"), "2 queries"),
    ],
)
def test_so_many_things(number, words, said):
    assert counted(number, *words) == said


@pytest.mark.parametrize(("names", "said"), [("", ""), ("a", "a"), ("ab", "a; b"), ("abc", "a; b; …")])
def test_a_list_names_its_first_and_says_that_there_are_more(names, said):
    assert first_few(list(names), 2) == said
