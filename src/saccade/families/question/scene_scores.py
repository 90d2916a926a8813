"""Scores of a model on generated scenes: its answers, its attention beside baselines and bounds, and the causal tests.

Maps are scored by :mod:`saccade.metrics.maps.scorer`. Baselines and the bound are made on all grids of the model's
total map and combined as it is. A model that only cuts out crops has no grid of weights: its baselines live on the
picture's own pixels, and there is no bound, which would be the target's mask and no bound for boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, cast

import torch
from torch import Tensor

from saccade.data.tables.sampling import first_numbers
from saccade.errors import DataError
from saccade.families.question.scenes import SceneBatch, SceneData
from saccade.families.question.sweeps import sweep_areas
from saccade.families.question.twin_scores import (
    RECOLOURED_OTHER,
    RECOLOURED_TARGET,
    REMOVED_OTHER,
    changed_scenes,
    twin_scores,
    twins_at_once,
)
from saccade.geometry import Size
from saccade.metrics import CausalAnswers, accuracy_by_scale, scores_of_answers
from saccade.metrics.maps.scorer import MapScores
from saccade.metrics.maps.twins import TwinScores
from saccade.metrics.result import Summary, without_nan
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import Job, Kept, Scoring
from saccade.tasks.forward_passes import (
    BATCH,
    EncodedPictures,
    answers_of,
    distinct,
    in_parts,
    numbers_in_batches,
)
from saccade.tasks.thread_map import thread_count
from saccade.trace import Output

SWEPT = 25
"""Questions whose pictures a CPU alters together for deletion and insertion."""
TWINS = 100
"""Questions whose scenes are rendered again for scores of the maps; about 35 forward passes each."""
_TWIN_STEP = 3  # every third question is taken, so that there are many scenes: intervals count scenes
_EDIT_STEP = 2  # of every second batch of them attention is edited
ANSWER_SCORES = ("accuracy", "swapped_query", "accuracy_argmax_location")


@dataclass
class SceneKept(Kept):
    """With the scores of the maps of re-rendered scenes, from fewer questions."""

    twins: TwinScores = field(default_factory=TwinScores)


class SceneScoring(Scoring):
    """Measures a model on a finite split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split.
        limit: at most this many triples, from the first on.
        sweeps: pictures for deletion and insertion, which cost dozens of forward passes each.
        twins: triples whose scenes are rendered again for scores of maps under intervention, see
            :mod:`saccade.metrics.maps.interventions`; from the first on.
        absent: the same split, asked for digits that are not there; None: the model says of none that it is not.
    """

    def __init__(
        self,
        model: QueryModel,
        data: SceneData,
        *,
        limit: int | None = None,
        sweeps: int = 200,
        twins: int = 0,
        absent: SceneData | None = None,
    ) -> None:
        fewest = 2 * data.spec.slots  # so many surely have maps to exchange: no more than half are about one scene
        if limit is not None and limit < fewest:
            raise DataError(f"limit: maps are exchanged between scenes, which takes at least {fewest}, found {limit}")
        self.model, self.data, self.sweeps, self.twins, self.absent = model, data, sweeps, twins, absent
        self.numbers = first_numbers(data.size, limit, data.split)
        self.threads = thread_count(data.device)
        self.size = (data.spec.size, data.spec.size)
        self._taking = Lock()  # scenes are kept by who makes them

    def kept(self) -> SceneKept:
        """What nothing was measured of yet."""
        return SceneKept()

    def take(self, numbers: Tensor) -> SceneBatch:
        """The triples ``numbers`` (B,), by one thread at a time."""
        with self._taking:
            return self.data.take(numbers)

    def measure(self, numbers: Tensor, before: int) -> SceneKept:
        """Answers, maps and causal tests of the triples ``numbers`` (B,)."""
        kept, batch = SceneKept(), self.take(numbers)
        first, scene = distinct(batch.scene)  # (S,), (B,): several questions share a scene
        seen = EncodedPictures(self.model, batch.images[first])
        output, swapped = _asked(seen, batch.query, batch.other_query(), scene, self.size)
        masks = batch.layout[first].masks()  # (S,N,H,W)
        answers = answers_of(output.trace)  # (B,)
        if "argmax_logits" in output.aux:  # where a model sums over locations, what the likeliest alone would have said
            right = output.aux["argmax_logits"].argmax(-1) == batch.label  # (B,)
            kept.causal.add_values({"accuracy_argmax_location": right})
        kept.columns.append(answer=answers, label=batch.label, scale=batch.scale)
        kept.maps.add_trace(output.trace, masks[scene, batch.object], objects=masks.any(1)[scene], groups=batch.scene)
        self._add_causal(kept, seen, scene, batch, answers, swapped)
        return kept

    def _add_causal(
        self,
        kept: SceneKept,
        seen: EncodedPictures,
        scene: Tensor,
        batch: SceneBatch,
        answers: Tensor,
        swapped: Tensor,
    ) -> None:
        """Render each scene again with the target, or another object, changed; no answer follows a planted cause.

        The unchanged ``scene`` (B,) of each question has been ``seen``. Its ``answers`` (B,) are known, and so is what
        was answered about another object (``swapped``, (B,)).
        """
        is_planted = self.data.config.planted != "none"
        changed = changed_scenes(batch, target=not is_planted)
        pictures = torch.cat(list(changed.picture.values()))  # (W·B,)
        query = batch.query.repeat(len(changed.picture))  # (W·B,)
        logits = seen.logits_of_changed(changed.images, scene[changed.row], query, pictures)  # (W·B,K)
        after = dict(zip(changed.picture, torch.split(logits.argmax(-1), len(batch))))
        found = CausalAnswers(
            truth=batch.label,
            before=answers,
            target_changed=after.get(RECOLOURED_TARGET),
            new_truth=None if is_planted else changed.new_label,
            others_changed={"recoloured": after[RECOLOURED_OTHER], "removed": after[REMOVED_OTHER]},
            other_query=swapped,
        )
        kept.causal.add_values(scores_of_answers(found))

    def further(self) -> Iterator[Job]:
        """Deletion and insertion of the first pictures, and scenes rendered again."""
        total = len(self.numbers)
        few = SWEPT if self.data.device.type == "cpu" else BATCH
        for start in range(0, min(self.sweeps, total), few):
            yield self._swept, torch.arange(start, min(start + few, self.sweeps, total))
        wanted = min(self.twins, total)
        rendered = torch.arange(wanted) * max(1, min(_TWIN_STEP, total // max(wanted, 1)))  # (n,)
        for number, numbers in enumerate(self.data.by_scene(rendered, twins_at_once(self.data.device))):
            yield partial(self._twinned, edits=number % _EDIT_STEP == 0), numbers

    def _twinned(self, numbers: Tensor, *, edits: bool) -> SceneKept:
        return SceneKept(twins=twin_scores(self.model, self.take(numbers), edits=edits))

    def _swept(self, numbers: Tensor) -> SceneKept:
        """Deletion and insertion on black, for the model's map and for pixels in random order (a uniform map)."""
        kept, batch, model = SceneKept(), self.take(numbers), self.model
        first, scene = distinct(batch.scene)  # (S,), (B,): the random order is the same for all questions of one
        trace = model.wrap(EncodedPictures(model, batch.images[first]).ask(batch.query, scene), self.size).trace
        asked, total = (batch.query, answers_of(trace)), trace.image_map("total")  # (B,H,W)
        alone = torch.arange(len(batch), device=scene.device)  # (B,)
        kept.maps.total.add_values(sweep_areas(model, batch.images, total, *asked, alone, fill=0.0))
        even = torch.ones_like(total[first])  # (S,H,W)
        kept.maps.baselines["uniform"] = MapScores()
        areas = sweep_areas(model, batch.images[first], even, *asked, scene, fill=0.0)
        kept.maps.baselines["uniform"].add_values(areas)
        return kept

    def scores(self, kept: Kept) -> dict[str, Any]:
        """Scores of answers, by the scale of the digit too, of maps, and of the causal tests."""
        means = kept.causal.means()
        bins = accuracy_by_scale(kept.columns["answer"], kept.columns["label"], kept.columns["scale"])
        label = {scale: f"({scale.low:g},{scale.high:g}]" for scale in bins}
        answers = {name: means[name] for name in ANSWER_SCORES if name in means}
        absent = {} if self.absent is None else {"accuracy_absent": self._accuracy_absent(self.absent)}
        return {
            "metrics": {**answers, "accuracy_by_scale": {label[scale]: scale.accuracy for scale in bins}, **absent},
            "maps": kept.maps,
            "measured": [(kept.causal, kept.maps.groups)],
            "attention": {name: mean for name, mean in means.items() if name not in answers},
            "counts": {"accuracy_by_scale": {label[scale]: scale.n for scale in bins}},
            "keep_undefined": True,
        }

    def details(self, kept: Kept, found: Summary) -> Mapping[str, Any]:
        """The scores of maps under intervention."""
        twins = cast(SceneKept, kept).twins
        return {"interventions": without_nan(twins.summary())} if len(twins) else {}

    @torch.inference_mode()
    def _accuracy_absent(self, data: SceneData) -> float:
        """How often the model says that a digit is not there, asked for digits that are not."""
        right = []
        for numbers in numbers_in_batches(len(self.numbers), BATCH):
            batch = data.take(numbers)
            is_absent = batch.label == len(data.answers) - 1  # a scene may have all ten digits
            said = in_parts(self.model, batch.images, batch.query).logits.argmax(-1)  # (B,)
            right.append((said == batch.label)[is_absent])
        return float(torch.cat(right).double().mean())


def _asked(seen: EncodedPictures, query: Tensor, other: Tensor, scene: Tensor, size: Size) -> tuple[Output, Tensor]:
    """What is answered to the queries (B,) about the scenes (B,), and the answers (B,) to ``other`` queries about them.

    Most of the others are among the queries, as every digit of a scene is asked for: they are not asked again.
    """
    asked, wanted = (scene * len(SceneData.queries) + each for each in (query, other))  # (B,): a number for each pair
    is_new = ~torch.isin(wanted, asked)  # (B,)
    raw = seen.ask(torch.cat([query, other[is_new]]), torch.cat([scene, scene[is_new]]))
    known, order = torch.cat([asked, wanted[is_new]]).sort()  # (B+A,)
    answers = raw.logits.argmax(-1)[order[torch.searchsorted(known, wanted)]]  # (B,)
    return seen.model.wrap(raw[: len(query)], size), answers
