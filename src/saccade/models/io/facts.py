"""What is known of a saved model besides its weights: the ``config.json`` of a model folder, read without torch.

A model folder holds ``model.safetensors``, ``config.json`` and ``card.md``, and nothing that must be unpickled. The
answers of a model that speaks in sentences are thousands of words; they lie in a file of their own, ``vocab.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from saccade.config import Migration, from_dict, migrate
from saccade.errors import CheckpointError, ConfigError, SaccadeError
from saccade.tensor_file import Fits, read_with_digest
from saccade.untrusted import parse_json, read_regular

SCHEMA_VERSION = 2


def _family_of_task(values: dict[str, object]) -> dict[str, object]:
    """Schema 1 had ``task`` where ``family`` is now, and two names for the family of questions."""
    rest = {key: value for key, value in values.items() if key != "task"}
    task = values.get("task")
    return rest if task is None else rest | {"family": "question" if task == "attribute" else task}


MIGRATIONS: Mapping[int, Migration] = {1: _family_of_task}
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "card.md"
VOCABULARY = "vocab.json"
"""The words of a model that speaks in sentences, each at the place of its id."""
VOCABULARY_SCHEMA = 1
INPUTS = "inputs.safetensors"
"""What the inputs of the model look like, see :mod:`saccade.likeness`."""
INPUTS_SCHEMA = 1
PICKLED = frozenset({".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy", ".npz"})
"""Suffixes of files whose usual readers unpickle, and so may run code."""
StoredType = Literal["float32", "float16", "int8"]
MAX_INPUT = 4096
"""Pixels a side of a network input; a folder that asks for more is damaged or means harm."""


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes the network input."""

    size: tuple[int, int]
    """(height, width) of the network input; pictures are laid inside it undistorted."""
    fill: float = 0.0
    """What the border is filled with, 0..1."""

    def __post_init__(self) -> None:
        if min(self.size) < 1 or max(self.size) > MAX_INPUT:
            raise ValueError(f"size must lie between 1 and {MAX_INPUT} pixels each way, found {self.size}")
        if not 0 <= self.fill <= 1:
            raise ValueError(f"fill lies between 0 and 1, found {self.fill}")


@dataclass(frozen=True)
class Base:
    """The published ImageNet weights that hold what a weights file leaves out."""

    backbone: str
    """Whose they are."""
    sha256: str
    """Their digest, as :func:`saccade.backbones.pretrained.weights_digest` tells it."""


@dataclass(frozen=True)
class Beside:
    """The model in the folder beside, whose weights file holds what this one leaves out."""

    name: str
    """Name of its folder, which has the same parent."""
    sha256: str
    """Digest of its weights file."""

    def __post_init__(self) -> None:
        if self.name in ("", ".", "..") or {"/", "\\"} & set(self.name):
            raise ValueError(f"name is that of a folder beside, not a path, found '{self.name}'")


@dataclass(frozen=True)
class InputsNote:
    """What is known of the inputs that a model learned from; the statistics lie in :data:`INPUTS`."""

    features: str
    """Which of the model's features they are of, see :mod:`saccade.models.input_features`."""
    of: str
    """What the inputs show, in a few words that go on after "trained on"."""
    data: str
    """Which held-out inputs the statistics are of."""
    fitted: int
    """How many gave the statistics."""
    compared: int
    """How many others gave the scores that a p-value counts."""
    sha256: str
    """Digest of the file."""
    found: dict[str, float] = field(default_factory=dict)
    """Share of foreign inputs of each kind that are called unlike, where it was measured."""
    false_alarms: float | None = None
    """Share of test inputs that are called unlike, where it was measured."""
    schema_version: int = INPUTS_SCHEMA

    def __post_init__(self) -> None:
        if self.schema_version != INPUTS_SCHEMA:
            raise ValueError(f"schema_version {self.schema_version}, this saccade reads {INPUTS_SCHEMA}; upgrade it")


