"""Asking a trained model: pictures in, sightings out; a picture is encoded once and may be asked many times.

A :class:`Predictor` holds no state between calls, so several threads may share one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.data.pictures.reading import Picture, Source, prepare, read_picture, stream_pictures
from saccade.errors import CheckpointError, DataError, nearest
from saccade.models.base import PictureModel, QueryModel
from saccade.models.caption_decoding import Decoded
from saccade.models.io.facts import ModelFacts
from saccade.models.io.folder import load_model
from saccade.models.sat import SatModel
from saccade.sighting import Sighting
from saccade.trace import Output
from saccade.zoo import resolve

Question = int | str
BEAM = 5
"""Captions that are followed side by side while the best one is looked for."""


def load(name_or_path: str | Path, device: str | torch.device = "auto") -> Predictor:
    """A trained model, from a zoo name, a model folder or a run folder."""
    folder = resolve(name_or_path)
    model, facts = load_model(folder, device)
    if not isinstance(model, (QueryModel, PictureModel, SatModel)):
        raise CheckpointError(f"{folder}: '{facts.architecture}' does not look at pictures")
    own_name = folder.parent.name if folder.name == "model" else folder.name  # a run keeps its model in model/
    return Predictor(model, facts, name=facts.name or own_name)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Pictures as the model sees them before any question."""

    features: Tensor
    """(B,…) what the model's ``encode`` made of them, on its device."""
    pictures: tuple[Picture, ...]
    canvas: Tensor
    """(B,2,3): network input → picture."""
    image_size: Tensor
    """(B,2)."""

    def __len__(self) -> int:
        return len(self.pictures)


