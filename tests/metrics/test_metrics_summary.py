"""The summary dictionary: its keys, what is left out, what becomes null."""

import json
import math

import pytest
import torch

from saccade.metrics.intervals import Interval, Values
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import only_defined, summarise, without_nan

KEYS = ["n", "definition", "metrics", "attention", "baselines", "intervals", "counts"]


def scorer(evidence=True, **more):
    """Two maps of 1×2 pixels, one right and one wrong, of two pictures."""
    found = MapScorer(scores=("pointing",), baselines=("uniform",))
    masks = torch.tensor([[[True, False]], [[True, False]]]) & evidence
    found.add(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]), masks, **more)
    return found


def test_maps_alone_have_all_keys():
    found = summarise(maps=scorer())
    assert list(found) == KEYS
    assert found["n"] == 2
    assert found["metrics"] == {}
    assert found["attention"] == {"pointing": 0.5}
    assert found["baselines"] == {"uniform": {"pointing": 0.5}}
    assert found["counts"] == {"pointing": 2}
    assert list(found["intervals"]) == ["pointing"]
    low, high = found["intervals"]["pointing"]
    assert (low, high) == pytest.approx((0.076, 0.924), abs=1e-3)  # one right of two pictures
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_what_no_example_has_is_left_out_or_null():
    values = Values()
    values.add_values({"swapped": torch.full((2,), math.nan), "right": torch.tensor([1.0, math.nan])})
    given = {"maps": scorer(False, looks=[("one", torch.ones(2, 1, 2))]), "measured": [(values, torch.arange(2))]}
    found = summarise(**given)
    assert found["attention"] == {"by_look": {"one": {}}}
    assert found["baselines"] == {}
    assert found["counts"] == {"right": 1}
    assert found["intervals"] == {"right": [None, None]}  # one picture says nothing of the spread
    kept = summarise(**given, keep_undefined=True)
    assert kept["attention"] == {"pointing": None, "by_look": {"one": {"pointing": None}}}
    assert kept["baselines"] == {"uniform": {"pointing": None}}
    assert kept["counts"] == {"pointing": 0, "swapped": 0, "right": 1}
    assert kept["intervals"] == {name: [None, None] for name in ("pointing", "swapped", "right")}


def test_what_a_family_adds_stands_beside_the_maps():
    values = Values()
    values.add_values({"held": torch.tensor([0.0, 1.0])})
    found = summarise(
        n=7, metrics={"bleu": 0.25, "by_size": {"small": math.nan}}, maps=scorer(), attention=values.means(),
        measured=[(values, torch.arange(2))], baselines={"habit": {"accuracy": 0.125}},
        intervals={"bleu": Interval(0.25, 0.125, 0.5, 7, 7, 0)}, counts={"references": 35},
    )  # fmt: skip
    assert found["n"] == 7
    assert found["metrics"] == {"bleu": 0.25, "by_size": {"small": None}}
    assert found["attention"] == {"pointing": 0.5, "held": 0.5}
    assert list(found["baselines"]) == ["habit", "uniform"]
    assert found["intervals"].keys() == {"bleu", "pointing", "held"}
    assert found["intervals"]["bleu"] == [0.125, 0.5]
    assert found["counts"] == {"pointing": 2, "held": 2, "references": 35}  # no count of what is not a mean


def test_nan_is_null_however_deep():
    assert without_nan({"a": [1.0, math.nan, {"b": math.nan}], "c": "nan"}) == {
        "a": [1.0, None, {"b": None}],
        "c": "nan",
    }
    assert only_defined({"a": 0.0, "b": math.nan}) == {"a": 0.0}
