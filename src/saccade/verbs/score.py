"""Scores maps from any tool against masks, boxes or points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.errors import ConfigError, DataError
from saccade.scoring.maps import Maps, StackMaps, open_maps
from saccade.scoring.policies import Policies
from saccade.scoring.results import ScoreResult
from saccade.scoring.score import OnProgress, score_maps
from saccade.scoring.truths import MaskStack, Truths, open_truth


def score(
    maps: Any,
    truth: Any,
    *,
    objects: Any = None,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    key: str | None = None,
    method: Any = None,
    model: Any = None,
    engine: str | None = None,
    address: str | None = None,
    actors: int | None = None,
    on_progress: OnProgress = lambda what, done, total: None,
    **policies: str,
) -> ScoreResult:
    """How maps lie on what they should lie on, beside baselines and bounds; no model is needed.

    >>> import torch
    >>> mask = torch.zeros(4, 8, 8, dtype=torch.bool); mask[:, 2:4, 2:4] = True
    >>> score(mask.float(), mask).scores["true_positive_strength"].mean
    1.0

    Args:
        maps: a path (folder, zip, tar, .npy, .npz, .h5, records, rows of ``look --engine``), an array or tensor (N,H,W)
            on any device, a mapping from names to maps (H,W), or an iterable of maps or of pairs (name, map), which is
            read once.
        truth: a path (masks, a table of boxes or points, or a causal set), masks (N,H,W), or a mapping from names.
        objects: masks of all objects of the same kind as ``truth``, for ``selectivity``.
        kind: what a truth in memory holds: masks, boxes (n,4) or points (n,2) of each picture; None: masks.
        names: of maps and truths in memory that have none: ``PICTURE`` or ``PICTURE__QUESTION``.
        key: of the array in files that hold several.
        method: ``maps`` is a folder of pictures, and this makes their maps: own, gradcam, hirescam, gradxinput, ig,
            occlusion or rollout of ``model``; or a function of the path of a picture and a question (or None).
        model: a zoo name, a model folder, a run folder, or a predictor.
        engine: of rows that ``look --engine`` wrote: local, or ray on a cluster; the scores are the same.
        address: of the Ray cluster.
        actors: of Ray; None: one for each CPU.
        on_progress: called with what is going on, how far it is, and how far it goes.
        policies: signed, resize, nan, missing, empty, broken and separator, see :class:`Policies`.
    """
    if method is None and isinstance(maps, (str, os.PathLike)):
        from saccade.scale.look_folder import is_look_folder

        if is_look_folder(os.fspath(maps)):
            from saccade.scale.scoring import score_rows

            cluster = {"engine": engine or "local", "address": address, "actors": actors}
            rows = {"objects": objects, "key": key, "on_progress": on_progress, **cluster}
            return score_rows(os.fspath(maps), truth, Policies(**policies), **rows)
    if engine is not None or address is not None or actors is not None:
        raise ConfigError("--engine, --address and --actors score the rows of 'saccade look --engine'; leave them out")
    told = open_truth(truth, objects=objects, kind=kind, names=names, key=key)
    if method is None:
        if model is not None:
            raise ConfigError("model: it needs a method, such as own or gradcam; maps that are there need no model")
        opened = open_maps(maps, key=key, names=names)
        if names is None:
            _check_as_many(opened, told)
        return score_maps(opened, told, Policies(**policies), on_progress=on_progress)
    from saccade.predict import load
    from saccade.verbs.score_methods import method_maps

    chosen = Policies(**{"signed": "abs", **policies})
    predictor = load(model) if isinstance(model, (str, Path)) else model
    made = method_maps(Path(maps), method, predictor, told, chosen.separator)
    found = score_maps(made, told, chosen, on_progress=on_progress)
    called = method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)
    settings = {"method": called, "model": None if predictor is None else predictor.name}
    return replace(found, settings=settings)


def _check_as_many(maps: Maps, truth: Truths) -> None:
    """Refuse stacks (N,H,W) of different N: their maps and masks have no names, so only their order matches them."""
    if not isinstance(maps, StackMaps) or not isinstance(truth, MaskStack):
        return
    many, wanted = len(maps.paths() or ()), len(truth.paths())
    if many != wanted:
        raise DataError(
            f"{many} maps and {wanted} masks: map i is scored against mask i, so give as many of each; or give both as "
            "mappings from names"
        )