@dataclass(frozen=True)
class Calibration:
    """The temperature T that makes confidences true on held-out data: softmax(logits / T), Guo et al. 2017."""

    temperature: float
    data: str
    """What it was fitted on."""
    n: int
    """Answers that it was fitted on."""
    error_before: float | None = None
    """Expected calibration error of test answers without it."""
    error_after: float | None = None
    """The same with it."""
    test_n: int = 0
    """Test answers of these two."""

    def __post_init__(self) -> None:
        if not 0.01 <= self.temperature <= 100:
            raise ValueError(f"temperature lies between 0.01 and 100, found {self.temperature}")


ON_GRIDS = ("centre_gaussian", "all_objects", "grid_oracle", "box_centre", "part_prior")
"""Baselines that depend on the grids they are made on; an even map is the same on all of them."""


@dataclass(frozen=True)
class MapsBeside:
    """How often maps peak in the right place, beside the best of the maps that never look at the picture."""

    n: int
    """Questions that were compared."""
    value: float
    """Share of the model's maps."""
    chance: str
    """The best blind map, see ``saccade.metrics.verdict``."""
    chance_value: float
    """Share of that one."""
    interval: tuple[float, float]
    """Of the difference, 95 %, by picture."""

    @property
    def is_better(self) -> bool:
        """Whether the model's maps were found to be better: the whole interval is above 0."""
        return self.interval[0] > 0


def _beside(told: object) -> MapsBeside | None:
    """One comparison as facts have it; None where it is none."""
    if not isinstance(told, dict):
        return None
    try:
        low, high = map(float, told["interval"])
        value, chance_value = float(told["value"]), float(told["chance_value"])
        return MapsBeside(int(told["n"]), value, str(told["chance"]), chance_value, (low, high))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Score:
    """One evaluation, as ``saccade evaluate --json`` prints it; metrics are fractions 0..1, CIDEr-D 0..10."""

    data: str
    split: str
    n: int
    definition: int = 1
    """Version of the rules for baselines and intervals, see ``saccade.metrics.result``; 1 where none was written."""
    seed: int | None = None
    protocol: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    attention: dict[str, Any] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Any] = field(default_factory=dict)
    """[low, high] by metric, as :mod:`saccade.metrics.intervals` gives them for 95 %, by picture."""
    counts: dict[str, Any] = field(default_factory=dict)
    """For how many examples each metric is defined."""
    interventions: dict[str, Any] = field(default_factory=dict)
    """Scores of maps of re-rendered scenes, see ``saccade.metrics.maps.interventions``; empty where there were none."""
    confusion: dict[str, Any] = field(default_factory=dict)
    """For one label per example: the confusion matrix."""
    per_class: dict[str, Any] = field(default_factory=dict)
    """For one label per example: pictures, recall and precision of each class."""
    mistakes: tuple[dict[str, Any], ...] = ()
    """For one label per example: the most confident wrong answers."""
    verdict: str = ""
    """Against guessing, what the answers depend on, and maps against chance, see ``saccade.metrics.verdict``."""
    against: dict[str, Any] = field(default_factory=dict)
    """The comparisons behind the verdict."""
    rests_on: dict[str, Any] = field(default_factory=dict)
    """Answers without the evidence and without the rest; see ``saccade.metrics.verdict``."""
    maps_supervised: str = ""
    """How the maps were taught where to look; empty if they were not."""
    units: dict[str, str] = field(default_factory=dict)
    """Units of metrics that are not fractions, such as ``task``."""
    published: dict[str, Any] = field(default_factory=dict)
    """The paper's own numbers for the same metrics."""
    model: str = ""
    glyphs: str = ""
    """Which glyphs the scenes were made of."""
    backgrounds: str = ""
    """What lay behind them."""
    drawing: str = ""
    """How the scenes were drawn; empty in results that were made when there was one drawing, ``blend``."""
    beam: int | None = None
    """How many captions were followed side by side, where captions were said."""
    length_penalty: float | None = None
    """Length penalty of that search."""
    seconds: float | None = None
    note: str = ""
    scored_part: str = ""
    """What was scored, where that is not the split of this name that the data set itself has: ``dev pictures``."""

    def by_query(self) -> dict[str, MapsBeside]:
        """Maps beside the best blind map for each query of which that was measured; entries that are none are left out.

        Facts come from folders of strangers too, so what is no comparison is not an error here.
        """
        maps = self.against.get("maps")
        held = maps.get("by_query") if isinstance(maps, dict) else None
        found = {str(query): _beside(each) for query, each in held.items()} if isinstance(held, dict) else {}
        return {query: each for query, each in found.items() if each is not None}

    @property
    def comparable_baselines(self) -> dict[str, Any]:
        """The baselines that are on the footing of the model: made on all grids that its map is made of.

        Definition 1 made some of them on the last grid alone. They are left out for a model of several looks.
        """
        if self.definition > 1 or len(self.attention.get("by_look") or ()) < 2:
            return self.baselines
        return {name: held for name, held in self.baselines.items() if name not in ON_GRIDS}


