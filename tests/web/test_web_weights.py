"""A model as JSON for the page: small, exact where it can be, refused where the page could not compute it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families import families, models
from saccade.models.facts import Preprocessing
from saccade.predict import Predictor
from saccade.web.views import matrix
from tiny_models import tiny_config, tiny_facts


def predictor(name: str, **changes: Any) -> Predictor:
    spec = models()[name]
    config = tiny_config(name, **changes)
    facts = tiny_facts(architecture=name, model=to_dict(config), preprocessing=Preprocessing((62, 68)))
    return Predictor(spec.load()(config), facts, name="tiny")


def restored(stored: dict[str, Any]) -> torch.Tensor:
    """The matrix as the engine reads it."""
    data = base64.b64decode(stored["values"])
    if stored["type"] == "float16":
        numbers = np.frombuffer(data, "<f2").astype(np.float64)
    else:
        scales = np.frombuffer(base64.b64decode(stored["scales"]), "<f4").astype(np.float64)
        numbers = np.frombuffer(data, "<i2") * scales.repeat(stored["columns"])
    return torch.from_numpy(numbers.copy()).reshape(stored["rows"], stored["columns"])


def test_facts_travel_with_the_weights() -> None:
    held = families()["question"].page_model(saccade.load("hattnet-ctx-mref", "cpu"))
    assert (held["schema"], held["kind"], held["total"]) == ("saccade.page-weights/1", "hattnet", "product")
    assert held["queries"] == [str(digit) for digit in range(10)]
    assert held["answers"] == ["green", "yellow", "white", "red", "blue"]
    assert held["size"] == [100, 100]
    assert [(look["name"], look["kind"], look["grid"]) for look in held["looks"]] == [
        ("stage1", "gate", [49, 49]),
        ("stage2", "gate", [23, 23]),
        ("stage3", "gate", [10, 10]),
        ("stage4", "soft", [4, 4]),
    ]
    assert held["looks"][3]["frame"] == [[16.0, 0.0, 15.0], [0.0, 16.0, 15.0]]  # cell centres at 23, 39, 55, 71
    assert [stage["norm"] is None for stage in held["stages"]] == [True, False, False, False]
    assert [stage["gate"] is None for stage in held["stages"]] == [False, False, False, True]


def test_the_model_itself_stays_as_it_was() -> None:
    asked = predictor("soft")
    asked.model.double()
    before = {name: tensor.clone() for name, tensor in asked.model.state_dict().items()}
    asked.family.page_model(asked)
    assert all(parameter.requires_grad for parameter in asked.model.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in asked.model.state_dict().items())


def test_half_precision_is_kept_bit_by_bit() -> None:
    numbers = torch.tensor([[1.0, -0.333251953125], [6e-8, 65504.0]])  # the second is a third, rounded to half
    numbers[1, 0] = 2.0**-24  # the smallest that half precision has
    stored = matrix(numbers)
    assert stored["type"] == "float16"
    assert torch.equal(restored(stored), numbers.double())


def test_full_precision_becomes_integers_of_a_row() -> None:
    stored = matrix(torch.tensor([[1 / 3, -1.0], [0.0, 0.0], [1e-9, 1e-10]]))
    assert stored["type"] == "int16"
    found = restored(stored)
    torch.testing.assert_close(found[0], torch.tensor([10922 / 32767, -1.0]).double(), atol=1e-7, rtol=0)
    assert found[1].tolist() == [0, 0]
    torch.testing.assert_close(found[2], torch.tensor([1e-9, 1e-10]).double(), atol=2e-14, rtol=0)


@given(
    st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), min_size=1, max_size=4),
)
def test_no_number_is_off_by_more_than_half_a_step_of_its_row(rows: list[list[float]]) -> None:
    numbers = torch.tensor(rows)
    off = (restored(matrix(numbers)) - numbers.double()).abs()
    step = numbers.double().abs().amax(1, keepdim=True) / 32767
    assert bool((off <= step * 0.501 + 1e-37).all())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("hard", {}, r"'tiny' \(hard\) does not run inside a page; soft and hattnet do.*saccade serve"),
        ("soft", {"backbone": "mobilenetv2", "through": "block7"}, "'tiny' has the backbone mobilenetv2"),
        ("soft", {"multi_label": True}, "'tiny' answers with several labels at once"),
        ("hattnet", {"prior": True}, "'tiny' has a prior"),
        ("hattnet", {"hidden": 6}, "'tiny' has 8 channels and 6 hidden units, no multiples of 4"),
    ],
)
def test_what_the_page_cannot_compute_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        (asked := predictor(name, **changes)).family.page_model(asked)
