"""Training on questions about your own pictures: a table of pictures, queries and answers in, a model out.

The table says what can be asked and answered, so the sizes of the model's query and answer are filled in from it. The
training side; the scoring side is :mod:`saccade.families.question.table_scores`.

A phase that leaves the backbone as it is learns from its features, which are computed once and kept on disk
(:mod:`saccade.tasks.cached_features`). With ``features: auto`` this needs pictures that are not varied (``data.augment:
null``) and a model that sees the whole backbone before it is asked, as SOFT does and HAttNet does not. ``kept`` leaves
pictures unvaried, whatever ``data.augment`` says; ``fresh`` keeps nothing. Validation in such a phase reads them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.examples import Example, seen_masks
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.doubts import warn_of_one_answer
from saccade.data.tables.references import read_reference, split_reference
from saccade.data.tables.splits import Split
from saccade.data.tables.table import UNSEEN, Table
from saccade.errors import ConfigError, DataError
from saccade.families.question.causal import CausalConfig, write_causal
from saccade.families.question.readers import READERS
from saccade.families.question.table_scores import SWEEPS, TableScoring, training_prior
from saccade.families.question.tables import TableBatch, TableData, TableDataConfig
from saccade.families.question.task import QuestionTask
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts
from saccade.tasks.cached_features import CachedFeatures, is_frozen
from saccade.tasks.data_parts import LEARNED, Entries, picture_entries, row_entries, word_entries
from saccade.tasks.evaluate import Progress, evaluate
from saccade.tasks.forward_passes import distinct
from saccade.tasks.picture_task import filled_in
from saccade.tasks.task import Batch, OpenedSplit, config_of, evenly_spaced, in_batches


class EncodedQuestions(NamedTuple):
    """Questions with what is kept of their pictures."""

    encoding: Tensor
    """(B,…) as ``encode`` makes it."""
    query: Tensor
    """(B,) number of the query."""
    label: Tensor
    """(B,) number of the answer, or (B,K) float 0 or 1 where there may be several."""


class QuestionFeatures:
    """One split of questions with the features of their pictures, by the number of the question.

    A picture that is asked several questions has its features once.

    Args:
        data: the questions.
        model: its backbone as it is now; what later becomes of it is not noticed.
        on_progress: as in :class:`CachedFeatures`.
    """

    def __init__(
        self,
        data: TableData,
        model: QueryModel,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        self._data, self.size, self.split, self.device = data, data.size, data.split, data.device
        _, _, picture = data.questions(torch.arange(data.size))  # (N,)
        asked_about, self._which = torch.unique(picture, return_inverse=True)  # (P,), (N,)
        paths = [data.pictures.paths[number] for number in asked_about.tolist()]
        self._features = CachedFeatures(
            paths,
            lambda numbers: data.pictures.take(asked_about[numbers.to(asked_about.device)]),
            model,
            limit_mb=data.config.features_mb,
            on_progress=on_progress,
        )

    def take(self, indices: Tensor) -> EncodedQuestions:
        """The questions ``indices`` (B,), in that order."""
        query, label, _ = self._data.questions(indices)
        return EncodedQuestions(self._features.take(self._which[indices.to(self._which.device)]), query, label)


KEPT = "/kept"
"""Behind the name of a split: the features of its pictures."""
KEPT_AT_ONCE = 64  # questions with their features in validation: as many as commonly learn together


class TableTask(QuestionTask):
    """Trains one query model on a table of questions.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model; ``queries``, ``answers`` and ``multi_label`` come from the table.
        data: settings of :class:`TableDataConfig`; ``name`` is READER:PATH.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of the training questions and of what augments them.
    """

    data_settings = TableDataConfig
    table: Table

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """``queries``, ``answers`` and ``multi_label`` come from the table."""
        table = self.table
        learned = (", ".join(row.labels) for row in table.rows if row.split == "train")
        warn_of_one_answer(table.name, learned, things="questions", word="answer")
        decided = {"queries": len(table.queries), "answers": len(table.answers), "multi_label": table.several}
        return filled_in(model_config, decided, table.name)

    def summary(self) -> str:
        """What the table holds, in one line; below it, what looks wrong with it."""
        return self.table.summary()

    def extra_data_parts(self) -> dict[str, Entries]:
        """The questions of train and val, their pictures, and the words."""
        rows = [row for row in self.table.rows if row.split in LEARNED]
        return {
            "rows": row_entries((row.image, row.query, (row.split, row.labels)) for row in rows),
            "pictures": picture_entries((row.image for row in rows), self.on_progress),
            "vocabulary": word_entries(query=self.table.queries, answer=self.table.answers),
        }

    def make_split(self, name: str) -> TableData | QuestionFeatures:
        """One split of the table, its pictures on the device where they fit; or SPLIT/kept: what is kept of them."""
        if name.endswith(KEPT):
            return QuestionFeatures(self.split(name.removesuffix(KEPT)), cast(QueryModel, self.model), self.on_progress)
        return TableData(self.data_config, name, self.device, table=self.table)

    def training_split(self, data: str = "default", features: str = "auto") -> TableData | QuestionFeatures:
        """Questions with their pictures, or with what is kept of these while the backbone is frozen."""
        for name in ("train", "val"):  # what was kept is of a backbone that may have learned since
            self._splits.pop(f"{name}{KEPT}", None)
        found: TableData | QuestionFeatures = self.split(f"train{KEPT}" if self._keeps(features) else "train")
        return found

    def _keeps(self, features: str) -> bool:
        """Whether the phase that begins learns from kept features: its weights and modes are set by now."""
        config, encoder = self.data_config, self.model.encoder
        if features == "fresh" or not config.features_mb:
            return False
        is_still = encoder is not None and is_frozen(encoder)
        if features == "kept" and not is_still:
            raise ConfigError(
                "features 'kept': the weights or statistics of the encoder change in this phase, or it has replicas; "
                "freeze it, or take features: fresh"
            )
        return is_still and (features == "kept" or config.augment is None)

    def batch(self, data: TableData | QuestionFeatures, indices: Tensor, number: int) -> Batch:
        """The questions ``indices`` (B,) with their answers, and with their pictures or the features of those."""
        if isinstance(data, QuestionFeatures):
            evidence = {"evidence": self.split("train").evidence(indices)} if self.evidence_weight else {}
            return {**data.take(indices)._asdict(), **evidence}
        return super().batch(data, indices, number)

    def training_batch(self, data: TableData, indices: Tensor, number: int) -> TableBatch:
        """Questions (B,) with their pictures varied as the seed and the number of the batch say."""
        return data.take(indices, derive_seed(self.seed, number), masks=bool(self.evidence_weight))

    @property
    def has_evidence(self) -> bool:
        """Whether a training row has a box, a point or a mask."""
        return any(row.split == "train" and (row.box or row.point or row.mask) for row in self.table.rows)

    def distinct_numbers(self, data: TableData, count: int) -> Tensor:
        """One question about each picture, of as many pictures."""
        order = torch.randperm(data.size, generator=torch.Generator().manual_seed(0))  # or all would ask the same
        _, _, picture = data.questions(order)  # (Q,)
        first, _ = distinct(picture.cpu())
        return order[first][evenly_spaced(len(first), count)]

    def answers(self, model: QueryModel) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits (B,K) and labels of the validation split; from kept features where the phase learns from such."""
        if f"train{KEPT}" not in self._splits or model is not self.model:
            yield from super().answers(model)
            return
        for batch in in_batches(self.split(f"val{KEPT}"), KEPT_AT_ONCE):
            yield model.ask(batch.encoding, batch.query).logits, batch.label

    @classmethod
    def eval_settings(cls, facts: ModelFacts, changes: Mapping[str, object]) -> dict[str, Any]:
        """As of every task; a model that learned from scenes keeps the size of its pictures alone."""
        reader, data = facts.data.get("name"), str(changes.get("name", ""))
        if not data:
            raise ConfigError(f"a model does not store where its pictures are; give `data={reader}:PATH`")
        for name in ("protocol", "glyphs", "drawing"):
            if name in changes:
                raise ConfigError(f"`{name}` is about generated scenes; this model answers questions about pictures")
        named = split_reference(data, READERS)[0]
        if reader not in READERS:  # it learned from scenes, whose settings a table does not have
            size = None if facts.preprocessing is None else facts.preprocessing.size
            return {"name": data} | ({} if size is None else {"size": size})
        settings = {**facts.data, "name": data}
        if named != reader:
            settings.pop("options", None)  # another reader has other options
        return settings

    @classmethod
    def evaluate(  # type: ignore[override]
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        facts: ModelFacts,
        limit: int | None = None,
        sweeps: int = SWEEPS,
        twins: int = 0,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        The words of ``facts`` count; questions in other words are left out and counted.
        """
        if twins:
            raise ConfigError(f"twins: photographs cannot be rendered again with one thing changed; found {twins}")
        config = from_dict(TableDataConfig, data, where="data")
        model = cast(QueryModel, model)
        table = read_reference(config.name, READERS, config.options)
        device = next(model.parameters()).device
        queries, answers = facts.queries, facts.answers
        chosen = TableData(config, split, device, table=table, queries=queries, answers=answers)
        if chosen.multi_label != model.multi_label:
            has, gives = ("several labels", "one") if chosen.multi_label else ("one label", "several")
            raise ConfigError(f"{config.name} has {has} for a question, but the model answers with {gives}")
        prior = training_prior(table, queries, answers)
        scores = evaluate(TableScoring(model, chosen, prior, limit=limit, sweeps=sweeps), progress)
        found = evaluation(scores, data=split_reference(config.name, READERS)[0], split=split)
        unread = [reason for reason in table.skipped if UNSEEN not in reason]  # the model's words count
        found["counts"]["skipped_rows"] = len(unread) + len(chosen.skipped)
        return found

    @classmethod
    def open_split(
        cls,
        settings: Mapping[str, Any],
        split: Split,
        *,
        facts: ModelFacts | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> OpenedSplit:
        """The pictures of a table, each with its first question."""
        if settings["name"] == "causal":
            raise DataError("'causal' is drawn by `saccade data make causal --out DIR`; then name it causal:DIR")
        config = config_of(TableDataConfig, settings)
        table = read_reference(config.name, READERS, config.options)
        words: dict[str, Any] = {} if facts is None else {"queries": facts.queries, "answers": facts.answers}
        shown = table if count is None else table.first(split, count)
        data = TableData(config, split, table=shown, progress=progress, **words)
        return OpenedSplit(lambda many: table_examples(data, many), table.summary())

    @classmethod
    def write_split(cls, settings: Mapping[str, Any], split: Split, count: int, out: Path, **how: Any) -> Path:
        """Write a causal set; no other table is made."""
        if settings["name"] != "causal":
            raise DataError(f"{settings['name']} is read, not generated; it cannot be made")
        return write_causal(config_of(CausalConfig, settings), split, count, Path(out), **how)


def table_examples(data: TableData, count: int) -> list[Example]:
    """The first ``count`` pictures, each with its first question."""
    numbers = data.one_per_picture(count)
    batch = data.take(numbers)
    rows = [data.rows[number] for number in numbers.tolist()]
    return [
        Example(image, ", ".join(row.labels), seen_masks(mask[None]), row.query)
        for image, mask, row in zip(batch.images, batch.evidence(), rows)
    ]
