"""Model folders: weights as safetensors, facts as JSON, and a card. Written atomically, read as untrusted.

Reading: pickles are refused unopened. The digest of the weights file is checked, then its header: the described model
is built with no more numbers than the header accounts for, and every tensor must have the name, type and shape that
the model has. Only then are the weights read, and their values must be finite.

What a weights file holds of a model: the tensors that differ from the base weights, in the requested type.

A model that started from published ImageNet weights keeps the tensors that training has changed; the others are read
from the published weights again when it is loaded, once their digest is the one that was noted.

As ``int8``, a parameter that has rows lies in the file as whole numbers, and beside it, as ``NAME.scale``, are the
scales of its rows; the other parameters are float16. The numbers of a row (first axis) are whole multiples, −127 …
127, of its scale, which is a 127th of its largest absolute value and is kept as bfloat16, which has every magnitude
that float32 has: eight bits of scale times seven of the number fit into the 24 of a float32, so no product is
rounded. Hence what has been rounded once stays as it is: the largest number of a row is 127 scales, exactly, and
gives the same scale again. Smaller scales, which clip the largest numbers of a row for the sake of the others, were
tried: the best of 80 lowers the squared error of trained models by 2 %, as rows of some hundred numbers have no long
tails.

Kernels that see pixels are not for rounding. A flat ground makes all errors of such a row pull the same way, and
everything behind it was trained on what that ground looked like: with them rounded, ``sat-soft-scenes`` said 41.9 % of
the first 1,000 test scenes exactly instead of 98.7 %, and none of the empty ones; without, it loses nothing.
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
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saccade.backbones import Stages, pretrained
from saccade.config import from_dict, to_dict
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError, OutputError, SaccadeError
from saccade.families import model_spec
from saccade.files import (
    Entry,
    folder_in_place,
    read_header,
    read_tensors,
    write_bytes,
    write_json,
    write_json_by_key,
    write_text,
)
from saccade.geometry import Size
from saccade.models.base import AttentionModel, ImageModel
from saccade.models.card import model_card
from saccade.models.facts import (
    CARD,
    CONFIG,
    INPUTS,
    VOCABULARY,
    VOCABULARY_SCHEMA,
    WEIGHTS,
    Base,
    Calibration,
    InputsNote,
    ModelFacts,
    StoredType,
    read_facts,
)
from saccade.models.likeness import Likeness

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
    _write(folder, {WEIGHTS: data}, facts)
    return facts


def _write(folder: Path, files: Mapping[str, bytes], facts: ModelFacts) -> None:
    """Write a model folder in one move: ``files`` by name, and what is made from the facts."""
    values: dict[str, object] = to_dict(facts)
    with folder_in_place(folder) as place:
        for name, data in files.items():
            write_bytes(place / name, data)
        if facts.sentences:
            words = {"schema_version": VOCABULARY_SCHEMA, "words": values.pop("answers")}
            write_json(place / VOCABULARY, words)
        write_json_by_key(place / CONFIG, values)
        write_text(place / CARD, model_card(facts))


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
    made = (CONFIG, CARD, INPUTS, VOCABULARY)
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.name not in made}
    if likeness is None or note is None:
        note = None
    else:
        files[INPUTS] = save(likeness.to_tensors())
        note = dataclasses.replace(note, sha256=hashlib.sha256(files[INPUTS]).hexdigest())
    facts = dataclasses.replace(read_facts(folder), inputs=note, calibration=calibration)
    _write(folder, files, from_dict(ModelFacts, to_dict(facts)))
    return facts


def load_likeness(folder: Path | str, facts: ModelFacts) -> Likeness | None:
    """What the inputs of the model in ``folder`` look like; None where its facts say that nothing is known."""
    if facts.inputs is None:
        return None
    path = Path(folder) / INPUTS
    return Likeness.from_tensors(read_tensors(path, facts.inputs.sha256, MAX_INPUTS), str(path))


def pick_device(name: str | torch.device = "auto") -> torch.device:
    """The device called ``name``; ``auto`` is the first CUDA device, or else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        device = torch.device(name)
        here = {"cpu": True, "cuda": (device.index or 0) < count, "mps": torch.backends.mps.is_available()}
        if here.get(device.type, False):
            return device
    except RuntimeError:  # torch knows no such name
        pass
    raise ConfigError(
        f"device '{name}' is not here ({count} CUDA devices found); choose auto, cpu, cuda, cuda:N or mps"
    )


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
        for what in ("queries", "answers", "classes", "vocabulary"):
            count = len(facts.queries if what == "queries" else facts.answers)
            if (built := getattr(model.config, what, count)) != count:
                raise ConfigError(f"names {count} {what}, but the model has {built}")
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


