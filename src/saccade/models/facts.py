"""What is known of a saved model besides its weights, read without torch: its ``config.json``, and the card it makes.

A model folder holds ``model.safetensors``, ``config.json`` and ``card.md``, and nothing that must be unpickled. The
answers of a model that speaks in sentences are thousands of words; they lie in a file of their own, ``vocab.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from saccade.config import Share, Within, check_schema, from_dict
from saccade.errors import CheckpointError, ConfigError, SaccadeError
from saccade.families.registry import families, model_spec
from saccade.files import read_json

SCHEMA_VERSION = 2
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "card.md"
VOCABULARY = "vocab.json"  # the words of a model that speaks in sentences, each at the place of its id
VOCABULARY_SCHEMA = 1
INPUTS = "inputs.safetensors"  # statistics of the inputs, see `saccade.models.likeness`
PICKLED = frozenset({".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy", ".npz"})
"""Suffixes of files whose usual readers unpickle, and so may run code."""
StoredType = Literal["float32", "float16", "int8"]
MAX_INPUT = 4096  # pixels a side of a network input


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
    sha256: str  # of `saccade.backbones.pretrained.weights_digest`


@dataclass(frozen=True)
class InputsNote:
    """What is known of the inputs that a model learned from; the statistics are in :data:`INPUTS`."""

    features: str  # of the model, that the statistics are of, see `saccade.models.likeness`
    of: str  # what the inputs show, in a few words that follow "trained on"
    data: str  # the held-out inputs that the statistics are of
    fitted: int  # inputs that gave the statistics
    compared: int  # further inputs, whose scores a p-value counts
    sha256: str  # of the file
    found: dict[str, float] = field(default_factory=dict)  # share of foreign inputs called unlike, by kind
    false_alarms: float | None = None  # share of test inputs called unlike
    schema_version: Literal[1] = 1


@dataclass(frozen=True)
class Calibration:
    """The temperature T that makes confidences true on held-out data: softmax(logits / T), Guo et al. 2017."""

    temperature: Annotated[float, Within(0.01, 100)]
    data: str  # what it was fitted on
    n: int  # answers that it was fitted on
    error_before: float | None = None  # expected calibration error of test answers without it
    error_after: float | None = None  # the same with it
    test_n: int = 0  # test answers of these two


@dataclass(frozen=True)
class MapsBeside:
    """How often maps peak in the right place, beside the best map that never looks at the picture."""

    n: int  # questions that were compared
    value: float  # share of the model's maps
    chance: str  # the best blind map, see `saccade.metrics.verdict`
    chance_value: float  # its share
    interval: tuple[float, float]  # of the difference, 95 %, by picture

    @property
    def is_better(self) -> bool:
        """Whether the model's maps are better: the whole interval is above 0."""
        return self.interval[0] > 0


