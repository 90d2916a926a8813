"""Scores of a model on questions about given pictures: its answers, and its attention where the evidence is known.

Pictures cannot be rendered again, so there are no causal tests; deletion and insertion blur pixels instead. Maps are
scored by :mod:`saccade.metrics.maps.scorer`, on the pixels of the network input; baselines are made on all grids of the
model's total map and combined as it is. Evidence is a mask, a box or a disc round a click, see
:class:`saccade.families.question.tables.TableBatch`; a click is scored by its distance too. A score that no
picture has evidence for is left out.

Baselines beside those of generated scenes: ``training_prior`` and ``training_prior_by_query`` answer by what is common
in training; ``box_centre`` looks at the middle of the object's box, and ``part_prior`` at the mean training position of
the part inside the box, each on the model's grids and, as ``…_exact``, to the pixel. ``grid_oracle`` is the bound of
the grids for the share of attention on the evidence, or near the click. ``pointing_at`` is told for each query too,
beside those of ``part_prior`` and ``part_prior_exact``; ``against.maps.by_query`` compares the maps of each query with
the best blind map of that query.

Where a mask or the object's box is known, answers are asked for again without it and without the rest of the picture
(:mod:`saccade.metrics.verdict`); a point alone marks no object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saccade.data.tables.sampling import sample_pictures, table_folder
from saccade.families.question.prior import TrainingPrior
from saccade.families.question.sweeps import sweep_areas
from saccade.families.question.tables import TableBatch, TableData
from saccade.families.question.task import right_answers
from saccade.geometry import Size
from saccade.metrics import blurred, mean_defined, weighted_map
from saccade.metrics.labels import details_of
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.points import Clicks, at_points, exactly_at
from saccade.metrics.maps.scorer import Baseline
from saccade.metrics.result import CountValue, Part, Scores, Summary, only_defined
from saccade.metrics.verdict import against_chance
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import Altered, Kept, Scoring
from saccade.tasks.forward_passes import EncodedPictures, answers_of, distinct, in_parts
from saccade.trace import AttentionTrace, Output

BLUR = 1 / 20  # standard deviation of the blur that stands for "no longer there", as a share of the input's height
PART_PRIORS = ("part_prior", "part_prior_exact")
HABITS = ("training_prior", "training_prior_by_query")
SWEEPS = 50
SWEPT_AT_ONCE = 10  # questions between two signs of life: on a CPU ten take seconds


class TableScoring(Scoring):
    """Measures a model on a split of questions.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        prior: what the training rows know, for the baselines; None: without them.
        limit: at most this many questions: those about a sample of the pictures.
        sweeps: questions for deletion and insertion, which cost dozens of forward passes each. Each is about another
            picture of such a sample, as far as there are so many.
    """

    def __init__(
        self,
        model: QueryModel,
        data: TableData,
        prior: TrainingPrior | None = None,
        *,
        limit: int | None = None,
        sweeps: int = SWEEPS,
    ) -> None:
        self.model, self.data, self.prior, self.sweeps = model, data, prior, sweeps
        self.numbers = data.sampled(limit)  # (N,)
        self.right = "top1" if data.multi_label else "accuracy"
        rows = [data.rows[number] for number in self.numbers.tolist()]
        images, words = [row.image for row in rows], [row.query for row in rows]
        self._is_swept = torch.zeros(data.size, dtype=torch.bool)  # by number of question
        self._is_swept[self.numbers[sample_pictures(images, table_folder(data.table.name), words, sweeps)]] = True

    def measure(self, numbers: Tensor, before: int) -> Kept:
        """Answers, also to another question about the same picture, and maps of the questions ``numbers`` (B,)."""
        kept, batch = Kept(), self.data.take(numbers)
        size = (batch.images.shape[-2], batch.images.shape[-1])
        first, picture = distinct(batch.picture)  # (P,), (B,): several questions share a picture
        seen = EncodedPictures(self.model, batch.images[first])
        output = self.model.wrap(seen.ask(batch.query, picture), size)
        other, has_other = _other_query(batch)  # (B,), (B,)
        swapped = torch.where(has_other[:, None], seen.ask(other, picture).logits, torch.nan)  # (B,K)
        kept.columns.append(question=numbers, picture=batch.picture, query=batch.query, label=batch.label)
        self._add_answers(kept, output, swapped, batch)
        _add_maps(kept, output.trace, batch, self.prior)
        if self.prior is not None:
            habit = self.prior.answers(batch.query)  # (B,K)
            kept.columns.append(training_prior=self.prior.overall.expand(habit.shape), training_prior_by_query=habit)
        if self.sweeps:
            swept = self._is_swept[numbers].nonzero().squeeze(1).to(batch.query.device)  # (S,) places in the batch
            self._add_sweeps(kept, output.trace, batch, swept, before)
        return kept

    def _add_answers(self, kept: Kept, output: Output, swapped: Tensor, batch: TableBatch) -> None:
        """The answer, the answer when something else in the picture is asked for, and that of the likeliest location.

        ``swapped`` (B,K) holds the logits of the something else, NaN where there is nothing else to ask.
        """
        found = {self.right: right_answers(output.logits, batch.label).double()}
        if self.data.multi_label:
            kept.columns.append(logits=output.logits, swapped=swapped)
        else:
            shares, answer = self.model.probabilities(output.logits.float()), answers_of(output.trace)  # (B,K), (B,)
            sure, of_true = (shares.gather(1, each[:, None])[:, 0] for each in (answer, batch.label))  # (B,) each
            kept.columns.append(answer=answer, confidence=sure, of_true=of_true)
            told = ~swapped.isnan().any(1)  # (B,)
            found["swapped_query"] = torch.where(told, right_answers(swapped, batch.label).double(), torch.nan)
        if "argmax_logits" in output.aux:
            right = right_answers(output.aux["argmax_logits"], batch.label)
            found[f"{self.right}_argmax_location"] = right.double()
        kept.answers.add_values(found)

    def _add_sweeps(self, kept: Kept, trace: AttentionTrace, batch: TableBatch, swept: Tensor, before: int) -> None:
        """Deletion and insertion by blurring, for the model's map and for pixels in random order (a uniform map).

        ``swept`` (S,) are the questions of the batch that are swept; the others have no such score.
        """
        nothing = torch.full((len(batch),), torch.nan, dtype=torch.float64)
        found = {who: {name: nothing.clone() for name in ("deletion", "insertion")} for who in ("model", "uniform")}
        maps = trace.image_map("total") if len(swept) else None  # (B,H,W)
        for part in torch.split(swept, SWEPT_AT_ONCE):
            if maps is None:
                break
            asked, total = (batch.query[part], answers_of(trace)[part]), maps[part]
            first, picture = distinct(batch.picture[part])  # (P,), (b,): the random order is the same for all of one
            images = batch.images[part][first]  # (P,3,H,W)
            fill, even = blurred(images, BLUR * images.shape[-2]), torch.ones_like(total[first])  # (P,3,H,W), (P,H,W)
            alone = torch.arange(len(part), device=picture.device)  # (b,)
            areas = {
                "model": sweep_areas(self.model, images[picture], total, *asked, alone, fill=fill[picture]),
                "uniform": sweep_areas(self.model, images, even, *asked, picture, fill=fill),
            }
            for who, each in areas.items():
                for name, area in each.items():
                    found[who][name][part.cpu()] = area.double().cpu()
            self.tell(before + int(part[-1]) + 1)
        kept.maps.total.add_values(found["model"])
        kept.maps.baselines["uniform"].add_values(found["uniform"])

    def altered(self, numbers: Tensor, kept: Kept) -> Altered | None:
        """The questions ``numbers`` (B,), where the outline of what is asked about is known."""
        batch = self.data.take(numbers)
        region = batch.marks.region()  # (B,H,W)
        habit = None if self.prior is None else right_answers(self.prior.answers(batch.query), batch.label)
        guessed = torch.zeros(len(batch)) if habit is None else habit.double().cpu()  # (B,)

        def right(images: Tensor, rows: Tensor) -> Tensor:
            return right_answers(in_parts(self.model, images, batch.query[rows]).logits, batch.label[rows])

        return Altered(batch.images, region, right, batch.label, batch.picture, guessed, batch.query)

    def guesses(self, kept: Kept) -> dict[str, Tensor]:
        """Habits of answering: 1 where each is right, (N,)."""
        label, columns = kept.columns["label"], kept.columns
        found = {name: right_answers(columns[name], label).double() for name in HABITS if name in columns}
        if not found and not self.data.multi_label:
            found = {"commonest_label": (label == torch.bincount(label).argmax()).double()}
        return found

    def scores(self, kept: Kept) -> dict[str, Any]:
        """Scores of answers and maps, by query too, and those of habits."""
        metrics: Scores = {**only_defined(kept.answers.means())}
        groups, values = kept.maps.groups, kept.maps.total.values()
        counts: dict[str, CountValue] = {"questions": len(groups), "pictures": len(torch.unique(groups))}
        if "deletion" in values:
            counts["swept_pictures"] = len(torch.unique(groups[~values["deletion"].isnan()]))
        if self.data.multi_label:
            metrics = {**_mean_precisions(kept), **metrics}
        else:
            metrics["accuracy_by_query"] = self._by_query(kept, kept.answers["accuracy"])
            counts = {"accuracy_by_query": self._asked(kept), **counts}
        return {
            "metrics": metrics,
            "maps": kept.maps,
            "measured": [(kept.answers, groups)],
            "baselines": self._habit_scores(kept),
            "counts": counts,
        }

    def details(self, kept: Kept, found: Summary) -> Mapping[str, Any]:
        """What was taken for what, the worst mistakes, and where the maps of each query point."""
        if self.data.multi_label:
            return {}
        said, label, confidence, of_true = (kept.columns[name] for name in ("answer", "label", "confidence", "of_true"))

        def place(number: int) -> Part:
            row = self.data.rows[int(kept.columns["question"][number])]
            return {"picture": str(row.image), "asked": row.query}

        self._add_pointing(kept, found)
        return {**details_of(said, label, confidence, of_true, self.data.answers).to_json(place)}

    def _add_pointing(self, kept: Kept, found: Summary) -> None:
        """Add ``pointing_at`` of each query, the model's and those of the baselines that know where parts lie."""
        maps = kept.maps
        if "pointing_at" not in maps.total:
            return
        rivals = {name: maps.baselines[name] for name in PART_PRIORS if name in maps.baselines}
        places = [(found["attention"], maps.total)]
        places += [(found["baselines"][name], held) for name, held in rivals.items() if name in found["baselines"]]
        for place, held in places:
            if "pointing_at" in held and (each := self._by_query(kept, held["pointing_at"])):
                place["pointing_at_by_query"] = each
        if "pointing_at_by_query" not in found["attention"]:
            return
        query, clicked = kept.columns["query"], ~maps.total["pointing_at"].isnan()  # (N,), (N,)
        chosen = {word: clicked & (query == number) for number, word in enumerate(self.data.queries)}
        counts = {word: int(among.sum()) for word, among in chosen.items() if bool(among.any())}
        found["counts"]["pointing_at_by_query"] = counts
        if "maps" in found.get("against", {}):
            compared = {word: against_chance(maps, chosen[word]) for word in counts}
            found["against"]["maps"]["by_query"] = {
                word: {"n": counts[word], **each} for word, each in compared.items() if each
            }

    def _by_query(self, kept: Kept, values: Tensor) -> dict[str, float]:
        """The mean of ``values`` (N,) for each query of which some are defined."""
        query = kept.columns["query"]
        return only_defined(
            {word: mean_defined(values[query == number]).mean for number, word in enumerate(self.data.queries)}
        )

    def _asked(self, kept: Kept) -> dict[str, int]:
        """How often each query was asked, of those that were."""
        counts = torch.bincount(kept.columns["query"], minlength=len(self.data.queries)).tolist()
        return {word: count for word, count in zip(self.data.queries, counts) if count}

    def _habit_scores(self, kept: Kept) -> dict[str, dict[str, float]]:
        """What answering by habit scores; nothing without training rows to learn habits from."""
        found: dict[str, dict[str, float]] = {}
        for name, right in self.guesses(kept).items():
            if name in kept.columns:
                share = float(right.mean())
                found[name] = (
                    {"weighted_map": weighted_map(kept.columns[name], kept.columns["label"]), "top1": share}
                    if self.data.multi_label
                    else {"accuracy": share}
                )
        return found


