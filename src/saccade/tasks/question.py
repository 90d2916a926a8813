"""Questions about one's own pictures: a table of pictures, queries and answers in, a model that answers and looks out.

The table says what can be asked and answered, so the sizes of the model's query and answer are filled in from it. The
training side; the scoring side is :mod:`saccade.tasks.question_scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.hashing import derive_seed
from saccade.data.question_table import QuestionTable
from saccade.data.questions import QuestionBatch, QuestionData, QuestionDataConfig
from saccade.data.readers import READERS, read_questions
from saccade.data.references import split_reference
from saccade.errors import ConfigError
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts
from saccade.tasks.query_task import QueryTask
from saccade.tasks.question_prior import training_prior
from saccade.tasks.question_scores import SWEEPS, score_questions
from saccade.tasks.trainable_tables import check_named, check_trainable
from saccade.tasks.wanted import Wanted


class QuestionTask(QueryTask):
    """Trains one query model on a table of questions.

    Args:
        model: catalog name of the model.
        model_config: settings of the model; ``queries``, ``answers`` and ``multi_label`` come from the table.
        data: settings of :class:`QuestionDataConfig`; ``name`` is READER:PATH.
        protocol: the recipe's name for its splits; kept with the model.
        seed: of the weights, of the order of the training questions and of what augments them.
    """

    name = "question"

    def __init__(
        self,
        *,
        model: str,
        model_config: Mapping[str, Any],
        data: Mapping[str, Any],
        protocol: str | None = None,
        seed: int = 0,
    ) -> None:
        check_named(data, READERS, "pictures")
        self.data_config = from_dict(QuestionDataConfig, data, where="data")
        self.table = read_questions(self.data_config.name, self.data_config.options)
        check_trainable(self.table, "question")
        settings = _filled_in(model_config, self.table)
        size = self.data_config.size
        super().__init__(model=model, model_config=settings, size=size, protocol=protocol, seed=seed)

    def described(self) -> str:
        """What the table holds, in one line."""
        return self.table.described()

    def make_split(self, name: str) -> QuestionData:
        """One split of the table, its pictures on the device where they fit."""
        return QuestionData(self.data_config, name, self.device, table=self.table)

    def training_batch(self, data: QuestionData, indices: Tensor, number: int) -> QuestionBatch:
        """Questions (B,) with their pictures varied as the seed and the number of the batch say."""
        return data.take(indices, augment_seed=derive_seed(self.seed, number))

    def measures(self) -> tuple[str, ...]:
        """What :meth:`validate` tells."""
        return ("score", *super().measures())

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Metrics on the validation split; ``score`` is the one that decides, whichever kind of table it is."""
        found = super().validate(model)
        return {"score": found["weighted_map" if self.table.multi_label else "accuracy"], **found}

    @classmethod
    def scored_on(cls, facts: ModelFacts, wanted: Wanted) -> dict[str, Any]:
        """What :meth:`evaluate` is given to score the model of ``facts`` on what is ``wanted``."""
        reader = facts.data.get("name")
        if wanted.data is None:
            raise ConfigError(f"a model does not remember where its pictures were; give --data {reader}:PATH")
        for name in ("protocol", "glyphs"):
            if getattr(wanted, name) is not None:
                raise ConfigError(f"--{name} is about generated scenes; this model answers questions about pictures")
        settings = {**facts.data, "name": wanted.data}
        if split_reference(wanted.data, READERS)[0] != reader:
            settings.pop("options", None)  # another reader has other options
        return {"data": settings, "queries": facts.queries, "answers": facts.answers}

    @classmethod
    def evaluate(
        cls,
        model: nn.Module,
        data: Mapping[str, Any],
        split: str,
        *,
        queries: tuple[str, ...],
        answers: tuple[str, ...],
        limit: int | None = None,
        sweeps: int = SWEEPS,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.verbs.evaluate``.

        ``queries`` and ``answers`` are the model's words; questions in other words are left out and counted.
        """
        config = from_dict(QuestionDataConfig, data, where="data")
        if not isinstance(model, QueryModel):
            raise ConfigError("the task 'question' scores models that answer queries")
        table = read_questions(config.name, config.options)
        device = next(model.parameters()).device
        chosen = QuestionData(config, split, device, table=table, queries=queries, answers=answers)
        if chosen.multi_label != model.multi_label:
            has, gives = ("several labels", "one") if chosen.multi_label else ("one label", "several")
            raise ConfigError(f"{config.name} has {has} for a question, but the model answers with {gives}")
        prior = training_prior(table, queries, answers)
        scores = score_questions(model, chosen, prior, limit=limit, sweeps=sweeps, progress=progress)
        found = {"data": split_reference(config.name, READERS)[0], "split": split, **scores.summary()}
        unread = [reason for reason in table.skipped if "never seen in train" not in reason]  # the model's words count
        found["counts"]["skipped_rows"] = len(unread) + len(chosen.skipped)
        return found


def _filled_in(model_config: Mapping[str, Any], table: QuestionTable) -> dict[str, Any]:
    """The model's settings with what the table decides; a setting that says otherwise is an error."""
    decided = {"queries": len(table.queries), "answers": len(table.answers), "multi_label": table.multi_label}
    for name, value in decided.items():
        if name in model_config and model_config[name] != value:
            found = model_config[name]
            raise ConfigError(f"model.config.{name}: found {found}, but {table.name} has {value}; leave it out")
    return {**model_config, **decided}
