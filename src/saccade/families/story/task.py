"""Training on stories: sentences and a question in, an answer out. Scoring is in ``scores``.

A recipe of a memory network has two phases, as the paper has (Sukhbaatar et al. 2015, Section 4.2): ``linear_start``
without the softmaxes over the memory, then ``answer`` with them. Several restarts are trained as one stack
(``replicas``); the one with the lowest training error is kept, as published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from saccade.config import Weight
from saccade.data.examples import Split
from saccade.errors import ConfigError
from saccade.families.registry import model_spec
from saccade.families.story.data import AskedQuestions, StoryDataConfig, StorySource
from saccade.families.story.scores import CAUSAL, RECURRENT, StoryScoring, taught_note, unknown_words
from saccade.families.story.stories import StoryExample, story_words
from saccade.families.story.tensors import StoryTensors, noisy_times, sizes_of
from saccade.metrics.intervals import Values
from saccade.models.facts import ModelFacts
from saccade.models.story import StoryModel
from saccade.tasks.data_parts import LEARNED, Entries, word_entries
from saccade.tasks.picture_task import filled_in
from saccade.tasks.task import AS_IS, Batch, Opening, Task
from saccade.trace import ModelOutput


@dataclass(frozen=True)
class AnswerLoss:
    """Cross-entropy of the answer, of every word where it is said word by word."""


@dataclass(frozen=True)
class LinearStart(AnswerLoss):
    """The same without the softmaxes over the memory (Sukhbaatar et al. 2015, Section 4.2)."""


@dataclass(frozen=True)
class GatedLoss(AnswerLoss):
    """Cross-entropy of the answer, and of the choice of the supporting fact in each pass (Kumar et al. 2016)."""

    gates: Weight = 1.0  # Weight of the gates, α in the paper.


VALIDATION_BATCH = 2000
MAX_TRAINING = 20_000  # Most questions for the training error
MAX_PASSES = 10
# Batches made at once: their small operations cost the same for one batch as for several.
AHEAD = {"cuda": 64, "cpu": 16}


class StoryTask(Task):
    """Trains one model that answers questions about stories; the data decide words, memory and the like."""

    name = "story"
    data_settings = StoryDataConfig
    model_kind = StoryModel
    model_description = "answers questions about stories"
    losses: ClassVar[Mapping[str, type]] = {
        "default": AnswerLoss, "answer": AnswerLoss, "linear_start": LinearStart, "gated": GatedLoss
    }  # fmt: skip
    model: StoryModel

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """The data sets the number of words, and the largest sizes of stories, sentences and answers."""
        kind = model_spec(self.architecture).load()
        self.source = StorySource(self.data_config)
        self.by_word = bool(getattr(kind, "answers_word_by_word", False))
        learned = [*self.source.questions("train"), *self.source.questions("val")]
        self.answers = story_words(learned, by_word=self.by_word)
        self.sizes = sizes_of(learned, self.data_config.memory)
        most = self.sizes.memory + int(-(-self.data_config.noise * self.sizes.memory // 1))
        limits = {"words": len(self.answers), "times": min(self.data_config.memory, most), **self.sizes._asdict()}
        if model_config.get("stops"):  # one pass for each supporting fact, and one to end
            limits["passes"] = min(MAX_PASSES, 1 + max(len(example.supporting) for example in learned))
        decided = {field: value for field, value in limits.items() if field in kind.Config.__dataclass_fields__}
        return filled_in(model_config, decided, "the data")

    def summary(self) -> str:
        train, val = self.source.questions("train"), self.source.questions("val")
        both = f"{len(train):,} training and {len(val):,} validation questions{_of_tasks(train)}"
        return self.source.summary or f"{both}, {len(self.answers):,} words"

    def data_parts(self) -> dict[str, Entries]:
        """Adds the questions of train and val by task, unless generated, and the vocabulary."""
        parts = {**super().data_parts(), "vocabulary": word_entries(word=self.answers)}
        if not self.data_config.is_generated:
            parts["questions"] = [entry for split in LEARNED for entry in question_entries(self.source, split)]
        return parts

    def make_split(self, name: str, /, **changes: Any) -> StoryTensors:
        questions = self.source.questions(name)
        return StoryTensors(questions, self.answers, self.sizes, self.device, by_word=self.by_word)

    def checked_loss(self, loss: object, data: str) -> object:
        if isinstance(loss, LinearStart) and "linear" not in self.model.switches:
            raise ConfigError(f"loss 'linear_start': '{self.architecture}' has no softmax over a memory to leave out")
        if isinstance(loss, GatedLoss):
            if getattr(self.model.config, "gate", "") != "softmax":  # gates that choose one fact in each pass
                raise ConfigError(f"loss 'gated': gates of '{self.architecture}' cannot be trained; set gate: softmax")
            if not any(example.supporting for example in self.source.questions("train")):
                name = self.data_config.name
                raise ConfigError(f"loss 'gated': {name} names no supporting facts; use the recipe dmn-weak")
        return loss

    def forward_options(self, loss: object) -> dict[str, object]:
        """Linear start is a switch of the forward pass."""
        return {"linear": True} if isinstance(loss, LinearStart) else {}

    @property
    def batches_per_call(self) -> int:
        return AHEAD.get(self.device.type, 1)

    def make_batches(self, data: StoryTensors, members: Sequence[Tensor], numbers: Sequence[int]) -> Iterator[Batch]:
        """The batches ``numbers``, made as one and split.

        On a CPU, slots that are empty in all their stories are left out, if the model does not see them. On a GPU all
        batches have the same shapes.
        """
        size = len(members[0])
        rows = (torch.tensor(numbers).unsqueeze(1) * size + torch.arange(size)).flatten()  # (N·size,)
        whole = self._taught(data, torch.cat(list(members)), rows)
        for at in range(len(numbers)):
            part = slice(at * size, (at + 1) * size)
            batch = {name: values[part] if isinstance(values, Tensor) else values for name, values in whole.items()}
            if self.device.type == "cpu" and self.model.slots_include_past:
                slots = max(1, int(batch["count"].max()))
                batch |= {"story": batch["story"][:, :slots], "rows": batch["rows"][:, :slots]}
            yield batch

    def batch(self, data: StoryTensors, indices: Tensor, number: int) -> Batch:
        return next(self.make_batches(data, [indices], [number]))

    def _taught(self, data: StoryTensors, indices: Tensor, rows: Tensor) -> Batch:
        """One or several batches; ``rows`` (B,) number the examples of the run."""
        share = self.data_config.leave_out
        batch: Batch = data.take_some(indices, share, seed=self.seed, rows=rows) if share else data.take(indices)
        taught = self.model.training_inputs
        batch |= {"said": batch["answer"]} if "said" in taught else {}
        batch |= {"length": data.length} if "length" in taught and self.device.type != "cpu" else {}
        batch |= {"passes": (batch["supporting"] >= 0).sum(1)} if "passes" in taught and self.model.config.stops else {}
        if self.data_config.noise and "times" in taught:
            slots = batch["story"].shape[1]
            batch["times"] = noisy_times(batch["count"], slots, self.data_config.noise, seed=self.seed, rows=rows)
        if "bags" in taught:
            batch["bags"] = data.bags(batch["rows"], cast(Any, self.model).bags)  # (B,S,W)
            batch["query_bags"] = data.bags(batch["query_row"], cast(Any, self.model).bags)  # (B,W)
        return batch

    def inputs(self, batch: Batch) -> dict[str, object]:
        taught = {name: batch[name] for name in self.model.training_inputs if name in batch}
        return {"story": batch["story"], "query": batch["query"], **taught}

    def loss(self, raw: ModelOutput, batch: Batch, loss: Any) -> dict[str, Tensor]:
        logits = raw.logits if raw.logits.dim() == 3 else raw.logits.unsqueeze(1)  # (B,A,V)
        answer = batch["answer"]  # (B,A)
        logs = logits.log_softmax(-1).gather(-1, answer.unsqueeze(-1))  # (B,A,1); cross_entropy is slow in a stack
        surprise = -logs.mean()
        right = (logits.argmax(-1) == answer).all(1).float().mean()
        if not isinstance(loss, GatedLoss):
            return {"loss": surprise, "accuracy": right}
        scores = torch.stack([act.scores for act in raw.acts.values()], 1)  # (B,T,S+1)
        gates = gate_loss(scores, batch["supporting"], batch["count"])
        return {"loss": surprise + loss.gates * gates, "accuracy": right, "gates": gates}

    def metric_names(self) -> tuple[str, ...]:
        return ("accuracy", "loss", "train_accuracy")

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy and loss on the validation split, and accuracy on the training split."""
        scores = self._measured(model, self.split("val"), None)
        train = self._measured(model, self.split("train"), MAX_TRAINING)
        return {**scores, "train_accuracy": train["accuracy"]}

    def _measured(self, model: nn.Module, data: StoryTensors, most: int | None) -> dict[str, float]:
        values, total = Values(), data.size if most is None else min(most, data.size)
        step = max(1, data.size // total)  # evenly over the split, which is sorted by task
        for indices in torch.split(torch.arange(0, data.size, step), VALIDATION_BATCH):
            batch = data.take(indices)
            logits = cast(StoryModel, model).forward_raw(batch["story"], batch["query"]).logits
            logits = logits if logits.dim() == 3 else logits.unsqueeze(1)  # (B,A,V)
            target = batch["answer"].clamp(min=0)
            surprise = nn.functional.cross_entropy(logits.transpose(1, 2), target, reduction="none").mean(1)  # (B,)
            values.add_values({"accuracy": (logits.argmax(-1) == batch["answer"]).all(1), "loss": surprise})
        return values.means()

    @classmethod
    def open(
        cls, config: StoryDataConfig, split: Split, device: torch.device | str = "cpu", how: Opening = AS_IS
    ) -> AskedQuestions:
        return AskedQuestions(config.name, StorySource(config).questions(split), how.facts)

    @classmethod
    def scoring(  # type: ignore[override]
        cls, model: Any, examples: AskedQuestions, *, limit: int | None, sweeps: int = CAUSAL
    ) -> StoryScoring:
        """Answers and looks; ``sweeps`` questions get causal tests."""
        facts = cast(ModelFacts, examples.facts)
        scoring = StoryScoring(model, examples.questions, facts.answers, limit=limit, causal=sweeps)
        unknown = unknown_words(scoring.examples, facts.answers, by_word=model.answers_word_by_word)
        recurrent = RECURRENT if model.slots_include_past else ""
        scoring.note = "; ".join(filter(None, [unknown, taught_note(facts), recurrent]))
        return scoring

    @classmethod
    def summary_of(cls, table: None, examples: AskedQuestions) -> str:
        return f"{len(examples.questions):,} questions{_of_tasks(examples.questions)}"


def _of_tasks(examples: Sequence[StoryExample]) -> str:
    tasks = len({example.task for example in examples})
    return f" of {tasks} tasks" if tasks > 1 else ""


def question_entries(source: StorySource, split: Split) -> Entries:
    """For each task of a split its number of questions and a digest of these in order."""
    digests: dict[str, tuple[int, Any]] = {}
    for example in source.questions(split):
        count, digest = digests.get(example.task) or (0, hashlib.blake2b(digest_size=8))
        content = (*example.sentences, example.question, example.answer, ",".join(map(str, example.supporting)))
        digest.update("\n".join(content).encode("utf-8", "surrogatepass") + b"\0")
        digests[example.task] = count + 1, digest
    names = {task: f"{split} {task or 'questions'}, {count:,} in all" for task, (count, _) in digests.items()}
    return [(names[task], f"#{digest.hexdigest()}") for task, (_, digest) in digests.items()]


def gate_loss(scores: Tensor, supporting: Tensor, count: Tensor) -> Tensor:
    """Cross-entropy of choosing the i-th supporting fact in pass i, and then the end-of-passes fact.

    ``scores`` (B,T,S+1) of facts in each pass are −∞ for no fact; ``supporting`` (B,F) are slots, then below 0;
    ``count`` (B,) is the slot of the end-of-passes fact.
    """
    passes = scores.shape[1]
    facts = (supporting >= 0).sum(1, keepdim=True)  # (B,1)
    target = nn.functional.pad(supporting, (0, max(0, passes - supporting.shape[1])), value=-1)[:, :passes]  # (B,T)
    number = torch.arange(passes, device=scores.device)
    target = torch.where(number == facts, count.unsqueeze(1), target)  # the end, once, after the last fact
    logs = scores.log_softmax(-1).gather(2, target.clamp(min=0).unsqueeze(-1))[..., 0]  # (B,T)
    teaches = (target >= 0) & (number <= facts)
    return -(logs * teaches).sum() / teaches.sum().clamp(min=1)
