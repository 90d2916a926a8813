"""What the server does, without HTTP: it keeps pictures, asks models in their queues, and makes views of answers.

A view names its ``editable`` looks. An edited answer has ``edited``: for each look how many of its cells differ from
the model's own and how far they moved (total variation of the two maps), the looks given unchanged (``frozen``), and
the ``unedited`` answer. Answers are kept for a while.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.reading import Picture
from saccade.errors import CheckpointError
from saccade.metrics.maps.baselines import centre_gaussian, uniform
from saccade.metrics.maps.localisation import iou, pointing, selectivity, total_variation, true_positive_strength
from saccade.predict import Predictor
from saccade.show.overlay import png_bytes
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web import schemas
from saccade.web.decode import Sandbox
from saccade.web.guard import Limits
from saccade.web.models import LruStore, ServedModel, Worker, served_models
from saccade.web.page import offline_page
from saccade.web.pictures import Composed, StoredPicture, backgrounds, bytes_of, compose, shown_name, stored_picture
from saccade.web.schemas import ApiError
from saccade.web.views import Json, mask_url, picture_url, view_of

SAME = 1e-4  # Weights that differ by less than this share of the largest are the same: a page sends some digits only.


def editable_looks(trace: AttentionTrace, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """The looks of ``trace`` that a brush can change, with their (h, w): weights on a grid, without steps."""

    def can_be_edited(look: Look) -> bool:
        is_grid = look.weights is not None and look.is_spatial and not look.has_steps and look.full is None
        return is_grid and look.name in names

    return {look.name: tuple(look.weights.shape[-2:]) for look in trace.looks if can_be_edited(look)}  # type: ignore[union-attr]  # it has weights


def given_weights(
    editable: Mapping[str, tuple[int, int]], attention: Mapping[str, Sequence[float]]
) -> dict[str, Tensor]:
    """Weights (1,h,w) of each look in ``attention``, which has them row by row, or an ApiError."""
    if not editable:
        raise ApiError(422, "not_editable", "this model has no look whose weights can be edited here")
    given = {}
    for name, weights in attention.items():
        if name not in editable:
            raise ApiError(422, "not_editable", f"look '{name}' cannot be edited; these can: {', '.join(editable)}")
        height, width = editable[name]
        if len(weights) != height * width:
            wanted = f"{height} × {width} = {height * width}"
            raise ApiError(422, "invalid", f"attention.{name}: expected {wanted} weights, found {len(weights)}")
        given[name] = torch.tensor(weights, dtype=torch.float32).reshape(1, height, width)
    return given


def describe_edit(plain: Sighting, edited: Mapping[str, Tensor]) -> Json:
    """What was edited, beside the answer ``plain`` of the model's own attention."""
    looks: Json = {}
    frozen: list[str] = []
    for name, weights in edited.items():
        before = torch.as_tensor(plain.trace.look(name).weights)  # (1,h,w)
        cells = int(((weights - before).abs() > SAME * before.abs().max()).sum())
        if cells:
            moved = float(total_variation(before, weights).nan_to_num(1.0))  # 1 where one has no weight at all
            looks[name] = {"cells": cells, "of": before.numel(), "moved": round(moved, 4)}
        else:
            frozen.append(name)
    return {"looks": looks, "frozen": frozen, "unedited": {"answer": plain.answer, "confidence": plain.confidence}}


def scores_of(trace: AttentionTrace, evidence: Tensor, objects: Tensor) -> Json:
    """Scores of the total map of one example, and of baselines on the same picture; None where one is not defined."""
    size, pixels = (evidence.shape[0], evidence.shape[1]), geometry.identity()
    blind = {
        "uniform": uniform(pixels, size, size),
        "centre_gaussian": centre_gaussian(pixels, size, size),
        "all_objects_exact": objects[None].float(),
    }  # (1,H,W) each
    maps = torch.cat([trace.image_map("total", size), *blind.values()])  # (1+K,H,W)
    target, all_objects = (mask.expand(len(maps), *size) for mask in (evidence, objects))  # (1+K,H,W)
    columns = {
        "true_positive_strength": true_positive_strength(maps, target),
        "pointing": pointing(maps, target),
        "iou": iou(maps, target),
        "selectivity": selectivity(maps, target, all_objects),
    }
    rows: list[dict[str, float | None]] = [{} for _ in maps]
    for metric, values in columns.items():
        for row, value in zip(rows, values.tolist()):
            row[metric] = round(value, 6) if math.isfinite(value) else None
    return {"attention": rows[0], "baselines": dict(zip(blind, rows[1:]))}