def _mean_precisions(kept: Kept) -> dict[str, float]:
    """Weighted mAP by both interpolations; asked for something else in the picture, it should be far lower."""
    logits, label = kept.columns["logits"], kept.columns["label"]
    found = {
        "weighted_map": weighted_map(logits, label),
        "weighted_map_all_point": weighted_map(logits, label, "all-point"),
    }
    swapped = kept.columns["swapped"]  # (N,K), NaN where nothing else is asked about the picture
    told = ~swapped.isnan().any(1)  # (N,)
    return found | only_defined({"swapped_query": weighted_map(swapped[told], label[told])})


def _other_query(batch: TableBatch) -> tuple[Tensor, Tensor]:
    """Another query (B,) of the batch about the same picture, with another answer, and whether there is one (B,).

    With the same answer it could not be told whether the model answered the other question or stuck to the first.
    """
    same = batch.picture[:, None] == batch.picture  # (B,B)
    unlike = batch.query[:, None] != batch.query  # (B,B)
    labels = batch.label if batch.label.dim() == 2 else batch.label[:, None]  # (B,K|1)
    differs = (labels[:, None] != labels).any(-1)  # (B,B)
    fits = same & unlike & differs
    chosen = batch.query[fits.int().argmax(1)]  # (B,)
    return torch.where(fits.any(1), chosen, batch.query), fits.any(1)


