"""Scores on given pictures: what is known beside those of ``scores.py``, and baselines from the training questions.

Pictures cannot be rendered again, so there are no causal tests; deletion and insertion blur pixels instead. Evidence is
a mask, a box or a disc round a click; a click is scored by its distance too. Scores without evidence are left out.

Baselines: ``training_prior`` and ``training_prior_by_query`` answer by what is common in training; ``box_centre`` looks
at the middle of the object's box, and ``part_prior`` at the mean training position of the part inside the box, each on
the model's grids and, as ``…_exact``, to the pixel. ``pointing_at`` has a value for each query too, and
``against.maps.by_query`` compares the maps of each query with the best blind map of that query.

Where a mask or the object's box is known, answers are asked for again without it and without the rest of the picture
(:mod:`saccade.metrics.verdict`); a point alone marks no object.

Axes: Q queries, K answers, B examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.data.examples import sample_pictures, table_folder
from saccade.data.tables.table import UNSEEN, Table
from saccade.errors import ConfigError
from saccade.families.question.scores import QuestionScoring
from saccade.families.question.tables import TableBatch, TableData
from saccade.metrics.intervals import mean_defined
from saccade.metrics.labels import details_of, right_answers
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.faithfulness import blurred
from saccade.metrics.maps.points import Clicks
from saccade.metrics.maps.scorer import at_places
from saccade.metrics.result import CountValue, Part, Scores, Summary, only_defined
from saccade.metrics.sets import weighted_map
from saccade.metrics.verdict import Altered, against_chance
from saccade.models.base import QueryModel
from saccade.models.question_head import QuestionHeadModel
from saccade.tasks.evaluate import EncodedPictures, Measurements, in_parts
from saccade.trace import AttentionTrace, Output

BLUR = 1 / 20  # standard deviation of the blur that stands for "no longer there", as a share of the input's height
PART_PRIORS = ("part_prior", "part_prior_exact")
HABITS = ("training_prior", "training_prior_by_query")
SWEEPS = 50


@dataclass(frozen=True, eq=False)
class TrainingPrior:
    """Counts over the training rows of a table, in the words of a model."""

    overall: Tensor  # (K,) share of the training questions whose answers hold each
    # (Q,K) the same for each query; the overall shares where a query is never asked in training.
    by_query: Tensor
    place: Tensor  # (Q,2) mean point inside the object's box, 0..1 along x and y; NaN where none is known

    def answers(self, query: Tensor) -> Tensor:
        """How often each answer holds for these queries (B,): (B,K)."""
        return self.by_query.to(query.device)[query]

    def points(self, query: Tensor, box: Tensor) -> Tensor:
        """Where the parts asked for (B,) usually lie in these boxes (B,4) xyxy: (B,2), NaN where unknown."""
        place = self.place.to(box)[query]  # (B,2)
        return box[:, :2] + place * (box[:, 2:] - box[:, :2])


def training_prior(table: Table, queries: tuple[str, ...], answers: tuple[str, ...]) -> TrainingPrior | None:
    """The prior of a table's training rows in the given words; None when it has none of them."""
    query_ids, answer_ids = ({word: number for number, word in enumerate(words)} for words in (queries, answers))
    holds = torch.zeros(len(queries), len(answers), dtype=torch.float64)
    asked = torch.zeros(len(queries), dtype=torch.float64)
    places: list[list[tuple[float, float]]] = [[] for _ in queries]
    for row in table.rows:
        if row.split != "train" or row.query not in query_ids:
            continue
        query = query_ids[row.query]
        asked[query] += 1
        for label in row.labels:
            if label in answer_ids:
                holds[query, answer_ids[label]] += 1
        if row.box is not None and row.point is not None:
            (left, top, right, bottom), (x, y) = row.box, row.point
            places[query].append(((x - left) / (right - left), (y - top) / (bottom - top)))
    if not asked.any():
        return None
    overall = holds.sum(0) / asked.sum()  # (K,)
    by_query = torch.where(asked[:, None] > 0, holds / asked[:, None].clamp(min=1), overall)  # (Q,K)
    along = [torch.tensor(points, dtype=torch.float64).reshape(-1, 2) for points in places]  # (n,2) each
    mean = [[mean_defined(points[:, 0]), mean_defined(points[:, 1])] for points in along]
    return TrainingPrior(overall, by_query, torch.tensor(mean))


