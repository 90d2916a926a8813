"""Asking a trained model: inputs in, sightings out; an input is encoded once and may be asked many times.

A :class:`Predictor` holds no state between calls, so several threads may share one. The family decides what an input
is, how a question is asked and how the output becomes an answer; see :mod:`saccade.families`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch.utils._pytree import tree_map

from saccade.backbones.stages import fuse_norms
from saccade.data.pictures.files import plural
from saccade.errors import CheckpointError, ConfigError, DataError
from saccade.families.answering import InputReader, Prepared, Question, ReadItem, Responder, Response
from saccade.families.registry import Family, families, family
from saccade.looks import ShortRepr
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.facts import ModelFacts
from saccade.models.folder import load_likeness, load_model
from saccade.models.likeness import InputFit, Likeness, input_features
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace
from saccade.zoo.folders import push_folder, resolve, shipped

# How much more the peak of all masks may let through than their least, for a look to say that this is little.
NEARLY_EVEN = 0.05


def load(name_or_path: str | Path, device: str | torch.device = "auto") -> Predictor:
    """A trained model, from a zoo name, a model folder, a run folder or ``hf://USER/NAME`` of the hub.

    It is made to be asked: norms are fused into the convolutions before them. To train on, take
    ``saccade.models.load_model``, which gives the weights as they were trained.

    ``timm:NAME`` and ``hf:NAME`` are published vision transformers of other libraries, whose attention is traced.
    """
    if isinstance(name_or_path, str) and ":" in name_or_path:
        from saccade.tracing.published import is_published, published_parts

        if is_published(name_or_path):
            traced, facts, reads, responder = published_parts(name_or_path, device)
            return Predictor(cast(AttentionModel, traced), facts, reads=reads, responder=responder)
    folder = resolve(name_or_path)
    model, facts = load_model(folder, device)
    fuse_norms(model)
    own_name = folder.parent.name if folder.name == "model" else folder.name  # a run keeps its model in model/
    name = facts.name or own_name
    return Predictor(model, facts, name=name, likeness=load_likeness(folder, facts), folder=folder)


from_pretrained = load  # as other libraries call it


@dataclass(frozen=True, eq=False, repr=False)
class Encoded(ShortRepr):
    """Inputs as the model sees them before any question."""

    features: Encoding  #: What the model's ``encode`` made of them, on its device: a tensor (B,…), or several by name.
    items: tuple[ReadItem, ...]  #: What was read.
    fits: tuple[InputFit, ...]  #: For each item whether it is like what the model learned from.

    def __len__(self) -> int:
        return len(self.items)


class Predictor:
    """A model with its facts, ready to be asked.

    Args:
        model: in eval mode, on its device.
        facts: what it may be asked, what it answers, and how inputs are prepared for it.
        name: what sightings call it.
        likeness: what the inputs that it learned from look like; None: not known.
        reads: how inputs are read; by default as the family of the model does.
        responder: who answers; by default that of the family.
        folder: where it was loaded from; None: from no folder.
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
        folder: Path | None = None,
    ) -> None:
        self.likeness, self.folder = likeness, folder
        self.model, self.facts, self.name = model.eval(), facts, name or facts.name or facts.architecture
        self.reads: InputReader = reads or self.family.reads()
        self.responder: Responder = responder or self.family.responder()(self.family, self.model, self.facts, self.name)

    def push_to_hub(self, repository: str, *, private: bool = False, message: str = "") -> str:
        """Put the model on the hub of Hugging Face (extra ``hub``); ``saccade.load`` takes the address it returns.

        Its folder is uploaded as it is, with its card as the front page. A token is taken from ``hf auth login`` or
        ``HF_TOKEN``.

        Args:
            repository: USER/NAME; made if there is none.
            private: whether a new repository is private.
            message: of the commit.
        """
        if self.folder is None:
            raise ConfigError(f"'{self.name}' was not loaded from a model folder, so there is nothing to upload")
        return push_folder(self.folder, repository, private=private, message=message)

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
        caveats = []
        if self.likeness is None:
            things = plural(self.reads.thing)
            caveats.append(f"fit: not known, the model has no statistics of the {things} that it learned from")
        if self.facts.calibration is None:
            caveats.append("confidences are not calibrated")
        if self.facts.family and (premise := self.family.premise(self.facts)):
            caveats.append(f"'{self.name}' {premise}")
        return caveats

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
        return self._encoded(self.reads.prepare(items, self.facts))

    @torch.inference_mode()
    def _encoded(self, prepared: Prepared) -> Encoded:
        inputs = [tensor.to(self.device) for tensor in prepared.inputs]
        encoding = self.model.encode(*inputs)  # (B,…)
        if self.likeness is None or self.facts.inputs is None:
            return Encoded(encoding, prepared.items, (InputFit(),) * len(prepared.items))
        features = input_features(self.model, self.facts.inputs.features, inputs[0], encoding)
        fits = [InputFit(p, self.trained_on) for p in self.likeness.p_values(features).tolist()]
        return Encoded(encoding, prepared.items, tuple(fits))

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
        if not queries or len(encoded) != 1:
            counts = f"{len(encoded)} of them; '{self.name}' has {len(queries)} questions"
            raise DataError(
                f"ask_all takes one encoded {self.reads.thing} and a model that lists questions, found {counts}"
            )
        many = len(queries)
        features = tree_map(lambda tensor: tensor.expand(many, *tensor.shape[1:]), encoded.features)
        repeated = Encoded(features, encoded.items * many, encoded.fits * many)
        return self._answer(repeated, queries, self.responder.options({}))

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
        files = self.reads.find([str(sources)]) if isinstance(sources, (str, Path)) else sources
        query, chosen = self.question(ask), self.responder.options(options)
        read = self._ahead if isinstance(files, Sequence) else self._prepared
        return self._looks(read(files, batch_size, on_bad), query, chosen)

    def check_kind(self, files: Sequence[object]) -> None:
        """Refuse files that are all of one kind which other models read, by their endings; a mixed list goes on."""
        endings = {Path(file).suffix.lower() if isinstance(file, (str, Path)) else "" for file in files}
        if not endings or not endings.isdisjoint(self.reads.suffixes):
            return
        for other in families().values():
            thing = other.reads().thing
            if endings <= other.reads().suffixes:
                models = " or ".join(name for name in other.featured if name in shipped()) or f"{thing} models"
                raise DataError(
                    f"{files[0]}: a {thing}, but the model '{self.name}' reads {plural(self.reads.thing)}; "
                    f"{plural(thing)} are for {models}"
                )

    def _looks(
        self, batches: Generator[Prepared, None, None], query: object, chosen: dict[str, object]
    ) -> Iterator[Sighting]:
        with closing(batches):  # an error that somebody keeps would keep its threads and decoders too
            for prepared in batches:
                encoded = self._encoded(prepared)
                yield from self._answer(encoded, [query] * len(encoded), chosen)

    def _prepared(
        self, sources: Iterable[object], batch_size: int, on_bad: Callable[[object, DataError], None] | None
    ) -> Generator[Prepared, None, None]:
        for batch in self.reads.stream(sources, batch_size, on_bad):
            items = []
            for item in batch:
                try:
                    self.reads.check(item, self.facts)
                    items.append(item)
                except DataError as error:
                    if on_bad is None:
                        raise
                    on_bad(item.name, error)
            if items:
                yield self.reads.prepare(items, self.facts)

    def _ahead(
        self, sources: Iterable[object], batch_size: int, on_bad: Callable[[object, DataError], None] | None
    ) -> Generator[Prepared, None, None]:
        """The same, where another thread reads and prepares the next batch while this one is answered.

        Bad items are reported, and errors raised, when their turn comes: after the batch before it.
        """
        bad: deque[tuple[object, DataError]] = deque()
        batches = self._prepared(sources, batch_size, None if on_bad is None else lambda *refusal: bad.append(refusal))
        with closing(batches), ThreadPoolExecutor(1, "preparing") as thread:
            following = thread.submit(next, batches, None)
            while True:
                prepared = following.result()
                while on_bad is not None and bad:
                    on_bad(*bad.popleft())
                if prepared is None:
                    return
                following = thread.submit(next, batches, None)
                yield prepared

    def question(self, ask: Question | None) -> Any:
        """What ``ask`` is for the model; a DataError that says what can be asked, where it cannot."""
        return self.responder.query(ask)

    def _given(self, attention: Mapping[str, object] | None) -> Given | None:
        """Weights that a caller gives, as tensors on the model's device; a DataError where they are no numbers."""
        if attention is None:
            return None
        given = {}
        try:
            for name, weights in dict(attention).items():
                given[name] = torch.as_tensor(weights, dtype=torch.float32, device=self.device)
                if not bool(given[name].isfinite().all()):
                    raise ValueError(f"the weights of look '{name}' hold NaN or infinity")
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            how = "look.as_given() makes it of a look, edited or not"
            raise DataError(f"attention: expected finite arrays by the name of their look: {error}; {how}") from error
        return given

    @torch.inference_mode()
    def _answer(
        self, encoded: Encoded, queries: Sequence[object], options: dict[str, object], attention: Given | None = None
    ) -> list[Sighting]:
        responses = self.responder.respond(encoded.features, queries, options, attention)
        ranked = [self._sightings(encoded, queries, response) for response in responses]
        return [_with_others(best, others) for best, *others in zip(*ranked)]

    def _sightings(self, encoded: Encoded, queries: Sequence[object], response: Response) -> list[Sighting]:
        traces = response.trace.detach().cpu()
        canvas = [source.canvas for source in encoded.items if source.canvas is not None]
        if canvas:
            sizes = [source.image_size for source in encoded.items if source.image_size is not None]
            traces = traces.placed(torch.stack(canvas), torch.stack(sizes))
        sightings = []
        rows = zip(queries, response.answers, encoded.items, encoded.fits)
        for number, (query, answer, read, fit) in enumerate(rows):
            if answer.confidence != answer.confidence:
                raise CheckpointError(f"'{self.name}': its weights give an answer that is not a number; get it again")
            notes = () if response.notes is None else response.notes[number]
            text, trace = self.responder.query_text(query), self._with_slots(traces[number], read)
            remarks = [*read.notes, *notes]
            if how := self.facts.training.get("maps_supervised"):
                remarks.append(f"the map was taught where to look {how}")
            if names := trace.meta.get("given"):
                remarks.append(f"attention was edited: the weights of {', '.join(names)} were given, not computed")
            remarks += _nearly_even(trace)
            sightings.append(Sighting(answer, text, read.item, trace, self.name, remarks=tuple(remarks), fit=fit))
        return sightings

    def _with_slots(self, trace: AttentionTrace, read: ReadItem) -> AttentionTrace:
        """The trace of one input, with the texts of its slots and which of them the answer needs."""
        if read.item.image is not None:
            return trace
        extra = self.model.extra_slots
        meta: dict[str, object] = {"slots": [*read.slots, *extra]}
        meta |= {"own_slots": len(extra)} if extra else {}
        meta |= {"supporting": list(read.supporting)} if read.supporting else {}
        return replace(trace, meta={**trace.meta, **meta})


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


def _with_others(best: Sighting, others: Sequence[Sighting]) -> Sighting:
    if not others:
        return best
    possible = tuple(other for other in others if other.full_answer.log_probability != -float("inf"))
    answer = replace(best.full_answer, alternatives=tuple((other.answer, other.confidence) for other in possible))
    return replace(best, full_answer=answer, others=possible)
