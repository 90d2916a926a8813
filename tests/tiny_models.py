"""Small models for tests: one to save and ask, and one whose looks are known beforehand."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from saccade import geometry
from saccade.config import to_dict
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.models.soft import SoftModel
from saccade.trace import Act, Look, ModelOutput

QUERIES = ("0", "1", "2", "north")
ANSWERS = ("red", "green", "blue")


def tiny_facts(**changes: object) -> ModelFacts:
    """Facts that fit ``SoftModel.tiny()``."""
    values = {
        "architecture": "soft",
        "model": to_dict(SoftModel.tiny()),
        "family": "question",
        "queries": QUERIES,
        "answers": ANSWERS,
        "preprocessing": Preprocessing((31, 34)),
        "name": "tiny",
    }
    return ModelFacts(**{**values, **changes})  # type: ignore[arg-type]


def save_tiny(folder: Path, seed: int = 0, **changes: object) -> Path:
    """A tiny SOFT model in ``folder``."""
    torch.manual_seed(seed)
    model = SoftModel(SoftModel.tiny())
    save_model(model, folder, tiny_facts(**changes))
    return folder


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
