"""Captioned pictures: generated scenes, the Flickr sets, COCO, and your own tables.

=========== ========================================================================================================
scenes       one or two digits, or none, and the one sentence that is true of them, ``scenes.py``
READER:PATH  flickr8k, flickr30k, coco (``published.py``), and tables of your own
=========== ========================================================================================================

Numbers count captions in :meth:`CaptionData.take`, as in training, and pictures in :meth:`CaptionData.pictures`, as in
evaluation; a scene has one caption, so its numbers are the same. Generated training never ends: caption i is that of
scene i. Val has 2,000 scenes, test 5,000.

Deviation: the whole picture is fitted into the network input, where the paper crops the centre. A crop would hide what
a caption says about the border, and users show whole pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import Annotated, Any, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.config import Count, Seed, Share, Within
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed, hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.render import render
from saccade.data.tables.references import check_reference, read_reference
from saccade.data.tables.sampling import first_numbers
from saccade.data.tables.splits import SPLITS, Split, checked_split
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scenes import CaptionSceneStream, SceneGrammar, scene_spec, scene_vocabulary
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.geometry import Size
from saccade.models.sat import SatModel
from saccade.tasks.cached_features import RowFeatures

SCENES = "scenes"
"""The name of the generated set."""

_SCENE_SIZE, _FILE_SIZE = (100, 100), (224, 224)
_SIZES: dict[str, int | None] = {"train": None, "val": 2_000, "test": 5_000}
_STREAM = 7  # so that no other set draws the same scenes from a seed


@dataclass(frozen=True)
class CaptionDataConfig:
    """Which pictures and captions."""

    name: str = SCENES
    """``scenes``, or READER:PATH."""
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = None  # type: ignore[assignment]  # 100 × 100 for scenes, 224 × 224 for files
    """(height, width) of the network input; scenes are square."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the reader; scenes have none."""
    seed: Seed = 0
    """Seed of generated scenes."""
    cache_mb: Annotated[int, Within(0)] = 4096
    """Decoded pictures of a split kept on the device at most; the 6,000 of Flickr8k need 862 at 224 × 224."""
    features_mb: Annotated[int, Within(0)] = FEATURES_MB
    """What kept features of a frozen encoder may take on disk, those of other trainings among them; 0: keep none. The
    6,000 pictures of Flickr8k need 1,148 on 14 × 14 × 512."""
    augment: Augmentation | None = None
    """How training pictures of files are varied; None: not at all. Pictures of which features are kept are seen as they
    are: this is for phases that see the pictures themselves, above all those that train the encoder."""
    glyphs: GlyphPolicy = "disjoint"
    """Which digits each split of the scenes is made of, see ``glyphs.py``."""
    empty: Share = 0.0
    """Share of empty scenes, of which "nothing" is said, in every split; the others are the same with and without."""
    at_least: Count = 5
    """How often a word must be in the training captions to be in the vocabulary."""
    most_words: Count = 10_000
    """Words of the vocabulary at most."""

    def __post_init__(self) -> None:
        if self.size is None:
            object.__setattr__(self, "size", _SCENE_SIZE if self.is_generated else _FILE_SIZE)
        if self.is_generated:
            if self.size[0] != self.size[1]:
                raise ConfigError(f"size: scenes are square, found {self.size}")
            if self.options:
                raise ConfigError(f"options: scenes have none, found {', '.join(map(str, self.options))}")
            if self.augment is not None:
                raise ConfigError("augment: scenes are new each time, and their words say which is left; leave it out")
            scene_spec(self.size[0], self.empty)
        else:
            if self.empty:
                raise ConfigError(f"empty: is a share of generated scenes, found {self.empty} for files; leave it out")
            check_reference(self.name, CAPTION_READERS, self.options, (SCENES,))

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are generated scenes."""
        return self.name == SCENES


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
    layout: SceneLayout | None = None
    """The scenes, where the pictures were generated."""
    names: Tensor | None = None
    """(B, T) the object of its scene that a word names, −1 for other words and where there is none."""
    grammar: SceneGrammar | None = None
    """What puts scenes into words."""

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: Tensor) -> CaptionBatch:
        """The captions ``rows``, in that order, repeats allowed."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        chosen: Any = {name: value[rows] for name, value in values.items() if isinstance(value, Tensor | SceneLayout)}
        return replace(self, **chosen)

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