Tensors = dict[str, Tensor]
SCALE = ".scale"
"""Behind the name of a parameter; a parameter has no parts, so no tensor of a model is called so."""
LARGEST = 127
SHORTEST_ROW = 3
"""Numbers in a row; a shorter one would not be smaller than as float16."""
MIN_CHANNELS = 4
"""That a kernel runs over: fewer have those that see pixels, and those of one channel each, which are small."""
_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""What safetensors calls the types of tensors."""


def to_stored(model: nn.Module, dtype: StoredType, *, whole: bool = False) -> tuple[Tensors, Base | None]:
    """The tensors to be written, and the ImageNet weights that have the others; None where these have none.

    With ``whole`` those of ImageNet are written too, so that the model loads where they are not. Parameters are written
    as ``dtype``; buffers, among them the running statistics of norms, as they are: a variance may be beyond what
    float16 holds, and they are few.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(tensors, "the model to be saved", "the training diverged")
    base, published = (None, {}) if whole else _base_of(model)
    written: Tensors = {}
    for name, kept in _stored_types(model, dtype).items():
        tensor, other = tensors[name], published.get(name)
        if other is not None and tensor.dtype == other.dtype and torch.equal(tensor, other):
            continue
        if kept == torch.int8:
            written[name], written[name + SCALE] = to_rows(tensor)
        else:
            written[name] = tensor.to(kept).contiguous().clone()
    why = f"it is too large for {dtype}; save it as float32"
    _check_finite(_widened(written, tensors, _parameter_names(model)), "the model to be saved", why)
    return written, None if tensors.keys() <= written.keys() else base


def published_tensors(model: nn.Module, base: Base | None, where: str) -> Tensors:
    """The tensors of ``model`` that ``base`` has; a CheckpointError where these weights are not here."""
    if base is None:
        return {}
    if not isinstance(model, ImageModel) or base.backbone != getattr(model.config, "backbone", None):
        raise CheckpointError(f"{where}: needs ImageNet weights of '{base.backbone}', which the model does not have")
    try:
        found = pretrained.weights_digest(base.backbone)
    except DataError as error:
        raise CheckpointError(f"{where}: holds only what training has changed: {error}") from error
    if found != base.sha256:
        raise CheckpointError(
            f"{where}: was stored relative to other ImageNet weights of '{base.backbone}' than those found here "
            f"(SHA-256 {base.sha256[:12]}…, found {found[:12]}…); get the weights it was trained from"
        )
    expected = model.state_dict()
    return {name: tensor for name, tensor in _named(base.backbone).items() if name in expected}


def check_header(
    header: Mapping[str, Entry], model: nn.Module, dtype: StoredType, published: Tensors, where: str
) -> None:
    """Refuse a weights file that, together with ``published``, has not all tensors of ``model`` in type and shape."""
    expected: dict[str, Entry] = {}
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    for name, kept in _stored_types(model, dtype).items():
        expected[name] = Entry(_NAMES[kept], shapes[name])
        if kept == torch.int8:
            expected[name + SCALE] = Entry("BF16", shapes[name][:1])
    left_out = published.keys() | {name + SCALE for name in published}
    wrong = [f"no tensor '{name}'" for name in sorted(expected.keys() - header.keys() - left_out)]
    for name, entry in sorted(header.items()):
        wanted = expected.get(name, "no such tensor")
        if entry != wanted:
            wrong.append(f"'{name[:80]}' should be {wanted}, found {entry}")
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise CheckpointError(f"{where}: {wrong[0]}{more}; the weights are of another model")


