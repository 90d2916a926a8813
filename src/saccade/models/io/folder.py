"""Model folders: weights as safetensors, facts as JSON, and a card. Written atomically, read as untrusted.

Reading: pickles are refused unopened. The described model is first built without numbers
(:mod:`saccade.models.io.sketch`), and the header of the weights file must fit it. The digest is checked before the
weights are parsed, and every tensor must have the name, type and shape that the model has, and finite values
(:mod:`saccade.models.io.stored`). Only then does the model get memory: a folder costs no more than its own size.
"""

from __future__ import annotations

import dataclasses
import hashlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import save
from torch import Tensor, nn

from saccade.atomic import folder_in_place, write_bytes, write_json, write_json_by_key, write_text
from saccade.backbones import Stages
from saccade.config import from_dict, to_dict
from saccade.devices import pick_device
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError
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
    Beside,
    Calibration,
    InputsNote,
    ModelFacts,
    StoredType,
    checked_beside,
    checked_weights,
    read_facts,
)
from saccade.models.io.sketch import Sketching, with_memory
from saccade.models.io.stored import check_header, from_stored, to_stored
from saccade.tensor_file import parse_tensors, read_with_digest

MAX_INPUTS = 2**20
"""Bytes of the file that says what inputs look like."""
MAX_NUMBERS = 2**26
"""In the map of one stage of one picture; 256 megabytes as float32, and four times as many before it is pooled."""


def save_model(
    model: nn.Module, folder: Path | str, facts: ModelFacts, *, beside: str | None = None, whole: bool = False
) -> ModelFacts:
    """Write the model folder, replacing an old one in one move.

    Args:
        model: in whatever mode and on whatever device.
        folder: where to; made if it is not there.
        facts: what is known of it besides its weights.
        beside: a model folder with the same parent, whose bit-equal tensors are left out and read from there when the
            model is loaded; without one, nothing but ImageNet weights is left out.
        whole: write the ImageNet weights too, so that the model loads where they are not.

    Returns:
        The facts as written.
    """
    folder = Path(folder)
    facts = from_dict(ModelFacts, to_dict(facts))  # checked as it will be when it is read
    neighbour, known = (None, {}) if beside is None else _neighbour(folder, beside)
    stored = to_stored(model, facts.dtype, known, whole=whole)
    data = save(stored.tensors)
    facts = dataclasses.replace(
        facts,
        inputs=None,  # statistics of other weights; see `note_inputs`
        base=stored.base,
        beside=neighbour if stored.leaves_to_neighbour else None,
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
    beside = None if facts.beside is None else facts.beside.name
    return save_model(model, folder, changed, beside=beside, whole=whole)


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
    try:
        data, found = read_with_digest(path, most=MAX_INPUTS)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error}); get the folder again") from error
    if found != facts.inputs.sha256:
        raise CheckpointError(f"{path}: damaged, or of another model (SHA-256 {found[:12]}…); get the folder again")
    if not isinstance(data, bytes):
        raise CheckpointError(f"{path}: not a safetensors file ({data}); get the folder again")
    return Likeness.from_tensors(_parsed(data, str(path)), str(path))


def _neighbour(folder: Path, name: str) -> tuple[Beside, dict[str, Tensor]]:
    """The model ``name`` beside ``folder`` and what its weights file holds, which must not lean on a third."""
    own = folder.resolve()
    place = (own.parent / name).resolve()
    if place == own or place.parent != own.parent:
        raise CheckpointError(f"{folder}: '{name}' is not another folder beside it; give the name of one")
    facts = read_facts(place)
    if facts.beside is not None:
        raise CheckpointError(f"{place}: leaves out weights itself; save beside '{facts.beside.name}', which has them")
    return Beside(place.name, facts.sha256), _parsed(checked_weights(place, facts), str(place / WEIGHTS))


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
    where = str(folder / WEIGHTS)
    sketch = _sketch(folder, facts)
    written = _parsed(checked_weights(folder, facts, lambda header: check_header(header, sketch, where)), where)
    beside = checked_beside(folder, facts)
    known = {} if beside is None else _parsed(beside, f"what {where} leaves out")
    tensors = from_stored(written, sketch, facts, where, known)
    model = sketch if with_memory(sketch) else _build(folder, facts, nullcontext())
    if facts.preprocessing is not None:
        try:
            model.check_input(facts.preprocessing.size)
            _check_work(model, facts.preprocessing.size)
        except DataError as error:
            raise CheckpointError(f"{folder / CONFIG}: {error}") from error
    model.load_state_dict(tensors)
    return model.eval().requires_grad_(False).to(chosen), facts


def _check_work(model: nn.Module, size: Size) -> None:
    """Refuse a small file that makes large maps: many channels on a large picture."""
    for part in model.children():
        if isinstance(part, Stages):
            for name, (height, width) in part.grid(size).items():
                numbers = part.channels[name] * height * width
                if numbers > MAX_NUMBERS:
                    raise DataError(
                        f"stage '{name}' makes {numbers:,} numbers of one picture, and at most "
                        f"{MAX_NUMBERS:,} are allowed; "
                        "make the input smaller"
                    )


def _parsed(data: bytes, where: str) -> dict[str, Tensor]:
    try:
        return parse_tensors(data)
    except ValueError as error:
        raise CheckpointError(f"{where}: not a safetensors file ({error}); get the folder again") from error


def _sketch(folder: Path, facts: ModelFacts) -> AttentionModel:
    """The model without numbers, its words counted; one that needs numbers while it is built has them."""
    try:
        model = _build(folder, facts, Sketching())
    except CheckpointError as error:
        if "meta" not in str(error):  # what torch says of a tensor without numbers
            raise
        model = _build(folder, facts, nullcontext())
    said = dict.fromkeys(("answers", "classes", "vocabulary"), facts.answers)
    for what, words in {"queries": facts.queries, **said}.items():
        built = getattr(model.config, what, len(words))
        if built != len(words):
            raise CheckpointError(f"{folder / CONFIG}: names {len(words)} {what}, but the model has {built}")
    return model


def _build(folder: Path, facts: ModelFacts, manner: AbstractContextManager[object]) -> AttentionModel:
    try:
        with torch.random.fork_rng(devices=[]), manner:  # the caller's random numbers stay as they were
            return cast(AttentionModel, model_spec(facts.architecture).build(facts.model))
    except (ConfigError, ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise CheckpointError(f"{folder / CONFIG}: its model cannot be built: {error}") from error