@dataclass(frozen=True, eq=False)
class StoredAnswer:
    """One answer as it was given."""

    sighting: Sighting
    view: Json

    @property
    def size(self) -> int:
        """What it takes in memory, roughly: its picture, its tensors, and the texts that they became."""
        image = self.sighting.source.image
        pixels = 0 if image is None else 3 * image.height * image.width
        tensors = sum(tensor.nbytes for look in self.sighting.trace.looks for tensor in look.tensors().values())
        return pixels + tensors + len(json.dumps(self.view))

    @property
    def stem(self) -> str:
        """What its files are called: letters, digits and dashes of the model's name and the question only."""
        text = f"{self.sighting.model}-{self.sighting.question or 'look'}"
        return re.sub(r"[^A-Za-z0-9-]+", "-", text).strip("-")[:80] or "saccade"

    def file(self, form: str) -> bytes:
        """The answer as ``view.json``, as ``strip.png``, or as ``page.html``, which loads nothing from anywhere."""
        if form == "strip.png":
            return png_bytes(self.sighting.filmstrip())
        view, picture = self.view, self.view["picture"]
        if picture is not None and not picture["png"]:  # the view is to stand alone, whether or not it was asked for so
            view = {**view, "picture": {**picture, "png": picture_url(self.sighting.picture.image)}}
        text = json.dumps(view, indent=1) if form == "view.json" else offline_page(views=[view])
        return text.encode("utf-8")


