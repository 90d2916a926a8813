"""What the tasks of all families share: training and scoring a model, whatever it reads and answers.

A batch is a function of its number alone, so that resuming is exact. A finite split is visited in an order that (seed,
epoch) decides, in whole batches only, so that every step has the same shapes.
"""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict, to_dict
from saccade.data.examples import Example, Split
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.reading import unreadable_pictures
from saccade.data.scenes.glyphs import pack_if_missing
from saccade.data.tables.readers import read_reference
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError, SaccadeError, nearest
from saccade.families.registry import family, model_spec
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import AttentionModel
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import load_matching, save_model
from saccade.progress import OnProgress, no_progress
from saccade.tasks.data_parts import Entries, backbone_entries, settings_entries
from saccade.tasks.evaluate import Scoring, evaluate
from saccade.tasks.rivals import NO_RIVALS, Asked, Rivals, linear_rivals, wants_rivals

CHECKED = 5_000  # pictures of a table that are decoded to see whether they can be
NAMED = 5  # of those that cannot


class DataSplit(Protocol):
    """One split of the data, on the device."""

    split: Any  # train, val or test
    device: torch.device

    @property
    def size(self) -> int | None:
        """Number of examples; None: generated without end."""

    def take(self, indices: Tensor) -> Any:
        """The examples ``indices`` (B,) as a batch: a function of these numbers alone."""

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of at most ``limit`` examples: of files a sample, else the first."""

    def described(self) -> Mapping[str, object]:
        """Facts for an evaluation: the name as ``data``, and perhaps glyphs, protocol, a note."""

    def shown(self, count: int) -> list[Example]:
        """The first ``count`` examples for a person to look at."""


class Opening(NamedTuple):
    """How a split is opened."""

    table: Table | None = None  # The rows, if already read
    facts: ModelFacts | None = None  # Of a trained model, whose words the examples use
    # Whether the test split of generated scenes may use the shipped glyphs if MNIST is missing.
    allow_pack: bool = False
    on_progress: OnProgress = no_progress  # Called while files are read


AS_IS = Opening()


class HeldOut(NamedTuple):
    """Held-out examples of a trained model."""

    images: Tensor  # (B,3,H,W) float in 0..1
    query: Tensor | None = None  # (B,) what is asked, if anything
    # (B,) the right answer, or (B,K) the right answers; None if answers are no labels.
    label: Tensor | None = None


def evenly_spaced(size: int, count: int) -> Tensor:
    """``count`` numbers, or as many as there are, evenly over 0 … size − 1.

    >>> evenly_spaced(10, 5).tolist(), evenly_spaced(3, 5).tolist()
    ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    few = min(size, count)
    return torch.arange(few) * size // max(few, 1)


def build_loss(settings: Mapping[str, object] | str, losses: Mapping[str, type]) -> object:
    """The dataclass of the loss that ``settings`` name, ``{name: NAME, NUMBER: value, …}`` or NAME."""
    numbers = {"name": settings} if isinstance(settings, str) else dict(settings)
    name = str(numbers.pop("name", ""))
    if name not in losses:
        raise ConfigError(f"loss '{name}': {nearest(name, losses)}")
    return from_dict(losses[name], numbers, where="loss")


def loss_name(loss: object, losses: Mapping[str, type]) -> str:
    """The name in recipes of a loss that :func:`build_loss` built."""
    return next(name for name, kind in losses.items() if type(loss) is kind)


Batch = dict[str, Any]  # Tensors by name, example axis first; plain values hold for the whole batch


