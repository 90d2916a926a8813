"""Model folders: weights as safetensors, facts as JSON, and a card. Written atomically, read as untrusted.

Reading: pickles are refused unopened. The digest of the weights file is checked, then its header: the described model
is built with no more numbers than the header accounts for, and every tensor must have the name, type and shape that
the model has. Only then are the weights read, and their values must be finite.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load, save
from torch import nn
from torch.overrides import TorchFunctionMode

from saccade.atomic import folder_in_place, write_bytes, write_json, write_json_by_key, write_text
from saccade.backbones import Stages
from saccade.config import from_dict, to_dict
from saccade.devices import pick_device
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError, SaccadeError
from saccade.families import model_spec
from saccade.geometry import Size
from saccade.likeness import Likeness
from saccade.models.base import AttentionModel
from saccade.models.io.card import model_card
from saccade.models.io.facts import (
    CARD,
    CONFIG,
    INPUTS,
    VOCABULARY,
    VOCABULARY_SCHEMA,
    WEIGHTS,
    Calibration,
    InputsNote,
    ModelFacts,
    StoredType,
    read_facts,
)
from saccade.models.io.stored import check_header, from_stored, published_tensors, to_stored
from saccade.untrusted import read_header, read_tensors

MAX_INPUTS = 2**20
"""Bytes of the file that says what inputs look like."""
MAX_NUMBERS = 2**26
"""In the map of one stage of one picture; 256 megabytes as float32, and four times as many before it is pooled."""
SPARE, LARGEST_BASE = 2**24, 2**30
"""Numbers that a model may make beyond those in its file: for constants, and for ImageNet weights that are left out."""


def save_model(model: nn.Module, folder: Path | str, facts: ModelFacts, *, whole: bool = False) -> ModelFacts:
    """Write the model folder, replacing an old one in one move.

    Args:
        model: in whatever mode and on whatever device.
        folder: where to; made if it is not there.
        facts: what is known of it besides its weights.
        whole: write the ImageNet weights too, so that the model loads where they are not.

    Returns:
        The facts as written.
    """
    folder = Path(folder)
    facts = from_dict(ModelFacts, to_dict(facts))  # checked as it will be when it is read
    tensors, base = to_stored(model, facts.dtype, whole=whole)
    data = save(tensors)
    facts = dataclasses.replace(
        facts,
        inputs=None,  # statistics of other weights; see `note_inputs`
        base=base,
        sha256=hashlib.sha256(data).hexdigest(),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise OutputError(f"{folder}: holds something that is not a model; choose a new or empty folder")
    with folder_in_place(folder) as place:
        write_bytes(place / WEIGHTS, data)
        write_json_by_key(place / CONFIG, _apart(facts, place))
        write_text(place / CARD, model_card(facts))
    return facts


def store_as(folder: Path | str, dtype: StoredType, *, whole: bool = False) -> ModelFacts:
    """Rewrite the model in ``folder`` with its parameters in another type, so that what is scored next is what ships.

    Scores and calibration that it had were of other weights and are taken out. ``whole`` as in :func:`save_model`.
    """
    model, facts = load_model(folder)
    changed = dataclasses.replace(facts, dtype=dtype, scores=(), calibration=None)
    return save_model(model, folder, changed, whole=whole)


def note_inputs(
    folder: Path | str, likeness: Likeness | None, note: InputsNote | None, calibration: Calibration | None
) -> ModelFacts:
    """Write into a model folder what its inputs look like and how its confidences are put right; None: nothing known.

    The digest in ``note`` is filled in. The weights stay as they are.
    """
    folder = Path(folder)
    facts = read_facts(folder)
    data = None
    if likeness is not None and note is not None:
        data = save(likeness.to_tensors())
        note = dataclasses.replace(note, sha256=hashlib.sha256(data).hexdigest())
    facts = dataclasses.replace(facts, inputs=None if data is None else note, calibration=calibration)
    facts = from_dict(ModelFacts, to_dict(facts))
    with folder_in_place(folder) as place:
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name not in (CONFIG, CARD, INPUTS, VOCABULARY):
                write_bytes(place / file.name, file.read_bytes())
        if data is not None:
            write_bytes(place / INPUTS, data)
        write_json_by_key(place / CONFIG, _apart(facts, place))
        write_text(place / CARD, model_card(facts))
    return facts


def load_likeness(folder: Path | str, facts: ModelFacts) -> Likeness | None:
    """What the inputs of the model in ``folder`` look like; None where its facts say that nothing is known."""
    if facts.inputs is None:
        return None
    path = Path(folder) / INPUTS
    return Likeness.from_tensors(read_tensors(path, facts.inputs.sha256, MAX_INPUTS), str(path))


def _apart(facts: ModelFacts, place: Path) -> dict[str, object]:
    """What the configuration says of ``facts``, once words of sentences are written to a file of their own."""
    values: dict[str, object] = to_dict(facts)
    if facts.sentences:
        words = values.pop("answers")
        write_json(place / VOCABULARY, {"schema_version": VOCABULARY_SCHEMA, "words": words})
    return values


def load_model(folder: Path | str, device: str | torch.device = "cpu") -> tuple[AttentionModel, ModelFacts]:
    """The model in ``folder``, ready to answer (eval mode, no gradients), and its facts."""
    folder = Path(folder)
    chosen = pick_device(device)
    facts = read_facts(folder)
    path, where = folder / WEIGHTS, str(folder / WEIGHTS)
    header = read_header(path, facts.sha256)
    model = _build(folder, facts, sum(math.prod(entry.shape) for entry in header.values()))
    published = published_tensors(model, facts.base, where)
    check_header(header, model, facts.dtype, published, where)
    model.load_state_dict(from_stored(load(path.read_bytes()), model, published, where))
    return model.eval().requires_grad_(False).to(chosen), facts


def _build(folder: Path, facts: ModelFacts, stored: int) -> AttentionModel:
    """The model that ``facts`` describe, whose weights file holds as many numbers as ``stored``."""
    most = 2 * stored + (SPARE if facts.base is None else LARGEST_BASE)
    try:
        with torch.random.fork_rng(devices=[]), _Limited(most):  # the caller's random numbers stay as they were
            model = cast(AttentionModel, model_spec(facts.architecture).build(facts.model))
        said = dict.fromkeys(("answers", "classes", "vocabulary"), facts.answers)
        for what, words in {"queries": facts.queries, **said}.items():
            built = getattr(model.config, what, len(words))
            if built != len(words):
                raise ConfigError(f"names {len(words)} {what}, but the model has {built}")
        if facts.preprocessing is not None:
            model.check_input(facts.preprocessing.size)
            _check_maps(model, facts.preprocessing.size)
    except (SaccadeError, ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise CheckpointError(f"{folder / CONFIG}: its model cannot be built: {error}") from error
    return model


def _check_maps(model: nn.Module, size: Size) -> None:
    """Refuse a small file that makes large maps: many channels on a large picture."""
    for part in model.children():
        for name, (height, width) in part.grid(size).items() if isinstance(part, Stages) else ():
            if (numbers := part.channels[name] * height * width) > MAX_NUMBERS:  # type: ignore[index]  # of Stages
                raise DataError(f"stage '{name}' makes {numbers:,} numbers of one picture; make the input smaller")


class _Limited(TorchFunctionMode):
    """A context in which layers make no more numbers than ``most``: settings may ask for more than a memory holds.

    Weights that will be loaded are not drawn either.
    """

    _MAKES = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})
    _DRAWS = frozenset({nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_})

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        if func in self._DRAWS:
            return args[0] if args else options["tensor"]
        if func in self._MAKES:
            self.left -= func(*args, **options | {"device": "meta"}).numel()
            if self.left < 0:
                raise ConfigError("it has more numbers than the weights file")
        return func(*args, **options)
