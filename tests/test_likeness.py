"""Likeness: p-values are true on the same kind, small on another, and what is stored is read back or refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saccade.errors import CheckpointError
from saccade.models.likeness import ALPHA, LARGEST, Likeness, fit_likeness


def draws(count: int, many: int, seed: int, shift: float = 0.0) -> Tensor:
    """Correlated features (count,many)."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(count, 1, generator=generator)
    return common + torch.randn(count, many, generator=generator) + shift


@pytest.mark.parametrize("many", [6, 3 * LARGEST + 1], ids=["few", "folded"])
def test_false_alarms_are_as_rare_as_they_should_be_and_foreign_inputs_are_found(many: int) -> None:
    found = fit_likeness(draws(1000, many, 0), draws(1000, many, 1))
    own, foreign = found.p_values(draws(4000, many, 2)), found.p_values(draws(200, many, 3) * 4)
    assert 0.004 < float((own <= ALPHA).double().mean()) < 0.02
    assert float(own.mean()) == pytest.approx(0.5, abs=0.03)  # p-values of the right kind are even
    assert float((foreign <= ALPHA).double().mean()) > 0.9


def test_a_p_value_counts_the_scores_that_are_no_smaller_and_never_understates() -> None:
    held_out = draws(999, 4, 1)
    found = fit_likeness(draws(500, 4, 0), held_out)
    scores = found.score(held_out)
    asked = draws(300, 4, 2, shift=0.5)
    exact = torch.tensor([(1 + int((scores >= score).sum())) / 1000 for score in found.score(asked)]).double()
    told = found.p_values(asked)
    assert (told >= exact - 0.0011).all()  # scores are stored in single precision
    tail = exact <= 0.1  # where every score is kept
    torch.testing.assert_close(told[tail], exact[tail], atol=0.0011, rtol=0)
    assert float((told - exact).max()) <= 0.021  # every twentieth of the others is kept


def test_equal_scores_count_all_so_that_what_is_always_the_same_is_like() -> None:
    """Features that never change, and inputs of which many are one picture, are of the right kind."""
    same = torch.ones(500, 4)
    assert fit_likeness(same, same).p_values(same[:1]).tolist() == [1.0]
    blank = draws(1, 4, 9).repeat(600, 1) + 3
    first, second = (torch.cat([draws(500, 4, seed), blank]) for seed in (0, 1))
    found = fit_likeness(first, second)
    exact = (1 + int((found.score(second) >= found.score(blank[:1])).sum())) / 1101
    assert float(found.p_values(blank[:1])) >= exact > 0.5


def test_stored_and_read_back_it_says_the_same() -> None:
    found = fit_likeness(draws(300, 80, 0), draws(300, 80, 1))
    again = Likeness.from_tensors(found.to_tensors(), "file")
    asked = draws(50, 80, 2)
    assert torch.equal(found.p_values(asked), again.p_values(asked))
    assert again.n == 300
    assert sum(each.numel() * each.element_size() for each in found.to_tensors().values()) < 8_000


@pytest.mark.parametrize(
    "change",
    [
        {"scores": None},
        {"spread": torch.zeros(5)},
        {"spread": torch.ones(4)},
        {"whitening": torch.zeros(3)},
        {"centre": torch.full((5,), float("nan"))},
        {"scores": torch.linspace(9, 0, 205)},
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, Tensor | None]) -> None:
    tensors = fit_likeness(draws(300, 5, 0), draws(300, 5, 1)).to_tensors()
    tensors = {name: each for name, each in (tensors | change).items() if each is not None}
    with pytest.raises(CheckpointError, match="file"):
        Likeness.from_tensors(tensors, "file")
