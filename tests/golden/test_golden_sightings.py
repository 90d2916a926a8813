"""Every shipped model says what it said about ten fixed pictures when the goldens were written, and looks there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from golden_sightings import NUMBERS, TEXTS, shipped, sightings

NEAR = 1e-4
STORED: dict[str, list[dict[str, Any]]] = json.loads(TEXTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def stored_numbers() -> Iterator[dict[str, np.ndarray]]:
    with np.load(NUMBERS) as numbers:
        yield dict(numbers)


def words(value: Any) -> Any:
    """A plain value with every number replaced by its type: what must be equal."""
    if isinstance(value, dict):
        return {key: words(each) for key, each in value.items()}
    if isinstance(value, list):
        return [words(each) for each in value]
    return float if isinstance(value, float) else value


def shares(value: Any) -> list[float]:
    """The floats of a plain value, in order: what must be near."""
    if isinstance(value, (dict, list)):
        each = value.values() if isinstance(value, dict) else value
        return [number for part in each for number in shares(part)]
    return [value] if isinstance(value, float) else []


def test_the_same_models_are_shipped() -> None:
    assert set(STORED) <= set(shipped())
    assert len(STORED) == 26


@pytest.mark.parametrize("model", STORED)
def test_a_shipped_model_sees_what_it_saw(model: str, stored_numbers: dict[str, np.ndarray]) -> None:
    told, arrays = sightings(model)
    told = json.loads(json.dumps(told))
    for found, wanted in zip(told, STORED[model], strict=True):
        what = f"{wanted['picture']}, asked {wanted.get('question')}"
        assert words(found) == words(wanted), what
        assert shares(found) == pytest.approx(shares(wanted), abs=NEAR), what
    for name, found in arrays.items():
        wanted = stored_numbers[f"{model}/{name}"]
        assert found.shape == wanted.shape, name
        largest = np.abs(wanted).reshape(len(wanted), -1).max(1)  # (N,)
        slack = NEAR * np.minimum(largest, 1).reshape(-1, *[1] * (wanted.ndim - 1))  # maps may be small throughout
        assert (np.abs(found - wanted) <= slack).all(), f"{name}: off by {np.abs(found - wanted).max():.2g}"
