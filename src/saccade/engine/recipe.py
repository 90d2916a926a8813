"""Recipes: one YAML file per experiment, read into frozen dataclasses.

A recipe says what is trained on what, in which phases. ``extends: NAME`` starts from another recipe, of which only
the differences are written down. ``protocols`` holds named sets of overrides; ``--protocol`` picks one, ``--set a.b=1``
overrides that, and the resolved recipe is what the run folder records.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from saccade.config import (
    Count,
    Portion,
    Share,
    Weight,
    Within,
    check_schema,
    from_dict,
    plain_yaml,
    quick_yaml,
    set_by_path,
)
from saccade.errors import ConfigError, nearest
from saccade.families.registry import recipes
from saccade.files import read_regular

SCHEMA_VERSION = 2
Precision = Literal["auto", "32-true", "bf16-mixed"]


@dataclass(frozen=True)
class ModelChoice:
    """Which model of the catalog, and its own configuration."""

    name: str  # a name of ``saccade list models``
    config: dict[str, Any] = field(default_factory=dict)  # its settings, where they differ from the defaults


@dataclass(frozen=True)
class OptimizerSpec:
    """An optimiser and its numbers."""

    name: Literal["adamw", "adam", "rmsprop", "sgd"] = "adamw"
    lr: Annotated[float, Within(0, above=True)] = 1e-3  # learning rate; the schedule multiplies it
    weight_decay: Weight = 0.0
    momentum: Portion = 0.0  # of sgd and rmsprop
    nesterov: bool = False  # of sgd with momentum
    betas: tuple[Portion, Portion] = (0.9, 0.999)  # of adam and adamw
    alpha: Portion = 0.99  # smoothing constant of RMSprop
    eps: Annotated[float, Within(0, above=True)] | None = None  # None: the optimiser's usual value, 1e-8

    def __post_init__(self) -> None:
        if self.name.startswith("adam") and self.momentum:
            raise ValueError(f"{self.name} has no momentum setting; use betas")
        if self.nesterov and not (self.name == "sgd" and self.momentum):
            raise ValueError("nesterov needs name: sgd and a momentum above 0")


@dataclass(frozen=True)
class Schedule:
    """How the learning rate moves within a phase, as a multiple of the optimiser's ``lr``.

    ``start``, ``every``, ``at`` and ``warmup`` count in ``unit``: optimiser steps or whole epochs.
    """

    name: Literal["constant", "cosine", "linear", "step", "milestones"] = "constant"
    unit: Literal["step", "epoch"] = "step"
    warmup: Annotated[int, Within(0)] = 0  # rise linearly to the full rate over this long
    floor: Share = 0.0  # ``cosine`` and ``linear`` fall from 1 to this share of the rate at the end of the phase
    start: Annotated[int, Within(0)] = 0  # ``step``: the first division happens here
    every: Count = 1  # ``step``: … and another one each time this much has passed
    factor: Annotated[float, Within(0, above=True)] = 10.0  # ``step`` and ``milestones``: what the rate is divided by
    at: tuple[int, ...] = ()  # ``milestones``: one division at each

    def __post_init__(self) -> None:
        if self.name == "milestones" and not self.at:
            raise ValueError("a milestones schedule needs 'at', the list of moments")

    def scale(self, step: int, *, total: int, steps_per_epoch: int | None) -> float:
        """The multiple of the base rate at ``step`` (from 0) of a phase ``total`` steps long.

        >>> authors = Schedule("step", unit="epoch", start=30, every=12, factor=1.5)
        >>> [round(authors.scale(epoch * 10, total=3000, steps_per_epoch=10), 4) for epoch in (29, 30, 41, 42)]
        [1.0, 0.6667, 0.6667, 0.4444]
        """
        length = (steps_per_epoch or 1) if self.unit == "epoch" else 1
        warmup = self.warmup * length
        if step < warmup:
            return (step + 1) / warmup
        moment = step // length
        if self.name == "step" and moment >= self.start:
            return self.factor ** -(1 + (moment - self.start) // self.every)
        if self.name == "milestones":
            return self.factor ** -sum(moment >= milestone for milestone in self.at)
        if self.name in ("cosine", "linear"):
            passed = min(1.0, (step - warmup) / max(1, total - warmup))
            left = 0.5 * (1 + math.cos(math.pi * passed)) if self.name == "cosine" else 1 - passed
            return self.floor + (1 - self.floor) * left
        return 1.0


@dataclass(frozen=True)
class Select:
    """The validation metric that decides which weights are kept."""

    metric: str = "accuracy"  # a metric of the validation, as in ``metrics.jsonl``
    mode: Literal["max", "min"] = "max"  # whether a larger or a smaller value is better
    beside: str | None = None
    """a finer metric that is better in the same direction: it breaks ties, and patience waits while it gets better"""

    def better(self, new: float, old: float | None) -> bool:
        """Whether ``new`` beats ``old``; a tie does not, and NaN never does."""
        if new != new:
            return False
        return old is None or (new > old if self.mode == "max" else new < old)

    def beats(self, new: Mapping[str, float], old: Mapping[str, float] | None) -> bool:
        """Whether one validation beats another by ``metric``, or by ``beside`` where that is a tie."""
        for name in filter(None, (self.metric, self.beside)):
            value, before = new.get(name, math.nan), math.nan if old is None else old.get(name, math.nan)
            if value != before:  # of two that are not numbers, neither is better
                return self.better(value, None if math.isnan(before) else before)
        return False


@dataclass(frozen=True)
class Phase:
    """A stretch of training: what learns, from which loss, how, and until when."""

    name: str = "main"  # for ``--phase``, logs and curves; it decides nothing
    train: tuple[str, ...] = ("*",)  # glob patterns over parameter names, e.g. ``head.*``
    freeze: tuple[str, ...] = ()  # patterns taken out of ``train`` again
    freeze_statistics: bool = True
    """normalisation layers of frozen parts stay in eval mode; their statistics obey the same patterns, and
    ``backbone.*.running_*`` freezes these alone"""
    data: str = "default"
    """what it learns from: ``default`` is the task's examples as they are; a task may have more, each by its name"""
    features: Literal["auto", "kept", "fresh"] = "auto"
    """whether it learns from features that a frozen encoder made once of every picture file and that are kept on disk:
    ``kept`` does, and sees pictures unvaried; ``fresh`` encodes the pictures at every step; ``auto`` is the task's own
    rule. Generated scenes are new each time, so they are always encoded"""
    loss: Mapping[str, Any] | str = "default"
    """its name and its numbers, as in ``{name: soft, penalty: 0.5}``; a bare name is short for ``{name: NAME}``. The
    family says which losses there are; ``default`` is its plain one, if it has one"""
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    schedule: Schedule = field(default_factory=Schedule)
    clip_norm: Annotated[float, Within(0, above=True)] | None = None  # largest norm of the whole gradient
    clip_each: Annotated[float, Within(0, above=True)] | None = None
    """largest norm of the gradient of each parameter by itself; it comes before ``clip_norm``"""
    steps: Count | None = None  # length in optimiser steps; either this or ``epochs``
    epochs: Count | None = None  # length in times through the training data
    validate_every: Count | None = None
    """in epochs if the phase is given in epochs, else in steps; the end of a phase is always validated"""
    patience: Count | None = None
    """validations without improvement, of ``select.beside`` either, before the phase ends early"""
    select: Select | None = None  # the metric that decides which weights are kept; None: the last ones
    restore_best: bool = False  # end the phase with its best weights instead of its last
    refit: Count | None = None
    """validations from one fit of the classifier to the next: exactly, to what the other weights make of the training
    data (:mod:`saccade.tasks.refit`), first before the first step, last to what the phase ends with; None: never"""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            lengths = f"{self.steps} steps and {self.epochs} epochs".replace("None", "no")
            mend = "give one of them, and set the other to null, as with epochs=null to count in steps"
            raise ValueError(f"phase '{self.name}' needs either steps or epochs, but has {lengths}; {mend}")
        if self.select is None and (self.patience is not None or self.restore_best):
            raise ValueError("patience and restore_best need 'select', the metric that decides")
        loss = {"name": self.loss} if isinstance(self.loss, str) else dict(self.loss)
        if not isinstance(loss.get("name"), str):
            raise ValueError(f"loss: needs a name, as in {{name: cross_entropy}}; found {loss}")
        object.__setattr__(self, "loss", loss)

    def total_steps(self, steps_per_epoch: int | None) -> int:
        """Length of the phase in optimiser steps; None for ``steps_per_epoch`` means that the data has no end."""
        schedule = self.schedule
        in_epochs = schedule.unit == "epoch" and (schedule.name in ("step", "milestones") or schedule.warmup > 0)
        if self.steps is not None and not in_epochs:
            return self.steps
        if steps_per_epoch is None:
            raise ConfigError(f"phase '{self.name}' counts in epochs, but this data has no end; give steps instead")
        if steps_per_epoch < 1:
            raise ConfigError(f"phase '{self.name}': the training data holds less than one batch; lower batch_size")
        return self.steps if self.steps is not None else (self.epochs or 0) * steps_per_epoch

    def validation_steps(self, steps_per_epoch: int | None) -> int:
        """Steps between two validations; without ``validate_every`` an epoch, or the phase if there are none."""
        if self.validate_every is None:
            return steps_per_epoch or self.total_steps(steps_per_epoch)
        return self.validate_every * ((steps_per_epoch or 1) if self.epochs is not None else 1)

    def refits_at(self, step: int, steps_per_epoch: int | None) -> bool:
        """Whether the classifier is fitted before the validation at a ``step``."""
        return self.refit is not None and step % (self.refit * self.validation_steps(steps_per_epoch)) == 0


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a training run."""

    name: str  # what the run and its model are called
    family: str  # the kind of question, which knows task, data and losses
    model: ModelChoice  # which model is trained
    phases: tuple[Phase, ...]  # what is trained how, one after the other
    schema_version: int = SCHEMA_VERSION
    title: str = ""  # what ``saccade list recipes`` says of it
    paper: str = ""  # whose method it is
    data: dict[str, Any] = field(default_factory=dict)
    """what it learns from: ``name`` and the settings of the family's data"""
    protocol: str | None = None  # which entry of ``protocols`` is in force
    protocols: dict[str, dict[str, Any]] = field(default_factory=dict)  # named sets of overrides
    seed: int = 0  # of weights, batches and everything else that is drawn
    start: str | None = None
    """model whose weights training begins with, where they fit: a name of the zoo, a run, or a model folder"""
    start_parts: tuple[str, ...] = ("*",)
    """patterns of the weights that are taken from it, as in ``backbone.*``; the rest begins anew"""
    batch_size: Annotated[int, Within(1, 10**6)] = 64
    """samples of one optimiser step, over all micro-batches and devices"""
    accumulate: Annotated[int, Within(1, 10**6)] = 1  # micro-batches of one optimiser step
    replicas: Annotated[int, Within(1, 1000)] = 1
    """restarts trained side by side as one stacked model, with seeds ``seed``, ``seed + 1``, …"""
    precision: Precision = "32-true"
    """auto: bf16-mixed on a CUDA device, 32-true elsewhere (most CPUs are many times slower in bf16)"""
    channels_last: bool = False  # store feature maps with the channels last, which is quicker on some GPUs
    graph: bool = False  # on one CUDA device, capture the whole step as a CUDA graph
    compile: bool = False
    """on CUDA, fuse the forward and backward pass with torch.compile; costs some 20 s at the start"""
    stored: Literal["float32", "float16", "int8"] = "float32"
    """type of the weights in the model folder; what is scored is what is stored"""
    ema: Annotated[float, Within(0, 1, above=True, below=True)] | None = None
    """decay of a moving average of the weights, which is then what is validated, saved and handed to the next phase"""
    log_every: Count = 50  # steps between two lines of ``metrics.jsonl``
    checkpoint_every: Count = 1000  # steps; besides at every new best, at the end of a phase and at a stop
    keep_checkpoints: Count = 3  # how many of the newest stay on disk
    tensorboard: bool = False  # write curves for TensorBoard too (extra ``tensorboard``)

    def __post_init__(self) -> None:
        names = [phase.name for phase in self.phases]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"phases: expected one or more, each with a name of its own, found {names}")
        if self.channels_last and self.replicas > 1:
            raise ValueError("channels_last and replicas > 1 do not go together; choose one")
        if any(phase.refit is not None for phase in self.phases) and (self.replicas > 1 or self.ema is not None):
            raise ValueError("refit goes neither with replicas > 1 nor with ema; set phases.N.refit to null")


