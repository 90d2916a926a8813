"""Model folders: weights as safetensors, facts as JSON, and a card. Written atomically, read as untrusted.

**Reading.** Pickles are refused unopened. The digest of the weights file is checked, then its header: every tensor must
have the model's name, type and shape, and the model may hold no more numbers than the header accounts for. Only then
are the weights read; they must be finite.

**Base weights.** Of a model that started from published ImageNet weights, the file holds the tensors that training
changed. The others are read from the published weights, if these have the digest that was noted.

**int8.** A parameter with rows is stored as whole numbers, −127 … 127, with a scale for each row (first axis) in
``NAME.scale``; the others are float16. A scale is a 127th of the largest absolute value of its row, as bfloat16: eight
bits times seven fit into the 24 of a float32, so products are exact and storing again changes nothing. Kernels that see
pixels are not rounded: on a flat ground the errors of a row add up.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saccade.backbones import Stages, pretrained
from saccade.config import from_dict, to_dict
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError, OutputError, SaccadeError
from saccade.families.registry import model_spec
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
from saccade.models.base import AttentionModel, ImageModel
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
    model_card,
    read_facts,
)
from saccade.models.likeness import Likeness

MAX_INPUTS = 2**20  # bytes of the file that says what inputs look like
MAX_NUMBERS = 2**26  # in the map of one stage of one picture: 256 megabytes as float32
SPARE, LARGEST_BASE = 2**24, 2**30  # numbers beyond those in the file: of constants, and of ImageNet weights left out


def save_model(model: nn.Module, folder: Path | str, facts: ModelFacts, *, whole: bool = False) -> ModelFacts:
    """Write the model folder, replacing an old one in one move; returns the facts as written.

    Args:
        model: in any mode and on any device.
        folder: made if it does not exist.
        facts: what is known of it besides its weights.
        whole: write the ImageNet weights too, so that the model loads without them.
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
    """Rewrite the model in ``folder`` with its parameters in another type; ``whole`` as in :func:`save_model`.

    Its scores and calibration are removed: they were measured with other weights.
    """
    model, facts = load_model(folder)
    changed = dataclasses.replace(facts, dtype=dtype, scores=(), calibration=None)
    return save_model(model, folder, changed, whole=whole)


def note_inputs(
    folder: Path | str, likeness: Likeness | None, note: InputsNote | None, calibration: Calibration | None
) -> ModelFacts:
    """Write the statistics of the inputs and the calibration into a model folder, and their digest into ``note``."""
    folder = Path(folder)
    rewritten = (CONFIG, CARD, INPUTS, VOCABULARY)
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.name not in rewritten}
    if likeness is not None and note is not None:
        files[INPUTS] = save(likeness.to_tensors())
        note = dataclasses.replace(note, sha256=hashlib.sha256(files[INPUTS]).hexdigest())
    note = note if likeness is not None else None
    facts = dataclasses.replace(read_facts(folder), inputs=note, calibration=calibration)
    _write(folder, files, from_dict(ModelFacts, to_dict(facts)))
    return facts


def load_likeness(folder: Path | str, facts: ModelFacts) -> Likeness | None:
    """The statistics of the inputs of the model in ``folder``; None where it has none."""
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
    state = _published(model, facts.base, where)
    _check_header(header, model, facts.dtype, state, where)
    state |= _widened(load(path.read_bytes()), model)
    _check_finite(state, where, "the training diverged or the file is bad")
    model.load_state_dict(state)
    return model.eval().requires_grad_(False).to(chosen), facts