def another_head(model: QueryModel, questions: Sequence[str]) -> str:
    """What to try where a question head with several ``questions`` is no better than a linear classifier."""
    if not isinstance(model, QuestionHeadModel) or len(questions) < 2:
        return ""
    return "train attributes-soft too, whose finer map tells small things and things side by side apart"


class TableScoring(QuestionScoring):
    """Measures a model on a split of a table.

    ``limit`` takes the questions about a sample of the pictures, ``sweeps`` for deletion and insertion one each.
    """

    data: TableData

    def __init__(
        self,
        model: QueryModel,
        data: TableData,
        *,
        limit: int | None = None,
        sweeps: int = SWEEPS,
        twins: int = 0,
    ) -> None:
        if twins:
            raise ConfigError(f"twins: photographs cannot be rendered again with one thing changed; found {twins}")
        if data.multi_label != model.multi_label:
            has, gives = ("several labels", "one") if data.multi_label else ("one label", "several")
            raise ConfigError(f"{data.name} has {has} for a question, but the model answers with {gives}")
        numbers = data.sampled(limit)  # (N,)
        rows = [data.rows[number] for number in numbers.tolist()]
        images, words = [row.image for row in rows], [row.query for row in rows]
        swept = numbers[sample_pictures(images, table_folder(data.table.name), words, sweeps)]
        super().__init__(model, data, numbers, swept, data.config.size)
        self.has_evidence = data.has_evidence or not model.look_specs
        self.instead = another_head(model, data.queries)
        self.prior = training_prior(data.table, data.queries, data.answers)

    def fill(self, images: Tensor) -> Tensor:
        """The pictures, blurred."""
        return blurred(images, BLUR * images.shape[-2])

    def add(
        self, measured: Measurements, batch: TableBatch, seen: EncodedPictures, output: Output, swapped: Tensor
    ) -> None:
        """Maps beside baselines that know where parts lie, and what scores of the whole set need."""
        _add_maps(measured, output.trace, batch, self.prior)
        if self.prior is not None:
            habit = self.prior.answers(batch.query)  # (B,K)
            measured.columns.append(
                training_prior=self.prior.overall.expand(habit.shape), training_prior_by_query=habit
            )
        if self.model.multi_label:
            measured.columns.append(logits=output.logits, swapped=swapped)
            return
        shares = self.model.probabilities(output.logits.float())  # (B,K)
        answer = output.logits.argmax(-1)  # (B,)
        sure, of_true = (shares.gather(1, each[:, None])[:, 0] for each in (answer, batch.label))  # (B,) each
        measured.columns.append(confidence=sure, of_true=of_true)

    def altered(self, numbers: Tensor, measured: Measurements) -> Altered | None:
        """The questions ``numbers`` (B,), where the outline of what is asked about is known."""
        batch = self.data.take(numbers)
        region = batch.marks.region()  # (B,H,W)
        habit = None if self.prior is None else right_answers(self.prior.answers(batch.query), batch.label)
        guessed = torch.zeros(len(batch)) if habit is None else habit.double().cpu()  # (B,)

        def right(images: Tensor, rows: Tensor) -> Tensor:
            return right_answers(in_parts(self.model, images, batch.query[rows]).logits, batch.label[rows])

        return Altered(batch.images, region, right, batch.label, batch.picture, guessed, batch.query)

    def guesses(self, measured: Measurements) -> dict[str, Tensor]:
        """Habits of answering: 1 where each is right, (N,)."""
        label, columns = measured.columns["label"], measured.columns
        right = {name: right_answers(columns[name], label).double() for name in HABITS if name in columns}
        if not right and not self.model.multi_label:
            right = {"commonest_label": (label == torch.bincount(label).argmax()).double()}
        return right

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """The scores, by query too, and those of habits."""
        parts, groups = super().scores(measured), measured.maps.groups
        metrics: Scores = {**only_defined(parts["metrics"])}
        counts: dict[str, CountValue] = {"questions": len(groups), "pictures": len(torch.unique(groups))}
        unread = [reason for reason in self.data.table.skipped if UNSEEN not in reason]  # the model's words count
        counts["skipped_rows"] = len(unread) + len(self.data.skipped)
        if len(self.swept):
            counts["swept_pictures"] = len(torch.unique(measured.columns["act_picture"]))
        if self.model.multi_label:
            metrics |= _mean_precisions(measured)
        else:
            metrics["accuracy_by_query"] = self._by_query(measured, measured.answers["accuracy"])
            asked = torch.bincount(measured.columns["query"], minlength=len(self.data.queries)).tolist()
            counts["accuracy_by_query"] = {word: count for word, count in zip(self.data.queries, asked) if count}
        return {**parts, "metrics": metrics, "baselines": self._habit_scores(measured), "counts": counts}

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """What was taken for what, the worst mistakes, and where the maps of each query point."""
        if self.model.multi_label:
            return {}
        answer, label, confidence, of_true = (
            measured.columns[name] for name in ("answer", "label", "confidence", "of_true")
        )

        def place(number: int) -> Part:
            row = self.data.rows[int(measured.columns["question"][number])]
            return {"picture": str(row.image), "asked": row.query}

        self._add_pointing(measured, summary)
        return details_of(answer, label, confidence, of_true, self.data.answers, place)

    def _add_pointing(self, measured: Measurements, summary: Summary) -> None:
        """Add ``pointing_at`` of each query, the model's and those of the baselines that know where parts lie."""
        maps = measured.maps
        if "pointing_at" not in maps.total:
            return
        places = [(summary["attention"], maps.total)]
        baselines = summary["baselines"]
        places += [(baselines[name], maps.baselines[name]) for name in PART_PRIORS if name in baselines]
        for place, values in places:
            if "pointing_at" in values and (by_query := self._by_query(measured, values["pointing_at"])):
                place["pointing_at_by_query"] = by_query
        if "pointing_at_by_query" not in summary["attention"]:
            return
        query, clicked = measured.columns["query"], ~maps.total["pointing_at"].isnan()  # (N,), (N,)
        chosen = {word: clicked & (query == number) for number, word in enumerate(self.data.queries)}
        counts = {word: int(among.sum()) for word, among in chosen.items() if bool(among.any())}
        summary["counts"]["pointing_at_by_query"] = counts
        if "maps" in summary.get("against", {}):
            compared = {word: against_chance(maps, chosen[word]) for word in counts}
            summary["against"]["maps"]["by_query"] = {
                word: {"n": counts[word], **part} for word, part in compared.items() if part
            }

    def _by_query(self, measured: Measurements, values: Tensor) -> dict[str, float]:
        query = measured.columns["query"]
        return only_defined(
            {word: mean_defined(values[query == number]) for number, word in enumerate(self.data.queries)}
        )

    def _habit_scores(self, measured: Measurements) -> dict[str, dict[str, float]]:
        columns = measured.columns
        habits = {name: float(right.mean()) for name, right in self.guesses(measured).items() if name in columns}
        if not self.model.multi_label:
            return {name: {"accuracy": share} for name, share in habits.items()}
        return {
            name: {"weighted_map": weighted_map(columns[name], columns["label"]), "top1": share}
            for name, share in habits.items()
        }


