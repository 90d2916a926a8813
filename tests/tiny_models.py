"""Small models for tests: sizes and batches for every model, one to save and ask, and one whose looks are known."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from saccade import geometry
from saccade.backbones import build_backbone, pretrained
from saccade.config import to_dict
from saccade.errors import DataError
from saccade.families import ModelSpec, models
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.models.soft import SoftModel
from saccade.trace import Act, Look, ModelOutput

QUERIES = ("0", "1", "2", "north")
ANSWERS = ("red", "green", "blue")
SIZE = (31, 34)  # (height, width) of the pictures.
PEOPLE, PLACES = 4, 4
STORY_WORDS = 1 + PEOPLE + PLACES

Batch = tuple[dict[str, Tensor], Tensor]  # Inputs by name, and labels.


def draw_square(image: Tensor, channel: int, place: int) -> None:
    """Light a square in quadrant ``place`` of a picture (3,31,34)."""
    top, left = 4 + 14 * (place // 2), 5 + 15 * (place % 2)
    image[channel, top : top + 9, left : left + 9] += 0.9


def quadrant_batch(count: int, seed: int, *, each: bool = False) -> Batch:
    """Pictures with a square in every quadrant, and its colour (B,) in the quadrant that is asked for.

    With ``each``, every picture is asked for all of its quadrants in turn, so that the answers cannot be learned by
    heart from the pictures alone.
    """
    generator = torch.Generator().manual_seed(seed)
    pictures = -(-count // 4) if each else count
    images = torch.rand(pictures, 3, *SIZE, generator=generator) * 0.1
    query = torch.randint(4, (pictures,), generator=generator)
    colours = torch.randint(3, (pictures, 4), generator=generator)
    for picture, row in enumerate(colours.tolist()):
        for place, colour in enumerate(row):
            draw_square(images[picture], colour, place)
    if each:
        images, colours = (tensor.repeat_interleave(4, 0)[:count] for tensor in (images, colours))
        query = torch.arange(count) % 4
    return {"images": images, "query": query}, colours.gather(1, query[:, None]).squeeze(1)


def squares_batch(count: int, seed: int) -> Batch:
    """Pictures with up to two squares, and their colours (B,2) in reading order, then -1; one in eight is empty."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 3, *SIZE, generator=generator) * 0.1
    places = torch.rand(count, 4, generator=generator).argsort(1)[:, :2].sort(1).values  # (B,2)
    colours = torch.randint(3, (count, 2), generator=generator)  # (B,2)
    full = torch.randint(1, 3, (count,), generator=generator) * (torch.arange(count) % 8 != 7)  # (B,)
    labels = colours.masked_fill(torch.arange(2) >= full[:, None], -1)  # (B,2)
    for picture, slot in (labels >= 0).nonzero().tolist():
        draw_square(images[picture], int(labels[picture, slot]), int(places[picture, slot]))
    return {"images": images}, labels


