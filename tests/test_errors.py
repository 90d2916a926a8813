"""Errors say what was wrong, what was found, and what to do."""

from __future__ import annotations

import inspect

import torch

from saccade import errors
from saccade.errors import MissingExtraError, ShapeError, nearest

ALL_ERRORS = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)]


def test_shape_error_carries_both_shapes() -> None:
    error = ShapeError("features", "(B,8,H,W)", torch.zeros(2, 3).shape)
    assert (error.name, error.expected, error.actual) == ("features", "(B,8,H,W)", (2, 3))
    assert str(error) == "features: expected shape (B,8,H,W), got (2, 3)"


def test_missing_extra_tells_the_command() -> None:
    error = MissingExtraError("the page", "web")
    assert error.extra == "web"
    assert "pip install 'saccade-attention[web]'" in str(error)
    assert "cannot be loaded" in str(MissingExtraError("the page", "web", found="fastapi cannot be loaded"))


def test_nearest_does_not_guess_wildly() -> None:
    assert nearest("zzzz", ["soft", "hard"]) == "choose from hard, soft"
    assert nearest("zzzz", []) == "there is nothing to choose from"
