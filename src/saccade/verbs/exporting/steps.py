"""Exports a captioner as two ONNX graphs: the encoding of a picture, and one decoding step. The caller does the search.

``begin.onnx`` takes pictures and gives the scene (``features``, ``seen``) and the memory (``hidden``, ``cell``).
``step.onnx`` takes these and the word before (B,), -1 at the start, and gives the logits of the next word, the look
for it and the new memory. A row is one caption: a beam repeats the rows of its picture.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.errors import CheckpointError
from saccade.models.base import AttentionModel

NOTHING = -1


class Begin(nn.Module):
    """Pictures (B,3,H,W) → scene and memory by name."""

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.model: Any = model
        self.eval()

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """``features`` (B,D,h,w), ``seen`` (B,h,w,A) of a model that attends, ``hidden`` and ``cell`` (B,n)."""
        scene, memory = self.model.init_state(self.model.encode(images))
        said = {"features": scene.features.contiguous()} | ({} if scene.seen is None else {"seen": scene.seen})
        return said | {"hidden": memory.hidden[:, 0], "cell": memory.cell[:, 0]}


class Step(nn.Module):
    """Scene, memory and the word before (B,) → the next word's logits, its look, and the memory after it."""

    def __init__(self, model: AttentionModel, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model: Any = model
        self.names = names
        """What :class:`Begin` gives, in order."""
        self.eval()

    def forward(self, *given: Tensor) -> dict[str, Tensor]:
        """``logits`` (B,V), ``word.weights`` (B,h,w), ``word.gain`` (B,), ``next_hidden`` and ``next_cell`` (B,n)."""
        *held, before = given
        named = dict(zip(self.names, held))
        scene = self.model.scene(named["features"], named.get("seen"))
        memory = self.model.memory(named["hidden"].unsqueeze(1), named["cell"].unsqueeze(1))
        said = self.model.next_word(scene, memory, before.unsqueeze(1))
        return {
            "logits": said.logits[:, 0],
            "word.weights": said.looked.weights[:, 0],
            "word.gain": said.looked.gain[:, 0],
            "next_hidden": said.memory.hidden[:, 0],
            "next_cell": said.memory.cell[:, 0],
        }


def step_inputs(begin: Begin, images: Tensor, words: int, seed: int) -> dict[str, Tensor]:
    """What a step takes after ``begin`` and a made-up word before."""
    with torch.no_grad():
        held = begin(images)
    generator = torch.Generator().manual_seed(seed)
    return {**held, "before": torch.randint(NOTHING, words, (images.shape[0],), generator=generator)}


def check_steps(model: AttentionModel, name: str) -> None:
    """Refuse a model that does not go word by word, or draws cells at random."""
    if not all(hasattr(model, part) for part in ("init_state", "next_word", "scene", "memory")):
        raise CheckpointError(f"'{name}' cannot be exported yet: it searches for its answer; use it through saccade")
    if getattr(model.config, "pick", "expected") == "drawn":
        raise CheckpointError(
            f"'{name}' samples the cells that it looks at, which an ONNX graph cannot; set pick: best or expected"
        )