class CaptionData:
    """One split of captioned pictures: numbers of captions, or of pictures, to batches.

    Args:
        config: which pictures.
        split: train, val or test.
        device: where pictures are made or kept.
        vocabulary: that of a trained model; if not given, that of the scenes, or of the table's training captions.
        table: the captions of ``config``, where they are read already.
        allow_pack: let the test split of generated scenes use the shipped glyphs when MNIST is not there.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        config: CaptionDataConfig,
        split: Split,
        device: torch.device | str = "cpu",
        vocabulary: Vocabulary | None = None,
        *,
        table: Table | None = None,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config, self.split, self.device = config, checked_split(split), torch.device(device)
        table = read_table(config) if table is None else table
        self.vocabulary = vocabulary_of(table, config) if vocabulary is None else vocabulary
        self.source: CaptionScenes | CaptionFiles
        if table is None:
            self.source = CaptionScenes(config, split, self.device, self.vocabulary, allow_pack=allow_pack)
        else:
            self.source = CaptionFiles(
                table,
                split,
                config.size,
                self.device,
                vocabulary=self.vocabulary,
                cache_mb=config.cache_mb,
                progress=progress,
            )
        self.size, self.picture_count = self.source.caption_count, self.source.picture_count
        """Numbers of captions and of pictures; None for a stream without end."""
        self.features: RowFeatures | None = None
        """What stands in the place of pictures."""
        self.lengths = self.source.lengths
        """(N,) steps of each caption, its words and the end, for batches of one length; None for scenes."""

    def with_features(
        self, model: SatModel, on_progress: Callable[[str, int, int], None] = lambda what, done, total: None
    ) -> CaptionData:
        """The same captions, of files, with what the encoder of ``model`` makes of their pictures as it is now."""
        found, source = copy(self), cast(CaptionFiles, self.source)
        found.features = RowFeatures(source, model, limit_mb=self.config.features_mb, on_progress=on_progress)
        return found

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of at most ``limit`` pictures: of files a sample, else the first."""
        if isinstance(self.source, CaptionFiles):
            return self.source.sampled(limit)
        return first_numbers(self.picture_count, limit, self.split)

    def take(self, indices: Tensor, *, vary: int | None = None) -> CaptionBatch:
        """The captions ``indices`` (B,) with their pictures, in that order.

        Args:
            indices: numbers of captions.
            vary: for training, vary the pictures by it, if ``config.augment`` says how.
        """
        batch = self.source.batch(indices.cpu())
        if vary is None or self.config.augment is None:
            return batch
        return replace(batch, images=augment(batch.images, self.config.augment, vary)[0])

    def pictures(self, indices: Tensor) -> CaptionBatch:
        """The pictures ``indices`` (B,), in that order, each with one caption: the first that it has."""
        return self.source.of_pictures(indices.cpu())

    def references(self, number: int) -> tuple[str, ...]:
        """What people said of the picture ``number``, as they wrote it: what an answer is compared with."""
        return self.source.references(number)


class CaptionScenes(CaptionSceneStream):
    """Generated scenes of one split by number; arguments as of :class:`CaptionData`."""

    lengths = None

    def __init__(
        self,
        config: CaptionDataConfig,
        split: Split,
        device: torch.device,
        vocabulary: Vocabulary,
        *,
        allow_pack: bool = False,
    ) -> None:
        self.grammar = SceneGrammar(vocabulary, empty=config.empty > 0)
        glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        self.caption_count = self.picture_count = _SIZES[split]
        seed, spec = derive_seed(config.seed, SPLITS.index(split), _STREAM), scene_spec(config.size[0], config.empty)
        super().__init__(spec, glyphs, seed, device, length=self.picture_count)

    def batch(self, numbers: Tensor) -> CaptionBatch:
        """The scenes ``numbers`` (B,) and their sentences."""
        layout, images = self.scenes(numbers)
        words, names = self.grammar.describe(layout)
        return CaptionBatch(as_float(images), words, layout.index, layout=layout, names=names, grammar=self.grammar)

    of_pictures = batch

    def references(self, number: int) -> tuple[str, ...]:
        """The one sentence that is true of a scene."""
        return (self.grammar.vocabulary.decode(self.batch(torch.tensor([number])).words[0].tolist()),)


