"""Scores of attribute models whose truth is known: a perfect one, a query-blind one, an untrained one."""

import math

import pytest
import torch
from attribute_stubs import Blind, Clairvoyant, Glancing

from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.task import QuestionTask
from saccade.metrics.labels import SCALE_EDGES
from saccade.models.soft import SoftConfig, SoftModel
from saccade.tasks.evaluate import evaluate
from saccade.trace import QuestionOutput

PACK = SceneDataConfig(glyphs="pack")
N = 240
MAPS = {"true_positive_strength", "pointing", "iou", "selectivity", "pr_auc"}
SWEEPS = {"deletion", "insertion"}
CAUSAL = {"causal_follow", "causal_hold", "causal_hold_recoloured", "causal_hold_removed"}


def four_errors(share: float, n: int = N) -> float:
    """Four standard errors of a measured share."""
    return 4 * math.sqrt(share * (1 - share) / n)


def tiny_soft(**sizes) -> SoftModel:
    return SoftModel(SoftConfig(**{"channels": 4, "hidden": 4, "dropout": 0.0} | sizes)).eval()


def short_data(size: int, protocol: str = "unlimited") -> SceneData:
    data = SceneData(SceneDataConfig(glyphs="pack", protocol=protocol), "test")
    data.size = size
    return data


@pytest.fixture(scope="module")
def data():
    return SceneData(PACK, "test")


@pytest.fixture(scope="module")
def batch(data):
    return data.take(torch.arange(N))


@pytest.fixture(scope="module")
def perfect(data, batch):
    return evaluate(SceneScoring(Clairvoyant(batch).eval(), data, limit=N, sweeps=0))


@pytest.fixture(scope="module")
def blind(data, batch):
    return evaluate(SceneScoring(Blind(batch).eval(), data, limit=N, sweeps=0))


def test_a_perfect_model_is_right_and_causally_so(perfect, batch):
    assert perfect["metrics"]["accuracy"] == 1
    assert perfect["attention"]["causal_follow"] == 1
    assert perfect["attention"]["causal_hold"] == 1
    assert {value for value in perfect["metrics"]["accuracy_by_scale"].values() if value is not None} == {1.0}


def test_asked_for_another_digit_a_perfect_model_tells_that_ones_colour(perfect, batch):
    """By chance the other digit has the same colour, one time in five."""
    rows = torch.arange(N)
    asked = (batch.layout.classes == batch.other_query()[0][:, None]) & batch.layout.present
    shared = batch.layout.colour[rows, asked.int().argmax(1)] == batch.label
    assert perfect["metrics"]["swapped_query"] == pytest.approx(float(shared.double().mean()))
    assert perfect["metrics"]["swapped_query"] == pytest.approx(0.2, abs=four_errors(0.2))


def test_a_perfect_map_reaches_the_bound_of_its_grid(perfect):
    """The stub finds its cell by trying all sixteen, the oracle through the transposed projection."""
    bound = perfect["baselines"]["grid_oracle"]
    for score in MAPS:
        assert perfect["attention"][score] == pytest.approx(bound[score], rel=1e-5)
    assert bound["true_positive_strength"] > 5 * perfect["baselines"]["uniform"]["true_positive_strength"]


def test_every_bound_and_baseline_is_in_its_order(perfect):
    strength = {name: values["true_positive_strength"] for name, values in perfect["baselines"].items()}
    selective = {name: values["selectivity"] for name, values in perfect["baselines"].items()}
    assert strength["uniform"] < strength["all_objects"] < strength["all_objects_exact"] < strength["grid_oracle"]
    assert strength["shuffled"] < strength["grid_oracle"] / 3
    assert selective["uniform"] == pytest.approx(selective["all_objects_exact"])
    assert strength["all_objects_exact"] == pytest.approx(selective["all_objects_exact"])


def test_uniform_attention_scores_the_mean_area_of_a_digit(perfect, batch):
    area = float(batch.evidence().double().mean())
    assert perfect["baselines"]["uniform"]["true_positive_strength"] == pytest.approx(area, rel=1e-4)


def test_a_blind_model_scores_the_most_frequent_colour_whatever_is_asked(blind):
    assert blind["metrics"]["swapped_query"] == blind["metrics"]["accuracy"]
    assert blind["metrics"]["accuracy"] == pytest.approx(0.418, abs=four_errors(0.418))
    assert blind["attention"]["causal_follow"] < 0.6
    assert blind["attention"]["causal_hold"] < 0.95  # taking a digit away can change what is most frequent


