"""Errors say what was wrong, what was found, and what to do."""

from __future__ import annotations

import inspect

import pytest
import torch

from saccade import errors
from saccade.errors import MissingExtraError, SaccadeError, ShapeError, nearest

ALL_ERRORS = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)]


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.__name__)
def test_one_base_for_everything_a_user_can_cause(error: type[Exception]) -> None:
    assert issubclass(error, SaccadeError)
    assert error.__doc__


def test_the_contract_names_are_there() -> None:
    names = {error.__name__ for error in ALL_ERRORS}
    assert {"ConfigError", "ShapeError", "DataError", "CheckpointError", "MissingExtraError", "OutputError"} <= names


def test_shape_error_carries_both_shapes() -> None:
    error = ShapeError("features", "(B,8,H,W)", torch.zeros(2, 3).shape)
    assert (error.name, error.expected, error.actual) == ("features", "(B,8,H,W)", (2, 3))
    assert str(error) == "features: expected shape (B,8,H,W), got (2, 3)"


def test_missing_extra_tells_the_command() -> None:
    error = MissingExtraError("the page", "web")
    assert error.extra == "web"
    assert "pip install 'saccade-attention[web]'" in str(error)
    assert "cannot be loaded" in str(MissingExtraError("the page", "web", found="fastapi cannot be loaded"))


def test_nearest_suggests_the_close_one_and_lists_all() -> None:
    assert nearest("hrad", ["soft", "hard"]) == "did you mean 'hard'? (choices: hard, soft)"


def test_nearest_does_not_guess_wildly() -> None:
    assert nearest("zzzz", ["soft", "hard"]) == "choose from hard, soft"
    assert nearest("zzzz", []) == "there is nothing to choose from"


def test_nearest_takes_any_iterable() -> None:
    assert "'2'" in nearest("2", (number for number in (1, 2)))  # type: ignore[misc]