@dataclass(frozen=True)
class Score:
    """One evaluation, as ``saccade evaluate --json`` prints it; metrics are fractions 0..1, CIDEr-D 0..10."""

    data: str
    split: str
    n: int
    definition: int = 1  # version of the rules for baselines and intervals, see `saccade.metrics.result`
    seed: int | None = None
    protocol: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    attention: dict[str, Any] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Any] = field(default_factory=dict)  # [low, high] by metric, 95 %, by picture
    counts: dict[str, Any] = field(default_factory=dict)  # examples for which each metric is defined
    interventions: dict[str, Any] = field(default_factory=dict)  # scores on re-rendered scenes, `metrics.maps.twins`
    confusion: dict[str, Any] = field(default_factory=dict)  # of one label per example
    per_class: dict[str, Any] = field(default_factory=dict)  # pictures, recall and precision of each class
    mistakes: tuple[dict[str, Any], ...] = ()  # the most confident wrong answers
    verdict: str = ""  # against guessing, what answers depend on, maps against chance: `saccade.metrics.verdict`
    against: dict[str, Any] = field(default_factory=dict)  # the comparisons behind the verdict
    rests_on: dict[str, Any] = field(default_factory=dict)  # answers without the evidence and without the rest
    maps_supervised: str = ""  # how the maps were taught where to look; empty if they were not
    units: dict[str, str] = field(default_factory=dict)  # of metrics that are not fractions, such as `task`
    published: dict[str, Any] = field(default_factory=dict)  # the paper's numbers for the same metrics
    model: str = ""
    glyphs: str = ""  # that the scenes were made of
    backgrounds: str = ""  # behind them
    drawing: str = ""  # how the scenes were drawn; empty in results from when `blend` was the only drawing
    beam: int | None = None  # width of the beam search of captions
    length_penalty: float | None = None  # of that search
    seconds: float | None = None
    note: str = ""
    scored_part: str = ""  # what was scored, if not a split of the data set itself: `dev pictures`

    def by_query(self) -> dict[str, MapsBeside]:
        """Maps beside the best blind map, for each query for which that was measured; other entries are left out."""
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
    queries: tuple[str, ...]
    """What it can be asked, in the order of its query ids."""
    answers: tuple[str, ...]
    """What it can answer, in the order of its logits."""
    preprocessing: Preprocessing | None = None
    """None for a model that reads no picture."""
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
    inputs: InputsNote | None = None
    licence: str = "Apache-2.0"
    """Of code and weights, with the terms of the training data."""
    research_only: bool = False
    """Whether its training data is for research only, or states no licence. ``make wheel-open`` leaves it out."""
    dtype: StoredType = "float32"
    """Type of the parameters in the weights file; a loaded model computes in float32."""
    base: Base | None = None
    """Where the tensors are that the weights file leaves out. This and the next two are filled in on saving."""
    sha256: str = ""
    """Digest of the weights file."""
    parameters: int = 0
    """How many numbers were trained."""

    def __post_init__(self) -> None:
        for what, words in {"queries": self.queries, "answers": self.answers}.items():
            if len(set(words)) < len(words) or not self.answers:
                raise ValueError(f"{what} repeat a word, or there are no answers: {', '.join(map(str, words))}")


def read_facts(folder: Path | str) -> ModelFacts:
    """The facts of the model in ``folder``; a CheckpointError says what is wrong with it."""
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
    """Refuse what is not a folder, and a folder with files that would have to be unpickled."""
    pickled = [folder] if folder.is_file() else folder.iterdir() if folder.is_dir() else ()
    if names := sorted(file.name for file in pickled if file.suffix.lower() in PICKLED):
        raise CheckpointError(
            f"{folder}: {', '.join(names)}: pickles can run code when opened, so saccade never does; a model folder "
            f"has {WEIGHTS} and {CONFIG} only: convert the weights to safetensors where you trust them"
        )
    if not (folder / CONFIG).exists():
        reason = f"no {CONFIG}" if folder.is_dir() else "it is a file" if folder.exists() else "there is no such folder"
        raise CheckpointError(f"{folder}: not a model folder ({reason}); see 'saccade list zoo'")


_MARKUP = re.compile(r"[\\`*_\[\]|~#!>]")

PUBLISHED_ELSEWHERE = (
    "published: the number in the paper. Its protocol, data, split and drawing may differ from those of this row; "
    "docs/results.md says where they do, and compares what was made in the same way."
)


CARD_TEXT = """\
# {title}

{lead}

- asks: {asks}
- answers: {answers}
{facts}

## Use

```python
import saccade

seen = {call}
seen.answer, seen.confidence
seen.save("out")
```

## Scores

{scores}

## Training

{training}

The whole recipe, as it was resolved, stands in `config.json`.

## Deviations from the paper

{deviations}

## Licence

{licence}
"""