def _build(folder: Path, facts: ModelFacts, stored: int) -> AttentionModel:
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
            for part in model.children():  # a small file can ask for large maps
                grids = part.grid(facts.preprocessing.size) if isinstance(part, Stages) else {}
                for name, (height, width) in grids.items():
                    if (many := part.channels[name] * height * width) > MAX_NUMBERS:  # type: ignore[index]  # of Stages
                        raise DataError(f"stage '{name}' makes {many:,} numbers of one picture; make the input smaller")
    except (SaccadeError, ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise CheckpointError(f"{folder / CONFIG}: its model cannot be built: {error}") from error
    return model


class _Limited(TorchFunctionMode):
    """A context in which layers make no more than ``most`` numbers; weights that will be loaded are not drawn."""

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
SCALE = ".scale"  # behind the name of a parameter; no tensor of a model is called so
LARGEST = 127
SHORTEST_ROW = 3  # numbers; a shorter row would not be smaller than as float16
MIN_CHANNELS = 4  # of a rounded kernel: fewer have those that see pixels, and depthwise ones, which are small
_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""What safetensors calls the types of tensors."""


def to_stored(model: nn.Module, dtype: StoredType, *, whole: bool = False) -> tuple[Tensors, Base | None]:
    """The tensors to write, and the ImageNet weights that hold the others; None where all are written.

    Parameters are written as ``dtype``. Buffers, such as the running statistics of norms, keep their type: a variance
    may be beyond float16.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(tensors, "the model to be saved", "the training diverged")
    base, published = None, {}
    if not whole and isinstance(model, ImageModel) and getattr(model.config, "pretrained", False):
        backbone = model.config.backbone
        with suppress(MissingExtraError, DataError):  # trained where they are, saved where they are not: all is written
            base, published = Base(backbone, pretrained.weights_digest(backbone)), _imagenet(backbone)
    written: Tensors = {}
    for name, kind in _stored_types(model, dtype).items():
        tensor, other = tensors[name], published.get(name)
        if other is not None and tensor.dtype == other.dtype and torch.equal(tensor, other):
            continue
        if kind == torch.int8:
            written[name], written[name + SCALE] = to_rows(tensor)
        else:
            written[name] = tensor.to(kind).contiguous().clone()
    _check_finite(_widened(written, model), "the model to be saved", f"it is too large for {dtype}; save it as float32")
    return written, None if tensors.keys() <= written.keys() else base


def _published(model: nn.Module, base: Base | None, where: str) -> Tensors:
    """The tensors of ``model`` that ``base`` has; a CheckpointError where these weights are not here."""
    if base is None:
        return {}
    if not isinstance(model, ImageModel) or base.backbone != getattr(model.config, "backbone", None):
        raise CheckpointError(f"{where}: needs ImageNet weights of '{base.backbone}', which the model does not have")
    try:
        digest = pretrained.weights_digest(base.backbone)
    except DataError as error:
        raise CheckpointError(f"{where}: holds only what training has changed: {error}") from error
    if digest != base.sha256:
        raise CheckpointError(
            f"{where}: was stored relative to other ImageNet weights of '{base.backbone}' than those found here "
            f"(SHA-256 {base.sha256[:12]}…, found {digest[:12]}…); get the weights it was trained from"
        )
    expected = model.state_dict()
    return {name: tensor for name, tensor in _imagenet(base.backbone).items() if name in expected}


def _imagenet(backbone: str) -> Tensors:
    return {f"backbone.{name}": tensor for name, tensor in pretrained.imagenet_weights(backbone).items()}


def _check_header(
    header: Mapping[str, Entry], model: nn.Module, dtype: StoredType, published: Tensors, where: str
) -> None:
    """Refuse a weights file that, together with ``published``, lacks a tensor of ``model`` or has another one."""
    expected: dict[str, Entry] = {}
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    for name, kind in _stored_types(model, dtype).items():
        expected[name] = Entry(_NAMES[kind], shapes[name])
        if kind == torch.int8:
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


def _stored_types(model: nn.Module, dtype: StoredType) -> dict[str, torch.dtype]:
    types = {name: tensor.dtype for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        is_short = dtype == "int8" and not has_rows(parameter.shape)
        types[name] = torch.float16 if is_short else getattr(torch, dtype)
    return types


def _widened(written: Tensors, model: nn.Module) -> Tensors:
    """Written tensors, the parameters in the types of ``model`` and without the scales of their rows."""
    wide = dict(written)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name in written:
            if wide[name].dtype == torch.int8:
                wide[name] = from_rows(wide[name], wide.pop(name + SCALE))
            wide[name] = wide[name].to(parameter.dtype)
    return wide


def _check_finite(tensors: Mapping[str, Tensor], where: str, why: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{where}: '{name}' holds NaN or infinity; {why}")


def has_rows(shape: torch.Size) -> bool:
    """Whether a parameter of this shape is rounded by rows; biases and norms are not."""
    if len(shape) < 2 or shape[1:].numel() < SHORTEST_ROW:
        return False
    return len(shape) == 2 or shape[1] >= MIN_CHANNELS


def to_rows(parameter: Tensor) -> tuple[Tensor, Tensor]:
    """A finite parameter as int8 numbers of its shape and the bfloat16 scales (rows,), rounded to the nearest."""
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
    """Load those ``weights`` that fit ``model`` in name and shape; returns the names of the others it has.

    ``where`` says in messages what the weights come from. A ConfigError where no weight that can be learned fits.
    """
    places = model.state_dict()
    fitting = {
        name: weights[name] for name, place in places.items() if name in weights and weights[name].shape == place.shape
    }
    if not fitting.keys() & {name for name, _ in model.named_parameters()}:
        raise ConfigError(
            f"start: nothing of {where} fits this model, such as its '{next(iter(places), None)}'; start from a model "
            "of the same kind and sizes"
        )
    model.load_state_dict(fitting, strict=False)
    return tuple(name for name in places if name not in fitting)