def _add_maps(kept: Kept, trace: AttentionTrace, batch: TableBatch, prior: TrainingPrior | None) -> None:
    """The total, every look, and every baseline, against the same evidence and the same clicks."""
    size = (batch.images.shape[-2], batch.images.shape[-1])
    clicks = Clicks.at(batch.marks.point, batch.marks.box, size)
    grids = grids_of(trace, size) or Grids.pixels(size)
    box = batch.marks.box  # (B,4)
    centre = (box[:, :2] + box[:, 2:]) / 2  # (B,2)
    places = {"box_centre": centre} | ({} if prior is None else {"part_prior": prior.points(batch.query, box)})
    beside: dict[str, Baseline] = {}
    for name, points in places.items():
        known = ~points.isnan().any(1)  # (B,): of the others such a baseline says nothing
        if clicks.are_there and bool(known.any()):
            laid = grids.to(points.device).through(partial(_cell_at, points, size))  # (B,H,W)
            beside |= {name: Baseline(laid, known), f"{name}_exact": Baseline(exactly_at(points, size), known)}
    kept.maps.add_trace(trace, batch.evidence(), groups=batch.picture, also=[clicks], beside=beside)


def _cell_at(points: Tensor, size: Size, frame: Tensor, cells: Size) -> Tensor:
    """The map (B,H,W) of the cell at each point (B,2)."""
    return at_points(points, frame, cells, size)
