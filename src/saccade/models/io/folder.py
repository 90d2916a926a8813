"""Model folders: weights as safetensors, facts as JSON, a card to read. Written whole, read with suspicion.

Reading: pickles are refused unopened, the digest is checked before the weights are parsed, and every tensor must have
the name, type and shape that the described model has, and finite values (:mod:`saccade.models.io.stored`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from saccade.atomic import folder_in_place, write_bytes, write_json, write_text
from saccade.config import from_dict, to_dict
from saccade.devices import pick_device
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError
from saccade.families import model_spec
from saccade.models.base import AttentionModel
from saccade.models.io.card import model_card
from saccade.models.io.facts import (
    CARD,
    CONFIG,
    VOCABULARY,
    VOCABULARY_SCHEMA,
    WEIGHTS,
    Beside,
    ModelFacts,
    StoredType,
    checked_beside,
    checked_weights,
    read_facts,
)
from saccade.models.io.stored import from_stored, to_stored


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
        base=stored.base,
        beside=neighbour if stored.leaves_to_neighbour else None,
        sha256=hashlib.sha256(data).hexdigest(),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise OutputError(f"{folder}: holds something that is not a model; choose a new or empty folder")
    with folder_in_place(folder) as place:
        write_bytes(place / WEIGHTS, data)
        write_json(place / CONFIG, _apart(facts, place))
        write_text(place / CARD, model_card(facts))
    return facts


def store_as(folder: Path | str, dtype: StoredType, *, whole: bool = False) -> ModelFacts:
    """Rewrite the model in ``folder`` with its parameters in another type, so that what is scored next is what ships.

    Scores that it had were of other weights and are taken out. ``whole`` as in :func:`save_model`.
    """
    model, facts = load_model(folder)
    changed = dataclasses.replace(facts, dtype=dtype, scores=())
    beside = None if facts.beside is None else facts.beside.name
    return save_model(model, folder, changed, beside=beside, whole=whole)


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


def _apart(facts: ModelFacts, place: Path) -> dict[str, Any]:
    """What the configuration says of ``facts``, once words of sentences are written to a file of their own."""
    values: dict[str, Any] = to_dict(facts)
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
    written = _parsed(checked_weights(folder, facts), where)
    beside = checked_beside(folder, facts)
    known = {} if beside is None else _parsed(beside, f"what {where} leaves out")
    model = _build(folder, facts)
    tensors = from_stored(written, model, facts, where, known)
    if facts.preprocessing is not None:
        try:
            model.check_input(facts.preprocessing.size)
        except DataError as error:
            raise CheckpointError(f"{folder / CONFIG}: {error}") from error
    model.load_state_dict(tensors)
    return model.eval().requires_grad_(False).to(chosen), facts


def _parsed(data: bytes, where: str) -> dict[str, Tensor]:
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{where}: not a safetensors file ({error}); get the folder again") from error


def _build(folder: Path, facts: ModelFacts) -> AttentionModel:
    try:
        with torch.random.fork_rng(devices=[]):  # building draws weights; the caller's random numbers stay as they were
            model = cast(AttentionModel, model_spec(facts.architecture).build(facts.model))
    except (ConfigError, ValueError, RuntimeError, MemoryError) as error:
        raise CheckpointError(f"{folder / CONFIG}: its model cannot be built: {error}") from error
    said = dict.fromkeys(("answers", "classes", "vocabulary"), facts.answers)
    for what, words in {"queries": facts.queries, **said}.items():
        built = getattr(model.config, what, len(words))
        if built != len(words):
            raise CheckpointError(f"{folder / CONFIG}: names {len(words)} {what}, but the model has {built}")
    return model
