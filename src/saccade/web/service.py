"""What the server does, without HTTP: pictures are kept, models asked in their queues, answers made into views.

A view names its ``editable`` looks. An edited answer has ``edited``: for each look how many of its cells differ from
the model's own and how far they moved (total variation of the two maps, each as shares of its sum), the looks that
were given as they had been (``frozen``), and the ``unedited`` answer.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.reading import Picture
from saccade.errors import CheckpointError
from saccade.metrics.maps.baselines import centre_gaussian, uniform
from saccade.metrics.maps.localisation import iou, pointing, selectivity, total_variation, true_positive_strength
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web.decode import Sandbox
from saccade.web.errors import ApiError
from saccade.web.models import ServedModel, Worker, served_models
from saccade.web.scenes import backgrounds
from saccade.web.schemas import (
    DigitTruth,
    EditedQuestion,
    Encoding,
    ModelList,
    Question,
    Questions,
    RenderedScene,
    Scene,
    SceneMaterial,
    SingleQuestion,
    Upload,
)
from saccade.web.serve import Limits
from saccade.web.store import (
    LruStore,
    StoredAnswer,
    StoredPicture,
    answer_size,
    bytes_of,
    composed_picture,
    shown_name,
    stored_picture,
)
from saccade.web.views import Json, mask_url, view_of

SAME = 1e-4
"""Weights that differ by less than this share of the largest are the same: a page sends some digits only."""


def editable_looks(trace: AttentionTrace, names: Collection[str]) -> list[str]:
    """The looks of ``trace`` that a brush can change: weights on a grid, without steps, that the model takes back.

    Args:
        trace: of one answer.
        names: the looks whose weights the model takes.
    """
    return [look.name for look in trace.looks if look.name in names and _grid(look) is not None]


def given_weights(
    trace: AttentionTrace, names: Collection[str], attention: Mapping[str, Sequence[float]]
) -> dict[str, Tensor]:
    """Weights (1,h,w) of each look in ``attention``, which has them row by row; an ApiError where they do not fit."""
    allowed = editable_looks(trace, names)
    if not allowed:
        raise ApiError(422, "not_editable", "this model has no look whose weights can be edited here")
    given = {}
    for name, weights in attention.items():
        if name not in allowed:
            raise ApiError(422, "not_editable", f"look '{name}' cannot be edited; these can: {', '.join(allowed)}")
        shape = _grid(trace.look(name)) or (0, 0)
        if len(weights) != shape[0] * shape[1]:
            wanted = f"{shape[0]} × {shape[1]} = {shape[0] * shape[1]}"
            raise ApiError(422, "invalid", f"attention.{name}: expected {wanted} weights, found {len(weights)}")
        given[name] = torch.tensor(weights, dtype=torch.float32).reshape(1, *shape)
    return given


def describe_edit(own: Sighting, edited: Mapping[str, Tensor]) -> Json:
    """What was edited, beside the answer ``own`` of the model's own attention."""
    looks: Json = {}
    frozen: list[str] = []
    for name, weights in edited.items():
        before = torch.as_tensor(own.trace.look(name).weights)  # (1,h,w)
        cells = int(((weights - before).abs() > SAME * before.abs().max()).sum())
        if cells:
            moved = float(total_variation(before, weights).nan_to_num(1.0))  # 1 where one has no weight at all
            looks[name] = {"cells": cells, "of": before.numel(), "moved": round(moved, 4)}
        else:
            frozen.append(name)
    said = {"answer": own.answer, "confidence": own.confidence}
    return {"looks": looks, "frozen": frozen, "unedited": said}


def _grid(look: Look) -> tuple[int, int] | None:
    """(h, w) of weights on a grid without steps; None of any other look."""
    if look.weights is None or look.has_steps or not look.is_spatial or look.full is not None:
        return None
    return look.weights.shape[-2], look.weights.shape[-1]