def recipe_titles() -> dict[str, tuple[str, str]]:
    """Title and paper of every packaged recipe, by name; its settings are not read."""
    heads: dict[str, Mapping[str, Any]] = {}
    for file in sorted(set(recipes().values())):
        values: Any = quick_yaml(file.read_text(encoding="utf-8"))
        heads[file.stem] = values
        heads |= {name: {"extends": file.stem, **changes} for name, changes in values.get("variants", {}).items()}

    def setting(name: str, key: str) -> str:
        """What the recipe says of itself, or else the one that it extends."""
        while key not in heads[name] and heads[name].get("extends") in heads:
            name = heads[name]["extends"]
        return str(heads[name].get(key, ""))

    return {name: (setting(name, "title"), setting(name, "paper")) for name in sorted(heads)}


def load_recipe(name_or_path: str | Path, *, protocol: str | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe by packaged name or from a file that ends in ``.yaml`` or ``.yml``, and resolve it.

    ``protocol`` is one of its ``protocols``, by default the one it names. ``overrides``, such as ``a.b=value``, come
    last.
    """
    resolved = copy.deepcopy(read_recipe(name_or_path))
    protocols = _protocols(resolved)
    resolved.pop("protocols", None)
    chosen = protocol or resolved.get("protocol")
    if chosen is not None and (protocols or protocol is not None):
        if chosen not in list(protocols):
            raise ConfigError(f"unknown protocol '{str(chosen)[:60]}': {nearest(str(chosen), protocols)}")
        for changes in protocols[chosen]:
            _merge(resolved, changes)
    resolved["protocol"] = chosen
    for override in overrides:
        path, sign, value = override.partition("=")
        path = path.strip()
        if not sign or path.partition(".")[0] in ("", "protocol", "protocols", "schema_version", "extends"):
            expected = "key=value, e.g. phases.0.optimizer.lr=1e-3"
            raise ConfigError(f"`overrides={override}`: expected {expected}; a protocol is set by `protocol=NAME`")
        _set(resolved, path, parse_yaml(value, f"`overrides={override}`"))
    return from_dict(Recipe, resolved)


def read_recipe(name_or_path: str | Path, _inside: tuple[str, ...] = ()) -> dict[str, Any]:
    """The plain values of a recipe and of those that it ``extends``, all protocols still in it.

    What is extended comes first and is changed group by group; a list such as ``phases`` is replaced as a whole, or
    reached into by a key such as ``phases.0.steps``. A path is taken from where the file is. A packaged file may hold
    ``variants`` by name: recipes that extend it by default.
    """
    text, where = _recipe_text(name_or_path)
    if where in _inside:
        raise ConfigError(f"recipes extend each other in a circle: {' → '.join((*_inside, where))}")
    values = parse_yaml(text, where)
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected a mapping of settings, found {type(values).__name__}")
    check_schema(values.get("schema_version"), SCHEMA_VERSION, what=where)
    if not _is_file(name_or_path):
        variants, stem = values.pop("variants", {}), recipes()[str(name_or_path)].stem
        if name_or_path != stem:
            values = {"extends": stem, **variants[name_or_path]}
        values["name"] = str(name_or_path)
    if (start := values.pop("extends", None)) is None:
        return values
    if not isinstance(start, str):
        raise ConfigError(f"{where}: extends: expected the name or path of a recipe, found {start!r}")
    if _is_file(start):
        start = str(Path(name_or_path).parent / start)
    extended = read_recipe(start, (*_inside, where))
    protocols = _protocols(extended)
    for protocol, overrides in _protocols(values).items():
        protocols[protocol] = [*protocols.get(protocol, ()), *overrides]
    values.pop("protocols", None)
    _merge(extended, values)
    return extended | {"protocols": protocols}


def _protocols(values: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Overrides by name: of each one mapping as a file has it, or several on top of each other."""
    protocols = values.get("protocols") or {}
    if isinstance(protocols, Mapping):
        lists = {name: changes if isinstance(changes, list) else [changes or {}] for name, changes in protocols.items()}
        if all(isinstance(one, Mapping) for changes in lists.values() for one in changes):
            return lists
    raise ConfigError(f"recipe {values.get('name')}: protocols: expected mappings of settings, by name")


def parse_yaml(text: str, where: str) -> object:
    """Plain values from YAML ``text``; messages say ``where`` it stands."""
    try:
        return plain_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{where}: not readable as YAML: {error}") from error


def _merge(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Merge ``changes`` into ``values`` group by group; a key such as ``phases.0.epochs`` reaches into lists."""
    for key, change in changes.items():
        if "." in key:
            _set(values, key, copy.deepcopy(change))
        elif isinstance(change, Mapping) and isinstance(values.get(key), dict):
            _merge(values[key], change)
        else:
            values[key] = copy.deepcopy(change)


def _set(values: dict[str, Any], path: str, setting: object) -> None:
    """Set one value; a loss that is a bare name becomes a mapping, so that ``phases.0.loss.entropy`` reaches inside."""
    phases = values.get("phases")
    for phase in phases if isinstance(phases, list) else ():
        if isinstance(phase, dict) and isinstance(phase.get("loss"), str):
            phase["loss"] = {"name": phase["loss"]}
    set_by_path(values, path, setting)


def _is_file(name_or_path: str | Path) -> bool:
    return Path(name_or_path).suffix in (".yaml", ".yml")


def _recipe_text(name_or_path: str | Path) -> tuple[str, str]:
    path = Path(name_or_path)
    try:
        if _is_file(path):
            return read_regular(path).decode("utf-8"), str(path)
        if str(name_or_path) in recipes():
            return recipes()[str(name_or_path)].read_text(encoding="utf-8"), f"recipe {name_or_path}"
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path} cannot be read: {error}") from error
    if path.exists():
        raise ConfigError(f"{path} is no recipe; to train on it, name a recipe and give `data={path}`")
    hint = nearest(str(name_or_path), recipes(), listed_by="saccade list recipes")
    raise ConfigError(f"unknown recipe '{name_or_path}': {hint}; or name a .yaml file")
