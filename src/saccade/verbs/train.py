"""``train``: a recipe in, a run folder out; several recipes or seeds in, a folder of runs out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast, overload

if TYPE_CHECKING:
    from saccade.engine.loop import RunResult
    from saccade.verbs.training.several import SeveralRuns

Several = list[str] | list[Path] | tuple[str | Path, ...]
"""Recipes, by name or file."""


class TrainOptions(TypedDict, total=False):
    """What may be said of a training besides its recipe, place and seeds; see :func:`train`."""

    data: str | None
    backbone: str | None
    protocol: str | None
    start: str | Path | None
    phases: Sequence[str]
    overrides: Sequence[str] | Mapping[str, Any]
    epochs: int | None
    steps: int | None
    batch_size: int | None
    lr: float | None
    seed: int | None
    at_once: int | None
    resume: bool
    accept_changed_data: bool
    max_minutes: float | None
    device: str
    devices: int
    nodes: int
    strategy: str
    precision: Literal["auto", "32-true", "bf16-mixed"] | None
    offline: bool
    quiet: bool


@overload
def train(
    recipe: str | Path | None = None, *, out: Path | str, seeds: None = None, **options: Unpack[TrainOptions]
) -> RunResult: ...


@overload
def train(
    recipe: str | Path | Several, *, out: Path | str, seeds: int, **options: Unpack[TrainOptions]
) -> list[RunResult]: ...


@overload
def train(
    recipe: Several, *, out: Path | str, seeds: None = None, **options: Unpack[TrainOptions]
) -> list[RunResult]: ...


def train(
    recipe: str | Path | Several | None = None,
    *,
    out: Path | str,
    data: str | None = None,
    backbone: str | None = None,
    protocol: str | None = None,
    start: str | Path | None = None,
    phases: Sequence[str] = (),
    overrides: Sequence[str] | Mapping[str, Any] = (),
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    at_once: int | None = None,
    resume: bool = False,
    accept_changed_data: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    strategy: str = "auto",
    precision: Literal["auto", "32-true", "bf16-mixed"] | None = None,
    offline: bool = False,
    quiet: bool = False,
) -> RunResult | list[RunResult]:
    """Train a model by a recipe, or several models side by side.

    Ctrl-C stops cleanly, and ``resume=True`` goes on exactly from there.

    With ``seeds``, or with a list of recipes, several runs are trained side by side, each in a process of its own and
    into a folder of its own below ``out``.

    Args:
        recipe: name of 'saccade list recipes', or a YAML file. ``saccade.families.recipes()`` has the names; for
            labelled pictures of your own begin with attributes-head. To go on with a run, leave it out: the run knows
            its own.
        out: the run folder, or the folder for several. It must be new, but to ``resume``.
        data: name, path, or READER:PATH. As in csv:my.csv; 'saccade data list' has names and readers. None: the
            recipe's.
        backbone: backbone, e.g. mobilenetv2 or timm:NAME. 'saccade list backbones' has all names. None: the recipe's.
        protocol: one of the recipe's protocols, e.g. authors or unlimited. None: the recipe's.
        start: model to take the first weights from. They are taken where they fit. A zoo name, a run or a model folder.
            None: the recipe's.
        phases: train this phase of the recipe alone. By name; several may be named. None: all.
        overrides: change a setting, as in phases.0.steps=100. Values are read as YAML. In Python also a mapping, as in
            {'phases.0.steps': 100}.
        epochs: how often to see all data. Of the one phase of the recipe, or of the one in ``phases``. None: the
            recipe's.
        steps: or how many batches to learn from. None: the recipe's.
        batch_size: examples in a batch. None: the recipe's.
        lr: learning rate. Of the same phase as ``epochs``. None: the recipe's.
        seed: seed of everything random. With ``seeds``, the first of them. None: the recipe's.
        seeds: train this many seeds side by side. Of each recipe. None: one run.
        at_once: of several runs, how many at a time. None: by cores and memory.
        resume: go on with what is in ``out``. It is refused when the data changed since.
        accept_changed_data: with ``resume``, go on although the data changed. The model's card says so.
        max_minutes: stop cleanly after this long. None: no limit.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        devices: processes on each machine, one for each device.
        nodes: machines.
        strategy: auto or ddp. Any strategy of Lightning Fabric by its name.
        precision: auto, 32-true or bf16-mixed. None: the recipe's.
        offline: fetch no weights from the hubs of timm and transformers.
        quiet: no progress and no remarks.

    Returns:
        How the run ended: its folder, step, best validation, and the folder of its model. Of several runs, a list.

    Raises:
        ConfigError: a recipe or an argument cannot be used.
        DataError: the data cannot be read, or cannot be trained on.
        OutputError: ``out`` is not empty, or cannot be written.
        RunsFailed: of several runs, some failed; its ``results`` are those of the others.

    Example:
        >>> done = saccade.train("ran-56-photos", data="photos/", out="runs/photos", epochs=5)  # doctest: +SKIP
        >>> saccade.load(done.out).look("new.jpg").answer                                       # doctest: +SKIP
    """
    given = dict(locals())
    from saccade.verbs.training.run import train_any

    found = train_any(**given)
    is_several = seeds is not None or not (recipe is None or isinstance(recipe, (str, Path)))
    return cast("SeveralRuns", found).results() if is_several else cast("RunResult", found)