def scores_of(trace: AttentionTrace, evidence: Tensor, objects: Tensor) -> dict[str, object]:
    """Scores of the total map of one example, beside those of baselines on the same picture.

    Args:
        trace: of one example.
        evidence: (H,W) bool, the pixels that hold the answer.
        objects: (H,W) bool, those of all objects.

    Returns:
        ``attention`` (by metric) and ``baselines`` (by name, then metric), as ``saccade evaluate`` has them; a score
        that is not defined is None.
    """
    size = (evidence.shape[0], evidence.shape[1])
    blind = {**_of_no_picture(size), "all_objects_exact": objects[None].float()}
    maps = torch.cat([trace.image_map("total", size), *blind.values()])  # (1+K,H,W)
    target, all_objects = (mask.expand(len(maps), *size) for mask in (evidence, objects))  # (1+K,H,W)
    found = {
        "true_positive_strength": true_positive_strength(maps, target),
        "pointing": pointing(maps, target),
        "iou": iou(maps, target),
        "selectivity": selectivity(maps, target, all_objects),
    }
    rows = [{metric: _defined(values[row]) for metric, values in found.items()} for row in range(len(maps))]
    return {"attention": rows[0], "baselines": dict(zip(blind, rows[1:]))}


@lru_cache(maxsize=16)
def _of_no_picture(size: geometry.Size) -> dict[str, Tensor]:
    """The baselines (1,H,W) that depend on the picture's size alone."""
    pixels = geometry.identity()
    return {"uniform": uniform(pixels, size, size), "centre_gaussian": centre_gaussian(pixels, size, size)}


def _defined(value: Tensor) -> float | None:
    number = float(value)
    return round(number, 6) if math.isfinite(number) else None


