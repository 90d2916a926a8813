"""Attention over sentences, Sukhbaatar et al. (2015): hops, linear start and sentence codes, by hand and as loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from saccade.attention.memory import CODES, SentenceCode, memory_hop
from saccade.errors import ShapeError

Near = Callable[..., None]

QUERY = torch.tensor([[1.0, 2.0]])  # u
KEYS = torch.tensor([[[math.log(3.0), 0.0], [0.0, 0.0]]])  # uᵀm: log 3 and 0, so that p = ¾, ¼
VALUES = torch.tensor([[[4.0, 8.0], [-4.0, 0.0]]])


def test_equations_1_and_2_by_hand(assert_near: Near) -> None:
    """p = (¾, ¼); o = ¾ (4, 8) + ¼ (−4, 0) = (2, 6)."""
    hop = memory_hop(QUERY, KEYS, VALUES)
    assert_near(hop.scores, [[math.log(3.0), 0.0]])
    assert_near(hop.weights, [[0.75, 0.25]])
    assert_near(hop.context, [[2.0, 6.0]])


def test_linear_start_leaves_the_softmax_out(assert_near: Near) -> None:
    """P = uᵀm = (5, −1): o = 5 (4, 8) − (−4, 0) = (24, 40)."""
    keys = torch.tensor([[[1.0, 2.0], [3.0, -2.0]]])
    hop = memory_hop(QUERY, keys, VALUES, linear=True)
    assert_near(hop.weights, [[5.0, -1.0]])
    assert_near(hop.context, [[24.0, 40.0]])


def test_an_empty_slot_takes_part_unless_it_is_masked(assert_near: Near) -> None:
    """With scores (log 3, 0, 0) the empty slot gets a fifth; masked, nothing."""
    keys, values = (torch.cat([each, torch.zeros(1, 1, 2)], 1) for each in (KEYS, VALUES))
    present = torch.tensor([[True, True, False]])
    assert_near(memory_hop(QUERY, keys, values).weights, [[0.6, 0.2, 0.2]])
    masked = memory_hop(QUERY, keys, values, present=present)
    assert_near(masked.weights, [[0.75, 0.25, 0.0]])
    assert_near(masked.context, [[2.0, 6.0]])


def test_an_empty_memory_gives_nothing_and_no_gradient_that_is_not_finite(assert_near: Near) -> None:
    """Beside a full one, which is read as ever."""
    query = QUERY.repeat(2, 1).requires_grad_()
    keys, values = KEYS.repeat(2, 1, 1).requires_grad_(), VALUES.repeat(2, 1, 1).requires_grad_()
    hop = memory_hop(query, keys, values, present=torch.tensor([[False, False], [True, True]]))
    assert_near(hop.weights, [[0.0, 0.0], [0.75, 0.25]])
    assert_near(hop.context, [[0.0, 0.0], [2.0, 6.0]])
    hop.context.sum().backward()
    for each in (query, keys, values):
        assert each.grad is not None
        assert each.grad.isfinite().all()
        assert each.grad[0].abs().sum() == 0
        assert each.grad[1].abs().sum() > 0


def test_given_weights_are_used_as_they_are_and_scores_stay_its_own(assert_near: Near) -> None:
    """½ (4, 8) + 2 (−4, 0) = (−6, 4): nothing is normalised."""
    given = torch.tensor([[0.5, 2.0]])
    hop = memory_hop(QUERY, KEYS, VALUES, weights=given)
    assert_near(hop.context, [[-6.0, 4.0]])
    assert torch.equal(hop.weights, given)
    assert_near(hop.scores, [[math.log(3.0), 0.0]])
    with pytest.raises(ShapeError, match="weights"):
        memory_hop(QUERY, KEYS, VALUES, weights=given[:, :1])


def coefficient(code: str, k: int, j: int, d: int, words: int, longest: int) -> float:
    """l_kj as it is written: k of d dimensions, word j of a sentence of ``words``, both counted from 1."""
    if code == "bag":
        return 1.0
    if code == "position":
        return (1 - j / words) - (k / d) * (1 - 2 * j / words)
    return 1 + 4 * (k - (d + 1) / 2) * (j - (longest + 1) / 2) / (d * longest)


def test_position_code_of_the_paper_by_hand(assert_near: Near) -> None:
    """J = 2, d = 2: l = (½ − ½·0, 0 + ½) = (½, ½) for k = 1 and (½, 1) for k = 2."""
    code = SentenceCode("position", longest=7)
    embedding = torch.tensor([[9.0, 9.0], [10.0, 20.0], [30.0, 40.0]])
    made = code.bags(torch.tensor([[1, 2, 0]]), 3) @ code.matrix(embedding)
    assert_near(made, [[0.5 * 10 + 0.5 * 30, 0.5 * 20 + 1.0 * 40]])


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("d", "longest"), [(1, 1), (2, 3), (5, 4), (20, 7)])
def test_a_sentence_is_the_sum_over_its_words(code: str, d: int, longest: int) -> None:
    """For every length J of a sentence, an empty one among them; a word may come twice."""
    generator = torch.Generator().manual_seed(d)
    embedding = torch.randn(6, d, generator=generator)
    sentence = SentenceCode(code, longest)  # type: ignore[arg-type]
    for words in range(longest + 1):
        ids = torch.zeros(longest, dtype=torch.long)
        ids[:words] = torch.randint(1, 6, (words,), generator=generator)
        expected = torch.zeros(d)
        for k in range(1, d + 1):
            for j in range(1, words + 1):
                expected[k - 1] += coefficient(code, k, j, d, words, longest) * embedding[ids[j - 1], k - 1]
        made = sentence.bags(ids.view(1, 1, -1), 6) @ sentence.matrix(embedding)
        torch.testing.assert_close(made[0, 0], expected, rtol=1e-5, atol=1e-6)