def square_batch(count: int, seed: int, brightness: float = 0.1) -> Batch:
    """Pictures with one square somewhere, and its colour (B,)."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 3, *SIZE, generator=generator) * brightness
    colours = torch.randint(3, (count,), generator=generator)
    top, left = (torch.randint(2, 20, (count,), generator=generator).tolist() for _ in range(2))
    for image, colour, y, x in zip(images, colours.tolist(), top, left):
        image[colour, y : y + 9, x : x + 9] += 1 - brightness
    return {"images": images}, colours


def caption_batch(count: int, seed: int) -> Batch:
    """The pictures of :func:`squares_batch`, and captions (B,3): the colours, word 0 at the end, then -1."""
    inputs, colours = squares_batch(count, seed)
    words = F.pad(torch.where(colours < 0, -1, colours + 2), (0, 1), value=-1)  # (B,3)
    words = words.scatter(1, (words >= 0).sum(1, keepdim=True), 0)
    return {**inputs, "words": words}, words


def story_batch(count: int, seed: int) -> Batch:
    """Stories (B,4,2) of two to four sentences "person place", questions (B,1) after a person, and the place (B,).

    If a person occurs twice, the later sentence holds.
    """
    generator = torch.Generator().manual_seed(seed)
    length = torch.randint(2, 5, (count, 1), generator=generator)  # (B,1)
    person = torch.randint(0, PEOPLE, (count, 4), generator=generator)  # (B,4)
    place = torch.randint(0, PLACES, (count, 4), generator=generator)
    is_told = torch.arange(4) < length  # (B,4)
    asked = person.gather(1, (torch.rand(count, 1, generator=generator) * length).long())  # (B,1)
    last = ((person == asked) & is_told).long() * torch.arange(1, 5)  # (B,4)
    label = 1 + PEOPLE + place.gather(1, last.argmax(1, keepdim=True))[:, 0]  # (B,)
    story = torch.stack([1 + person, 1 + PEOPLE + place], -1) * is_told.unsqueeze(-1)  # (B,4,2)
    return {"story": story, "query": 1 + asked}, label


def told_batch(count: int, seed: int) -> Batch:
    """:func:`story_batch` for a model that says its answer word by word."""
    inputs, label = story_batch(count, seed)
    return inputs, label.unsqueeze(1)


_PLAIN = {"queries": 4, "answers": 3, "channels": 8, "depth": 2, "dropout": 0.0}
_ASKED = {**_PLAIN, "hidden": 8}
_CROPPED = {**_ASKED, "picture": SIZE, "crop": (15, 16)}
_PROBE = {"answers": 3, "backbone": "compact", "through": "layer2", "hidden": 8, "query_count": 2}
_UNITS = {"answers": 3, "stem": "large", "widths": (8, 8, 16, 16), "last": 1}
_SEEN = {"backbone": "small", "through": "stage2", "input_size": SIZE}
_STORY = {"words": STORY_WORDS, "memory": 4}
_each_quadrant = partial(quadrant_batch, each=True)
# The settings of a tiny model of each class, and what makes a batch that fits it.
TINY: dict[str, tuple[dict[str, Any], Callable[[int, int], Batch]]] = {
    "BlindModel": (_PLAIN, quadrant_batch),
    "FilmModel": (_PLAIN, quadrant_batch),
    "SoftModel": (_ASKED, quadrant_batch),
    "QuestionHeadModel": (_ASKED, quadrant_batch),
    "CrossModel": (_ASKED, quadrant_batch),
    "HardModel": (_ASKED, _each_quadrant),
    "HAttNetModel": ({**_ASKED, "depth": 3}, _each_quadrant),
    "StnModel": (_CROPPED, _each_quadrant),
    "StnTunedModel": (_CROPPED, _each_quadrant),
    "VitModel": ({**_PLAIN, "width": 16, "layers": 2, "heads": 2}, quadrant_batch),
    "AskedProbeModel": ({**_PROBE, "queries": 4}, _each_quadrant),
    "ProbeModel": (_PROBE, square_batch),
    "RanModel": ({**_UNITS, "modules": (1, 0, 1), "pools": (2, 1, 1)}, square_batch),
    "ResidualNetModel": ({**_UNITS, "units": (1, 0, 0)}, square_batch),
    "RacnnModel": (
        {"answers": 3, "through": "layer2", "input_size": SIZE, "coarse": (16, 17), "crop": (15, 16), "hidden": 4},
        partial(square_batch, brightness=0.2),
    ),
    "HsalModel": (
        {**_SEEN, "classes": 3, "most": 2, "meta_hidden": 8, "hidden": 16, "location_hidden": 8},
        squares_batch,
    ),
    "MultisetCountsModel": ({**_SEEN, "classes": 3, "most": 2, "hidden": 16}, squares_batch),
    "SatModel": (
        {**_SEEN, "vocabulary": 5, "embed": 32, "hidden": 32, "attention": 32, "dropout": 0.0, "longest": 4},
        caption_batch,
    ),
    "MemN2NModel": ({**_STORY, "times": 5, "longest": 2, "dim": 8, "hops": 2}, story_batch),
    "DMNModel": ({**_STORY, "size": 16, "embedding": 12, "passes": 2}, told_batch),
    "StoryLSTMModel": ({**_STORY, "size": 16, "embedding": 12}, story_batch),
}


def _spec(model: str | type) -> ModelSpec:
    """A model by its name in the catalog, or by its class."""
    return models()[model] if isinstance(model, str) else ModelSpec(lambda: model, "", "")


def tiny_config(model: str | type, **changes: Any) -> Any:
    """The settings of a tiny model."""
    spec = _spec(model)
    kind = spec.load()
    return kind.Config(**{**TINY[kind.__name__][0], **spec.defaults, **changes})


def tiny_model(model: str | type, seed: int | None = None, **changes: Any) -> Any:
    """A tiny model; its weights are drawn from ``seed`` where one is given."""
    if seed is not None:
        torch.manual_seed(seed)
    return _spec(model).load()(tiny_config(model, **changes))


def example_batch(model: str | type, count: int, seed: int) -> Batch:
    """Inputs and labels that fit :func:`tiny_config`; a function of the arguments."""
    return TINY[_spec(model).load().__name__][1](count, seed)


def tiny_facts(**changes: object) -> ModelFacts:
    """Facts that fit ``tiny_config(SoftModel)``."""
    values = {
        "architecture": "soft",
        "model": to_dict(tiny_config(SoftModel)),
        "family": "question",
        "queries": QUERIES,
        "answers": ANSWERS,
        "preprocessing": Preprocessing(SIZE),
        "name": "tiny",
    }
    return ModelFacts(**{**values, **changes})  # type: ignore[arg-type]


def save_tiny(folder: Path, seed: int = 0, **changes: object) -> Path:
    """A tiny SOFT model in ``folder``."""
    save_model(tiny_model(SoftModel, seed), folder, tiny_facts(**changes))
    return folder


def edit_config(folder: Path, **changes: object) -> None:
    """Other facts in a model folder."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def replace_weights(folder: Path, data: bytes) -> None:
    """Other weights with a digest that fits: what an attacker, not an accident, would do."""
    (folder / "model.safetensors").write_bytes(data)
    edit_config(folder, sha256=hashlib.sha256(data).hexdigest())


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """The same of tensors that are changed in place."""
    tensors = load((folder / "model.safetensors").read_bytes())
    change(tensors)
    replace_weights(folder, save(tensors))


