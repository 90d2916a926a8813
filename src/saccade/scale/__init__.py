"""Looks at many pictures, on this machine or on a Ray cluster, and writes one row per picture to Parquet.

>>> from saccade import scale                                            # doctest: +SKIP
>>> scale.look("s3://bucket/photos", model="soft-mref", ask=7, out="s3://bucket/looks", engine="ray")  # doctest: +SKIP
>>> for row in scale.read("looks"): print(row["source"], row["answer"])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.scale.dataset import look_dataset
    from saccade.scale.look_folder import read
    from saccade.scale.looking import look
    from saccade.scale.schema import decode_map
else:
    from saccade.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = ["decode_map", "look", "look_dataset", "read"]
