"""Query-guided attributes: which colour has the 7? Triples of scene, digit asked for, and colour.

Protocols:

========== ======================================================================================================
authors     30,000 / 10,000 / 10,000 triples. With merged glyphs one stream of scenes is cut in three, as in the
            authors' code; else each split has its own
unlimited   training never ends: each scene is asked for ``asks`` of its digits, from one drawn at random on; val has
            5,000 triples, test the same 10,000 as ``authors``
========== ======================================================================================================

In a finite split every digit of a scene is one triple, in order: the population of the published numbers.

With ``absent`` some triples ask for a digit that the scene does not have; the answer is :data:`NOT_THERE`.

``planted`` makes sets on which a model can only learn to answer from something else than the digit asked for. A score
that claims to say what an answer rests on must find it:

======== ==========================================================================================================
none     the answer is the colour of the digit asked for
corner   the answer is the colour of a patch in the corner (``data/scenes/backgrounds.py``), whatever is asked
largest  the answer is the colour of the largest digit, whatever is asked
blind    the answer is the colour of a digit, and the question names one of the ten at random: it tells nothing
======== ==========================================================================================================
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast, get_args

import torch
from torch import Tensor

from saccade.config import Seed, Share, Within
from saccade.data.examples import Example, Split, first_numbers, seen_masks, to_device
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.reading import as_float
from saccade.data.scenes.backgrounds import Background, Black, Cornered, Distractors
from saccade.data.scenes.drawing import COLOURS, Drawing, drawn_as_authors, render
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed, hash_u32, uniform_below
from saccade.data.scenes.layout import (
    OTHER_COLOUR,
    TARGET_COLOUR,
    SceneLayout,
    SceneSpec,
    drawn_from,
    other_colour,
    other_object,
)
from saccade.data.scenes.photo_backgrounds import photographs_for
from saccade.data.scenes.sampler import scene_counts
from saccade.data.scenes.stream import SceneStream
from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.progress import OnProgress, no_progress

SceneName = Literal["mref", "mdist", "mbg"]
SCENES: tuple[str, ...] = get_args(SceneName)  # Generated data by name
SPEC = SceneSpec()  # How all scenes are drawn, before a split adds its background

_SIZES: dict[str, dict[str, int | None]] = {
    "authors": {"train": 30_000, "val": 10_000, "test": 10_000},
    "unlimited": {"train": None, "val": 5_000, "test": 10_000},
}
_AUTHORS_START = {"train": 0, "val": 30_000, "test": 40_000}
_STREAMS = {"train": 0, "val": 1, "test": 2, "all": 3}
NOT_THERE = "not there"  # The answer about an absent digit, after the colours
_FIRST_TARGET, _IS_ABSENT, _WHICH_ABSENT, _BLIND = 100, 110, 111, 112  # draws on top of those of a scene and its twins


@dataclass(frozen=True)
class SceneDataConfig:
    """Which triples."""

    name: SceneName = "mref"  # Digits on black, with distractors, or with photographs behind them.
    glyphs: GlyphPolicy = "disjoint"  # Which digits each split is made of, see ``glyphs.py``.
    backgrounds: str | None = None  # Folder of photographs for mbg, see ``photographs.py``; the other sets have none.
    drawing: Drawing = "blend"
    """How ink becomes colour, see ``drawing.py``: ``blend``, ``authors``, ``both`` or ``mostly-authors``."""
    protocol: Literal["authors", "unlimited"] = "unlimited"  # Sizes and splits, see the module.
    planted: Literal["none", "corner", "largest", "blind"] = "none"
    """What the answer depends on, see the module; ``none``: the digit asked for."""
    asks: Annotated[int, Within(1, SPEC.count[0])] = 1
    """Triples per fresh training scene; what does not depend on the query is computed once."""
    absent: Share = 0.0  # Share of triples about a digit that is not in the scene; above 0 there is one more answer.
    augment: Augmentation | None = None  # How pictures of a finite training set are varied; None: not at all.
    seed: Seed = 0

    is_generated: ClassVar[bool] = True
    queries: ClassVar[tuple[str, ...]] = tuple(str(digit) for digit in range(10))  # The digits that can be asked for.
    size: ClassVar[Size] = (SPEC.size, SPEC.size)  # (height, width) of the network input.

    @property
    def answers(self) -> tuple[str, ...]:
        """The colours, and with ``absent`` questions "not there"."""
        return (*COLOURS, NOT_THERE) if self.absent else COLOURS

    def spec(self, split: Split) -> SceneSpec:
        """How the scenes of a split are drawn; reads photographs."""
        background: Background = Distractors(drawing=self.drawing) if self.name == "mdist" else Black()
        if self.name == "mbg":
            background = photographs_for(split, self.backgrounds)
        if self.planted == "corner":
            background = Cornered(background)
        return replace(SPEC, background=background, drawing=self.drawing)


@dataclass(frozen=True, eq=False)
class SceneBatch:
    """Triples and their scenes."""

    images: Tensor  # (B, 3, H, W) float32 in 0..1; fewer if several consecutive triples share one
    query: Tensor  # (B,) the digit asked for
    label: Tensor  # (B,) its colour
    object: Tensor  # (B,) its slot in the layout
    scenes: SceneLayout  # The scenes, one for each picture

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def layout(self) -> SceneLayout:
        """The scenes, one for each triple."""
        if len(self.scenes) == len(self):
            return self.scenes
        together = len(self) // len(self.scenes)
        return self.scenes[torch.arange(len(self), device=self.query.device) // together]

    @property
    def scene(self) -> Tensor:
        """(B,) number of the scene in its stream."""
        return self.layout.index

    picture = scene

    @property
    def scale(self) -> Tensor:
        """(B,) scale of the digit asked for."""
        return self.layout.scale.gather(1, self.object[:, None]).squeeze(1)

    def evidence(self) -> Tensor:
        """(B, H, W) bool: the pixels of the digit asked for."""
        return self.layout.mask_of(self.object)

    def objects(self) -> Tensor:
        """(B, H, W) bool: the pixels of all digits."""
        return self.layout.all_objects()

    def recolour_target(self) -> SceneBatch:
        """The same questions with the digit asked for in another colour, the new answer."""
        colour = other_colour(self.layout, self.object, self.object, TARGET_COLOUR)
        return replace(self._in(self.layout.recolour(self.object, colour)), label=colour)

    def recolour_other(self) -> SceneBatch:
        """The same questions with some other digit in another colour; the answer stays."""
        other = other_object(self.layout, self.object)
        colour = other_colour(self.layout, other, self.object, OTHER_COLOUR)
        return self._in(self.layout.recolour(other, colour))

    def remove_other(self) -> SceneBatch:
        """The same questions with some other digit gone; the answer stays."""
        return self._in(self.layout.remove(other_object(self.layout, self.object)))

    def _in(self, scenes: SceneLayout) -> SceneBatch:
        return replace(self, images=as_float(render(scenes)), scenes=scenes)

    def other_query(self) -> tuple[Tensor, Tensor]:
        """(B,) a present digit that was not asked for, the one that other changes are about; and that it exists."""
        other = self.layout.classes.gather(1, other_object(self.layout, self.object)[:, None]).squeeze(1)
        return other, torch.ones_like(other, dtype=torch.bool)


class SceneData:
    """One split of an attribute data set: triple numbers to batches.

    ``allow_pack`` lets the test split use the shipped glyphs when MNIST is not there.
    """

    queries = SceneDataConfig.queries

    def __init__(
        self,
        config: SceneDataConfig,
        split: Split,
        device: torch.device | str = "cpu",
        *,
        allow_pack: bool = False,
    ) -> None:
        self.config, self.split, self.answers, self.spec = config, split, config.answers, config.spec(split)
        self.glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        self.size = _SIZES[config.protocol][split]
        one_stream = config.protocol == "authors" and config.glyphs == "merged"
        self.seed = derive_seed(config.seed, _STREAMS["all" if one_stream else split])
        self._first = _AUTHORS_START[split] if one_stream else 0  # number of this split's first triple in the stream
        self._ends: Tensor | None = None
        scenes = self.size
        if self.size is not None:
            self._ends = self._triple_ends(self._first + len(self))
            scenes = len(self._ends)
        self.stream = SceneStream(self.spec, self.glyphs, self.seed, device, length=scenes)

    @property
    def backgrounds(self) -> str:
        """The name of the background; scores on different photographs do not compare."""
        return self.spec.background.name

    @property
    def device(self) -> torch.device:
        """Where batches are made."""
        return self.stream.device

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def take(self, indices: Tensor, *, together: int = 1) -> SceneBatch:
        """The triples ``indices`` (B,), in order; ``together`` in a row are about one scene, drawn once."""
        scene, obj = self._locate(indices.cpu())
        scenes, images = self.stream.scenes(scene[::together])
        obj = to_device(obj, self.device)
        slots = obj.view(-1, together)
        query, label = (column.gather(1, slots).flatten() for column in (scenes.classes, scenes.colour))
        if self.config.planted != "none":
            query, label = self._planted(scenes, obj, query, label, together)
        batch = SceneBatch(as_float(images), query, label, obj, scenes)
        return _some_absent(batch, self.config.absent) if self.config.absent else batch

    def _planted(
        self, scenes: SceneLayout, obj: Tensor, query: Tensor, label: Tensor, together: int
    ) -> tuple[Tensor, Tensor]:
        """Queries and answers (B,) of a planted cause, for ``together`` slots ``obj`` (B,) per scene."""
        if self.config.planted == "blind":
            scene = scenes.index.repeat_interleave(together)  # (B,)
            return uniform_below(hash_u32(self.seed, scene, obj, _BLIND), len(self.queries)), label
        if isinstance(background := self.spec.background, Cornered):
            answer = background.colours(self.seed, scenes.index)  # (S,)
        else:
            largest = torch.where(scenes.present, scenes.extent, -1).argmax(1)  # (S,)
            answer = scenes.colour.gather(1, largest[:, None]).squeeze(1)
        return query, answer.repeat_interleave(together)

    def training_batch(self, indices: Tensor, seed: int) -> SceneBatch:
        """The triples ``indices`` (B,); fresh scenes hold each picture once for all its questions.

        Pictures of a finite set are varied by ``seed``, if the settings say how; their layouts are not.
        """
        asks = self.config.asks if self.size is None else 1
        if len(indices) % asks:
            raise ConfigError(f"a batch of {len(indices)} cannot be split into scenes that are asked {asks} times each")
        batch = self.take(indices, together=asks)
        if self.size is not None and self.config.augment is not None:
            return replace(batch, images=augment(batch.images, self.config.augment, seed)[0])
        if asks == 1:
            return batch
        return replace(batch, images=batch.images.contiguous(memory_format=torch.channels_last))

    def asking(self, absent: float) -> SceneData:
        """The same split with a share ``absent`` of questions about missing digits."""
        split = copy(self)
        split.config = replace(self.config, absent=absent)
        split.answers = split.config.answers
        return split

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of the first ``limit`` triples; None or 0: of all."""
        return first_numbers(self.size, limit, self.split)

    def described(self) -> dict[str, object]:
        """What the scenes are made of."""
        config = self.config
        materials = {"glyphs": self.glyphs.name, "backgrounds": self.backgrounds, "drawing": config.drawing}
        return {"data": config.name, **materials, "protocol": config.protocol, "seed": config.seed}

    def shown(self, count: int) -> list[Example]:
        """The first ``count`` scenes, each with its first question."""
        batch = self.take(self.one_per_scene(count))
        rows = zip(batch.images, batch.evidence(), batch.query.tolist(), batch.label.tolist())
        return [
            Example(image, self.answers[label], seen_masks(mask[None]), self.queries[query])
            for image, mask, query, label in rows
        ]

    def write(self, numbers: range, out: Path, on_progress: OnProgress = no_progress) -> Path:
        """Write scenes as PNGs and ``scenes.jsonl``, one line of facts for each."""
        config = self.config

        def facts(layout: SceneLayout, file: str) -> dict[str, object]:
            as_authors = drawn_as_authors(config.drawing, layout.index)
            return {
                "file": file,
                "seed": config.seed,
                "split": self.split,
                "index": int(layout.index),
                "glyphs": self.glyphs.name,
                "background": self.backgrounds,
                "drawing": "blend" if as_authors is None or not bool(as_authors) else "authors",
                "objects": layout.facts()[0],
            }

        what = f"{config.name} {self.split} ({config.protocol})"
        return self.stream.write_scenes(facts, what, numbers, out, on_progress)

    def one_per_scene(self, count: int) -> Tensor:
        """(count,) or fewer: numbers of triples about different scenes, from the first on."""
        step = self.config.asks if self._ends is None else self.spec.slots + 1  # farther apart than a scene has digits
        return torch.arange(count if self.size is None else min(count, -(-self.size // step))) * step

    def by_scene(self, indices: Tensor, batch_size: int) -> list[Tensor]:
        """The triples ``indices`` (B,), in order, in batches of at least ``batch_size`` that cut no scene in two."""
        if not len(indices):
            return []
        scene = self._locate(indices)[0]  # (B,)
        batches, start = [], 0
        for end in [*(scene.diff().nonzero().flatten() + 1).tolist(), len(indices)]:
            if end - start >= batch_size or end == len(indices):
                batches.append(indices[start:end])
                start = end
        if len(batches) > 1 and len(batches[-1]) < batch_size:
            batches[-2:] = [torch.cat(batches[-2:])]
        return batches

    def _locate(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        if self._ends is None:
            scene, turn = indices // self.config.asks, indices % self.config.asks
            counts = scene_counts(self.spec, self.seed, scene)
            return scene, (uniform_below(hash_u32(self.seed, scene, _FIRST_TARGET), counts) + turn) % counts
        triple = indices + self._first
        scene = torch.searchsorted(self._ends, triple, right=True)
        start = torch.where(scene > 0, self._ends[(scene - 1).clamp(min=0)], 0)
        return scene, triple - start

    def _triple_ends(self, triples: int) -> Tensor:
        """Cumulative number of triples at the end of each scene, up to the scene that holds the last one."""
        fewest = self.spec.count[0]
        counts = scene_counts(self.spec, self.seed, torch.arange(-(-triples // fewest)))
        ends = counts.cumsum(0)
        return ends[: int(torch.searchsorted(ends, triples)) + 1]


def _some_absent(batch: SceneBatch, share: float) -> SceneBatch:
    """The same triples, a share of them about a digit that is absent; a function of the triple.

    ``object`` stays that of the replaced question: nothing in the scene is evidence.
    """
    layout = batch.layout
    is_chosen, which = (hash_u32(layout.seed, layout.index, batch.object, draw) for draw in (_IS_ABSENT, _WHICH_ABSENT))
    digits = torch.arange(len(SceneData.queries), device=batch.query.device)
    there = (layout.classes.unsqueeze(-1) == digits) & layout.present.unsqueeze(-1)  # (B,N,10)
    missing = ~there.any(1)  # (B,10); a scene may have all ten
    chosen = (is_chosen.double() / 2**32 < share) & missing.any(1)  # (B,)
    query = torch.where(chosen, drawn_from(missing, which), batch.query)
    return replace(batch, query=query, label=torch.where(chosen, len(COLOURS), batch.label))
