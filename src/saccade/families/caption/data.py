"""Captioned pictures: generated scenes (``scenes.py``), and those of files (``published.py``).

Numbers count captions in ``take``, as in training, and pictures in ``of_pictures``, as in evaluation; a scene has one
caption, so its numbers are the same. Generated training never ends. Val has 2,000 scenes, test 5,000.

Deviation: the whole picture is fitted into the network input, where the paper crops the centre. A crop would hide what
a caption says about the border, and users show whole pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.config import Count, Seed, Share, Within
from saccade.data.examples import SPLITS, Example, Split, seen_masks
from saccade.data.pictures.augment import Augmentation
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.drawing import COLOURS, render
from saccade.data.scenes.glyphs import GlyphPolicy
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.stream import SplitStream
from saccade.data.tables.readers import check_reference
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scenes import (
    CaptionSpec,
    check_words,
    describe,
    sample_captioned,
    scene_spec,
    scene_vocabulary,
)
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.geometry import Size
from saccade.tasks.cached_features import RowFeatures

SCENES = "scenes"  # the name of the generated set

_SCENE_SIZE, _FILE_SIZE = (100, 100), (224, 224)
_SIZES: dict[str, int | None] = {"train": None, "val": 2_000, "test": 5_000}
_STREAM = 7  # so that no other set draws the same scenes from a seed


@dataclass(frozen=True)
class CaptionDataConfig:
    """Which pictures and captions."""

    name: str = SCENES  # ``scenes``, or READER:PATH.
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = field(default=cast(Size, None))
    """(height, width) of the network input: of scenes, which are square, 100 × 100 by default, of files 224 × 224."""
    options: dict[str, Any] = field(default_factory=dict)  # Settings of the reader; scenes have none.
    seed: Seed = 0  # Seed of generated scenes.
    cache_mb: Annotated[int, Within(0)] = 4096
    """Most decoded pictures of a split on the device in MB; the 6,000 of Flickr8k need 862 at 224 × 224."""
    features_mb: Annotated[int, Within(0)] = FEATURES_MB
    """Disk space for cached features, other trainings included; 0: no cache. The 6,000 pictures of Flickr8k need 1,148
    on 14 × 14 × 512."""
    augment: Augmentation | None = None
    """How training pictures of files are varied; None: not at all. With cached features pictures stay as they are: this
    is for phases that see pictures, above all those that train the encoder."""
    glyphs: GlyphPolicy = "disjoint"  # The digits of each split, see ``glyphs.py``.
    empty: Share = 0.0  # Share of empty scenes ("nothing") in every split; the other scenes do not change.
    at_least: Count = 5  # Least count of a vocabulary word in the training captions.
    most_words: Count = 10_000  # Largest vocabulary.

    def __post_init__(self) -> None:
        if self.size is None:
            object.__setattr__(self, "size", _SCENE_SIZE if self.is_generated else _FILE_SIZE)
        if self.is_generated:
            if self.size[0] != self.size[1]:
                raise ConfigError(f"size: scenes are square, found {self.size}")
            if self.options or self.augment is not None:
                named = ", ".join(map(str, self.options)) or "augment"
                raise ConfigError(f"scenes are new each time, and take neither options nor augment, found {named}")
            scene_spec(self.size[0], self.empty)
        else:
            check_reference(self.name, CAPTION_READERS, self.options, (SCENES,))

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are generated scenes."""
        return self.name == SCENES


