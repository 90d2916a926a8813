"""Splits: their names, and where a name falls that nobody has put into one."""

from collections import Counter

import pytest

from saccade.data.tables.splits import SPLITS, hashed_share, split_of


def test_shares_are_spread_evenly_and_pinned():
    shares = sorted(hashed_share(f"{n}.png") for n in range(2_000))
    assert all(abs(share - n / 2_000) < 0.04 for n, share in enumerate(shares))
    assert hashed_share("a.png") == pytest.approx(0.4962016, abs=1e-7)


def test_of_many_names_70_15_and_15_per_cent_fall_into_the_splits():
    found = Counter(split_of(f"{n}.png") for n in range(4_000))
    assert [found[split] / 4_000 for split in SPLITS] == pytest.approx([0.7, 0.15, 0.15], abs=0.02)
