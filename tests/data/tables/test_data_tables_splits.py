"""Splits: their names, and where a name falls that nobody has put into one."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.tables.splits import SPLITS, checked_split, hashed_share, split_of
from saccade.errors import DataError

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too: names of files may hold them


@pytest.mark.parametrize(
    ("name", "hint"), [("tset", "did you mean 'test'"), ("Train", "did you mean 'train'"), ("", "choose from")]
)
def test_another_name_is_refused_with_a_hint(name, hint):
    with pytest.raises(DataError, match=f"no split '{name}': {hint}"):
        checked_split(name)


@given(ANY_TEXT)
def test_any_text_has_a_share_and_the_split_of_that_share(text):
    share = hashed_share(text)
    assert 0 <= share < 1
    assert split_of(text) == ("train" if share < 0.7 else "val" if share < 0.85 else "test")


def test_shares_are_spread_evenly_and_pinned():
    shares = sorted(hashed_share(f"{n}.png") for n in range(2_000))
    assert all(abs(share - n / 2_000) < 0.04 for n, share in enumerate(shares))
    assert hashed_share("a.png") == pytest.approx(0.4962016, abs=1e-7)


def test_of_many_names_70_15_and_15_per_cent_fall_into_the_splits():
    found = Counter(split_of(f"{n}.png") for n in range(4_000))
    assert [found[split] / 4_000 for split in SPLITS] == pytest.approx([0.7, 0.15, 0.15], abs=0.02)
