"""Batches of one length: a permutation, nearly no padding, and another one every epoch."""

from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.families.caption.data import bucketed_order


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 99), st.integers(0, 9))
def test_every_caption_comes_once_and_full_batches_are_neighbours_in_length(lengths, batch_size, seed, epoch):
    given_lengths = torch.tensor(lengths)
    order = bucketed_order(given_lengths, batch_size, seed, epoch)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert torch.equal(order, bucketed_order(given_lengths, batch_size, seed, epoch))
    batches = given_lengths[order].split(batch_size)
    assert all(len(batch) == batch_size for batch in batches[:-1])
    # Batches cut from one sorted row: two of them share at most one length.
    spans = sorted((int(batch.min()), int(batch.max())) for batch in batches[: len(lengths) // batch_size])
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_padding_is_small_on_captions_of_many_lengths():
    lengths = torch.randint(5, 25, (3000,))
    batches = lengths[bucketed_order(lengths, 64, 0, 0)].split(64)
    padded = sum(int(batch.max()) * len(batch) for batch in batches)
    assert padded / int(lengths.sum()) < 1.05
    at_random = sum(int(batch.max()) * len(batch) for batch in lengths.split(64))
    assert at_random / int(lengths.sum()) > 1.5