def from_stored(written: Tensors, model: nn.Module, published: Tensors, where: str) -> Tensors:
    """The whole state of ``model`` in its own types, from what :func:`to_stored` wrote."""
    whole = published | _widened(written, model.state_dict(), _parameter_names(model))
    _check_finite(whole, where, "the training diverged or the file is bad")
    return whole


def _stored_types(model: nn.Module, dtype: StoredType) -> dict[str, torch.dtype]:
    """The type in which a file of ``dtype`` holds each tensor of ``model``."""
    types = {name: tensor.dtype for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        is_short = dtype == "int8" and not has_rows(parameter.shape)
        types[name] = torch.float16 if is_short else getattr(torch, dtype)
    return types


def _widened(written: Tensors, expected: Tensors, parameters: set[str]) -> Tensors:
    """What a weights file holds, the parameters in the types of ``expected`` and without the scales of their rows."""
    wide = dict(written)
    for name in parameters & written.keys():
        if wide[name].dtype == torch.int8:
            wide[name] = from_rows(wide[name], wide.pop(name + SCALE))
        wide[name] = wide[name].to(expected[name].dtype)
    return wide


def _base_of(model: nn.Module) -> tuple[Base | None, Tensors]:
    """The published weights that ``model`` started from, under the names that it has for them."""
    if not isinstance(model, ImageModel) or not getattr(model.config, "pretrained", False):
        return None, {}
    name = model.config.backbone
    try:
        return Base(name, pretrained.weights_digest(name)), _named(name)
    except (MissingExtraError, DataError):  # trained where they were, saved where they are not: everything is written
        return None, {}


def _named(backbone: str) -> Tensors:
    """The published weights of ``backbone`` under the names of a model that has it."""
    return {f"backbone.{name}": tensor for name, tensor in pretrained.imagenet_weights(backbone).items()}


def _parameter_names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters(remove_duplicate=False)}


def _check_finite(tensors: Mapping[str, Tensor], where: str, why: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{where}: '{name}' holds NaN or infinity; {why}")


def has_rows(shape: torch.Size) -> bool:
    """Whether a parameter of this shape is rounded by rows; others, as biases and the weights of norms, are few."""
    if len(shape) < 2 or shape[1:].numel() < SHORTEST_ROW:
        return False
    return len(shape) == 2 or shape[1] >= MIN_CHANNELS


def to_rows(parameter: Tensor) -> tuple[Tensor, Tensor]:
    """Round ``parameter``, whose values are finite, to the nearest multiples of the scales of its rows.

    Returns:
        int8 numbers in its shape, and the bfloat16 scales (rows,).
    """
    rows = parameter.float().flatten(1)  # (R,C)
    scales = (rows.abs().amax(1) / LARGEST).bfloat16()  # (R,)
    scales[scales < torch.finfo(torch.bfloat16).tiny] = 0  # so small that it would lose its bits: a row of zeros
    steps = scales.float().where(scales > 0, torch.inf)[:, None]  # (R,1)
    numbers = (rows / steps).round().clamp(-LARGEST, LARGEST).to(torch.int8)  # (R,C)
    return numbers.view(parameter.shape), scales


def from_rows(numbers: Tensor, scales: Tensor) -> Tensor:
    """The parameter as float32."""
    return (numbers.flatten(1) * scales.float()[:, None]).view(numbers.shape)


def load_matching(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> tuple[str, ...]:
    """Give ``model`` those of ``weights`` that fit it.

    Args:
        model: whatever it has begun with.
        weights: by the name of their place.
        where: what they come from, for messages.

    Returns:
        The places that keep what they had.

    Raises:
        ConfigError: no weight that can be learned fits.
    """
    places = model.state_dict()
    fitting = {
        name: weights[name] for name, own in places.items() if name in weights and weights[name].shape == own.shape
    }
    if not fitting.keys() & {name for name, _ in model.named_parameters()}:
        raise ConfigError(
            f"start: nothing of {where} fits this model, such as its '{next(iter(places), None)}'; start from a model "
            "of the same kind and sizes"
        )
    model.load_state_dict(fitting, strict=False)
    return tuple(name for name in places if name not in fitting)