class Service:
    """Models, pictures and answers of one server.

    Args:
        models: zoo names, model folders or run folders; none means every model that ships with saccade.
        device: where they compute.
        limits: of everything.
    """

    def __init__(self, models: Sequence[str | Path] = (), device: str = "auto", limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.models = served_models(models, device, self.limits)
        self.pictures: LruStore[StoredPicture] = LruStore("encoding", self.limits.kept_bytes)
        self.records: LruStore[StoredAnswer] = LruStore("record", self.limits.records_bytes, self.limits.records)
        self.decoders = Sandbox(self.limits)
        # Drawing has a queue too.
        self.studio = Worker("pictures", self.limits.waiting, self.limits.answer_seconds)

    async def entries(self) -> ModelList:
        """The models, as the API tells them."""
        return ModelList(models=[model.entry() for model in self.models.values()])

    async def material(self) -> SceneMaterial:
        """What scenes can be made of."""
        return SceneMaterial(backgrounds=await self.studio.run(backgrounds))

    async def encode(self, sent: Upload) -> Encoding:
        """Keep a picture; with a model, encode it for that one at once."""
        data, name = bytes_of(sent.picture), shown_name(sent.name)
        served = None if sent.model is None else self.models[sent.model].reading_pictures()
        try:
            image, notes = await self.decoders.read(data, name)
        except TimeoutError as error:
            waited = f"none was done within {self.limits.decoding_wait_seconds:g} s; try again in a moment"
            raise ApiError(429, "busy", f"other pictures are being decoded, and {waited}") from error
        kept = await self.studio.run(lambda: stored_picture(Picture(image, name, notes)))
        self.pictures.put(kept.id, kept, kept.size)
        if served is not None:
            await served.run(lambda predictor: served.encoded(predictor, kept))
        return Encoding(encoding=kept.id, picture=kept.entry())

    async def render(self, scene: Scene) -> RenderedScene:
        """Draw a scene and tell where everything in it is."""
        return await self.studio.run(lambda: _rendered(composed_picture(scene, self.pictures)))

    async def ask(self, asked: Question) -> Json:
        """One answer, as a view."""
        served = self.models[asked.model]
        if served.takes_json:
            return await served.run(lambda predictor: self._of_input(asked, predictor))
        served.reading_pictures()
        if asked.input is not None:
            raise ApiError(422, "invalid", f"'{served.name}' reads pictures: send an encoding or a scene, not an input")
        return await served.run(lambda predictor: self._of_picture(asked, served, predictor))

    async def edit(self, asked: EditedQuestion) -> Json:
        """One answer to edited attention, as a view that tells what was edited and the answer without it."""
        served = self.models[asked.model].reading_pictures()
        return await served.run(lambda predictor: self._of_picture(asked, served, predictor, asked.attention))

    async def ask_all(self, asked: Questions) -> Json:
        """An answer to every question that the model knows, as views of answer and looks alone; none is kept."""
        served = self.models[asked.model].reading_pictures()

        def answer(predictor: Predictor) -> list[Json]:
            kept = self._picture(asked)
            found = predictor.ask_all(served.encoded(predictor, kept))
            return [view_of(each, family=served.facts.family, total=False) for each in found]

        return {"schema": "saccade.views/1", "views": await served.run(answer)}

    def close(self) -> None:
        """Take no more work."""
        for worker in (self.studio, *(model.worker for model in self.models.values())):
            worker.close()

    def _picture(self, asked: Questions) -> StoredPicture:
        """The picture that a question is about."""
        if (asked.encoding is None) == (asked.scene is None):
            raise ApiError(422, "invalid", "a question is about an encoding or about a scene: name one of the two")
        if asked.scene is not None:
            return composed_picture(asked.scene, self.pictures)
        return self.pictures.find(asked.encoding or "")

    def _of_input(self, asked: Question, predictor: Predictor) -> Json:
        """The answer of a model that is sent JSON."""
        if asked.input is None or asked.encoding is not None or asked.scene is not None:
            raise ApiError(422, "invalid", f"'{predictor.name}' reads a {predictor.reads.thing}: send it as 'input'")
        predictor.question(asked.question)  # before the input is read and encoded: the cheaper mistake first
        sighting = predictor.ask(predictor.encode(predictor.reads.from_json(asked.input)), asked.question)
        return self._keep(sighting, view_of(sighting, family=predictor.family.name))

    def _of_picture(
        self,
        asked: SingleQuestion,
        served: ServedModel,
        predictor: Predictor,
        attention: Mapping[str, Sequence[float]] | None = None,
    ) -> Json:
        """The answer about a picture, to the model's own attention or to an edited one."""
        predictor.question(asked.question)  # before the picture is drawn and encoded: the cheaper mistake first
        kept = self._picture(asked)
        encoded, names = served.encoded(predictor, kept), predictor.model.look_names
        sighting = own = predictor.ask(encoded, asked.question)
        more: Json = {"editable": editable_looks(own.trace, names)}
        if attention is not None:
            given = given_weights(own.trace, names, attention)
            try:
                sighting = predictor.ask(encoded, asked.question, attention=given)
            except CheckpointError as error:
                message = "with these weights the model's answer is not a number; leave some weight somewhere"
                raise ApiError(422, "no_answer", message) from error
            more["edited"] = describe_edit(own, given)
        scene = kept.scene
        evidence = None if scene is None else scene.evidence(sighting.question)
        scores = None if scene is None or evidence is None else scores_of(sighting.trace, evidence, scene.objects)
        png = kept.png if asked.picture else None
        view = view_of(sighting, family=served.facts.family, png=png, evidence=evidence, scores=scores)
        return self._keep(sighting, view | more)

    def _keep(self, sighting: Sighting, view: Json) -> Json:
        """Keep an answer; returns its view with the ``record`` by which it is found, which nobody can guess."""
        name = secrets.token_urlsafe(12)
        kept = StoredAnswer(sighting, {**view, "record": name})
        return self.records.put(name, kept, answer_size(sighting, view)).view


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
        for each, mask in zip(kept.scene.digits, kept.scene.masks)
    ]
    return RenderedScene(encoding=kept.id, picture=kept.entry(), scene=kept.scene.scene, truth=truth)
