"""Asking a trained model: inputs in, sightings out; an input is encoded once and may be asked many times.

A :class:`Predictor` holds no state between calls, so several threads may share one. The family decides what an input
is, how a question is asked and how the output becomes an answer; see :mod:`saccade.families.contract`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from saccade.data.files import plural
from saccade.errors import CheckpointError, ConfigError, DataError
from saccade.families import family
from saccade.families.contract import Family, load_target
from saccade.families.reading import InputReader, Item, Prepared
from saccade.families.responder import Question, Responder, Response
from saccade.likeness import Fit, Likeness
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.input_features import input_features
from saccade.models.io.facts import ModelFacts
from saccade.models.io.folder import load_likeness, load_model
from saccade.short_repr import ShortRepr
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace
from saccade.zoo import resolve

NEARLY_EVEN = 0.05
"""How much more the peak of all masks may let through than their least, for a look to say that this is little."""


def load(name_or_path: str | Path, device: str | torch.device = "auto") -> Predictor:
    """A trained model, from a zoo name, a model folder, a run folder or ``hf://USER/NAME`` of the hub.

    ``timm:NAME`` and ``hf:NAME`` are published vision transformers of other libraries, whose attention is traced.
    """
    if isinstance(name_or_path, str) and ":" in name_or_path:
        from saccade.tracing.published import is_published, published_parts

        if is_published(name_or_path):
            traced, told, reads, responder = published_parts(name_or_path, device)
            return Predictor(traced, told, reads=reads, responder=responder)
    folder = resolve(name_or_path)
    model, facts = load_model(folder, device)
    own_name = folder.parent.name if folder.name == "model" else folder.name  # a run keeps its model in model/
    return Predictor(model, facts, name=facts.name or own_name, likeness=load_likeness(folder, facts))


_HOW = "look.as_given() makes it of a look, edited or not"


@dataclass(frozen=True, eq=False, repr=False)
class Encoded(ShortRepr):
    """Inputs as the model sees them before any question."""

    features: Encoding
    """What the model's ``encode`` made of them, on its device: a tensor (B,…), or several by name."""
    items: tuple[Item, ...]
    """What was read."""
    canvas: Tensor | None
    """(B,2,3): network input → original picture; None for other inputs."""
    image_size: Tensor | None
    """(B,2)."""
    slots: tuple[tuple[str, ...], ...] | None = None
    """For each item the texts that a look over slots lies on."""
    supporting: tuple[tuple[int, ...], ...] | None = None
    """For each item the numbers of the slots that its answer needs, where that is known."""
    notes: tuple[tuple[str, ...], ...] | None = None
    """For each item what of it the model cannot use."""
    like: tuple[float, ...] | None = None
    """For each item its p-value among the inputs that the model learned from; None: not known."""

    def __len__(self) -> int:
        return len(self.items)

    def repeated(self, many: int) -> Encoded:
        """One encoded input, ``many`` times."""
        return Encoded(
            tree_map(lambda tensor: tensor.expand(many, *tensor.shape[1:]), self.features),
            self.items * many,
            None if self.canvas is None else self.canvas.expand(many, 2, 3),
            None if self.image_size is None else self.image_size.expand(many, 2),
            None if self.slots is None else self.slots * many,
            None if self.supporting is None else self.supporting * many,
            None if self.notes is None else self.notes * many,
            None if self.like is None else self.like * many,
        )


