"""What the server does, without HTTP: pictures are kept, models asked in their queues, answers made into views."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from saccade.data.pictures.reading import Picture
from saccade.errors import CheckpointError
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.web.decode import Sandbox
from saccade.web.editing import editable_looks, given_weights, told
from saccade.web.errors import ApiError
from saccade.web.limits import Limits
from saccade.web.models import Models, ServedModel
from saccade.web.pictures import Pictures, StoredPicture, shown_name
from saccade.web.records import Records
from saccade.web.schemas import DigitTruth, EditedQuestion, Encoding, Question, Questions, RenderedScene, Scene
from saccade.web.scores import scores_of
from saccade.web.views import Json, mask_url, view_of
from saccade.web.worker import Worker


class Service:
    """Models, pictures and answers of one server.

    Args:
        models: zoo names, model folders or run folders; none means every model that ships with saccade.
        device: where they compute.
        limits: of everything.
    """

    def __init__(self, models: Sequence[str | Path] = (), device: str = "auto", limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.models = Models(models, device, self.limits)
        self.pictures = Pictures(self.limits)
        self.records = Records(self.limits)
        self.decoders = Sandbox(self.limits)
        # Drawing has a queue too.
        self.studio = Worker("pictures", self.limits.waiting, self.limits.answer_seconds)

    async def encode(self, data: bytes, name: str, model: str | None) -> Encoding:
        """Keep a picture; with a model, encode it for that one at once."""
        served = None if model is None else self.models[model].reading_pictures()
        picture = await self._decoded(data, shown_name(name))
        kept = await self.studio.run(lambda: self.pictures.keep(picture))
        if served is not None:
            await served.run(lambda predictor: served.encoded(predictor, kept))
        return Encoding(encoding=kept.id, picture=kept.entry())

    async def _decoded(self, data: bytes, name: str) -> Picture:
        try:
            image, notes = await self.decoders.read(data, name)
        except TimeoutError as error:
            waited = f"none was done within {self.limits.decoding_wait_seconds:g} s; try again in a moment"
            raise ApiError(429, "busy", f"other pictures are being decoded, and {waited}") from error
        return Picture(image, name, notes)

    async def render(self, scene: Scene) -> RenderedScene:
        """Draw a scene and tell where everything in it is."""
        return await self.studio.run(lambda: _rendered(self.pictures.compose(scene)))

    async def ask(self, asked: Question) -> Json:
        """One answer, as a view."""
        served = self.models[asked.model]
        if served.takes_json:
            return await served.run(lambda predictor: self._of_input(asked, predictor))
        served.reading_pictures()
        if asked.input is not None:
            raise ApiError(422, "invalid", f"'{served.name}' reads pictures: send an encoding or a scene, not an input")

        def answer(predictor: Predictor) -> Json:
            predictor.question(asked.question)  # before the picture is drawn and encoded: the cheaper mistake first
            kept = self._picture(asked)
            sighting = predictor.ask(served.encoded(predictor, kept), asked.question)
            editable = editable_looks(sighting.trace, predictor.model.look_names)
            png = kept.png if asked.picture else None
            return self._view(sighting, kept, served, png=png, editable=editable)

        return await served.run(answer)

    async def edit(self, asked: EditedQuestion) -> Json:
        """One answer to edited attention, as a view that tells what was edited and the answer without it."""
        served = self.models[asked.model].reading_pictures()

        def answer(predictor: Predictor) -> Json:
            predictor.question(asked.question)
            kept = self._picture(asked)
            encoded, names = served.encoded(predictor, kept), predictor.model.look_names
            own = predictor.ask(encoded, asked.question)
            given = given_weights(own.trace, names, asked.attention)
            try:
                sighting = predictor.ask(encoded, asked.question, attention=given)
            except CheckpointError as error:
                message = "with these weights the model's answer is not a number; leave some weight somewhere"
                raise ApiError(422, "no_answer", message) from error
            more = {"editable": editable_looks(own.trace, names), "edited": told(own, given)}
            return self._view(sighting, kept, served, png=kept.png if asked.picture else None, **more)

        return await served.run(answer)

    async def ask_all(self, asked: Questions) -> list[Json]:
        """An answer to every question that the model knows, as views of answer and looks alone; none is kept."""
        served = self.models[asked.model].reading_pictures()

        def answer(predictor: Predictor) -> list[Json]:
            kept = self._picture(asked)
            found = predictor.ask_all(served.encoded(predictor, kept))
            return [view_of(each, family=served.facts.family, total=False) for each in found]

        return await served.run(answer)

    def close(self) -> None:
        """Take no more work."""
        self.models.close()
        self.studio.close()

    def _picture(self, asked: Question | Questions | EditedQuestion) -> StoredPicture:
        """The picture that a question is about."""
        if (asked.encoding is None) == (asked.scene is None):
            raise ApiError(422, "invalid", "a question is about an encoding or about a scene: name one of the two")
        return self.pictures.find(asked.encoding or "") if asked.scene is None else self.pictures.compose(asked.scene)

    def _of_input(self, asked: Question, predictor: Predictor) -> Json:
        """The answer of a model that is sent JSON."""
        if asked.input is None or asked.encoding is not None or asked.scene is not None:
            raise ApiError(422, "invalid", f"'{predictor.name}' reads a {predictor.reads.thing}: send it as 'input'")
        predictor.question(asked.question)  # before the input is read and encoded: the cheaper mistake first
        sighting = predictor.ask(predictor.encode(predictor.reads.from_json(asked.input)), asked.question)
        return self.records.keep(sighting, view_of(sighting, family=predictor.family.name))

    def _view(
        self, sighting: Sighting, kept: StoredPicture, served: ServedModel, *, png: str | None, **more: object
    ) -> Json:
        truth = kept.truth
        evidence = None if truth is None else truth.evidence(sighting.question)
        scores = None
        if truth is not None and evidence is not None:
            scores = scores_of(sighting.trace, evidence, truth.objects)
        view = view_of(sighting, family=served.facts.family, png=png, evidence=evidence, scores=scores)
        return self.records.keep(sighting, view | more)


def _rendered(kept: StoredPicture) -> RenderedScene:
    if kept.scene is None:
        raise ApiError(404, "unknown_scene", f"'{kept.id}' is no scene")
    truth = [
        DigitTruth(
            digit=each.digit,
            colour=each.colour,
            box=(each.x, each.y, each.x + each.size, each.y + each.size),
            mask_png=mask_url(mask),
        )
        for each, mask in zip(kept.scene.truth.digits, kept.scene.truth.masks)
    ]
    return RenderedScene(encoding=kept.id, picture=kept.entry(), scene=kept.scene.scene, truth=truth)
