from typing import NamedTuple

import pytest
import torch

from saccade.metrics import CausalAnswers, causal_follow, causal_hold, mean_defined, scores_of_answers


def ids(*values):
    return torch.tensor(values)


def test_follow_counts_all_pictures():
    old, new, after = ids(0, 1, 1, 1), ids(3, 3, 3, 3), ids(3, 1, 3, 0)
    assert causal_follow(after, new, old).tolist() == [1, 0, 1, 0]


def test_hold_asks_for_the_same_answer_not_for_the_right_one():
    assert causal_hold(ids(4, 2, 0), ids(4, 1, 0)).tolist() == [1, 0, 1]


class Scenes(NamedTuple):
    images: torch.Tensor
    queries: torch.Tensor
    truth: torch.Tensor
    target_changed: torch.Tensor
    new_truth: torch.Tensor
    others_changed: dict
    other_queries: torch.Tensor


def scenes(pictures=4000, objects=4, seed=0):
    """Pictures (B,1,1,4) of four objects with one of five answers each; the query is the place that is asked about."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(5, (pictures, 1, 1, objects), generator=generator)
    queries = torch.randint(objects, (pictures,), generator=generator)
    rows, others = torch.arange(pictures), (queries + 1) % objects
    truth = images[rows, 0, 0, queries]
    new_truth = (truth + 1 + torch.randint(4, (pictures,), generator=generator)) % 5
    target, recoloured = images.clone(), images.clone()
    target[rows, 0, 0, queries] = new_truth
    recoloured[rows, 0, 0, others] = (images[rows, 0, 0, others] + 1) % 5
    return Scenes(images, queries, truth, target, new_truth, {"recoloured": recoloured}, others)


def reads_the_question(images, queries):
    return images[torch.arange(len(images)), 0, 0, queries]


def looks_at_the_first_object(images, queries):
    return images[:, 0, 0, 0]


def is_stubborn(images, queries):
    return torch.full((len(images),), 2)


def asked(model, held):
    return CausalAnswers(
        held.truth,
        model(held.images, held.queries),
        model(held.target_changed, held.queries),
        held.new_truth,
        {way: model(images, held.queries) for way, images in held.others_changed.items()},
        model(held.images, held.other_queries),
    )


def means(model):
    found = scores_of_answers(asked(model, scenes()))
    return {name: mean_defined(values).mean for name, values in found.items()}


def test_a_model_that_reads_the_question():
    found = means(reads_the_question)
    assert found["accuracy"] == found["causal_follow"] == found["causal_hold"] == 1
    assert found["swapped_query"] == pytest.approx(0.2, abs=0.03)  # the other object has the same answer by chance


def test_a_query_blind_model_keeps_its_accuracy_when_the_question_is_swapped():
    """It looks at the target in a quarter of the pictures and is right by chance in a fifth of the rest: 0.4."""
    found = means(looks_at_the_first_object)
    assert found["accuracy"] == pytest.approx(0.4, abs=0.03)
    assert found["swapped_query"] == pytest.approx(found["accuracy"])
    assert found["causal_hold"] == pytest.approx(0.75, abs=0.03)


def test_a_stubborn_model_holds_and_follows_by_chance():
    found = means(is_stubborn)
    assert found["causal_hold"] == 1
    assert found["causal_follow"] == pytest.approx(0.2, abs=0.03)


def test_hold_is_the_mean_over_the_ways_of_changing():
    full = scenes(200)
    ways = {"recoloured": full.others_changed["recoloured"], "nothing": full.images}
    scores = scores_of_answers(asked(looks_at_the_first_object, full._replace(others_changed=ways)))
    expected = (scores["causal_hold_recoloured"] + scores["causal_hold_nothing"]) / 2
    assert torch.equal(scores["causal_hold"], expected)
    assert bool((scores["causal_hold_nothing"] == 1).all())
    assert float(scores["causal_hold_recoloured"].mean()) < 1