def test_a_map_without_preference_scores_as_the_uniform_baseline(blind):
    for score in MAPS:
        assert blind["attention"][score] == pytest.approx(blind["baselines"]["uniform"][score], rel=1e-3)
        assert blind["baselines"]["shuffled"][score] == pytest.approx(blind["attention"][score], rel=1e-3)


def test_an_untrained_model_looks_nowhere_in_particular(data):
    found = evaluate(SceneScoring(tiny_soft(), data, limit=100, sweeps=0))
    uniform = found["baselines"]["uniform"]
    assert found["attention"]["true_positive_strength"] == pytest.approx(uniform["true_positive_strength"], rel=0.25)
    assert found["attention"]["selectivity"] == pytest.approx(uniform["selectivity"], abs=0.03)
    assert found["metrics"]["accuracy"] < 0.5


def test_the_likeliest_location_alone_is_scored_beside_the_sum(data, batch, perfect):
    """A perfect model whose likeliest location is right about every second digit, by its number."""

    class Doubting(Clairvoyant):
        def ask(self, encoding, query):
            output = super().ask(encoding, query)
            right = (query % 2 == 0)[:, None]
            argmax = torch.where(right, output.logits, output.logits.roll(1, -1))
            return QuestionOutput(output.logits, output.acts, argmax_logits=argmax)

    found = evaluate(SceneScoring(Doubting(batch).eval(), data, limit=N, sweeps=0))
    share = float((batch.query % 2 == 0).double().mean())
    assert found["metrics"]["accuracy"] == 1
    assert found["metrics"]["accuracy_argmax_location"] == pytest.approx(share)
    low, high = found["intervals"]["accuracy_argmax_location"]
    assert low < share < high
    assert found["counts"]["accuracy_argmax_location"] == N
    assert "accuracy_argmax_location" not in found["attention"]
    assert "accuracy_argmax_location" not in perfect["metrics"]


def test_every_look_is_scored_when_there_are_several(data, batch, perfect):
    found = evaluate(SceneScoring(Glancing(batch).eval(), data, limit=N, sweeps=0))
    by_look = found["attention"]["by_look"]
    assert list(by_look) == ["glance", "cell"]
    assert all(set(scores) == MAPS for scores in by_look.values())
    assert by_look["cell"] == {score: found["attention"][score] for score in by_look["cell"]}  # total = "last"
    for score in MAPS - {"pr_auc"}:
        assert by_look["glance"][score] == pytest.approx(perfect["baselines"]["uniform"][score], rel=1e-3)
    assert found["baselines"] == perfect["baselines"]  # they live on the last look's grid
    assert perfect["attention"]["by_look"] == {}


@pytest.fixture(scope="module")
def evaluated():
    return QuestionTask.evaluate(tiny_soft(), {"name": "mref", "glyphs": "pack"}, "test", limit=30, sweeps=3)


def leaves(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def test_intervals_hold_their_means(evaluated):
    means = evaluated["metrics"] | evaluated["attention"]
    for name, (low, high) in evaluated["intervals"].items():
        if name in SWEEPS:  # three questions about one scene: one picture says nothing of the spread
            assert low is high is None
        else:
            assert low - 1e-9 <= means[name] <= high + 1e-9, name


def test_counts_say_for_how_many(evaluated):
    counts = evaluated["counts"]
    assert {counts[name] for name in SWEEPS} == {3}
    assert {counts[name] for name in (MAPS - {"pr_auc"}) | CAUSAL} == {30}
    assert sum(counts["accuracy_by_scale"].values()) == 30
    assert len(counts["accuracy_by_scale"]) == len(SCALE_EDGES) - 1


def test_the_same_again_and_in_other_batches(data):
    torch.manual_seed(3)
    model = tiny_soft()
    first = evaluate(SceneScoring(model, data, limit=40, sweeps=2))
    assert evaluate(SceneScoring(model, data, limit=40, sweeps=2)) == first
    scoring = SceneScoring(model, data, limit=40, sweeps=2)
    scoring.together = 18
    parts = evaluate(scoring)
    for each in (first, parts):
        each["baselines"].pop("shuffled")  # maps are exchanged within a batch
    flat, flat_parts = list(leaves(first)), list(leaves(parts))
    assert flat_parts == pytest.approx(flat, abs=1e-3)


@pytest.mark.parametrize(("size", "limit", "n"), [(50, 23, 23), (50, 50, 50), (23, None, 23), (23, 999, 23)])
def test_limit_and_size(size, limit, n):
    seen = []
    data = short_data(size)
    scoring = SceneScoring(tiny_soft(), data, limit=limit, sweeps=0)
    assert evaluate(scoring, lambda done, total: seen.append((done, total)))["n"] == n
    assert seen[-1] == (n, n)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert torch.equal(scoring.numbers, torch.arange(n))
