"""``score``: maps that anyone made, against masks, boxes, points or a causal set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from saccade.commands.verb import Command, Remark, checked, print_table
from saccade.errors import ConfigError, DataError

if TYPE_CHECKING:
    from saccade.scoring.results import ScoreResult
    from saccade.scoring.sources import Maps


@checked
def score(
    maps: str | Path | Any,
    truth: str | Path | Any,
    *,
    objects: str | Path | Any = None,
    kind: Literal["masks", "boxes", "points"] | None = None,
    names: Sequence[str] | None = None,
    key: str | None = None,
    method: str | Callable[..., Any] | None = None,
    model: str | Path | Any = None,
    signed: Literal["keep", "abs", "positive"] | None = None,
    resize: Literal["truth", "map", "never"] = "truth",
    nan: Literal["skip", "zero", "stop"] = "skip",
    missing: Literal["skip", "zero", "stop"] = "skip",
    empty: Literal["skip", "stop"] = "skip",
    broken: Literal["stop", "skip"] = "stop",
    separator: str = "__",
    engine: Literal["local", "ray"] | None = None,
    address: str | None = None,
    out: Path | str | None = None,
    pictures: Path | str | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ScoreResult:
    """Score maps from any tool, beside baselines and bounds.

    A map and its truth have the same name. No model is needed. What could not be scored is left out and counted.

    Args:
        maps: folder, zip or tar of .npy .npz .png .tif .h5; one such file; records; or rows. In Python also an array or
            tensor (N,H,W) on any device, a mapping from names to maps (H,W), or an iterable of maps or of pairs (name,
            map), which is read once.
        truth: masks (folder, zip, .npy), a table of boxes or points, COCO, or a causal set. In Python also masks
            (N,H,W), or a mapping from names.
        objects: masks of all objects, for selectivity. None: none.
        kind: what a truth in memory holds: masks, boxes (n,4) or points (n,2) of each picture. None: masks.
        names: of maps and truths in memory that have none: ``PICTURE`` or ``PICTURE__QUESTION``. None: numbers.
        key: array in .npz and .h5 files of several. None: the only one.
        method: ``maps`` are pictures: make maps by own, gradcam, ig …. All methods: own, gradcam, hirescam, gradxinput,
            ig, occlusion, rollout. In Python also a function of the path of a picture and a question (or None). None:
            ``maps`` are maps.
        model: whose maps ``method`` makes. A zoo name, a model folder or a run folder. None: none.
        signed: what to do with negative values. None: keep; abs with ``method``.
        resize: to whose size maps and masks are brought.
        nan: what to do with maps that hold NaN.
        missing: what to do with truths that have no map.
        empty: what to do with empty truths.
        broken: what to do with unreadable files.
        separator: what stands between picture and question in the name of a map.
        engine: of rows that ``look_folder`` wrote: local, or ray on a cluster. The scores are the same. None: local.
        address: of the Ray cluster: HOST:PORT or auto. None: this machine alone.
        out: folder for scores.json, maps.csv and report.html. None: nothing is written.
        pictures: the pictures, to draw maps on. None: grey, or those that ``method`` looked at.
        on_progress: called with what is going on, how far it is, and how far it goes.

    Returns:
        ``scores`` by metric with their intervals, baselines and bounds, and what was left out. ``.save(folder)`` writes
        scores.json, maps.csv and report.html.

    Example:
        >>> saccade.score("maps/", "masks/").scores["true_positive_strength"].mean  # doctest: +SKIP
    """
    from saccade.scoring.results import Policies
    from saccade.scoring.score import score_maps
    from saccade.scoring.sources import open_maps, open_truth

    values = signed or ("keep" if method is None else "abs")
    policies = Policies(values, resize, nan, missing, empty, broken, separator)
    if method is None and isinstance(maps, (str, os.PathLike)) and (Path(maps) / "job.json").is_file():
        from saccade.adapters.scoring import score_rows  # of what 'look --engine' wrote

        cluster: dict[str, Any] = {"engine": engine or "local", "address": address}
        result = score_rows(maps, truth, policies, objects=objects, key=key, on_progress=on_progress, **cluster)
    elif engine is not None or address is not None:
        raise ConfigError("engine and address score the rows that 'look --engine' wrote; leave them out")
    else:
        truths = open_truth(truth, kind=kind, names=names, objects=objects, key=key)
        opened: Maps
        settings = None
        if method is not None:
            from saccade.predict import load
            from saccade.scoring.methods import method_maps

            predictor = load(model) if isinstance(model, (str, Path)) else model
            opened = method_maps(Path(maps), method, predictor, truths, separator)
            called = method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)
            settings = {"method": called, "model": None if predictor is None else predictor.name}
        elif model is not None:
            raise ConfigError("model: it needs a method, such as own or gradcam; maps that are there need no model")
        else:
            opened = open_maps(maps, key=key, names=names)
            many, wanted = len(opened.paths), len(truths.paths)
            if names is None and opened.is_stacked and truths.is_stacked and many != wanted:
                raise DataError(
                    f"{many} maps and {wanted} masks: map i is scored against mask i, so give as many of each; or give "
                    "both as mappings from names"
                )
        result = score_maps(opened, truths, policies, on_progress=on_progress)
        result = result if settings is None else replace(result, settings=settings)
    if out is not None:
        result.save(out, pictures=maps if pictures is None and method is not None else pictures)
    return result


def show(found: ScoreResult, given: Mapping[str, Any], remark: Remark) -> None:
    """Print the scores, what was left out and how."""
    print_table(f"{found.maps} against {given['truth']}", *found.table(), note=found.counted())
    if found.scene is not None:
        facts = found.scene.facts
        called = facts.get("version") or "causal set"
        print_table("about the scene", *found.scene.table(), note=f"{called}, digest {facts['digest']}")
    remark(" · ".join(line.partition(":")[0] for line in found.policies.lines()))
    if given["out"] is not None:
        remark(f"scores.json, maps.csv and report.html are in {given['out']}")


COMMAND = Command(
    score,
    show,
    place={"maps": "MAPS"},
    names={"truth": "-t", "out": "-o"},
    words={"truth": "PATH", "objects": "PATH", "method": "NAME", "model": "MODEL"},
    leave_out=frozenset({"kind", "names"}),
    example="saccade score maps/ --truth masks/ --out scored",
)
