"""Looks at many pictures, on this machine or on a Ray cluster, and writes one row per picture to Parquet.

>>> from saccade import scale                                            # doctest: +SKIP
>>> scale.look("s3://bucket/photos", model="soft-mref", ask=7, out="s3://bucket/looks", engine="ray")  # doctest: +SKIP
>>> for row in scale.read("looks"): print(row["source"], row["answer"])  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.scale.dataset import look_dataset
    from saccade.scale.look_folder import read
    from saccade.scale.looking import look
    from saccade.scale.schema import decode_map

__all__ = ["decode_map", "look", "look_dataset", "read"]

_HOMES = {"decode_map": "schema", "look": "looking", "look_dataset": "dataset", "read": "look_folder"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade.scale' has no attribute '{name}'")
    return getattr(import_module(f"saccade.scale.{_HOMES[name]}"), name)