class Predictor:
    """A model with its facts, ready to be asked.

    Args:
        model: in eval mode, on its device.
        facts: what it may be asked, what it answers, and how pictures are prepared for it.
        name: what sightings call it.
    """

    def __init__(self, model: QueryModel | PictureModel | SatModel, facts: ModelFacts, *, name: str = "") -> None:
        self.model, self.facts, self.name = model.eval(), facts, name or facts.name or facts.architecture
        self._ids = {word.casefold(): number for number, word in enumerate(facts.queries)}

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.model.parameters()).device

    @property
    def query_model(self) -> QueryModel:
        """The model, where it is one that is asked; a CheckpointError otherwise."""
        if not isinstance(self.model, QueryModel):
            raise CheckpointError(f"'{self.name}' answers no questions; name a model that does")
        return self.model

    def __repr__(self) -> str:
        return f"Predictor({self.name}: {self.facts.architecture}, {self.facts.parameters:,} parameters, {self.device})"

    # ------------------------------------------------------------ one picture

    def look(
        self,
        picture: Source,
        ask: Question | None = None,
        *,
        beam: int | None = None,
        captions: int | None = None,
        length_penalty: float | None = None,
    ) -> Sighting:
        """Answer ``ask`` about ``picture``; some models need no question.

        Args:
            picture: path, bytes, PIL image, array or tensor.
            ask: the question.
            beam: for a model that says captions: how many it follows side by side; 1 is greedy, by default 5.
            captions: for such a model: how many it says; the further ones are the sighting's ``others``.
            length_penalty: for such a model: γ; captions are ranked by log p / length^γ. By default 0, which prefers
                short ones; 1 ranks by the mean of the words.
        """
        self.question(ask)  # before the picture is read: the cheaper mistake first
        search = self._search(beam, captions, length_penalty)
        return self._answer(self.encode(picture), [self.question(ask)], search)[0]

    @torch.inference_mode()
    def encode(self, *pictures: Source) -> Encoded:
        """What does not depend on the question; give the result to :meth:`ask` as often as you like."""
        if not pictures:
            raise DataError("nothing to encode: give at least one picture")
        read = tuple(read_picture(picture) for picture in pictures)
        wanted = self.facts.preprocessing
        inputs, canvas, sizes = zip(*(prepare(picture, wanted.size, wanted.fill) for picture in read))
        stacked = torch.stack(inputs).to(self.device, memory_format=torch.channels_last)  # on a CPU twice as fast
        features = self.model.encode(stacked)  # (B,…)
        return Encoded(features, read, torch.stack(canvas), torch.stack(sizes))

    def ask(self, encoded: Encoded, question: Question | None = None) -> Sighting:
        """Answer one question about one encoded picture, or say what is in it."""
        if len(encoded) != 1:
            raise DataError(f"ask takes one encoded picture, found {len(encoded)}; use look_many for several")
        return self._answer(encoded, [self.question(question)])[0]

    def ask_all(self, encoded: Encoded) -> list[Sighting]:
        """Answer every question that the model knows about one encoded picture, in one go."""
        if not self.facts.queries:
            raise DataError(f"'{self.name}' takes no question; use look or ask without one")
        if len(encoded) != 1:
            raise DataError(f"ask_all takes one encoded picture, found {len(encoded)}")
        many = len(self.facts.queries)
        repeated = Encoded(
            encoded.features.expand(many, *encoded.features.shape[1:]),
            encoded.pictures * many,
            encoded.canvas.expand(many, 2, 3),
            encoded.image_size.expand(many, 2),
        )
        return self._answer(repeated, list(range(many)))

    # ------------------------------------------------------------ many pictures

    def look_many(
        self,
        pictures: Iterable[Source],
        ask: Question | None = None,
        *,
        batch_size: int = 32,
        on_bad: Callable[[Source, DataError], None] | None = None,
        beam: int | None = None,
        captions: int | None = None,
        length_penalty: float | None = None,
    ) -> Iterator[Sighting]:
        """Answer ``ask`` about each of ``pictures``, in order, reading and computing ``batch_size`` at a time.

        Args:
            pictures: any mix of what :meth:`look` takes; may be endless.
            ask: one question for all of them; None for a model that needs none.
            batch_size: how many pictures go through the model together.
            on_bad: called with a picture that cannot be read and its error; the rest goes on. Without it the error
                is raised.
            beam: as in :meth:`look`.
            captions: as in :meth:`look`.
            length_penalty: as in :meth:`look`.
        """
        query, search = self.question(ask), self._search(beam, captions, length_penalty)
        for batch in stream_pictures(pictures, batch_size, on_bad):
            yield from self._answer(self.encode(*batch), [query] * len(batch), search)

    # ------------------------------------------------------------ inside

    def question(self, ask: Question | None) -> int | None:
        """The id of ``ask``, None for a model that needs no question; or a DataError that says what can be asked."""
        if not isinstance(self.model, QueryModel):
            if ask is not None:
                raise DataError(f"'{self.name}' takes no question: it says what it sees; leave out '{ask}'")
            return None
        known = ", ".join(self.facts.queries)
        if ask is None:
            raise DataError(f"'{self.name}' needs a question; ask one of: {known}")
        try:
            word = ask.strip() if isinstance(ask, str) else str(operator.index(ask))
        except TypeError as error:
            raise DataError(f"a question is a word or a whole number, found {ask!r}; ask one of: {known}") from error
        if word.casefold() not in self._ids or isinstance(ask, bool):
            raise DataError(f"'{self.name}' cannot be asked '{ask}': {nearest(str(ask), self.facts.queries)}")
        return self._ids[word.casefold()]

    def _search(self, beam: int | None, captions: int | None, length_penalty: float | None) -> dict[str, Any]:
        """How captions are looked for, in the words of ``decode``; nothing for a model that says none."""
        if not isinstance(self.model, SatModel):
            given = {"beam": beam, "captions": captions, "length_penalty": length_penalty}
            told = [name for name, value in given.items() if value is not None]
            if told:
                raise DataError(
                    f"'{self.name}' says no captions; leave out {', '.join(told)}, or name a model that does"
                )
            return {}
        several = 1 if captions is None else captions
        width = max(BEAM, several) if beam is None else beam
        if min(width, several) < 1 or several > width:
            raise DataError(f"captions are 1 or more and no more than the beam follows, found {several} of {width}")
        return {"method": "beam", "width": width, "captions": several, "length_penalty": length_penalty or 0.0}

    @torch.inference_mode()
    def _answer(
        self, encoded: Encoded, queries: Sequence[int | None], search: dict[str, Any] | None = None
    ) -> list[Sighting]:
        """One sighting for each encoded picture and its query."""
        if isinstance(self.model, SatModel):
            decoded = self.model.caption(encoded.features, **(search or self._search(None, None, None)))
            told = [self._told(self.model, encoded, decoded, which) for which in range(decoded.words.shape[1])]
            return [_with_others(best, others) for best, *others in zip(*told)]
        if isinstance(self.model, PictureModel):
            output = self.model.wrap(self.model.answer(encoded.features), self.facts.preprocessing.size)
            said = [_multiset(*each, self.facts.answers) for each in zip(*_steps_said(output))]
        else:
            asked = torch.tensor(queries, device=self.device)  # (B,)
            output = self.model.wrap(self.model.ask(encoded.features, asked), self.facts.preprocessing.size)
            shares = self.model.probabilities(output.logits.float()).cpu()  # (B,K)
            said = [_ranked(each, self.facts.answers) for each in shares]
        traces = output.trace.detach().cpu().placed(encoded.canvas, encoded.image_size)
        return [
            Sighting(
                **answer,
                question=None if query is None else self.facts.queries[query],
                picture=encoded.pictures[number],
                trace=traces[number],
                model=self.name,
            )
            for number, (query, answer) in enumerate(zip(queries, said))
        ]

    def _told(self, model: SatModel, encoded: Encoded, decoded: Decoded, which: int) -> list[Sighting]:
        """A sighting of each picture with its caption number ``which``."""
        words = decoded.words[:, which]  # (B,T)
        logits = model.tell(encoded.features, words)["logits"]  # (B,T,V)
        each = logits.double().log_softmax(-1).gather(-1, words.clamp(min=0)[..., None])[..., 0].cpu()  # (B,T)
        traces = model.trace_of(decoded, which).detach().cpu().placed(encoded.canvas, encoded.image_size)
        said, wholes, lengths = words.tolist(), decoded.log_prob[:, which].tolist(), decoded.lengths[:, which].tolist()
        found = []
        for number, (picture, length, whole) in enumerate(zip(encoded.pictures, lengths, wholes)):
            labels = [
                (self.facts.answers[said[number][step]], float(each[number, step].exp())) for step in range(length)
            ]
            steps = sum(word >= 0 for word in said[number])  # the end among them, if it was said
            found.append(
                Sighting(
                    answer=" ".join(word for word, _ in labels),
                    confidence=math.exp(whole / steps) if steps else 0.0,
                    alternatives=(),
                    question=None,
                    picture=picture,
                    trace=traces[number],
                    model=self.name,
                    labels=tuple(labels),
                    log_probability=whole,
                )
            )
        return found


