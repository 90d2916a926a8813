import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import rouge_l
from saccade.metrics.text.ngrams import _longest_common


def test_a_caption_worked_by_hand():
    """Longest common subsequences: "a dog runs" with the first (3 of 6 words), "dog" with the second (1 of 1).

    P = 3/4 from the one, R = 1 from the other: F = 2.44 · 0.75 / (1 + 1.44 · 0.75).
    """
    known = ("a big brown dog now runs", "dog")
    assert rouge_l(["a dog fast runs"], [known]) == pytest.approx(2.44 * 0.75 / (1 + 1.44 * 0.75))


def longest_by_table(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=90)


@given(said=WORDS, references=st.lists(WORDS, min_size=1, max_size=3))
def test_the_bits_count_what_the_table_counts(said, references):
    """Captions of more than 64 words too: there is no machine word to overflow."""
    assert _longest_common(said, references) == [longest_by_table(said, words) for words in references]