def model_card(facts: ModelFacts) -> str:
    """The card of a model, as Markdown, from its facts alone; ``saccade report`` has the long tables."""
    owner = families().get(facts.family)
    takes_text = owner is not None and owner.asks_text
    question = "your question" if takes_text else facts.queries[0] if facts.queries else None
    ask = "" if question is None else f", ask={json.dumps(question, ensure_ascii=False)}"
    source = "path/to/input" if facts.preprocessing is None else "scene.png"
    answers = f"sentences, of {len(facts.answers):,} words" if facts.sentences else _listed(facts.answers)
    asks = "any question, in the words below" if takes_text else _listed(facts.queries)
    about = ""
    with suppress(SaccadeError):  # a card can be written for a model of another catalog
        spec = model_spec(facts.architecture)
        about = f" ({spec.summary}; {spec.paper})"
    scores = _scores(facts) or ["Not scored yet: `saccade evaluate` does it."]
    training = {
        **{"recipe": facts.recipe.get("name"), "protocol": facts.protocol, "seed": facts.seed},
        **{f"data.{key}": value for key, value in facts.data.items()},
        **facts.training,
        "revision": facts.revision,
    }
    deviations = [f"- {deviation}" for deviation in facts.deviations] or ["See the head of the model's source file."]
    parts = {"facts": _facts(facts), "scores": scores, "training": _pairs(training), "deviations": deviations}
    return CARD_TEXT.format(
        title=facts.name or facts.architecture,
        lead=f"Architecture `{facts.architecture}`{about}, family `{facts.family}`.",
        asks=asks,
        answers=answers,
        call=f'saccade.load("{facts.name or "path/to/this/folder"}").look("{source}"{ask})',
        licence=facts.licence,
        **{name: "\n".join(lines) for name, lines in parts.items()},
    )


def _facts(facts: ModelFacts) -> Iterator[str]:
    if facts.preprocessing is not None:
        (height, width), fill = facts.preprocessing.size, facts.preprocessing.fill
        yield f"- input: {height}×{width} RGB; a picture is laid inside undistorted, border {fill:g}"
    yield f"- parameters: {facts.parameters:,}, stored as {facts.dtype}; SHA-256 `{facts.sha256}`"
    if facts.base is not None:
        yield f"- loads on top of the ImageNet weights of `{facts.base.backbone}` (SHA-256 `{facts.base.sha256}`)"
    if (fit := facts.calibration) is not None:
        yield f"- confidences: softmax(logits / {fit.temperature:g}), fitted on {fit.n:,} answers ({fit.data})"
    if (note := facts.inputs) is not None:
        yield f"- trained on {note.of}; an input unlike {note.compared:,} held-out ones ({note.data}) is pointed out"
    if facts.research_only:
        yield "- for research only: see the licence below"


def _scores(facts: ModelFacts) -> list[str]:
    if not facts.scores:
        return []
    lines = ["| data | split | protocol | n | seed | metric | value | published |", "|---|---|---|---|---|---|---|---|"]
    notes = []
    own = facts.data.get("drawing")  # that of `saccade evaluate` without options
    for score in facts.scores:
        data = f"{score.data}, drawn by `{score.drawing}`" if score.drawing else score.data
        split = f"{score.split} ({score.scored_part})" if score.scored_part else score.split
        for metric, value in {**score.metrics, **score.attention}.items():
            if isinstance(value, (int, float)):
                n = score.counts.get(metric, score.n)  # deletion and insertion are measured on fewer pictures
                number = f"{value:g} {score.units[metric]}(s)" if metric in score.units else f"{value:.4f}"
                published = f"{score.published[metric]:.4f}" if score.published.get(metric) is not None else "–"
                cells = (data, split, score.protocol or "–", f"{n:,}", score.seed, metric, number, published)
                lines.append(f"| {' | '.join(map(str, cells))} |")
        if score.drawing and own and score.drawing != own:
            notes.append(f"`saccade evaluate` draws scenes as in training (`{own}`) unless `--drawing` says otherwise.")
        if score.note:
            notes.append(f"Note: {score.note}.")
    if any(score.published for score in facts.scores):
        notes.append(PUBLISHED_ELSEWHERE)
    return [*lines, *(line for note in notes for line in ("", note))]


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(map(_escaped, filter(None, words))) or "nothing in particular"


def _escaped(label: str) -> str:
    """A label as text: whatever a table called its answers, it is no markup, no link and no line of its own."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(label.split())).replace("&", "&amp;").replace("<", "&lt;")


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [
        f"- {key}: {value if isinstance(value, str) else f'`{json.dumps(value, ensure_ascii=False)}`'}"
        for key, value in values.items()
        if value not in (None, "", {}, [])
    ]
