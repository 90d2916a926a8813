"""Shared by all tasks on pictures: training a model, whatever it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor

from saccade.data.examples import Split
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError, listed
from saccade.geometry import Size, cell_profiles
from saccade.losses.maps import evidence_loss, overlap_loss
from saccade.models.base import AttentionModel, ImageModel
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.tasks.data_parts import Entries, glyph_entries, table_parts, word_entries
from saccade.tasks.task import AS_IS, Batch, HeldOut, Opening, Task, evenly_spaced
from saccade.trace import COMBINE, AttentionTrace, Look, ModelOutput

HELD_OUT_AT_ONCE = 100
Examples = TypeVar("Examples")


class PictureTask(Task):
    """Trains one model on pictures, drawn or of a table."""

    model_kind: ClassVar[type] = ImageModel
    #: (config, split, device, allow_pack=…) → a split that is drawn.
    generated: ClassVar[Callable[..., Any]]
    #: (config, split=…, table=…, device=…, on_progress=…, words of a model) → a split of files.
    files: ClassVar[Callable[..., Any]]
    model: ImageModel
    table: Table | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        #: (height, width) of the network input.
        self.size = self.network_size()
        #: The largest ``evidence_weight`` of the losses asked for; above 0, batches hold their evidence.
        self.evidence_weight = 0.0
        self._map_losses = MapLosses()
        self.model.check_input(self.size)

    def network_size(self) -> Size:
        """(height, width) of the network input."""
        height, width = self.data_config.size
        return height, width

    @classmethod
    def open(cls, config: Any, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS) -> Any:
        """Generated pictures, or those of a table, in the words of a trained model."""
        table = cls.read(config) if how.table is None else how.table
        if table is None:
            return with_labels_of(cls.generated(config, split, device, allow_pack=how.allow_pack), how.facts)
        words = {} if how.facts is None else cls.words_of(how.facts)
        return cls.files(config, split=split, table=table, device=device, on_progress=how.on_progress, **words)

    @classmethod
    def words_of(cls, facts: ModelFacts) -> dict[str, Any]:
        """What a trained model knows of the words of a table, as arguments of :attr:`files`."""
        return {"answers": facts.answers}

    @property
    def preprocessing(self) -> Preprocessing:
        """Pictures are laid inside the network input."""
        return Preprocessing(size=self.size)

    def data_parts(self) -> dict[str, Entries]:
        """Adds the rows and pictures of train and val, or the glyphs of scenes, and the words."""
        parts = super().data_parts()
        if self.table is not None:
            parts |= table_parts(self.table, self.on_progress)
        elif glyphs := getattr(self.data_config, "glyphs", None):
            parts["glyphs"] = glyph_entries(glyphs)
        return parts | ({"vocabulary": word_entries(**words)} if (words := self.learned_words()) else {})

    def learned_words(self) -> dict[str, Sequence[str]]:
        """The learned words by kind; by default the names of the labels."""
        return {"label": self.answers}

    def training_notes(self) -> dict[str, str]:
        """Whether maps were taught where to look."""
        weight = self.evidence_weight
        return {"maps_supervised": f"by evidence, with weight {weight:g}"} if weight else {}

    def require_evidence(self, weight: float, has_evidence: bool) -> None:
        """Makes batches hold their evidence from now on, if ``weight`` is above 0."""
        if weight and not has_evidence:
            advice = "add a column box, point or mask, or leave it out"
            raise ConfigError(f"loss: evidence_weight: no training picture has evidence; {advice}")
        self.evidence_weight = max(self.evidence_weight, weight)

    def with_evidence(
        self, scalars: dict[str, Tensor], raw: ModelOutput, batch: Batch, weight: float
    ) -> dict[str, Tensor]:
        """The ``scalars`` of a loss, with ``weight`` times the loss of maps on the evidence."""
        if not weight:
            return scalars
        missed = self._map_losses.evidence(self.model, raw, batch["evidence"])
        return {**scalars, "loss": scalars["loss"] + weight * missed, "evidence_loss": missed}

    @property
    def learns_val(self) -> bool:
        """Whether the model learns from the pictures of val too, so that they are not held out."""
        return False

    def held_out(self, split: str, count: int) -> Iterator[HeldOut]:
        """About ``count`` examples of a split, no picture twice; of an endless split the first."""
        data = self.split(split)
        for numbers in torch.split(self.distinct_numbers(data, count), HELD_OUT_AT_ONCE):
            yield self.held_out_batch(data, numbers)

    def distinct_numbers(self, data: Any, count: int) -> Tensor:
        """Numbers of at most ``count`` examples of ``data`` that are about different pictures."""
        return torch.arange(count) if data.size is None else evenly_spaced(data.size, count)

    def held_out_batch(self, data: Any, numbers: Tensor) -> HeldOut:
        """The examples ``numbers`` (B,), with their labels where answers are single labels."""
        return HeldOut(data.take(numbers).images)


def filled_in(model_config: Mapping[str, object], decided: Mapping[str, object], name: str) -> dict[str, Any]:
    """The model's settings with those ``decided`` by the data, called ``name``; a contradiction is an error."""
    for setting, value in decided.items():
        if (chosen := model_config.get(setting, value)) != value:
            raise ConfigError(f"model.config.{setting}: found {chosen}, but {name} has {value}; leave it out")
    return {**model_config, **decided}