def _with_others(best: Sighting, others: Sequence[Sighting]) -> Sighting:
    """The best caption with the others that the search found."""
    found = tuple(other for other in others if other.log_probability != -math.inf)
    return replace(best, others=found, alternatives=tuple((other.answer, other.confidence) for other in found))


def _ranked(shares: Tensor, words: Sequence[str]) -> dict[str, Any]:
    """The likeliest answer and the others, from the probability (K,) of each."""
    order = shares.argsort(descending=True, stable=True).tolist()  # (K,)
    ranked = [(words[number], float(shares[number])) for number in order]
    return {"answer": ranked[0][0], "confidence": ranked[0][1], "alternatives": tuple(ranked[1:])}


def _steps_said(output: Output) -> tuple[Tensor, Tensor]:
    """What was said at each step, and with which probability: (B,T), (B,T)."""
    said = output.trace.answer
    if said is None:
        raise DataError("the model's trace holds no answer")
    shares = torch.take_along_dim(output.logits.float().softmax(-1), said[..., None], dim=-1)[..., 0]  # (B,T)
    return said.cpu(), shares.cpu()


def _multiset(said: Tensor, shares: Tensor, words: Sequence[str]) -> dict[str, Any]:
    """The labels up to the first stop (id K), from ids (T,) and their probabilities (T,).

    The answer is sure as far as every label and the stop after them were: the product of their probabilities.
    """
    ids = said.tolist()
    end = ids.index(len(words)) if len(words) in ids else len(ids)
    labels = tuple((words[each], float(share)) for each, share in zip(ids[:end], shares))
    answer = ", ".join(words[each] for each in sorted(ids[:end]))
    return {
        "answer": f"{{{answer}}}",
        "confidence": float(shares[: end + 1].double().prod()),
        "alternatives": (),
        "labels": labels,
    }