@dataclass(frozen=True)
class ModelFacts:
    """Everything about a model that its weights do not say."""

    architecture: str
    """Its name in the catalog of models."""
    model: dict[str, Any]
    """The settings that build it."""
    family: str
    """Which kind of question it answers."""
    queries: tuple[str, ...]
    """What it can be asked, in the order of its query ids."""
    answers: tuple[str, ...]
    """What it can answer, in the order of its logits."""
    preprocessing: Preprocessing | None = None
    """How a picture becomes the network input; None for a model that reads none."""
    sentences: bool = False
    """Whether the answers are words of which it makes sentences; a folder keeps them as ``vocab.json``."""
    schema_version: int = SCHEMA_VERSION
    name: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    seed: int | None = None
    revision: str | None = None
    """The commit of the code that trained it."""
    training: dict[str, Any] = field(default_factory=dict)
    """Minutes, machine, versions, steps …"""
    scores: tuple[Score, ...] = ()
    deviations: tuple[str, ...] = ()
    """Where it differs from the paper."""
    calibration: Calibration | None = None
    """How confidences are put right; None: they are as the network gives them."""
    inputs: InputsNote | None = None
    """What its inputs look like; None: not known. Filled in when the model is saved."""
    licence: str = "Apache-2.0"
    """Of code and weights, in words; with the terms of the training data."""
    research_only: bool = False
    """Whether its training data is for research only, or states no licence. ``make wheel-open`` leaves it out."""
    dtype: StoredType = "float32"
    """In what type the weights file holds the parameters; a loaded model computes in float32 in any case."""
    base: Base | None = None
    """Where the tensors are that the weights file leaves out; filled in when the model is saved."""
    beside: Beside | None = None
    """Where others are that it leaves out; filled in when the model is saved."""
    sha256: str = ""
    """Digest of the weights file; filled in when the model is saved."""
    parameters: int = 0
    """How many numbers were trained; filled in when the model is saved."""

    def __post_init__(self) -> None:
        for what in ("queries", "answers"):
            words = getattr(self, what)
            if len(set(words)) < len(words):
                raise ValueError(f"{what} repeat a word: {', '.join(map(str, words))}")
        if not self.answers:
            raise ValueError("answers: a model has at least one")


def read_facts(folder: Path | str) -> ModelFacts:
    """The facts of the model in ``folder``, or a CheckpointError that says what is wrong with it."""
    folder = Path(folder)
    refuse_foreign(folder)
    path = folder / CONFIG
    values = _read_json(path, missing=f"{folder}: not a model folder (no {CONFIG}); see 'saccade list zoo'")
    if values.get("sentences"):
        values["answers"] = _read_words(folder / VOCABULARY)
    try:
        return from_dict(ModelFacts, migrate(values, MIGRATIONS, SCHEMA_VERSION, what=str(path)))
    except ConfigError as error:
        text = str(error)
        raise CheckpointError(text if text.startswith(str(path)) else f"{path}: {text}") from error


def _read_words(path: Path) -> list[object]:
    """The words that ``path`` holds, by id."""
    held = _read_json(
        path, missing=f"{path.parent}: no {path.name}, which holds the model's words; get the folder again"
    )
    words, version = held.get("words"), held.get("schema_version")
    if version != VOCABULARY_SCHEMA:
        raise CheckpointError(f"{path}: schema_version {version}, this saccade reads {VOCABULARY_SCHEMA}; upgrade it")
    if not isinstance(words, list):
        raise CheckpointError(f"{path}: not a vocabulary (no list of words); get the folder again")
    return words


