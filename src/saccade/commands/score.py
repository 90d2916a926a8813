"""``score``: maps that anyone made, against masks, boxes, points or a causal set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from saccade.commands.verb import Command, Remark, arguments_of, checked, print_table, say
from saccade.config import Within
from saccade.errors import ConfigError, DataError
from saccade.progress import OnProgress, no_progress

if TYPE_CHECKING:
    from saccade.scoring.photographs.results import PhotographScores
    from saccade.scoring.results import ScoreResult
    from saccade.scoring.sources import Maps

# Arguments that go with maps and truths from files, not with a causal set of photographs.
_OF_MAPS = (
    *("objects", "kind", "names", "key", "engine", "address", "pictures"),
    *("resize", "missing", "empty", "broken", "separator"),
)
_OF_NETWORKS = ("layer", "size", "fit")  # Arguments about a network whose maps are made.


@checked
def score(
    maps: str | Path | Any = None,
    truth: str | Path | Any = None,
    *,
    objects: str | Path | Any = None,
    kind: Literal["masks", "boxes", "points"] | None = None,
    names: Sequence[str] | None = None,
    key: str | None = None,
    method: str | Path | Callable[..., Any] | None = None,
    model: str | Path | Any = None,
    layer: str | None = None,
    size: Annotated[int, Within(8, 2048)] | None = None,
    fit: Literal["inside", "stretch"] = "inside",
    limit: Annotated[int, Within(1)] | None = None,
    device: str = "auto",
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
    on_progress: OnProgress = no_progress,
) -> ScoreResult | PhotographScores:
    """Score maps from any tool, beside baselines and bounds.

    A map and its truth have the same name. No model is needed. What could not be scored is left out and counted.

    Args:
        maps: folder, zip or tar of .npy .npz .png .tif .h5; one such file; records; or rows. In Python also an array or
            tensor (N,H,W) on any device, a mapping from names to maps (H,W), or an iterable of maps or of pairs (name,
            map), which is read once. With ``method`` pictures; - or none where a causal set of photographs has them.
        truth: masks (folder, zip, .npy), a table of boxes or points, COCO, or a causal set (causal:SET). In Python also
            masks (N,H,W), or a mapping from names.
        objects: masks of all objects, for selectivity. None: none.
        kind: what a truth in memory holds: masks, boxes (n,4) or points (n,2) of each picture. None: masks.
        names: names for maps and truths in memory, ``PICTURE`` or ``PICTURE__QUESTION``. None: numbers.
        key: which array to read from .npz and .h5 files. None: the only one.
        method: make maps from the pictures ``maps``, by own, gradcam, ig …, or my_method.py:attribute. All methods:
            own, gradcam, hirescam, layercam, gradxinput, ig (integrated-gradients), smoothgrad, occlusion, rise,
            rollout. A function takes (model, images, targets); where questions are asked, the path of a picture and a
            question (or None). The code of a file is run. None: ``maps`` are maps.
        model: whose maps ``method`` makes. A zoo name, model folder, run folder, timm:NAME, hf:NAME or my_net.py:build,
            whose code is run. In Python also a torch module. None: none.
        layer: the layer of a classifier for CAMs. None: the last layer with cells.
        size: side of the input of a classifier. None: what the model says, else 224.
        fit: how pictures are laid into that input: inside, undistorted on grey; or stretch, as many are trained.
        limit: score the first photographs of a causal set. None: all.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        signed: what to do with negative values. None: keep; abs with ``method``.
        resize: resize maps to their truth, masks to their map, or neither.
        nan: what to do with maps that have NaN.
        missing: what to do with truths that have no map.
        empty: what to do with empty truths.
        broken: what to do with unreadable files.
        separator: what stands between picture and question in the name of a map.
        engine: for rows that ``look_folder`` wrote, local, or ray on a cluster. The scores are the same. None: local.
        address: address of the Ray cluster, HOST:PORT or auto. None: this machine alone.
        out: folder for scores.json, maps.csv and report.html. None: nothing is written.
        pictures: the pictures, to draw maps on. None: grey, or those that ``method`` looked at.
        on_progress: called with what is going on, how far it is, and how far it goes.

    Returns:
        ``scores`` by metric with their intervals, baselines and bounds, and what was left out. For a causal set of
        photographs, scores about the scene and about the model, and a verdict. ``.save(folder)`` writes
        scores.json, maps.csv and report.html.

    Example:
        >>> saccade.score("maps/", "masks/").scores["true_positive_strength"].mean  # doctest: +SKIP
    """
    arguments = dict(locals())
    from saccade.scoring.networks import NetworkOptions
    from saccade.scoring.results import Policies
    from saccade.scoring.score import score_maps
    from saccade.scoring.sources import has_photographs, open_maps, open_truth

    if truth is None:
        raise ConfigError("truth is missing: masks, boxes, points or a causal set that the maps are compared with")
    if model is None:
        _check_defaults(arguments, _OF_NETWORKS, "is for the network whose maps a `method` makes; give its `model`, or")
    if isinstance(truth, str):
        truth = truth.removeprefix("causal:")
    if isinstance(method, Path):
        method = str(method)
    values = signed or ("keep" if method is None else "abs")
    policies = Policies(values, resize, nan, missing, empty, broken, separator)
    options = NetworkOptions(layer, size, fit, device)
    if has_photographs(truth):
        from saccade.scoring.photographs.scoring import score_photographs

        if maps not in (None, "-"):
            raise ConfigError(f"maps: {truth} has its own pictures; leave {maps} out, or give -")
        _check_defaults(arguments, _OF_MAPS, "is not for a causal set of photographs;")
        of_photographs = score_photographs(
            truth, method, model, policies, options, limit=limit, on_progress=on_progress
        )
        if out is not None:
            of_photographs.save(out)
        return of_photographs
    if maps is None:
        raise ConfigError("MAPS are missing: only a causal set of photographs has its own pictures")
    if limit is not None:
        raise ConfigError("limit: it is for a causal set of photographs; leave it out")
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
            from saccade.scoring.methods import method_maps

            opened = method_maps(Path(maps), method, model, truths, separator, options)
            settings = {"method": opened.method, "model": opened.model}
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
        result.save(out, pictures=pictures if pictures is not None or method is None else Path(maps))
    return result


def _check_defaults(arguments: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    """Refuse the arguments ``names`` where they are given."""
    for name in names:
        value, default = arguments[name], arguments_of(score)[name].default
        if value is not None if default is None else value != default:
            raise ConfigError(f"{name}: it {why} leave it out")


def typed(row: bool = False, **arguments: Any) -> ScoreResult | PhotographScores:
    """The verb as it is typed.

    Args:
        row: print the lines for results/causal.csv alone, of a causal set of photographs.
        **arguments: what :func:`score` takes.
    """
    from saccade.scoring.sources import has_photographs

    if row and not has_photographs(str(arguments["truth"]).removeprefix("causal:")):
        raise ConfigError("row: only scores on a causal set of photographs have one; leave it out")
    return score(**arguments)


def show(result: ScoreResult | PhotographScores, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the scores, what was left out and how."""
    from saccade.scoring.photographs.results import PhotographScores

    if isinstance(result, PhotographScores):
        _show_photographs(result, arguments, remark)
        return
    print_table(f"{result.maps} against {arguments['truth']}", *result.table(), note=result.counted())
    if result.scene is not None:
        facts = result.scene.facts
        called = facts.get("version") or "causal set"
        print_table("about the scene", *result.scene.table(), note=f"{called}, digest {facts['digest']}")
    if result.verdict:
        say(f"{result.verdict}.")
    remark(" · ".join(line.partition(":")[0] for line in result.policies.lines()))
    if arguments["out"] is not None:
        remark(f"scores.json, maps.csv and report.html are in {arguments['out']}")


def _show_photographs(result: PhotographScores, arguments: Mapping[str, Any], remark: Remark) -> None:
    if arguments["row"]:
        say(result.row().rstrip())
        return
    for title, _, rows in result.tables():
        print_table(title, *rows)
    if result.refused:
        say(result.refused)
    say(result.verdict)
    remark(f"{result.counted()} · {result.model}: {result.network}")
    if arguments["out"] is not None:
        remark(f"scores.json, scenes.csv and report.html are in {arguments['out']}")


COMMAND = Command(
    score,
    show,
    run=typed,
    place={"maps": "MAPS"},
    names={"truth": "-t", "out": "-o"},
    words={"truth": "PATH", "objects": "PATH", "method": "NAME", "model": "MODEL"},
    leave_out=frozenset({"kind", "names"}),
    example="saccade score maps/ --truth masks/ --out scored",
)