class Task(ABC):
    """Trains and scores one model; the engine asks for nothing but what is here.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model that the data does not decide.
        data: settings of the data.
        protocol: sizes and splits by name; stored with the model.
        seed: of the weights, the order of a finite training set, and generated training examples, but not of
            validation and test examples.
    """

    #: The family's.
    name: ClassVar[str]
    #: What a model must be for this task to train and score it.
    model_kind: ClassVar[type] = AttentionModel
    #: The same in words, after "a model that …".
    model_description: ClassVar[str] = "says where it looked"
    #: Whether answers are sentences made of the words in ``answers``.
    sentences: ClassVar[bool] = False
    #: The losses that a phase may use: names and their dataclasses.
    losses: ClassVar[Mapping[str, type]]
    #: (model, examples, limit, options of the family) → what is measured.
    scores: ClassVar[Callable[..., Scoring]]
    #: Whether a phase can learn from kept features of a frozen encoder.
    caches_features: ClassVar[bool] = False
    #: What a phase may learn from; the first is the plain examples.
    data_choices: ClassVar[tuple[str, ...]] = ("default",)
    #: The dataclass of ``data_config``; None: :meth:`settings_of` knows it.
    data_settings: ClassVar[type | None] = None
    #: The :class:`~saccade.data.tables.readers.Reader` of each kind of table and collection, by name.
    readers: ClassVar[Mapping[str, Any]] = {}
    #: The settings of the data, a dataclass with ``is_generated``.
    data_config: Any
    #: The rows of files, read once; None where examples are drawn.
    table: Any = None
    model: AttentionModel
    #: The questions by id; empty if the model takes none, or any text.
    queries: tuple[str, ...] = ()
    #: The answers by id; :meth:`model_settings` sets it.
    answers: tuple[str, ...]

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, object],
        data: Mapping[str, object],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        if not 0 <= seed < 1 << 32:
            raise ConfigError(f"seed: must lie in 0 .. 2^32 - 1, found {seed}")
        if self.readers and not data.get("name"):
            readers = ", ".join(self.readers)
            raise ConfigError(f"nothing to train on: give `data=READER:PATH`; readers: {readers}")
        self.architecture, self.protocol, self.seed = model, protocol, seed
        self.data_config = self.configure(data, protocol)
        self.table = self.read(self.data_config)
        for split in ("train", "val"):
            if self.table is not None and not self.table.count(split):
                thing = self.table.columns.thing
                raise DataError(f"{self.table.name}: no {thing} in split '{split}'; training needs train and val rows")
        self.model_config = self.model_settings(model_config)
        self.on_progress: OnProgress = no_progress
        self._start: tuple[Mapping[str, Tensor], str] | None = None
        self.model = self.new_model(seed)
        self.device = torch.device("cpu")
        self._splits: dict[str, Any] = {}
        self._shuffled: tuple[tuple[Any, int, int], Tensor] | None = None

    @classmethod
    def settings_of(cls, name: str) -> type:
        """The dataclass of the settings of the data called ``name``."""
        return cast(type, cls.data_settings)

    @classmethod
    def configure(cls, settings: Mapping[str, Any], protocol: str | None = None) -> Any:
        """The dataclass of the data's ``settings``, with the ``protocol`` of a recipe if generated data has one."""
        name = str(settings.get("name", ""))
        kind = cls.settings_of(name)
        if protocol and ":" not in name and "protocol" in _fields_of(kind):
            settings = {**settings, "protocol": protocol}
        return from_dict(kind, settings, where="data")

    @classmethod
    def open(cls, config: Any, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS) -> Any:
        """One split of the data on a device, see :class:`~saccade.tasks.task.DataSplit`."""
        raise DataError(f"the family '{cls.name}' has no way to open its data: there is nothing to show")

    @classmethod
    def read(cls, config: Any) -> Table | None:
        """The rows of READER:PATH; None where examples are drawn."""
        if config.is_generated or not cls.readers:
            return None
        return read_reference(config.name, cls.readers, config.options)

    @abstractmethod
    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """The settings of the model with those that the data decides."""

    def make_split(self, name: str, /, **changes: Any) -> Any:
        """A split of the data on the device, perhaps with ``changes`` of its settings.

        Endless training examples differ with the seed of the run.
        """
        config = replace(self.data_config, **changes)
        if name == "train" and config.is_generated and getattr(config, "protocol", "unlimited") == "unlimited":
            config = replace(config, seed=config.seed + self.seed)
        return self.open(config, cast(Split, name), self.device, Opening(self.table))

    @abstractmethod
    def batch(self, data: Any, indices: Tensor, number: int) -> Batch:
        """The examples ``indices`` (B,) of ``data`` for training; ``number`` counts the batches of all ranks."""

    def checked_loss(self, loss: Any, data: str) -> Any:
        """Returns ``loss`` if it fits the phase's ``data`` and the model; raises otherwise."""
        return loss

    @abstractmethod
    def inputs(self, batch: Batch) -> dict[str, Any]:
        """Keyword arguments of the model's ``forward_raw``."""

    def forward_options(self, loss: Any) -> dict[str, Any]:
        """Further keyword arguments of ``forward_raw`` in a phase with this ``loss``."""
        return {}

    @abstractmethod
    def loss(self, raw: Any, batch: Batch, loss: Any) -> dict[str, Tensor]:
        """Scalars by name; ``"loss"`` is minimised, the others are logged."""

    @abstractmethod
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Quick scores of ``model`` on the validation split, while it trains."""

    def compared(self) -> str:
        """The trained model beside its best rival on the validation split, in one line; empty where that is not cheap.

        It is cheap where features are kept that a linear classifier can learn from.
        """
        return ""

    @abstractmethod
    def metric_names(self) -> tuple[str, ...]:
        """Names of all validation scores; the first is ``score`` in a recipe."""

    def summary(self) -> str:
        """One line about the files, and below it what looks wrong with them."""
        return self.summary_of(self.table, None)

    def training_notes(self) -> dict[str, str]:
        """Notes on the training data for a model's card and record, by name."""
        return {}

    def data_parts(self) -> dict[str, Entries]:
        """All that a run learns from, part by part (:mod:`saccade.tasks.data_parts`): here settings and backbone."""
        settings = settings_entries(self.portable_settings(to_dict(self.data_config)))
        return {
            "settings": [*settings, ("seed of the run", str(self.seed))],
            "feature source": backbone_entries(self.model.config),
        }

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How a picture becomes the network input; None for a model that reads none."""
        return None

    def portable_settings(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of the data as the model folder stores them: the path of READER:PATH is private and left out."""
        return {**data, "name": data["name"].partition(":")[0]} if "name" in data else dict(data)

    def new_model(self, seed: int) -> AttentionModel:
        """A fresh model, a function of ``seed`` and of the weights that it starts from, if any."""
        spec = model_spec(self.architecture)
        if not issubclass(spec.load(), self.model_kind):
            raise ConfigError(f"model '{self.architecture}': '{self.name}' needs one that {self.model_description}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cast(AttentionModel, spec.build(self.model_config, where="model.config"))
        if getattr(model.config, "pretrained", False):
            model.load_pretrained()
        if self._start is not None:
            load_matching(model, *self._start)
        return model

    def start_from(self, weights: Mapping[str, Tensor], where: str) -> tuple[str, ...]:
        """Starts every model of this task from the matching ``weights``; returns the names without a match."""
        left = load_matching(self.model, weights, where)
        self._start = weights, where
        return left

    def to(self, device: torch.device) -> None:
        """Make batches on ``device`` from now on."""
        self.device = torch.device(device)
        self._splits.clear()
        self._shuffled = None

    def split(self, name: str) -> Any:
        """One split of the data, on the device."""
        if name not in self._splits:
            self._splits[name] = self.make_split(name)
        return self._splits[name]

    def phase_loss(self, phase: Any, learning: Sequence[str] = ()) -> Any:
        """The loss of a phase, which trains the parameters named ``learning``; a ConfigError if the task lacks it."""
        try:
            if phase.data not in self.data_choices:
                raise ConfigError(f"data '{phase.data}': {nearest(phase.data, self.data_choices)}")
            if phase.features == "kept" and (why := self.why_not_cached(phase.data, learning)):
                raise ConfigError(f"features 'kept': {why}")
            return self.checked_loss(build_loss(phase.loss, self.losses), phase.data)
        except SaccadeError as error:
            error.args = (f"phase '{phase.name}': {error}",)
            raise

    def why_not_cached(self, data: str, learning: Sequence[str]) -> str:
        """Why a phase cannot learn from cached features of a frozen encoder; empty if it can."""
        if not self.caches_features or data != "default":
            what = f"the task '{self.name}'" if not self.caches_features else f"data '{data}'"
            return f"{what} learns from more than features; leave it out"
        encoder: nn.Module | None = getattr(self.model, "encoder", None)
        if encoder is None:
            return f"the model '{self.architecture}' has no encoder that sees the picture alone; leave it out"
        encoder_parameters = {id(parameter) for parameter in encoder.parameters()}
        trained = [
            name
            for name, parameter in self.model.named_parameters()
            if name in set(learning) and id(parameter) in encoder_parameters
        ]
        mend = "freeze it, as in freeze: [backbone.*], or take features: fresh"
        return f"the encoder must stay as it is, but {trained[0]} learns; {mend}" if trained else ""

    def training_split(self, data: str = "default", features: str = "auto") -> Any:
        """The split for a phase with these ``data`` and ``features``."""
        return self.split("train")

    def steps_per_epoch(self, batch_size: int) -> int | None:
        """Whole batches in one pass; None when the data has no end."""
        return _whole_batches(self.split("train").size, batch_size)

    def train_batches(
        self,
        start: int,
        *,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        data: str = "default",
        features: str = "auto",
    ) -> Iterator[Batch]:
        """Batches ``start``, ``start + 1``, … without end, on the device that :meth:`to` named.

        Called when a phase begins, once its weights are frozen. Batch ``n`` is a function of (seed, data, features, n)
        alone: ``batch_size * world_size`` examples, of which this rank takes the ``rank``-th slice. With ``graph:
        true`` every batch has the same shapes and is built from tensors, numbers, strings, lists, tuples, dicts and
        dataclasses.
        """
        split = self.training_split(data, features)
        together = batch_size * world_size
        _whole_batches(split.size, together)
        mine = slice(rank * batch_size, (rank + 1) * batch_size)
        ahead = self.batches_per_call
        for first in itertools.count(start, ahead):
            members = [self._members(split, first + at, together)[mine] for at in range(ahead)]
            yield from self.make_batches(split, members, [(first + at) * world_size + rank for at in range(ahead)])

    @property
    def batches_per_call(self) -> int:
        """Batches that :meth:`make_batches` makes at once; it does not change them."""
        return 1

    def make_batches(self, data: Any, members: Sequence[Tensor], numbers: Sequence[int]) -> Iterator[Batch]:
        """The batches ``numbers``, each of the examples in its entry of ``members`` (B,)."""
        for indices, number in zip(members, numbers):
            yield self.batch(data, indices, number)

    def _members(self, data: Any, number: int, together: int) -> Tensor:
        if data.size is None:
            return torch.arange(number * together, (number + 1) * together)
        per_epoch = data.size // together
        epoch, place = divmod(number, per_epoch)
        key = (data, epoch, together)  # of the very data: a phase in the middle of an epoch has an order of its own
        if self._shuffled is None or self._shuffled[0] != key:
            self._shuffled = key, self.order(data, epoch, together)
        return self._shuffled[1][place * together : (place + 1) * together]

    def order(self, data: Any, epoch: int, together: int) -> Tensor:
        """The examples of one epoch, to be cut into batches of ``together``: (size,); shuffled by (seed, epoch)."""
        generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
        return torch.randperm(data.size, generator=generator)

    @property
    def can_refit(self) -> bool:
        """Whether :meth:`refit` knows how to fit the classifier of the model."""
        return False

    def refit(self, model: nn.Module) -> None:
        """Fits the classifier of ``model`` exactly to what its other weights make of the training split."""
        raise NotImplementedError

    @classmethod
    def scoring(cls, model: Any, examples: Any, *, limit: int | None, **options: Any) -> Scoring:
        """The measurements of ``model`` on ``examples``; ``options`` are those of the family."""
        return cls.scores(model, examples, limit=limit, **options)

    @classmethod
    def asked(cls, examples: Any) -> Asked | None:
        """What the rows of a split ask, and their labels; None: no linear classifier can learn to answer."""
        return None

    @classmethod
    def rivals(
        cls,
        model: Any,
        config: Any,
        examples: Any,
        numbers: Tensor,
        facts: ModelFacts | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Rivals:
        """Linear classifiers on the features of the model's backbone, on the examples ``numbers`` (N,)."""
        if (asked := cls.asked(examples)) is None or not (examples.table.count("train") and wants_rivals(model)):
            return NO_RIVALS
        learned = cls.open(config, "train", examples.device, Opening(examples.table, facts))
        known = {"train": cast(Asked, cls.asked(learned)), examples.split: asked}
        limit_mb = getattr(config, "features_mb", FEATURES_MB)  # not all data has such a setting
        return linear_rivals(model, examples, numbers, learned, known, on_progress, limit_mb)

    @classmethod
    def eval_settings(cls, facts: ModelFacts, changes: Mapping[str, object]) -> dict[str, Any]:
        """The data settings for scoring the model of ``facts``: those of its training with ``changes``."""
        trained_on = str(facts.data.get("name", ""))
        if "name" not in changes and trained_on in cls.readers:
            raise ConfigError(f"a model does not store where its data is; give `data={trained_on}:PATH`")
        name = str(changes.get("name", trained_on))
        allowed = _fields_of(cls.settings_of(name))
        if unknown := [change for change in changes if change not in allowed and change != "seed"]:
            raise ConfigError(f"{' and '.join(unknown)}: '{name}' has no choice of these; leave it out")
        settings = {key: value for key, value in {**facts.data, **changes}.items() if key in allowed}
        if "size" in allowed and facts.preprocessing is not None:
            settings.setdefault("size", facts.preprocessing.size)
        if name.partition(":")[0] != trained_on.partition(":")[0]:
            settings.pop("options", None)  # other pictures have other options
        return settings

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, Any],
        split: str,
        *,
        facts: ModelFacts | None = None,
        limit: int | None = None,
        allow_pack: bool = False,
        on_progress: OnProgress = no_progress,
        **options: Any,
    ) -> Evaluation:
        """Every score of ``model``, in eval mode, on a split; see :func:`saccade.commands.evaluate.evaluate`.

        ``facts`` and ``allow_pack`` are those of :class:`Opening`, ``options`` those of the family.
        """
        device = next(model.parameters()).device
        how, config = Opening(facts=facts, allow_pack=allow_pack), cls.configure(data)
        examples = cls.open(config, cast(Split, split), device, how)
        scoring = cls.scoring(model, examples, limit=limit, **options)
        rivals = cls.rivals(model, config, examples, scoring.numbers, facts, on_progress)
        scores = evaluate(scoring, on_progress, rivals.right)
        if rivals.note:
            scores["note"] = "; ".join(filter(None, [scores.get("note"), rivals.note]))
        described = dict(examples.described())
        return evaluation(scores, data=str(described.pop("data")), split=split, **described)

    @classmethod
    def show_split(
        cls,
        settings: Mapping[str, Any],
        split: Split,
        count: int,
        *,
        facts: ModelFacts | None = None,
        on_progress: OnProgress = no_progress,
        check: bool = False,
    ) -> tuple[list[Example], str]:
        """The first ``count`` examples of a split for a person to look at, and :meth:`summary_of` the data.

        ``facts``: of a model whose words the examples use; its scenes do not need MNIST. ``check``: decode the pictures
        of a table, :data:`CHECKED` at most, and say which cannot be read.
        """
        remark = ""
        kind = cls.settings_of(str(settings.get("name", "")))
        if facts is not None and "glyphs" in _fields_of(kind):
            settings, remark = pack_if_missing(settings, split)
        config = cls.configure(cls.settings_to_show(settings, facts))
        table = cls.read(config)
        first = None if table is None else table.first(split, count)
        examples: DataSplit = cls.open(config, split, how=Opening(first, facts, True, on_progress))
        summary = remark or cls.summary_of(table, examples)
        if check and isinstance(table, Table):
            summary = "\n".join([summary, *_unreadable(table, on_progress)])
        return examples.shown(count), summary

    @classmethod
    def settings_to_show(cls, settings: Mapping[str, Any], facts: ModelFacts | None) -> Mapping[str, Any]:
        """``settings`` with defaults that suit a person who looks at the data."""
        return settings

    @classmethod
    def summary_of(cls, table: Any, examples: Any) -> str:
        """One line about a table, and below it what looks wrong with it; empty for generated data."""
        return "" if table is None else str(table.summary())

    @classmethod
    def write_split(
        cls,
        settings: Mapping[str, Any],
        split: Split,
        count: int,
        out: Path,
        *,
        start: int = 0,
        on_progress: OnProgress = no_progress,
    ) -> Path:
        """Write the generated examples ``start`` … ``start + count − 1`` to disk, all or nothing."""
        config = cls.configure(cls.settings_to_show(settings, None))
        if not config.is_generated:
            raise DataError(f"{config.name} is read, not generated; it cannot be made")
        examples = cls.open(config, split, how=Opening(allow_pack=True))
        return cast(Path, examples.write(range(start, start + count), Path(out), on_progress))

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """Write the model folder, with what this run knows of it."""
        data = self.portable_settings(to_dict(self.data_config))
        licence, research_only = family(self.name).licence_of_weights(str(data.get("name", "")))
        recipe = dict(facts.get("recipe", {}))
        if "data" in recipe:
            recipe["data"] = self.portable_settings(recipe["data"])
        save_model(
            model,
            folder,
            ModelFacts(
                architecture=self.architecture,
                model=to_dict(model.config),
                family=self.name,
                queries=self.queries,
                answers=self.answers,
                preprocessing=self.preprocessing,
                sentences=self.sentences,
                data=data,
                protocol=self.protocol,
                seed=self.seed,
                recipe=recipe,
                dtype=recipe.get("stored", "float32"),
                revision=facts.get("revision"),
                licence=licence,
                research_only=research_only,
                training={
                    **{key: value for key, value in facts.items() if key not in ("recipe", "revision")},
                    **self.training_notes(),
                },
            ),
        )