def _read_json(path: Path, *, missing: str) -> dict[str, object]:
    """The mapping in ``path``; a CheckpointError says what is wrong with it, or ``missing`` where there is none."""
    try:
        values = parse_json(read_regular(path).decode("utf-8"), parse_constant=_no_nan)
    except FileNotFoundError as error:
        raise CheckpointError(missing) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: damaged, not JSON ({error}); get the folder again") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path}: expected a mapping, found {type(values).__name__}")
    return values


def refuse_foreign(folder: Path) -> None:
    """Refuse what is not a folder, and a folder with files that would have to be unpickled; nothing is opened."""
    if folder.suffix.lower() in PICKLED and folder.is_file():
        raise CheckpointError(
            f"{folder}: a pickle can run code when it is opened, so saccade never opens one; {_CONVERT}"
        )
    if not folder.is_dir():
        found = "it is a file" if folder.exists() else "there is no such folder"
        raise CheckpointError(f"{folder}: not a model folder ({found}); see 'saccade list zoo'")
    pickled = sorted(file.name for file in folder.iterdir() if file.suffix.lower() in PICKLED)
    if pickled:
        raise CheckpointError(
            f"{folder}: holds {', '.join(pickled)}; pickles can run code when opened, so saccade never does; {_CONVERT}"
        )


_CONVERT = f"a model folder has {WEIGHTS} and {CONFIG} only: convert the weights to safetensors where you trust them"


def checked_weights(folder: Path, facts: ModelFacts, fits: Fits | None = None) -> bytes:
    """The bytes of the weights file, once its header ``fits`` and they match the digest in the facts.

    A file that is of another model is not read into memory. No tensor is parsed.
    """
    path = folder / WEIGHTS
    if not facts.sha256:
        raise CheckpointError(f"{folder / CONFIG}: no sha256 of the weights, so they cannot be trusted; save it again")
    data, found = _read_weights(path, fits, missing=f"{folder}: no {WEIGHTS}; get the folder again")
    if found != facts.sha256:
        raise CheckpointError(
            f"{path}: damaged (SHA-256 {found[:12]}…, expected {facts.sha256[:12]}…); get the folder again"
        )
    return _sound(data, path)


def checked_beside(folder: Path, facts: ModelFacts) -> bytes | None:
    """The bytes of the weights file that has what this one leaves out, checked likewise; None where it is whole."""
    if facts.beside is None:
        return None
    name, where = facts.beside.name, folder / WEIGHTS
    path = folder.resolve().parent / name / WEIGHTS  # of a link too: beside the folder that it leads to
    remedy = f"put the folder '{name}' that it was saved beside there, or save it where it loads: a saved copy is whole"
    missing = f"{where}: leaves out what '{name}' has, and there is no {path}; {remedy}"
    data, found = _read_weights(path, None, missing=missing)
    if found != facts.beside.sha256:
        raise CheckpointError(
            f"{where}: leaves out what '{name}' has, and {path} is another one or damaged (SHA-256 {found[:12]}…, "
            f"expected {facts.beside.sha256[:12]}…); {remedy}"
        )
    return _sound(data, path)


def _read_weights(path: Path, fits: Fits | None, *, missing: str) -> tuple[bytes | SaccadeError | ValueError, str]:
    """As :func:`saccade.tensor_file.read_with_digest`; a file that cannot be read is a CheckpointError."""
    try:
        return read_with_digest(path, fits)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(missing) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error


def _sound(data: bytes | SaccadeError | ValueError, path: Path) -> bytes:
    """``data``, or the error that it is."""
    if isinstance(data, ValueError):
        raise CheckpointError(f"{path}: not a safetensors file ({data}); get the folder again") from data
    if isinstance(data, SaccadeError):
        raise data
    return data


def _no_nan(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number JSON knows")
