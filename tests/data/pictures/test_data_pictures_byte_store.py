"""Stores of decoded bytes: the same tensors whatever is kept, and failures known before the first batch."""

import pytest
import torch

from saccade.data.pictures.prepared import ByteStore
from saccade.errors import DataError


class Decoder:
    """Number n to four bytes n, n, n, n; notes what it was asked for."""

    def __init__(self, *bad: int) -> None:
        self.bad, self.asked = bad, []

    def __call__(self, number: int) -> torch.Tensor:
        self.asked.append(number)
        if number in self.bad:
            raise DataError(f"{number} is damaged")
        return torch.full((2, 2), number % 256, dtype=torch.uint8)


@pytest.mark.parametrize("limit", [0, 4, 401, 4 * 600, 1 << 20])
def test_the_limit_does_not_change_what_is_taken(limit):
    store = ByteStore(600, Decoder(), (2, 2), limit=limit)  # more than is decoded at once
    numbers = torch.tensor([599, 0, 3, 300, 0, 255])
    assert torch.equal(store.take(numbers)[:, 1, 0], (numbers % 256).to(torch.uint8))
    assert store.take(numbers).shape == (6, 2, 2)


def test_what_is_kept_is_decoded_once():
    decode = Decoder()
    store = ByteStore(10, decode, (2, 2), limit=4 * 7)
    assert sorted(decode.asked) == list(range(10))
    decode.asked.clear()
    store.take(torch.tensor([0, 6]))
    assert decode.asked == []
    store.take(torch.tensor([0, 7, 9]))
    assert sorted(decode.asked) == [7, 9]


@pytest.mark.parametrize("limit", [8, 1 << 20])
def test_what_cannot_be_decoded_is_known_at_once(limit):
    progress = []
    decode = Decoder(1, 5)
    store = ByteStore(6, decode, (2, 2), limit=limit, progress=lambda done, total: progress.append((done, total)))
    assert store.unreadable == {1: "1 is damaged", 5: "5 is damaged"}
    assert progress == [(6, 6)]
    assert store.take(torch.tensor([0, 4]))[:, 0, 0].tolist() == [0, 4]


def test_a_file_that_breaks_later_is_an_error_that_names_it():
    decode = Decoder()
    store = ByteStore(3, decode, (2, 2), limit=0)
    decode.bad = (2,)
    with pytest.raises(DataError, match="2 is damaged"):
        store.take(torch.tensor([1, 2]))
