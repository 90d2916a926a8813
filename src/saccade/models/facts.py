"""What is known of a saved model besides its weights: the ``config.json`` of a model folder, read without torch.

A model folder holds ``model.safetensors``, ``config.json`` and ``card.md``, and nothing that must be unpickled. The
answers of a model that speaks in sentences are thousands of words; they lie in a file of their own, ``vocab.json``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from saccade.config import Share, Within, check_schema, from_dict
from saccade.errors import CheckpointError, ConfigError
from saccade.files import read_json

SCHEMA_VERSION = 2
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "card.md"
VOCABULARY = "vocab.json"
"""The words of a model that speaks in sentences, each at the place of its id."""
VOCABULARY_SCHEMA = 1
INPUTS = "inputs.safetensors"
"""What the inputs of the model look like, see :mod:`saccade.models.likeness`."""
PICKLED = frozenset({".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy", ".npz"})
"""Suffixes of files whose usual readers unpickle, and so may run code."""
StoredType = Literal["float32", "float16", "int8"]
MAX_INPUT = 4096
"""Pixels a side of a network input; a folder that asks for more is damaged or means harm."""


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes the network input."""

    size: Annotated[tuple[int, int], Within(1, MAX_INPUT)]
    """(height, width) of the network input; pictures are laid inside it undistorted."""
    fill: Share = 0.0
    """What the border is filled with."""


@dataclass(frozen=True)
class Base:
    """The published ImageNet weights that hold what a weights file leaves out."""

    backbone: str
    """Whose they are."""
    sha256: str
    """Their digest, as :func:`saccade.backbones.pretrained.weights_digest` tells it."""


@dataclass(frozen=True)
class InputsNote:
    """What is known of the inputs that a model learned from; the statistics lie in :data:`INPUTS`."""

    features: str
    """Which of the model's features they are of, see :mod:`saccade.models.likeness`."""
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
    schema_version: Literal[1] = 1


@dataclass(frozen=True)
class Calibration:
    """The temperature T that makes confidences true on held-out data: softmax(logits / T), Guo et al. 2017."""

    temperature: Annotated[float, Within(0.01, 100)]
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
    """Scores of maps of re-rendered scenes, see ``saccade.metrics.maps.twins``; empty where there were none."""
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
        entries = maps.get("by_query") if isinstance(maps, dict) else None
        compared = {}
        for query, entry in entries.items() if isinstance(entries, dict) else ():
            with suppress(ConfigError, KeyError, TypeError):
                values = {name: entry[name] for name in MapsBeside.__dataclass_fields__}
                compared[str(query)] = from_dict(MapsBeside, values)
        return compared


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
    sha256: str = ""
    """Digest of the weights file; filled in when the model is saved."""
    parameters: int = 0
    """How many numbers were trained; filled in when the model is saved."""

    def __post_init__(self) -> None:
        for what, words in {"queries": self.queries, "answers": self.answers}.items():
            if len(set(words)) < len(words) or not self.answers:
                raise ValueError(f"{what} repeat a word, or there are no answers: {', '.join(map(str, words))}")


def read_facts(folder: Path | str) -> ModelFacts:
    """The facts of the model in ``folder``, or a CheckpointError that says what is wrong with it."""
    folder = Path(folder)
    refuse_foreign(folder)
    path = folder / CONFIG
    values = read_json(path)
    try:
        check_schema(values.get("schema_version"), SCHEMA_VERSION, what=str(path))
        if values.get("sentences"):
            vocabulary = read_json(folder / VOCABULARY)
            check_schema(vocabulary.get("schema_version"), VOCABULARY_SCHEMA, what=str(folder / VOCABULARY))
            values["answers"] = vocabulary.get("words")
        return from_dict(ModelFacts, values)
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}") from error


def refuse_foreign(folder: Path) -> None:
    """Refuse what is not a folder, and a folder with files that would have to be unpickled; nothing is opened."""
    pickled = [folder] if folder.is_file() else folder.iterdir() if folder.is_dir() else ()
    if names := sorted(file.name for file in pickled if file.suffix.lower() in PICKLED):
        raise CheckpointError(
            f"{folder}: {', '.join(names)}: pickles can run code when opened, so saccade never does; a model folder "
            f"has {WEIGHTS} and {CONFIG} only: convert the weights to safetensors where you trust them"
        )
    if not (folder / CONFIG).exists():
        found = f"no {CONFIG}" if folder.is_dir() else "it is a file" if folder.exists() else "there is no such folder"
        raise CheckpointError(f"{folder}: not a model folder ({found}); see 'saccade list zoo'")
