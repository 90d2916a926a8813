"""Captioned pictures: generated scenes, the Flickr sets, COCO, and your own tables.

=========== ========================================================================================================
scenes       one or two digits, or none, and the one sentence that is true of them, ``caption_scenes.py``
READER:PATH  flickr8k, flickr30k, coco (``published.py``), and tables of your own (``table.py``)
=========== ========================================================================================================

Numbers count captions in :meth:`CaptionData.take`, as in training, and pictures in :meth:`CaptionData.pictures`, as in
evaluation; a scene has one caption, so its numbers are the same. Generated training never ends: caption i is that of
scene i. Val has 2,000 scenes, test 5,000.

Deviation: the whole picture is fitted into the network input, where the paper crops the centre. A crop would hide what
a caption says about the border, and users show whole pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any, cast

import torch
from torch import Tensor

from saccade.config import Count, Seed, Share, Within, from_dict
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.references import read_reference, split_reference
from saccade.data.tables.sampling import checked_numbers
from saccade.data.tables.splits import SPLITS, Split, checked_split
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError, nearest
from saccade.families.caption.batch import CaptionBatch, bucketed_order
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scenes import LONGEST, CaptionSceneStream, SceneGrammar, scene_spec, scene_vocabulary
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.geometry import Size

__all__ = ["SCENES", "CaptionBatch", "CaptionData", "CaptionDataConfig", "bucketed_order"]

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
        self._check_name()
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
            reader, _ = split_reference(self.name, CAPTION_READERS)
            from_dict(CAPTION_READERS[reader].options, self.options, where="options")

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are generated scenes."""
        return self.name == SCENES

    def _check_name(self) -> None:
        if self.is_generated:
            return
        if ":" not in self.name:
            readers = (f"{reader}:PATH" for reader in CAPTION_READERS)
            raise ConfigError(f"name: found '{self.name}'; {nearest(self.name, (SCENES, *readers))}")
        try:
            split_reference(self.name, CAPTION_READERS)
        except DataError as error:
            raise ConfigError(f"name: {error}") from error


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
        self.source: CaptionScenes | CaptionFiles
        """Where the captions come from: the ``stream`` of scenes, or the ``rows`` of files."""
        if config.is_generated:
            self.vocabulary = vocabulary_of(None, config) if vocabulary is None else vocabulary
            self.source = CaptionScenes(config, split, self.device, self.vocabulary, allow_pack=allow_pack)
        else:
            table = read_reference(config.name, CAPTION_READERS, config.options) if table is None else table
            self.vocabulary = vocabulary_of(table, config) if vocabulary is None else vocabulary
            self.source = CaptionFiles(
                table,
                split,
                config.size,
                self.device,
                vocabulary=self.vocabulary,
                cache_mb=config.cache_mb,
                progress=progress,
            )

    @property
    def size(self) -> int | None:
        """Number of captions; None for a stream without end."""
        return self.source.caption_count

    @property
    def picture_count(self) -> int | None:
        """Number of pictures; None for a stream without end."""
        return self.source.picture_count

    @property
    def lengths(self) -> Tensor | None:
        """(N,) steps of each caption, its words and the end, for batches of one length; None for scenes."""
        return self.source.lengths

    @property
    def longest(self) -> int:
        """Words of the longest caption of the split, without its end."""
        return self.source.longest

    @property
    def material(self) -> str:
        """What the pictures are made of, for reports: the glyphs of generated scenes, else READER:PATH."""
        return self.source.name

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was left out when the split was opened, each with its reason."""
        return self.source.skipped

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def take(self, indices: Tensor, *, augment_seed: int | None = None) -> CaptionBatch:
        """The captions ``indices`` (B,) with their pictures, in that order.

        Args:
            indices: numbers of captions.
            augment_seed: for training, vary the pictures by it, if ``config.augment`` says how.
        """
        batch = self.source.batch(checked_numbers(indices, self.size, self.split, "captions"))
        if augment_seed is None or self.config.augment is None:
            return batch
        return batch.framed(*augment(batch.images, self.config.augment, augment_seed))

    def pictures(self, indices: Tensor) -> CaptionBatch:
        """The pictures ``indices`` (B,), in that order, each with one caption: the first that it has."""
        return self.source.of_pictures(checked_numbers(indices, self.picture_count, self.split, "pictures"))

    def references(self, number: int) -> tuple[str, ...]:
        """What people said of the picture ``number``, as they wrote it: what an answer is compared with."""
        (checked,) = checked_numbers(torch.tensor([number]), self.picture_count, self.split, "pictures").tolist()
        return self.source.references(checked)


class CaptionScenes:
    """Generated scenes of one split by number; arguments as of :class:`CaptionData`."""

    skipped: tuple[str, ...] = ()
    lengths = None
    longest = LONGEST

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
        self.glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        self.caption_count = self.picture_count = _SIZES[split]
        seed = derive_seed(config.seed, SPLITS.index(split), _STREAM)
        spec = scene_spec(config.size[0], config.empty)
        self.stream = CaptionSceneStream(spec, self.glyphs, seed, device, length=self.picture_count)

    @property
    def name(self) -> str:
        """The name of the glyphs."""
        return self.glyphs.name

    def batch(self, numbers: Tensor) -> CaptionBatch:
        """The scenes ``numbers`` (B,) and their sentences."""
        layout, images = self.stream.scenes(numbers)
        words, names = self.grammar.describe(layout)
        return CaptionBatch(as_float(images), words, layout.index, layout=layout, names=names, grammar=self.grammar)

    of_pictures = batch

    def references(self, number: int) -> tuple[str, ...]:
        """The one sentence that is true of a scene."""
        layout, _ = self.stream.scenes(torch.tensor([number]))
        return (self.grammar.vocabulary.decode(self.grammar.describe(layout).words[0].tolist()),)


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

    @property
    def longest(self) -> int:
        """Words of the longest caption, without its end."""
        return int(self.lengths.max()) - 1

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
        words = torch.full((len(first), max(map(len, first))), NO_WORD)
        for row, ids in enumerate(first):
            words[row, : len(ids)] = torch.tensor(ids)
        return self._batch(words, numbers)

    def references(self, number: int) -> tuple[str, ...]:
        """What people said of the picture ``number``."""
        return self.rows[number].labels

    def _batch(self, words: Tensor, numbers: Tensor) -> CaptionBatch:
        numbers = numbers.to(self.device)
        picture = self.picture[numbers]
        canvas, image_size = self.pictures.canvas[picture], self.pictures.image_size[picture]
        return CaptionBatch(self.images(numbers)[0], words.to(self.device), numbers, canvas, image_size)
