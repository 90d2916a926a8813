"""The network inside a predictor, if it is one that answers questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saccade.errors import DataError
from saccade.models.base import QueryModel

if TYPE_CHECKING:
    from saccade.predict import Predictor


def query_model(predictor: Predictor) -> QueryModel:
    """The network of ``predictor``; a DataError if it takes no question."""
    model = predictor.model
    if not isinstance(model, QueryModel):
        raise DataError(f"'{predictor.name}' takes no question ({type(model).__name__}); name a model that does")
    return model
