"""Scores of many maps on the same scenes and their twins: each method on each model, beside rivals.

All maps of a board are about the same questions and the same twins: a digit moves at least one cell of the coarsest
grid of any model on it. What an object does to an answer (:mod:`saccade.metrics.maps.interventions`) belongs to a
model; rivals that have none are set beside the effects of the first model. A map of zeros says nothing: it is scored as
an even one and counted.

Axes: B questions, N objects, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.families.question.board.methods import OWN, maker
from saccade.families.question.board.rows import ASKED, Row, summarised
from saccade.families.question.scenes.data import SceneBatch, SceneData
from saccade.families.question.scenes.twin_scores import coarsest_cell, effects_on, twins_at_once
from saccade.families.question.scenes.twins import SceneTwins
from saccade.families.question.sweeps import sweep_areas
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.interventions import (
    TwinMaps,
    TwinTruth,
    about_model,
    about_scene,
    even_where_empty,
    foreground,
)
from saccade.metrics.maps.localisation import (
    iou,
    pointing,
    selectivity,
    total_variation,
    true_positive_strength,
    where_defined,
)
from saccade.metrics.maps.scorer import can_exchange
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import EncodedPictures, in_parts

SLOW = ("ig", "occlusion")
"""Methods of dozens of passes for each map: of every third batch."""
_SLOW_STEP = 3
_STEP = 3  # every third question, so that there are many scenes
FOREGROUND = "own × foreground"
NO_MODEL = "no model"


@dataclass(frozen=True)
class Entrant:
    """A model, and the methods that make maps of it."""

    label: str
    model: QueryModel
    methods: tuple[str, ...]
    facts: Mapping[str, Any]
    """Where it came from, for the record."""


class _Scene:
    """The questions of a batch with their twins: what all maps share."""

    def __init__(self, batch: SceneBatch, numbers: Tensor, least: int) -> None:
        self.batch, self.twins = batch, SceneTwins(batch, least)
        self.truth: TwinTruth = self.twins.truth()
        self.objects = self.twins.objects()  # (B,N,H,W)
        self.digits = self.twins.masks.any(1)[self.twins.scene]  # (B,H,W)
        self.pictures = {name: (self.twins.pictures(each), each.query) for name, each in self.twins.asked().items()}
        self.numbers = numbers.to(batch.query.device)

    def maps(self, make: Callable[[Tensor, Tensor], Tensor]) -> TwinMaps:
        """The maps of a maker for the questions about all twins."""
        return TwinMaps(**{name: make(*asked) for name, asked in self.pictures.items()})

    def scores(self, maps: TwinMaps, effects: Tensor) -> dict[str, Tensor]:
        """Every score (B,) but those of sweeps."""
        first, target = maps.first, self.truth.target
        return {
            **about_scene(maps, self.truth),
            "true_positive_strength": true_positive_strength(first, target),
            "selectivity": selectivity(first, target, self.digits),
            "pointing": pointing(first, target),
            "iou": iou(first, target),
            **about_model(first, self.objects, effects),
        }


class Board:
    """Adds batch by batch to the rows of all entrants and rivals.

    Args:
        entrants: at least one; the first is the one whose effects rivals are set beside.
        data: a finite split.
        sweeps: questions of each row for deletion and insertion.
    """

    def __init__(self, entrants: Sequence[Entrant], data: SceneData, *, sweeps: int = 0) -> None:
        self.entrants, self.data, self.sweeps = entrants, data, sweeps
        self.rows: dict[tuple[str, str], Row] = {}
        self.right: dict[str, list[Tensor]] = {entrant.label: [] for entrant in entrants}
        self._noise = torch.Generator().manual_seed(0)
        self.least = max(coarsest_cell(_grids(entrant, data)) for entrant in entrants)

    @torch.no_grad()
    def measure(self, count: int, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Score the maps of ``count`` questions, or of fewer where there are not as many."""
        total = min(count, len(self.data) // _STEP)
        questions = torch.arange(total) * _STEP
        done = 0
        for number, numbers in enumerate(self.data.by_scene(questions, twins_at_once(self.data.device))):
            scene = _Scene(self.data.take(numbers), numbers, self.least)
            first, *_ = [self._entrant(scene, entrant, number) for entrant in self.entrants]
            self._rivals(scene, *first)
            done += len(numbers)
            progress(done, total)

    def record(self) -> dict[str, Any]:
        """Plain numbers: the rows, their agreement, comparisons, and the accuracy of each model."""
        models = {
            entrant.label: {
                **entrant.facts,
                "accuracy": float(torch.cat(self.right[entrant.label]).double().mean()),
            }
            for entrant in self.entrants
        }
        return {"least_move": self.least, "models": models, **summarised(list(self.rows.values()))}

    def _entrant(self, scene: _Scene, entrant: Entrant, number: int) -> tuple[Tensor, Tensor, TwinMaps | None]:
        """All methods of a model; its effects (B,N), which answers are right (B,), and its own maps."""
        model, batch = entrant.model, scene.batch
        logits = in_parts(model, batch.images, batch.query)["logits"]  # (B,A)
        right = logits.argmax(-1) == batch.label  # (B,)
        self.right[entrant.label].append(right.cpu())
        seen = EncodedPictures(model, scene.twins.recoloured)
        effects = effects_on(model, scene.twins, seen, model.probabilities(logits))  # (B,N)
        own: TwinMaps | None = None
        other_query = scene.pictures["other_question"][1]  # (B,)
        other = in_parts(model, batch.images, other_query)["logits"].argmax(-1)  # (B,)
        same = other == logits.argmax(-1)  # (B,): two questions, one answer
        for method in entrant.methods:
            if method in SLOW and number % _SLOW_STEP:
                continue
            maps = scene.maps(maker(method, model))
            row = self._add(scene, (entrant.label, method, "map"), maps, effects, right)
            row.values.add_values({ASKED: where_defined(_between_questions(maps), same)})
            if (len(row.values["deletion"]) if "deletion" in row.values else 0) < self.sweeps:
                self._sweep(row, scene, model, maps, logits.argmax(-1))
            if method == OWN:
                own = maps
                bright = scene.maps(lambda images, query: foreground(images))
                # mypy cannot infer a lambda with a default
                seen_bright = maps.map(lambda name, each, bright=bright: each * getattr(bright, name))  # type: ignore[misc]
                self._add(scene, (entrant.label, FOREGROUND, "rival"), seen_bright, effects, right)
        return effects, right, own

    def _sweep(self, row: Row, scene: _Scene, model: QueryModel, maps: TwinMaps, answers: Tensor) -> None:
        """Deletion and insertion of the first questions."""
        batch = scene.batch
        alone = torch.arange(len(batch), device=batch.query.device)
        first = even_where_empty(maps.first)
        row.values.add_values(sweep_areas(model, batch.images, first, batch.query, answers, alone, fill=0.0))

    def _rivals(self, scene: _Scene, effects: Tensor, right: Tensor, own: TwinMaps | None) -> None:
        """Maps that know nothing of a model, or what no model is told."""
        truth, size = scene.truth, scene.batch.images.shape[-2:]
        shape = (len(scene.batch), *size)
        pixels = Grids.pixels((size[0], size[1])).to(scene.objects.device)

        def blind(lay: Callable[..., Tensor]) -> TwinMaps:
            laid = pixels.through(lambda frame, cells: lay(frame, cells, (size[0], size[1]), pictures=1))  # (1,H,W)
            return scene.maps(lambda images, query: laid.expand(shape))

        frozen = torch.rand(1, *size, generator=torch.Generator().manual_seed(1)).to(scene.objects.device)
        found: dict[tuple[str, str], TwinMaps] = {
            ("uniform", "rival"): blind(baselines.uniform),
            ("centre", "rival"): blind(baselines.centre_gaussian),
            ("noise", "rival"): scene.maps(
                lambda images, query: torch.rand(shape, generator=self._noise).to(images.device)
            ),
            ("frozen noise", "rival"): scene.maps(lambda images, query: frozen.expand(shape)),
            ("foreground", "rival"): scene.maps(lambda images, query: foreground(images).float()),
            ("all digits", "truth"): _digits(scene),
            ("the digit asked for", "truth"): scene.maps(lambda images, query: frozen.expand(shape)).map(
                lambda name, each: truth.asked_for(name).float()
            ),
        }
        if own is not None and can_exchange(scene.batch.scene):
            other = baselines.derangement(scene.batch.scene).to(own.first.device)  # (B,)
            found["own map of another scene", "rival"] = own.map(lambda name, each: each[other])
        planted = self._planted(scene)
        if planted is not None:
            found["the planted cause", "truth"] = scene.maps(lambda images, query: planted.float())
        for (method, kind), maps in found.items():
            self._add(scene, (NO_MODEL, method, kind), maps, effects, right)

    def _planted(self, scene: _Scene) -> Tensor | None:
        """(B,H,W) bool: where the planted cause lies, of data that has one in a place."""
        planted = self.data.config.planted
        if planted == "corner" and scene.twins.patch is not None:
            return scene.twins.patch[scene.twins.scene]
        return scene.twins.largest() if planted == "largest" else None

    def _add(self, scene: _Scene, named: tuple[str, str, str], maps: TwinMaps, effects: Tensor, right: Tensor) -> Row:
        model, method, kind = named
        row = self.rows.setdefault((model, method), Row(model, method, kind))
        empty = maps.first.flatten(1).sum(1) == 0  # (B,)
        even = maps.map(lambda name, each: even_where_empty(each))
        row.add(
            scene.scores(even, effects),
            question=scene.numbers,
            scene=scene.batch.scene,
            right=right,
            empty=empty,
        )
        return row


def _between_questions(maps: TwinMaps) -> Tensor:
    """TV (B,) of the maps of two questions about one scene."""
    return total_variation(even_where_empty(maps.first), even_where_empty(maps.other_question))


def _digits(scene: _Scene) -> TwinMaps:
    """All digits of each picture: a perfect segmenter that does not know the question."""
    twins, kept = scene.twins, scene.digits  # (B,H,W)
    target, other = twins.number(twins.target), twins.number(twins.other)  # (B,)
    old = {"target": scene.truth.target, "other": scene.truth.other}
    new = {"target": twins.moved_masks[target], "other": twins.moved_masks[other]}

    def changed(name: str, each: Tensor) -> Tensor:
        who, _, how = name.partition("_")
        if how == "moved":
            return ((kept & ~old[who]) | new[who]).float()
        return ((kept & ~old[who]) if how == "removed" else kept).float()

    return scene.maps(lambda images, query: images[:, 0]).map(changed)


def _grids(entrant: Entrant, data: SceneData) -> Grids | None:
    """The grids of a model's map."""
    side = data.spec.size
    images = torch.zeros(1, 3, side, side, device=data.device)
    with torch.no_grad():
        raw = entrant.model.forward_raw(images, torch.zeros(1, dtype=torch.long, device=data.device))
    return grids_of(entrant.model.wrap(raw, (side, side)).trace, (side, side))
