"""A batch of pictures and captions: what goes into a model, what it should say, and what each word is about.

Orders captions so that every batch has (nearly) one caption length and little padding.

Xu et al., "Show, Attend and Tell" (arXiv:1502.03044, §4.3), draw a length and then 64 captions of it. Here an epoch is
a permutation: captions are sorted by length, equal ones shuffled, cut into batches, and the batches shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.render import render
from saccade.families.caption.scenes import SceneGrammar
from saccade.families.caption.vocabulary import NO_WORD
from saccade.geometry import compose

_RECOLOUR = 100  # draws on top of those that make a scene


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Captions with their pictures; of generated scenes also which words name which digit, and where that is."""

    images: Tensor
    """(B, 3, H, W) float32 in 0..1."""
    words: Tensor
    """(B, T) numbers of words, then 0 for the end, then −1."""
    picture: Tensor
    """(B,) number of the picture in its split; several captions may share one."""
    canvas: Tensor | None = None
    """(B, 2, 3) network input → original picture, where pictures are files."""
    image_size: Tensor | None = None
    """(B, 2) height and width of the original picture, where pictures are files."""
    layout: SceneLayout | None = None
    """The scenes, where the pictures were generated."""
    names: Tensor | None = None
    """(B, T) the object of its scene that a word names, −1 for other words and where there is none."""
    grammar: SceneGrammar | None = None
    """What puts scenes into words."""

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: Tensor | slice) -> CaptionBatch:
        """The captions ``rows``, in that order, repeats allowed."""
        return self._with_each(lambda part: part[rows])

    @property
    def lengths(self) -> Tensor:
        """(B,) steps of each caption: its words and the end."""
        return (self.words != NO_WORD).sum(1)

    @property
    def has_mask(self) -> Tensor:
        """(B, T) bool: the words of which it is known where their evidence is."""
        return torch.zeros_like(self.words, dtype=torch.bool) if self.names is None else self.names >= 0

    def word_masks(self) -> Tensor | None:
        """(B, T, H, W) bool: the pixels of the digit that a word names, none for other words; None without scenes."""
        if self.layout is None or self.names is None:
            return None
        row = torch.arange(len(self), device=self.names.device)[:, None]
        return self.layout.masks()[row, self.names.clamp(min=0)] & self.has_mask[..., None, None]

    def recolour(self, which: Tensor | int, colour: Tensor | None = None) -> CaptionBatch:
        """The same scenes with one digit in another colour: rendered again, and put into words again.

        All other words stay: the sentence is a function of the scene, and only that colour has changed.

        Args:
            which: the digit that is changed, 0 for the one named first, or (B,) one for each scene.
            colour: (B,) the new colours, each unlike the old; drawn from the scene number if not given.
        """
        scenes, grammar = cast(SceneLayout, self.layout), cast(SceneGrammar, self.grammar)  # files are never recoloured
        if isinstance(which, int):
            which = torch.full_like(self.picture, which)
        old = scenes.colour.gather(1, which.clamp(0, scenes.colour.shape[1] - 1)[:, None]).squeeze(1)  # (B,)
        if colour is None:
            draw = hash_u32(scenes.seed, scenes.index, which.clamp(min=0), _RECOLOUR)
            colour = (old + 1 + uniform_below(draw, len(COLOURS) - 1)) % len(COLOURS)
        layout = scenes.recolour(which, colour)
        words, names = grammar.describe(layout)
        return replace(self, images=as_float(render(layout)), words=words, names=names, layout=layout)

    def framed(self, images: Tensor, frames: Tensor) -> CaptionBatch:
        """Other pictures of the same, where ``frames`` (B,2,3) lead from their pixels back to these; of files alone."""
        return replace(self, images=images, canvas=compose(cast(Tensor, self.canvas), frames))

    def to(self, device: torch.device | str) -> CaptionBatch:
        """The same captions on another device."""
        return self._with_each(lambda part: part.to(device))

    def _with_each(self, change: Callable[[Any], Any]) -> CaptionBatch:
        """The same with every column, and the layout, changed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        columns = {name: value for name, value in values.items() if isinstance(value, Tensor | SceneLayout)}
        return replace(self, **{name: change(value) for name, value in columns.items()})


_TIES, _SHORT, _BATCHES = range(3)  # streams of draws within an epoch


def bucketed_order(lengths: Tensor, batch_size: int, seed: int, epoch: int) -> Tensor:
    """(N,) the numbers 0 … N − 1 in an order to be cut into batches of ``batch_size``; a function of its arguments.

    What does not fill a batch is a batch of its own at the end, cut from anywhere among the lengths: whoever leaves it
    out does not leave out the longest captions every time.

    Args:
        lengths: (N,) of the captions.
        batch_size: of all batches but the last.
        seed: of the shuffles.
        epoch: which shuffle.
    """
    count = len(lengths)
    full, rest = divmod(count, batch_size)
    shuffled = torch.argsort(hash_u32(seed, epoch, _TIES, torch.arange(count)), stable=True)  # (N,)
    by_length = shuffled[torch.argsort(lengths.cpu()[shuffled], stable=True)]  # (N,)
    cut = int(uniform_below(hash_u32(seed, epoch, _SHORT), full + 1)) * batch_size  # where the short batch begins
    short, rows = by_length[cut : cut + rest], torch.cat([by_length[:cut], by_length[cut + rest :]])
    batches = rows.view(full, batch_size)
    order = torch.argsort(hash_u32(seed, epoch, _BATCHES, torch.arange(full)), stable=True)  # (full,)
    return torch.cat([batches[order].flatten(), short])