_RECOLOUR = 100  # draws on top of those that make a scene


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Captions with their pictures; for generated scenes also the digit that each word names."""

    images: Tensor  # (B, 3, H, W) float32 in 0..1
    words: Tensor  # (B, T) numbers of words, then 0 for the end, then −1
    picture: Tensor  # (B,) number of the picture in its split; several captions may share one
    layout: SceneLayout | None = None  # the scenes, where the pictures were generated
    names: Tensor | None = None  # (B, T) the object that a word names, −1 if none
    vocabulary: Vocabulary | None = None  # of the scenes

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: Tensor) -> CaptionBatch:
        """The captions ``rows``, in that order, repeats allowed."""
        values = vars(self).items()
        chosen: Any = {name: value[rows] for name, value in values if isinstance(value, Tensor | SceneLayout)}
        return replace(self, **chosen)

    @property
    def has_mask(self) -> Tensor:
        """(B, T) bool: the words whose evidence is known."""
        return torch.zeros_like(self.words, dtype=torch.bool) if self.names is None else self.names >= 0

    def word_masks(self) -> Tensor | None:
        """(B, T, H, W) bool: the pixels of the digit that a word names; None without scenes."""
        if self.layout is None or self.names is None:
            return None
        row = torch.arange(len(self), device=self.names.device)[:, None]
        return self.layout.masks()[row, self.names.clamp(min=0)] & self.has_mask[..., None, None]

    def recolour(self, which: int) -> CaptionBatch:
        """The same scenes with digit ``which`` in another colour, drawn from the scene number, and new captions."""
        scenes = cast(SceneLayout, self.layout)  # files are never recoloured
        slot = torch.full_like(self.picture, which)  # (B,)
        draw = hash_u32(scenes.seed, scenes.index, slot, _RECOLOUR)
        colour = (scenes.colour[:, which] + 1 + uniform_below(draw, len(COLOURS) - 1)) % len(COLOURS)  # (B,)
        layout = scenes.recolour(slot, colour)
        words, names = describe(layout, cast(Vocabulary, self.vocabulary))
        return replace(self, images=as_float(render(layout)), words=words, names=names, layout=layout)


_TIES, _SHORT, _BATCHES = range(3)  # streams of draws within an epoch


def bucketed_order(lengths: Tensor, batch_size: int, seed: int, epoch: int) -> Tensor:
    """(N,) the numbers 0 … N − 1, to be cut into batches of neighbours in length; a function of its arguments.

    The short rest comes last and is cut from a random place, so that long captions are not left out more often.
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


def examples(data: Any, count: int) -> list[Example]:
    """The first ``count`` pictures, each with its first caption."""
    size = data.picture_count
    numbers = torch.arange(count if size is None else min(count, size))
    batch = data.of_pictures(numbers)
    truths = [data.references(number)[0] for number in numbers.tolist()]
    masks = [()] * len(truths) if batch.layout is None else list(map(seen_masks, batch.layout.masks()))
    return [Example(*fields) for fields in zip(batch.images, truths, masks)]


class CaptionScenes(SplitStream[SceneLayout]):
    """Generated scenes of one split by number; ``how`` as in :class:`SplitStream`."""

    spec: CaptionSpec
    lengths = features = None

    def __init__(
        self,
        config: CaptionDataConfig,
        split: Split,
        device: torch.device | str = "cpu",
        vocabulary: Vocabulary | None = None,
        **how: bool,
    ) -> None:
        spec = scene_spec(config.size[0], config.empty)
        super().__init__(config, split, spec, _STREAM, _SIZES[split], device, **how)
        self.picture_count = self.size
        self.vocabulary = vocabulary or scene_vocabulary(empty=config.empty > 0)
        check_words(self.vocabulary, empty=config.empty > 0)

    def _draw(self, numbers: Tensor) -> tuple[SceneLayout, Tensor]:
        layout = sample_captioned(self.spec, self.glyphs, self.seed, numbers)
        return layout, render(layout)

    def take(self, indices: Tensor, *, vary: int | None = None) -> CaptionBatch:
        """The scenes ``indices`` (B,), each with its sentence; none is varied."""
        layout, images = self.scenes(indices)
        words, names = describe(layout, self.vocabulary)
        return CaptionBatch(as_float(images), words, layout.index, layout, names, self.vocabulary)

    of_pictures = take

    def references(self, number: int) -> tuple[str, ...]:
        """The one sentence that is true of a scene."""
        return (self.vocabulary.decode(self.take(torch.tensor([number])).words[0].tolist()),)

    shown = examples

    def truth(self, layout: SceneLayout) -> dict[str, object]:
        """The sentence, and the objects as named in it."""
        words, _ = describe(layout, self.vocabulary)
        return {"caption": self.vocabulary.decode(words[0].tolist()), "objects": layout.facts()[0]}


