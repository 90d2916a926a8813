"""Models of stories: hops and tying of the memory network by hand, facts and passes of the dynamic one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.models.dmn import DMNModel
from saccade.models.memn2n import MemN2NConfig, MemN2NModel
from tiny_models import example_batch, tiny_model

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


def built(**settings: Any) -> tuple[DMNModel, Tensor, Tensor]:
    """A small model in double precision, stories and questions."""
    torch.manual_seed(0)
    model = tiny_model(DMNModel, **settings).double().eval()
    inputs, _ = example_batch(DMNModel, 6, 0)
    return model, inputs["story"], inputs["query"]


SUMMED = {"facts": "sentences", "gate": "softmax", "episode": "sum"}


@pytest.mark.parametrize("settings", [{}, {"gate": "softmax", "passes": 3}, {"answer_words": 3}, SUMMED])
def test_the_answer_can_be_made_again_from_facts_and_gates(settings: dict[str, Any]) -> None:
    """The proof that the gates shown are the gates used: no score is read here, only the weights of the looks.

    h_t = g_t GRU(c_t, h_{t−1}) + (1 − g_t) h_{t−1}, e = h_T, or e = Σ g_t c_t;
    mⁱ = GRU(e, mⁱ⁻¹); a_t = GRU([y_{t−1}, q], a_{t−1}).
    """
    model, story, query = built(**settings)
    output = model(story, query)
    facts = model.encode(story)["facts"]  # (B,S+1,n)
    question = model._sentences(query, None)
    memory = question
    for look in output.trace.looks:
        state = torch.zeros_like(memory)
        for place in range(facts.shape[1]):
            gate = look.weights[:, place : place + 1]
            if model.config.episode == "sum":
                state = state + gate * facts[:, place]
            else:
                state = gate * model.episode.cell(facts[:, place], state) + (1 - gate) * state
        memory = model.remember(state, memory)
    said = torch.zeros(len(story), model.config.words).double()
    logits = []
    for _ in range(model.config.answer_words):
        memory = model.speak(torch.cat([said, question], 1), memory)
        logits.append(model.answer(memory))
        said = F.one_hot(logits[-1].argmax(1), model.config.words).double()
    torch.testing.assert_close(output.logits, torch.stack(logits, 1), rtol=0, atol=1e-12)


def test_facts_are_the_states_at_the_ends_of_sentences() -> None:
    """And the end-of-passes fact comes after the last."""
    model, _, _ = built()
    story = torch.tensor([[[1, 5], [2, 0], [3, 7], [0, 0]]])
    encoding = model.encode(story)
    states, _ = model.reader(model.embed(torch.tensor([[1, 5, 2, 3, 7]])))
    torch.testing.assert_close(encoding["facts"][0, :3], states[0, [1, 2, 4]], rtol=0, atol=1e-12)
    assert torch.equal(encoding["facts"][0, 3], model.end)
    assert encoding["present"].tolist() == [[True, True, True, True, False]]
    assert encoding["count"].tolist() == [3]


def test_facts_of_sentences_know_what_comes_before_and_after() -> None:
    """Each sentence is read by itself; a GRU over the first ones and one over the last ones are added."""
    model, _, _ = built(**SUMMED)
    sentences = [[1, 5], [2, 0], [3, 7]]
    story = torch.tensor([[*sentences, [0, 0]]])
    read = [model.reader(model.embed(torch.tensor([[word for word in each if word]])))[1][0] for each in sentences]
    alone = torch.stack(read, 1)  # (1,3,n)
    before, _ = model.before(alone)
    after, _ = model.after(alone.flip(1))
    expected = alone + torch.cat([before, after.flip(1)], -1)
    encoding = model.encode(story)
    torch.testing.assert_close(encoding["facts"][:, :3], expected, rtol=0, atol=1e-12)
    assert torch.equal(encoding["facts"][0, 3], model.end)


def test_equal_sentences_are_read_once_and_nothing_else_changes() -> None:
    """Seven sentences in two stories are of three kinds and the empty one."""
    model, _, query = built(**SUMMED)
    table = torch.tensor([[0, 0], [1, 5], [2, 0], [3, 7]])
    rows = torch.tensor([[1, 3, 1, 2], [3, 3, 1, 0]])
    read: list[int] = []
    model.reader.register_forward_pre_hook(lambda _, given: read.append(len(given[0])))
    asked = query[:1].repeat(2, 1)
    once = model.forward_raw(table[rows], asked, rows=rows, query_row=torch.tensor([5, 5])).logits
    each = model.forward_raw(table[rows], asked).logits
    assert read == [4, 1, 8, 2], "sentences and questions, with rows and without"
    torch.testing.assert_close(once, each, rtol=0, atol=1e-12)


def test_an_empty_story_has_the_end_fact_alone() -> None:
    model, story, query = built(gate="softmax")
    output = model(torch.zeros_like(story), query)
    for look in output.trace.looks:
        assert torch.equal(look.weights[:, 0], torch.ones(6).double())
    assert output.logits.isfinite().all()


def choosing(model: DMNModel, *places: int) -> dict[str, Tensor]:
    """Gates of one story that choose these facts, pass by pass."""
    slots = model.config.memory + 1
    return {
        name: F.one_hot(torch.tensor([place]), slots).double() for name, place in zip(model.look_names, places)
    }  # fmt: skip


def test_passes_end_where_the_end_fact_is_chosen() -> None:
    """What is chosen after it changes nothing, and those passes are not active."""
    model, _, query = built(gate="softmax", stops=True, passes=4)
    story = torch.tensor([[[1, 5], [2, 6], [0, 0], [0, 0]]])  # two sentences: the end fact is in slot 2
    output = model(story, query[:1], attention=choosing(model, 1, 2, 0, 0))
    assert [bool(look.active) for look in output.trace.looks] == [True, True, False, False]
    other = model(story, query[:1], attention=choosing(model, 1, 2, 1, 1))
    assert torch.equal(output.logits, other.logits)
    longer = model(story, query[:1], attention=choosing(model, 1, 0, 2, 0))
    assert [bool(look.active) for look in longer.trace.looks] == [True, True, True, False]
    assert not torch.allclose(output.logits, longer.logits)


def test_the_number_of_passes_can_be_taught() -> None:
    """With one pass for the first story and two for the second, each is answered as if gates had ended it there."""
    model, _, query = built(gate="softmax", stops=True, passes=3)
    story = torch.tensor([[[1, 5], [2, 6], [0, 0], [0, 0]]]).repeat(2, 1, 1)
    gates = {name: each.repeat(2, 1) for name, each in choosing(model, 1, 0, 2).items()}
    raw = model.forward_raw(story, query[:1].repeat(2, 1), passes=torch.tensor([1, 2]), attention=gates)
    for row, chosen in enumerate([(1, 2, 2), (1, 0, 2)]):
        alone = model.forward_raw(story[:1], query[:1], attention=choosing(model, *chosen))
        torch.testing.assert_close(raw.logits[row], alone.logits[0], rtol=0, atol=1e-12)


def test_each_word_follows_the_one_said_before() -> None:
    """Given what it says itself, it goes on in the same way; given another word, it does not."""
    model, story, query = built(answer_words=3)
    raw = model.forward_raw(story, query)
    own = raw.logits.argmax(-1)  # (B,A)
    assert torch.equal(model.forward_raw(story, query, said=own).logits, raw.logits)
    told = model.forward_raw(story, query, said=(own + 1) % model.config.words).logits
    assert torch.equal(told[:, 0], raw.logits[:, 0])
    assert (told[:, 1:] - raw.logits[:, 1:]).abs().amax((1, 2)).min() > 1e-6