class Service:
    """Models, pictures and answers of one server; without ``models`` every one that ships."""

    def __init__(self, models: Sequence[str | Path] = (), device: str = "auto", limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.models = served_models(models, device, self.limits)
        self.pictures: LruStore[StoredPicture] = LruStore("encoding", self.limits.kept_bytes)
        self.records: LruStore[StoredAnswer] = LruStore("record", self.limits.records_bytes, self.limits.records)
        self.decoders = Sandbox(self.limits)
        # Drawing has a queue too.
        self.studio = Worker("pictures", self.limits.waiting, self.limits.answer_seconds)

    async def entries(self) -> schemas.ModelList:
        """The models, as the API returns them."""
        return schemas.ModelList(models=[model.entry() for model in self.models.values()])

    async def material(self) -> schemas.SceneMaterial:
        """What scenes can be made of."""
        return schemas.SceneMaterial(backgrounds=await self.studio.run(backgrounds))

    async def encode(self, sent: schemas.Upload) -> schemas.Encoding:
        """Keep a picture; with a model, encode it for that one at once."""
        data, name = bytes_of(sent.picture), shown_name(sent.name)
        served = self.models[sent.model].reading_pictures() if sent.model is not None else None
        try:
            image, notes = await self.decoders.read(data, name)
        except TimeoutError as error:
            waited = f"none was done within {self.limits.decoding_wait_seconds:g} s; try again in a moment"
            raise ApiError(429, "busy", f"other pictures are being decoded, and {waited}") from error
        stored = await self.studio.run(lambda: stored_picture(Picture(image, name, notes)))
        self.pictures.put(stored.id, stored, stored.size)
        if served is not None:
            await served.run(lambda predictor: served.encoded(predictor, stored))
        return schemas.Encoding(encoding=stored.id, picture=stored.entry())

    async def render(self, scene: schemas.Scene) -> schemas.RenderedScene:
        """Draw a scene and tell where everything in it is."""

        def rendered() -> schemas.RenderedScene:
            stored, composed = self._scene(scene)
            truth = []
            for digit, mask in zip(composed.digits, composed.masks):
                box = (digit.x, digit.y, digit.x + digit.size, digit.y + digit.size)
                entry = schemas.DigitTruth(digit=digit.digit, colour=digit.colour, box=box, mask_png=mask_url(mask))
                truth.append(entry)
            return schemas.RenderedScene(encoding=stored.id, picture=stored.entry(), scene=composed.scene, truth=truth)

        return await self.studio.run(rendered)

    async def ask(self, request: schemas.Question) -> Json:
        """One answer, as a view."""
        served = self.models[request.model]
        if served.page_entry.takes == "json":
            return await served.run(lambda predictor: self._of_input(request, predictor))
        served.reading_pictures()
        if request.input is not None:
            raise ApiError(422, "invalid", f"'{served.name}' reads pictures: send an encoding or a scene, not an input")
        return await served.run(lambda predictor: self._of_picture(request, served, predictor))

    async def edit(self, request: schemas.EditedQuestion) -> Json:
        """One answer to edited attention, as a view with what was edited and the answer without it."""
        served = self.models[request.model].reading_pictures()
        return await served.run(lambda predictor: self._of_picture(request, served, predictor, request.attention))

    async def ask_all(self, request: schemas.Questions) -> Json:
        """An answer to every question that the model knows, as views of answer and looks alone."""
        served = self.models[request.model].reading_pictures()

        def answer(predictor: Predictor) -> list[Json]:
            sightings = predictor.ask_all(served.encoded(predictor, self._picture(request)))
            return [view_of(sighting, family=served.facts.family, total=False) for sighting in sightings]

        return {"schema": "saccade.views/1", "views": await served.run(answer)}

    def close(self) -> None:
        """Take no more work."""
        for worker in (self.studio, *(model.worker for model in self.models.values())):
            worker.close()

    def _picture(self, request: schemas.Questions) -> StoredPicture:
        if (request.encoding is None) == (request.scene is None):
            raise ApiError(422, "invalid", "a question is about an encoding or about a scene: name one of the two")
        return self.pictures.find(request.encoding or "") if request.scene is None else self._scene(request.scene)[0]

    def _scene(self, scene: schemas.Scene) -> tuple[StoredPicture, Composed]:
        """Render and keep a scene; one that was rendered lately is found again."""
        name = f"s{hashlib.sha256(scene.model_dump_json().encode()).hexdigest()[:24]}"
        stored = self.pictures.get(name)
        if stored is None or stored.scene is None:
            composed = compose(scene)
            stored = StoredPicture(name, composed.picture, picture_url(composed.picture.image), composed)
            self.pictures.put(name, stored, stored.size)
            return stored, composed
        return stored, stored.scene

    def _of_input(self, request: schemas.Question, predictor: Predictor) -> Json:
        if request.input is None or request.encoding is not None or request.scene is not None:
            raise ApiError(422, "invalid", f"'{predictor.name}' reads a {predictor.reads.thing}: send it as 'input'")
        predictor.question(request.question)  # before the input is read and encoded: the cheaper mistake first
        sighting = predictor.ask(predictor.encode(predictor.reads.from_json(request.input)), request.question)
        return self._keep(sighting, view_of(sighting, family=predictor.family.name))

    def _of_picture(
        self,
        request: schemas.SingleQuestion,
        served: ServedModel,
        predictor: Predictor,
        attention: Mapping[str, Sequence[float]] | None = None,
    ) -> Json:
        predictor.question(request.question)  # before the picture is drawn and encoded: the cheaper mistake first
        stored = self._picture(request)
        encoded = served.encoded(predictor, stored)
        sighting = unedited = predictor.ask(encoded, request.question)
        editable = editable_looks(unedited.trace, predictor.model.look_names)
        more: Json = {"editable": list(editable)}
        if attention is not None:
            given = given_weights(editable, attention)
            try:
                sighting = predictor.ask(encoded, request.question, attention=given)
            except CheckpointError as error:
                message = "with these weights the model's answer is not a number; leave some weight somewhere"
                raise ApiError(422, "no_answer", message) from error
            more["edited"] = describe_edit(unedited, given)
        scene = stored.scene
        evidence = None if scene is None else scene.evidence(sighting.question)
        scores = None if scene is None or evidence is None else scores_of(sighting.trace, evidence, scene.masks.any(0))
        png = stored.png if request.picture else None
        view = view_of(sighting, family=served.facts.family, png=png, evidence=evidence, scores=scores)
        return self._keep(sighting, view | more)

    def _keep(self, sighting: Sighting, view: Json) -> Json:
        """Keep an answer; returns its view with the ``record`` by which it is found, which nobody can guess."""
        name = secrets.token_urlsafe(12)
        stored = StoredAnswer(sighting, {**view, "record": name})
        return self.records.put(name, stored, stored.size).view