def named(output: ModelOutput) -> dict[str, Tensor]:
    """All tensors of an output by where they are: ".logits", ".acts['stage1'].weights"."""
    return {pytree.keystr(path): leaf for path, leaf in pytree.tree_flatten_with_path(output)[0]}


class OneHotModel(QueryModel):
    """Looks at the one cell (of 5×7, 10 pixels each) that the query names, whatever the picture shows."""

    GRID = (5, 7)

    def __init__(self) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.encoded = 0

    def encode(self, images: Tensor) -> Tensor:
        """The pictures themselves; counts its calls."""
        self.encoded += 1
        return images

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        """All weight on cell number ``query``."""
        cells = self.GRID[0] * self.GRID[1]
        weights = nn.functional.one_hot(query, cells).float().unflatten(1, self.GRID)  # (B,5,7)
        brightness = encoding.mean((1, 2, 3))
        return ModelOutput(torch.stack([brightness, -brightness], dim=-1), {"cell": Act(weights=weights)})

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        """One look whose cells tile a 50×70 input."""
        frame = geometry.scale_shift((10.0, 10.0), (0.0, 0.0))
        return (Look("cell", "soft", "multiplier", output.acts["cell"].weights, norm="softmax", frame=frame),)


def publish(monkeypatch: pytest.MonkeyPatch, seed: int = 7, backbone: str = "mobilenetv2") -> dict[str, Tensor]:
    """From now on ``backbone`` alone has published weights, drawn from ``seed``; returns them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        weights = build_backbone(backbone).state_dict()
    monkeypatch.setattr(pretrained, "imagenet_weights", lambda name: {backbone: weights}[name])
    return weights


def withdraw(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on there are none."""

    def missing(name: str) -> dict[str, Tensor]:
        raise DataError(f"the ImageNet weights of '{name}' are not on this machine. Get them with: saccade data get")

    monkeypatch.setattr(pretrained, "imagenet_weights", missing)
