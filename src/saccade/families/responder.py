"""From an encoded input and a question to answers with traces: what a predictor asks of a family.

The default serves every model that answers in one pass: it looks a question up among those that the model knows, runs
the model, and has the family's ``decode`` put the output into words. A family that needs more (a search for a sentence,
a question in free text) declares a subclass.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.answer import Answer
from saccade.errors import DataError, nearest
from saccade.families import Family
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.facts import ModelFacts
from saccade.trace import AttentionTrace, Output

Question = int | str


@dataclass(frozen=True, eq=False)
class Response:
    """One answer to each example of a batch, and the trace behind them."""

    answers: Sequence[Answer]
    trace: AttentionTrace
    notes: Sequence[tuple[str, ...]] | None = None
    """For each example what of its question the model cannot use, such as words that it does not know, and what is
    known about maps of that question."""


class Responder:
    """Answers questions about encoded inputs with one model.

    Args:
        family: of the model.
        model: in eval mode, on its device.
        facts: what it may be asked and what it answers.
        name: what messages call it.
    """

    def __init__(self, family: Family, model: AttentionModel, facts: ModelFacts, name: str) -> None:
        self.family, self.model, self.facts, self.name = family, model, facts, name
        self.decode = family.decode()
        self._ids = {word.casefold(): number for number, word in enumerate(facts.queries)}

    def query(self, ask: Question | None) -> Any:
        """What ``ask`` is for the model, None where it takes no question; or a DataError that says what to ask."""
        if not self.facts.queries:
            if ask is not None:
                raise DataError(f"'{self.name}' takes no question: it says what it sees; leave out '{ask}'")
            return None
        known = ", ".join(self.facts.queries)
        if ask is None and len(self.facts.queries) == 1:
            return 0  # there is nothing else to ask
        if ask is None:
            raise DataError(f"'{self.name}' needs a question; ask one of: {known}")
        try:
            word = ask.strip() if isinstance(ask, str) else str(operator.index(ask))
        except TypeError as error:
            raise DataError(f"a question is a word or a whole number, found {ask!r}; ask one of: {known}") from error
        if word.casefold() not in self._ids or isinstance(ask, bool):
            raise DataError(f"'{self.name}' cannot be asked '{ask}': {nearest(str(ask), self.facts.queries)}")
        return self._ids[word.casefold()]

    def query_text(self, query: Any) -> str | None:
        """A query in words, as in a sighting; None if nothing was asked."""
        return None if query is None else self.facts.queries[query]

    def queries(self) -> list[Any]:
        """Every question that the model knows; none for one that takes no question, or any."""
        return list(range(len(self.facts.queries)))

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a look that this family understands, checked; what is not given is left out."""
        told = [name for name, value in given.items() if value is not None and name not in self.family.options]
        if told:
            raise DataError(
                f"'{self.name}' has no {', '.join(told)}: its family '{self.family.name}' takes "
                f"{', '.join(self.family.options) or 'no options'}; leave it out, or name another model"
            )
        return {name: value for name, value in given.items() if value is not None}

    def as_tensor(self, queries: Sequence[Any]) -> Tensor | None:
        """Queries as the model takes them, on its device: their ids (B,), or None where nothing is asked."""
        return None if queries[0] is None else torch.tensor(queries, device=self.device)

    def examples(self, count: int, seed: int) -> dict[str, Tensor]:
        """Example questions by name, to make and check an export; none for a model that takes no question."""
        return {"query": torch.arange(count) % len(self.facts.queries)} if self.facts.queries else {}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """Axes of :meth:`examples` whose size may differ from question to question, as of the inputs."""
        return {}

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.model.parameters()).device

    def respond(
        self, encoding: Encoding, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """Answers to ``queries``, one for each encoded input (B,…): the best first, then others that were found.

        Args:
            encoding: what the model's ``encode`` made of the inputs.
            queries: as :meth:`query` gives them.
            options: as :meth:`options` gives them.
            attention: weights in place of the model's own, by the name of their look.
        """
        raw = self.model.respond(encoding, self.as_tensor(queries), attention=attention)
        output = self.model.wrap(raw, self.input_size)
        trace = output.trace if attention is None else output.trace.mark_given(attention)
        # Weights that are given are not judged by how the model's own maps were scored.
        blind = {} if attention else blind_queries(self.facts)
        notes = [tuple(filter(None, [blind.get(self.facts.queries[query])])) for query in queries] if blind else None
        return [Response(self.decode(self.model, output, self.facts), trace, notes)]

    @property
    def input_size(self) -> tuple[int, int] | None:
        """(height, width) of the network input; None where it is no picture."""
        return None if self.facts.preprocessing is None else self.facts.preprocessing.size


def blind_queries(facts: ModelFacts) -> dict[str, str]:
    """Query → one sentence, for each whose maps were not found to point better than the best map that never looks."""
    from saccade.metrics.verdict import BLIND  # many modules for one table

    told = {}
    for query, found in facts.scores[0].by_query().items() if facts.scores else ():
        if not found.is_better:
            guess = BLIND.get(found.chance, "a map that never looks")
            told[query] = (
                f"for '{query}' the map was not found to point better than {guess}: its peak was in the right "
                f"place for {100 * found.value:.0f} % of {found.n:,} test questions, that guess for "
                f"{100 * found.chance_value:.0f} %"
            )
    return told


def decode_labels(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K)."""
    raw = model.probabilities(output.logits.float()).cpu()  # (B,K)
    if facts.calibration is None:
        return [ranked(each, facts.answers) for each in raw]
    shares = model.probabilities(calibrated(output.logits, facts)).cpu()  # (B,K)
    return [with_raw(each, before, facts.answers) for each, before in zip(shares, raw)]


def calibrated(logits: Tensor, facts: ModelFacts) -> Tensor:
    """Logits (…,K) divided by the model's temperature, if it has one."""
    return logits.float() if facts.calibration is None else logits.float() / facts.calibration.temperature


def with_raw(shares: Tensor, raw: Tensor, words: Sequence[str]) -> Answer:
    """As :func:`ranked`, from calibrated probabilities (K,), with those before calibration beside them (K,).

    The order is that of ``raw``: calibration changes no answer, also where it makes two of them equal.
    """
    before = ranked(raw, words)
    order = raw.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    told = (before.confidence, *(share for _, share in before.alternatives))
    return Answer(best, share, alternatives=tuple(others), raw=told)


def ranked(shares: Tensor, words: Sequence[str]) -> Answer:
    """The likeliest answer and the others, from the probability (K,) of each."""
    order = shares.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    return Answer(best, share, alternatives=tuple(others))