class Predictor:
    """A model with its facts, ready to be asked.

    Args:
        model: in eval mode, on its device.
        facts: what it may be asked, what it answers, and how inputs are prepared for it.
        name: what sightings call it.
        likeness: what the inputs that it learned from look like; None: not known.
        reads: how inputs are read; by default as the family of the model does.
        responder: who answers; by default that of the family.
    """

    def __init__(
        self,
        model: AttentionModel,
        facts: ModelFacts,
        *,
        name: str = "",
        likeness: Likeness | None = None,
        reads: InputReader | None = None,
        responder: Responder | None = None,
    ) -> None:
        self.likeness = likeness
        self.model, self.facts, self.name = model.eval(), facts, name or facts.name or facts.architecture
        self.reads: InputReader = reads or load_target(self.family.reads)
        self.responder: Responder = responder or self._own_responder()

    def _own_responder(self) -> Responder:
        made: Responder = load_target(self.family.responder)(self.family, self.model, self.facts, self.name)
        return made

    @cached_property
    def family(self) -> Family:
        """The family of the model; a ConfigError for a model from another library, which has none."""
        if not self.facts.family:
            raise ConfigError(f"'{self.name}' comes from another library: only saccade look supports it")
        return family(self.facts.family)

    @property
    def trained_on(self) -> str:
        """What its inputs show, in a few words; "other inputs" where that is not known."""
        return "other inputs" if self.facts.inputs is None else self.facts.inputs.of

    @property
    def caveats(self) -> list[str]:
        """What to know about all of its answers, a sentence each."""
        told = []
        if self.likeness is None:
            things = plural(self.reads.thing)
            told.append(f"fit: it is not known whether these {things} are like those that the model learned from")
        if self.facts.calibration is None:
            told.append("confidences are not calibrated")
        if premise := self.responder.premise(self.facts):
            told.append(f"'{self.name}' {premise}")
        return told

    def of_unlike(self, unlike: int, answered: int) -> str:
        """One sentence about all inputs that are unlike those that the model learned from; empty where there are none.

        Args:
            unlike: how many of them there are.
            answered: how many inputs there are.
        """
        if not unlike:
            return ""
        thing = self.reads.thing
        who = f"this {thing} is" if answered == 1 else f"{unlike:,} of {answered:,} {plural(thing)} are"
        what = "its answer" if unlike == 1 else "its answers"
        learned = f"this model was trained on {self.trained_on}, so {what} there mean{'s' * (unlike == 1)} little"
        return f"fit: {who} unlike those that the model learned from; {learned}"

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.model.parameters()).device

    def __repr__(self) -> str:
        return f"Predictor({self.name}: {self.facts.architecture}, {self.facts.parameters:,} parameters, {self.device})"

    def look(
        self,
        source: object,
        ask: Question | None = None,
        *,
        attention: Mapping[str, object] | None = None,
        **options: object,
    ) -> Sighting:
        """Answer ``ask`` about ``source``; some models need no question.

        Args:
            source: what the model's family reads; of a picture its path, bytes, a PIL image, an array or a tensor.
            ask: the question.
            attention: weights in place of the model's own, by the name of their look.
            options: those of the family. Captions have ``beam``, how many are followed side by side (1 is greedy,
                by default 5); ``captions``, how many are said, the further ones as the sighting's ``others``; and
                ``length_penalty`` γ, by which captions are ranked: log p / length^γ, by default 0.
        """
        query = self.question(ask)  # before the input is read: the cheaper mistake first
        chosen, given = self.responder.options(options), self._given(attention)
        return self._answer(self.encode(source), [query], chosen, given)[0]

    __call__ = look

    @torch.inference_mode()
    def encode(self, *sources: object) -> Encoded:
        """The part that does not depend on the question; give the result to :meth:`ask` as often as you like."""
        if not sources:
            raise DataError(f"nothing to encode: give at least one {self.reads.thing}")
        items = tuple(self.reads.item(source) for source in sources)
        for item in items:
            self.reads.check(item, self.facts)
        return self._encoded(items, self.reads.prepare(items, self.facts))

    @torch.inference_mode()
    def _encoded(self, items: tuple[Item, ...], given: Prepared) -> Encoded:
        inputs = [tensor.to(self.device) for tensor in given.inputs]
        features = self.model.encode(*inputs)  # (B,…)
        told = (given.canvas, given.image_size, given.slots, given.supporting, given.notes)
        return Encoded(features, items, *told, like=self._like(inputs[0], features))

    def _like(self, inputs: Tensor, encoding: Encoding) -> tuple[float, ...] | None:
        """The p-value of each input among those that the model learned from; None: not known."""
        if self.likeness is None or self.facts.inputs is None:
            return None
        features = input_features(self.model, self.facts.inputs.features, inputs, encoding)
        return tuple(self.likeness.p_values(features).tolist())

    def ask(
        self,
        encoded: Encoded,
        question: Question | None = None,
        *,
        attention: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Sighting:
        """Answer one question about one encoded input; arguments as in :meth:`look`."""
        if len(encoded) != 1:
            raise DataError(
                f"ask takes one encoded {self.reads.thing}, found {len(encoded)}; use look_many for several"
            )
        chosen, given = self.responder.options(options), self._given(attention)
        return self._answer(encoded, [self.question(question)], chosen, given)[0]

    def ask_all(self, encoded: Encoded) -> list[Sighting]:
        """Answer every question that the model knows about one encoded input, in one go."""
        queries = self.responder.queries()
        if not queries:
            raise DataError(f"'{self.name}' has no list of questions; use look or ask")
        if len(encoded) != 1:
            raise DataError(f"ask_all takes one encoded {self.reads.thing}, found {len(encoded)}")
        return self._answer(encoded.repeated(len(queries)), queries, self.responder.options({}))

    def look_many(
        self,
        sources: Iterable[object] | str | Path,
        ask: Question | None = None,
        *,
        batch_size: int = 32,
        on_bad: Callable[[object, DataError], None] | None = None,
        **options: object,
    ) -> Iterator[Sighting]:
        """Answer ``ask`` about each of ``sources``, in order, reading and computing ``batch_size`` at a time.

        Of a list of sources the next batch is read and prepared while this one is answered; of any other iterable no
        more is taken than the next batch needs.

        Args:
            sources: any mix of what :meth:`look` takes; may be endless. Or one path: a folder, whose files are looked
                at, a glob or a file.
            ask: one question for all of them; None for a model that needs none.
            batch_size: how many go through the model together.
            on_bad: called with a source that cannot be read and its error; the rest goes on. Without it the error is
                raised.
            options: as in :meth:`look`.
        """
        query, chosen = self.question(ask), self.responder.options(options)
        files = self.reads.find([str(sources)]) if isinstance(sources, (str, Path)) else sources
        batches = (self._ahead if isinstance(files, Sequence) else self._one_by_one)(files, batch_size, on_bad)
        with closing(batches):  # an error that somebody keeps would keep its threads and decoders too
            for items, given in batches:
                yield from self._answer(self._encoded(items, given()), [query] * len(items), chosen)

    def _one_by_one(
        self, sources: Iterable[object], batch_size: int, on_bad: Callable[[object, DataError], None] | None
    ) -> Generator[tuple[tuple[Item, ...], Callable[[], Prepared]], None, None]:
        """Batches of items that fit, and how to get what the model takes of them."""
        for batch in self.reads.stream(sources, batch_size, on_bad):
            if on_bad is None:
                for item in batch:
                    self.reads.check(item, self.facts)
            items = tuple(item for item in batch if on_bad is None or self._fits(item, on_bad))
            if items:
                yield items, partial(self.reads.prepare, items, self.facts)

    def _ahead(
        self, sources: Iterable[object], batch_size: int, on_bad: Callable[[object, DataError], None] | None
    ) -> Generator[tuple[tuple[Item, ...], Callable[[], Prepared]], None, None]:
        """The same, where the next batch is read before this one is handed on, and prepared in another thread.

        What is bad is told, and an error raised, when its turn comes: after the batch before it.
        """
        bad: list[tuple[object, DataError]] = []
        batches = self._one_by_one(sources, batch_size, None if on_bad is None else lambda *each: bad.append(each))
        with ThreadPoolExecutor(1, "preparing") as preparing, closing(batches):
            before: tuple[tuple[Item, ...], Callable[[], Prepared]] | None = None
            while True:
                error: DataError | None = None
                following = None
                try:
                    if (batch := next(batches, None)) is not None:
                        following = batch[0], preparing.submit(batch[1]).result
                except DataError as raised:
                    error = raised
                told, bad[:] = list(bad), []
                if before is not None:
                    yield before
                if error is not None:
                    raise error
                if on_bad is not None:
                    for source, reason in told:
                        on_bad(source, reason)
                if following is None:
                    return
                before = following

    def _fits(self, item: Item, on_bad: Callable[[object, DataError], None]) -> bool:
        """Whether the model can make something of ``item``; where not, ``on_bad`` is told why."""
        try:
            self.reads.check(item, self.facts)
        except DataError as error:
            on_bad(item.name, error)
            return False
        return True

    def question(self, ask: Question | None) -> Any:
        """What ``ask`` is for the model; a DataError that says what can be asked, where it cannot."""
        return self.responder.query(ask)

    def _given(self, attention: Mapping[str, object] | None) -> Given | None:
        """Weights that a caller gives, as tensors on the model's device; a DataError where they are no numbers."""
        if attention is None:
            return None
        if not isinstance(attention, Mapping):
            raise DataError(
                f"attention: expected weights by the name of a look, found {type(attention).__name__}; {_HOW}"
            )
        given = {}
        for name, weights in attention.items():
            try:
                given[name] = torch.as_tensor(weights, dtype=torch.float32, device=self.device)
                is_finite = bool(given[name].isfinite().all())
            except (TypeError, ValueError, RuntimeError, OverflowError) as error:
                found = type(weights).__name__
                raise DataError(
                    f"attention for look '{name}': expected an array of numbers, found {found}; {_HOW}"
                ) from error
            if not is_finite:
                raise DataError(f"attention for look '{name}': weights must be finite, found NaN or infinity")
        return given

    @torch.inference_mode()
    def _answer(
        self, encoded: Encoded, queries: Sequence[object], options: dict[str, object], attention: Given | None = None
    ) -> list[Sighting]:
        """One sighting for each encoded input and its query."""
        found = self.responder.respond(encoded.features, queries, options, attention)
        told = [self._sightings(encoded, queries, response) for response in found]
        return [_with_others(best, others) for best, *others in zip(*told)]

    def _sightings(self, encoded: Encoded, queries: Sequence[object], response: Response) -> list[Sighting]:
        """One sighting for each encoded input, from one answer to each."""
        traces = response.trace.detach().cpu()
        if encoded.canvas is not None and encoded.image_size is not None:
            traces = traces.placed(encoded.canvas, encoded.image_size)
        sightings = []
        for number, (query, said) in enumerate(zip(queries, response.answers)):
            if said.confidence != said.confidence:
                raise CheckpointError(f"'{self.name}': its weights give an answer that is not a number; get it again")
            of_map = [*self._taught, *_given_looks(traces[number]), *_nearly_even(traces[number])]
            remarks = [*_of(encoded.notes, number), *_of(response.notes, number), *of_map]
            asked, trace = self.responder.query_text(query), self._with_slots(traces[number], encoded, number)
            fit = Fit() if encoded.like is None else Fit(encoded.like[number], self.trained_on)
            item, told = encoded.items[number], tuple(remarks)
            sightings.append(Sighting(said, asked, item, trace, self.name, remarks=told, fit=fit))
        return sightings

    @property
    def _taught(self) -> list[str]:
        """What must be known of every map of this model: that it was taught where to look."""
        how = self.facts.training.get("maps_supervised")
        return [f"the map was taught where to look {how}"] if how else []

    def _with_slots(self, trace: AttentionTrace, encoded: Encoded, number: int) -> AttentionTrace:
        """The trace of one input, told the texts of its slots and which of them the answer needs."""
        if encoded.slots is None:
            return trace
        own = self.model.extra_slots
        told: dict[str, object] = {"slots": [*encoded.slots[number], *own]}
        told |= {"own_slots": len(own)} if own else {}
        needed = _of(encoded.supporting, number)
        told |= {"supporting": list(needed)} if needed else {}
        return replace(trace, meta={**trace.meta, **told})


def _given_looks(trace: AttentionTrace) -> list[str]:
    """That weights were given, where they were: such an answer is not the model's own."""
    names = trace.meta.get("given", ())
    return [f"attention was edited: the weights of {', '.join(names)} were given, not computed"] if names else []


def _nearly_even(trace: AttentionTrace) -> list[str]:
    """A warning where all masks that only add are nearly even: their peak is no place that was looked at."""
    weighed = [(look.base, look.weights) for look in trace.looks if look.base and look.is_spatial]
    ends = [(base + mask.max(), base + mask.min()) for base, mask in weighed if mask is not None]
    if not ends:
        return []
    apart = math.prod(float(high / low) for high, low in ends) - 1
    if apart > NEARLY_EVEN:
        return []
    return [f"the masks differ by {apart:.1%} at most from place to place: the map does not say where it looked"]


def _of(told: Sequence[Sequence[object]] | None, number: int) -> Sequence[Any]:
    """The notes about one example; empty if there are none."""
    return () if told is None else told[number]


def _with_others(best: Sighting, others: Sequence[Sighting]) -> Sighting:
    """The best answer with the others that a search found."""
    if not others:
        return best
    found = tuple(other for other in others if other.said.log_probability != -float("inf"))
    said = replace(best.said, alternatives=tuple((other.answer, other.confidence) for other in found))
    return replace(best, said=said, others=found)