def _mean_precisions(measured: Measurements) -> dict[str, float]:
    """Weighted mAP by both interpolations; asked for something else in the picture, it should be far lower."""
    logits, label, swapped = (measured.columns[name] for name in ("logits", "label", "swapped"))
    has_other = ~swapped.isnan().any(1)  # (N,)
    precisions = {
        "weighted_map": weighted_map(logits, label),
        "weighted_map_all_point": weighted_map(logits, label, "all-point"),
        "swapped_query": weighted_map(swapped[has_other], label[has_other]),
    }
    return only_defined(precisions)


def _add_maps(measured: Measurements, trace: AttentionTrace, batch: TableBatch, prior: TrainingPrior | None) -> None:
    """The total, every look, and every baseline, against the same evidence and the same clicks."""
    size, box = (batch.images.shape[-2], batch.images.shape[-1]), batch.marks.box  # (B,4)
    clicks = Clicks.at(batch.marks.point, box, size)
    grids = grids_of(trace, size) or Grids.pixels(size)
    centre = (box[:, :2] + box[:, 2:]) / 2  # (B,2)
    places = {"box_centre": centre} | ({} if prior is None else {"part_prior": prior.points(batch.query, box)})
    beside = at_places(places, grids, size, exact=True) if not clicks.points.isnan().all() else {}
    measured.maps.add_trace(trace, batch.evidence(), groups=batch.picture, clicks=clicks, beside=beside)
