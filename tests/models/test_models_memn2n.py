"""End-to-end memory network: hops, tying, times and replicas by hand, and how many parameters it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from saccade.models.memn2n import MemN2NConfig, MemN2NModel
from tiny_models import example_batch, named, tiny_model

Near = Callable[..., None]

ONE_HOP = MemN2NConfig(words=4, memory=2, times=2, longest=2, dim=2, hops=1, encoding="bag")
STORY = torch.tensor([[[1, 2], [3, 0]]])
QUERY = torch.tensor([[1, 0]])
A = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
C = torch.tensor([[9.0, 9.0], [0.5, 1.0], [1.0, 0.5], [-1.0, 2.0]])
T_A = torch.tensor([[0.25, 0.0], [0.0, 0.5]])  # of the last sentence, and of the one before
T_C = torch.tensor([[1.0, 1.0], [2.0, 0.0]])


def filled(config: MemN2NConfig, **parameters: Tensor) -> MemN2NModel:
    """A model with these parameters."""
    model = MemN2NModel(config).eval()
    named = dict(model.named_parameters())
    assert named.keys() == {name.replace("_", ".") for name in parameters}
    with torch.no_grad():
        for name, value in parameters.items():
            named[name.replace("_", ".")].copy_(value)
    return model


def hop_by_hand() -> tuple[Tensor, Tensor, Tensor]:
    """U, p and o of one hop.

    m₁ = A₁ + A₂ + T_A(2) = (1, 1.5), m₂ = A₃ + T_A(1) = (2.25, −1), u = A₁ = (1, 0): scores 1 and 2.25.
    c₁ = C₁ + C₂ + T_C(2) = (3.5, 1.5), c₂ = C₃ + T_C(1) = (0, 3).
    """
    weights = torch.tensor([1.0, 2.25]).softmax(0)
    return torch.tensor([1.0, 0.0]), weights, weights @ torch.tensor([[3.5, 1.5], [0.0, 3.0]])


def test_one_hop_with_adjacent_tying_by_hand(assert_near: Near) -> None:
    """B = A and Wᵀ = C: logits C (u + o), 0 for the empty word."""
    model = filled(ONE_HOP, embed_0=A, embed_1=C, time_0=T_A, time_1=T_C)
    u, weights, o = hop_by_hand()
    raw = model.forward_raw(STORY, QUERY)
    assert_near(raw.acts["hop1"].scores, [[1.0, 2.25]])
    assert_near(raw.acts["hop1"].weights[0], weights)
    assert_near(raw.acts["hop1"].context[0], o)
    assert_near(raw.logits[0], torch.cat([torch.zeros(1), C[1:] @ (u + o)]))


def test_one_hop_with_layerwise_tying_by_hand(assert_near: Near) -> None:
    """U² = H u + o, and an output of its own: logits W (H u + o)."""
    carry = torch.tensor([[2.0, 1.0], [3.0, 0.0]])
    output = torch.tensor([[7.0, 7.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    config = replace(ONE_HOP, tying="layerwise")
    model = filled(config, embed_0=A, embed_1=C, time_0=T_A, time_1=T_C, carry=carry, output=output)
    _, _, o = hop_by_hand()
    state = torch.tensor([2.0, 3.0]) + o  # H (1, 0) = (2, 3)
    raw = model.forward_raw(STORY, QUERY)
    assert_near(raw.logits[0], torch.cat([torch.zeros(1), output[1:] @ state]))


def test_linear_start_is_the_same_without_the_softmax(assert_near: Near) -> None:
    model = filled(ONE_HOP, embed_0=A, embed_1=C, time_0=T_A, time_1=T_C)
    raw = model.forward_raw(STORY, QUERY, linear=True)
    assert_near(raw.acts["hop1"].weights, [[1.0, 2.25]])
    assert_near(raw.acts["hop1"].context, [[1.0 * 3.5, 1.0 * 1.5 + 2.25 * 3.0]])


def test_the_next_hop_reads_keys_from_the_values_before() -> None:
    """Adjacent tying, A² = C¹; layer-wise, keys and values are the same in each hop."""
    story, query = (example_batch(MemN2NModel, 3, 0)[0][key] for key in ("story", "query"))
    torch.manual_seed(0)
    model = tiny_model(MemN2NModel, hops=3)
    encoding = model.encode(story)
    raw = model.forward_raw(story, query)
    state = model.bags(query) @ model.code.matrix(model.embed[0])
    for hop in range(3):
        scores = torch.einsum("bd,bsd->bs", state, encoding[f"vectors{hop}"])
        torch.testing.assert_close(raw.acts[f"hop{hop + 1}"].scores, scores)
        assert torch.equal(raw.acts[f"hop{hop + 1}"].values, encoding[f"vectors{hop + 1}"])
        state = state + raw.acts[f"hop{hop + 1}"].context
    layerwise = tiny_model(MemN2NModel, hops=3, tying="layerwise")
    raw = layerwise.forward_raw(story, query)
    assert torch.equal(raw.acts["hop1"].values, raw.acts["hop2"].values)
    assert torch.equal(raw.acts["hop1"].values, raw.acts["hop3"].values)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_number_of_parameters(hops: int) -> None:
    """Adjacent: K + 1 embeddings of words and times. Layer-wise: two of each, H and W, however many hops."""
    words, times, dim = 30, 40, 20

    def count(tying: str) -> int:
        config = MemN2NConfig(words=words, times=times, dim=dim, hops=hops, tying=tying)  # type: ignore[arg-type]
        return sum(parameter.numel() for parameter in MemN2NModel(config).parameters())

    assert count("adjacent") == (hops + 1) * (words + times) * dim
    assert count("layerwise") == 2 * (words + times) * dim + dim * dim + words * dim


def test_times_count_back_from_the_question(assert_near: Near) -> None:
    """The last sentence has time 1, however many slots are empty after it; those too far back share the last time."""
    config = replace(ONE_HOP, memory=4, times=2)
    zero = torch.zeros(4, 2)
    model = filled(config, embed_0=zero, embed_1=zero, time_0=T_A, time_1=T_C)
    story = torch.tensor([[[1, 2], [3, 0], [0, 0], [0, 0]], [[1, 2], [3, 0], [2, 0], [1, 1]]])
    encoding = model.encode(story)
    last, before, none = T_A[0].tolist(), T_A[1].tolist(), [0.0, 0.0]
    assert_near(encoding["vectors0"], [[before, last, none, none], [before, before, before, last]])
    assert encoding["present"].tolist() == [[True, True, False, False], [True] * 4]
    noisy = model.encode(story[:1], times=torch.tensor([[1, 2, 1, 1]]))
    assert_near(noisy["vectors0"], [[last, before, none, none]])


def test_bags_made_beforehand_change_nothing() -> None:
    torch.manual_seed(0)
    model, (inputs, _) = tiny_model(MemN2NModel), example_batch(MemN2NModel, 3, 0)
    bags = {"bags": model.bags(inputs["story"]), "query_bags": model.bags(inputs["query"])}
    found, expected = named(model.forward_raw(**inputs, **bags)), named(model.forward_raw(**inputs))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_empty_word_has_no_vector() -> None:
    """What its rows hold is never read."""
    torch.manual_seed(0)
    model, (inputs, _) = tiny_model(MemN2NModel), example_batch(MemN2NModel, 3, 0)
    before = model.forward_raw(**inputs).logits
    with torch.no_grad():
        for each in model.embed:
            each[0] = 100.0
    assert torch.equal(model.forward_raw(**inputs).logits, before)
    assert (before[:, 0] == 0).all()