def _unreadable(table: Table, on_progress: OnProgress) -> list[str]:
    """Lines that say how many pictures of a table cannot be read, and name the first; none where all can."""
    pictures = list(dict.fromkeys(row.image for row in table.rows))
    some = [pictures[place] for place in evenly_spaced(len(pictures), CHECKED).tolist()]
    wrong = unreadable_pictures(some, on_progress)
    if not wrong:
        return []
    of = f"{len(some):,}" if len(some) == len(pictures) else f"the {len(some):,} that were tried (of {len(pictures):,})"
    more = [f"  … and {len(wrong) - NAMED:,} more"] if len(wrong) > NAMED else []
    return [
        f"doubtful: of {of} pictures {len(wrong):,} cannot be read; training and scores leave them out:",
        *(f"  {text}" for text in wrong[:NAMED]),
        *more,
    ]


def _fields_of(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _whole_batches(size: int | None, together: int) -> int | None:
    """The number of batches of ``together`` in ``size`` examples; a DataError if there is none."""
    if size is not None and size < together:
        smaller = 1 << max(0, size.bit_length() - 2)
        raise DataError(f"batch_size {together} is above the {size} training examples; try `batch_size={smaller}`")
    return None if size is None else size // together


def in_batches(data: Any, batch_size: int) -> Iterator[Any]:
    """The batches of a finite split, in order."""
    for start in range(0, data.size, batch_size):
        yield data.take(torch.arange(start, min(start + batch_size, data.size), device=data.device))