def vocabulary_of(table: Table, config: CaptionDataConfig) -> Vocabulary:
    """The words of the training captions; of all captions, if the table has no training rows."""
    splits = ("train",) if table.count("train") else SPLITS
    captions = (caption for split in splits for row in table.rows if row.split == split for caption in row.labels)
    try:
        return Vocabulary.build(captions, at_least=config.at_least, most=config.most_words)
    except DataError as error:
        raise DataError(f"{table.name}: {error}") from error


class CaptionFiles(ImageSplit):
    """The captions and pictures of one split of a table by number; arguments as of :class:`ImageSplit`.

    Captions without a word in the ``vocabulary`` are left out, but stay ``references``.
    """

    features: RowFeatures | None = None  # what stands in the place of pictures

    def __init__(
        self, config: CaptionDataConfig, table: Table, split: str, *, vocabulary: Vocabulary, **how: Any
    ) -> None:
        super().__init__(table, split, config.size, cache_mb=config.cache_mb, **how)
        self.config, self.vocabulary = config, vocabulary
        ids: list[Tensor] = []
        pictures: list[int] = []
        strange = []
        for number, row in enumerate(self.rows):
            for caption in row.labels:
                encoded = vocabulary.encode(caption)
                if all(word == UNKNOWN for word in encoded):
                    strange.append(f"no known word: {row.image.name}, '{caption[:40]}'")
                    continue
                ids.append(torch.tensor([*encoded, END], dtype=torch.int32))
                pictures.append(number)
        self.leave_out(strange, len(ids), "caption")
        self._words = torch.cat(ids)  # one behind the other: a single long caption must not widen all
        self._picture_of_caption = torch.tensor(pictures, dtype=torch.long)  # (N,)
        self.lengths = torch.tensor(list(map(len, ids)))  # (N,) steps of each caption: its words and the end
        self._end = self.lengths.cumsum(0)  # (N,)

    @property
    def size(self) -> int:
        """Number of captions."""
        return len(self.lengths)

    @property
    def picture_count(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    def take(self, indices: Tensor, *, vary: int | None = None) -> CaptionBatch:
        """The captions ``indices`` (B,) with their pictures, perhaps varied by ``vary``."""
        words, numbers = self.captions(indices.cpu())
        return self._batch(words, numbers, None if vary is None else self.config.augment, vary or 0)

    def captions(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The words (B,T) of the captions ``numbers`` (B,), and the number of each one's picture (B,)."""
        places = zip((self._end - self.lengths)[numbers].tolist(), self._end[numbers].tolist())
        words = [self._words[start:end].long() for start, end in places]
        return pad_sequence(words, batch_first=True, padding_value=NO_WORD), self._picture_of_caption[numbers]

    def of_pictures(self, indices: Tensor) -> CaptionBatch:
        """The pictures ``indices`` (B,), each with the first of its captions."""
        first = [[*self.vocabulary.encode(self.rows[number].labels[0]), END] for number in indices.tolist()]
        words = pad_sequence([torch.tensor(ids) for ids in first], batch_first=True, padding_value=NO_WORD)
        return self._batch(words, indices)

    def references(self, number: int) -> tuple[str, ...]:
        """The captions of the picture ``number``, as written."""
        return self.rows[number].labels

    def described(self) -> dict[str, object]:
        """The reader, and whether test are the dev pictures."""
        dev = self.split == "test" and self.config.options.get("splits") == "dev"
        return {**super().described(), **({"scored_part": "dev pictures"} if dev else {})}

    shown = examples

    def _batch(self, words: Tensor, numbers: Tensor, how: Augmentation | None = None, seed: int = 0) -> CaptionBatch:
        numbers = numbers.to(self.device)
        return CaptionBatch(self.images(numbers, how, seed)[0], words.to(self.device), numbers)


# Training or scoring data: captions by number in ``take``, pictures in ``of_pictures``.
CaptionSplit = CaptionScenes | CaptionFiles