def read_table(config: CaptionDataConfig) -> Table | None:
    """The captions of a table; None of generated scenes."""
    return None if config.is_generated else read_reference(config.name, CAPTION_READERS, config.options)


def vocabulary_of(table: Table | None, config: CaptionDataConfig) -> Vocabulary:
    """The words of the training captions; of all of them, where the table has none to train on; None: of the scenes.

    Raises:
        DataError: no word is frequent enough.
    """
    if table is None:
        return scene_vocabulary(empty=config.empty > 0)
    splits = ("train",) if table.count("train") else SPLITS
    captions = (caption for split in splits for row in table.rows if row.split == split for caption in row.labels)
    try:
        return Vocabulary.build(captions, at_least=config.at_least, most=config.most_words)
    except DataError as error:
        raise DataError(f"{table.name}: {error}") from error


class CaptionFiles(ImageSplit):
    """The captions and the pictures of one split by number; arguments as of :class:`ImageSplit`.

    Captions of which the ``vocabulary`` knows no word are not among the pairs. References stay as they were written:
    such a caption is still one of the ``references`` for scoring.
    """

    def __init__(self, *arguments: Any, vocabulary: Vocabulary, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.vocabulary = vocabulary
        ids: list[list[int]] = []
        pictures: list[int] = []
        strange = []
        for number, row in enumerate(self.rows):
            for caption in row.labels:
                encoded = vocabulary.encode(caption)
                if all(word == UNKNOWN for word in encoded):
                    strange.append(f"no known word: {row.image.name}, '{caption[:40]}'")
                    continue
                ids.append([*encoded, END])
                pictures.append(number)
        self.leave_out(strange, len(ids), "caption")
        lengths = [len(each) for each in ids]
        self._all_words = torch.tensor([word for each in ids for word in each], dtype=torch.int32)
        self._start = torch.tensor([0, *accumulate(lengths)], dtype=torch.long)[:-1]  # (N,)
        self._picture_of_caption = torch.tensor(pictures, dtype=torch.long)  # (N,)
        self.lengths = torch.tensor(lengths, dtype=torch.long)
        """(N,) steps of each caption: its words and the end."""

    @property
    def caption_count(self) -> int:
        """Number of captions."""
        return len(self.lengths)

    @property
    def picture_count(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    def batch(self, numbers: Tensor) -> CaptionBatch:
        """The captions ``numbers`` (B,) with their pictures."""
        return self._batch(*self.captions(numbers))

    def captions(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The captions ``numbers`` (B,) alone: their words (B,T), and the number of the picture of each (B,)."""
        start, lengths = self._start[numbers], self.lengths[numbers]  # (B,) each
        step = torch.arange(int(lengths.max()))  # (T,)
        at = (start[:, None] + step).clamp(max=len(self._all_words) - 1)  # (B,T)
        words = torch.where(step < lengths[:, None], self._all_words[at].long(), NO_WORD)
        return words, self._picture_of_caption[numbers]

    def of_pictures(self, numbers: Tensor) -> CaptionBatch:
        """The pictures ``numbers`` (B,), each with the first of its captions."""
        first = [[*self.vocabulary.encode(self.rows[number].labels[0]), END] for number in numbers.tolist()]
        words = pad_sequence([torch.tensor(ids) for ids in first], batch_first=True, padding_value=NO_WORD)
        return self._batch(words, numbers)

    def references(self, number: int) -> tuple[str, ...]:
        """What people said of the picture ``number``."""
        return self.rows[number].labels

    def _batch(self, words: Tensor, numbers: Tensor) -> CaptionBatch:
        numbers = numbers.to(self.device)
        return CaptionBatch(self.images(numbers)[0], words.to(self.device), numbers)