class MapLosses:
    """The losses of :mod:`saccade.losses.maps` on the total map of a model, from a result of its ``forward_raw``."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}

    def evidence(self, model: AttentionModel, raw: ModelOutput, evidence: Tensor) -> Tensor:
        """:func:`evidence_loss` of the total map and the evidence (B,H,W) bool, in pixels of the network input."""
        looks, mask = self._looks(model, raw), evidence.float()  # (B,H,W)
        size = (evidence.shape[-2], evidence.shape[-1])
        if len(looks) == 1 and not looks[0].base:
            rows, columns = self._laid(looks[0], size, evidence.device)
            on_evidence = rows @ mask @ columns.T  # (B,h,w): n of Eq. (1)
            everywhere = rows.sum(1)[:, None] * columns.sum(1)  # (h,w): d
            return evidence_loss(_weights(looks[0]), on_evidence, everywhere[None])
        total = self._total(model, looks, size, evidence.device)  # (B,H,W)
        return evidence_loss(total, mask, torch.ones_like(mask[:1]))

    def overlap(self, model: AttentionModel, raw: ModelOutput, size: Size, asks: int) -> Tensor:
        """:func:`overlap_loss` of total maps, with ``asks`` examples in a row about one picture of that size."""
        looks = self._looks(model, raw)
        if len(looks) == 1 and not looks[0].base:
            return overlap_loss(_weights(looks[0]), asks)
        return overlap_loss(self._total(model, looks, size, raw.logits.device), asks)

    def _looks(self, model: AttentionModel, raw: ModelOutput) -> tuple[Look, ...]:
        looks = AttentionTrace(looks=model.looks(raw), total=model.total).looks_of_total
        looks = looks[-1:] if model.total == "last" else looks
        fixed = [look for look in looks if look.weights is not None and not look.has_steps and look.frame is not None]
        if not looks or len(fixed) < len(looks):
            raise ConfigError(_UNTAUGHT.format(type(model).__name__))
        return looks

    def _total(self, model: AttentionModel, looks: Sequence[Look], size: Size, device: torch.device) -> Tensor:
        combine, neutral = COMBINE[model.total]
        total = torch.full((len(_weights(looks[0])), *size), neutral, device=device)  # (B,H,W)
        for look in looks:
            rows, columns = self._laid(look, size, device)
            total = combine(total, rows.T @ _weights(look) @ columns + look.base)
        return total

    def _laid(self, look: Look, size: Size, device: torch.device) -> tuple[Tensor, Tensor]:
        """The shares of the cells of ``look`` in the rows (h,H) and columns (w,W) of a picture of that size."""
        height, width = _weights(look).shape[-2:]
        key = (look.name, height, width, size, device)
        if key not in self._profiles:
            frame = cast(Tensor, look.frame)
            profiles = cell_profiles(frame.detach().cpu(), (height, width), size) if frame.dim() == 2 else None
            if profiles is None:
                raise ConfigError(_UNTAUGHT.format(f"the look '{look.name}'"))
            rows, columns = profiles
            self._profiles[key] = rows.float().to(device), columns.float().to(device)
        return self._profiles[key]


_UNTAUGHT = (
    "loss: evidence_weight and overlap_weight teach maps on a fixed grid; {} has no map, a crop, steps, or a grid that "
    "moves from picture to picture: leave them out"
)


def _weights(look: Look) -> Tensor:
    return cast(Tensor, look.weights).float()


def with_labels_of(examples: Examples, facts: ModelFacts | None) -> Examples:
    """``examples``; a DataError if their labels are not those of a trained model, in its order."""
    split: Any = examples
    if facts is not None and split.answers != facts.answers:
        labels, theirs = (listed(words[:5]) for words in (split.answers, facts.answers))
        name = split.described()["data"]
        raise DataError(f"{name}: its labels are {labels}, …; those of the model are {theirs}, …; name other data")
    return examples
