"""Scores of a model on questions about given pictures: its answers, and its attention where the evidence is known.

Pictures cannot be rendered again, so there are no causal tests; deletion and insertion blur pixels instead. Maps are
scored by :mod:`saccade.metrics.maps.scorer`, on the pixels of the network input; baselines are made on all grids of the
model's total map and combined as it is. Evidence is a mask, a box or a disc round a click, see
:class:`saccade.families.question.tables.data.TableBatch`; a click is scored by its distance too. A score that no
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

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from saccade.data.tables.sampling import sample_pictures, sample_rows, table_folder
from saccade.families.question.sweeps import sweep_areas
from saccade.families.question.tables.data import TableBatch, TableData
from saccade.families.question.tables.prior import TrainingPrior
from saccade.families.question.task import right_answers
from saccade.geometry import Size
from saccade.metrics import blurred, mean_defined, weighted_map
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.labels import details_of
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.points import Clicks, at_points, exactly_at
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.result import CountValue, Part, Scores, Summary, only_defined, summarise
from saccade.metrics.verdict import EvidenceReliance, against_chance, sampled, verdict
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import BATCH, EncodedPictures, answers_of, distinct, in_parts, numbers_in_batches
from saccade.trace import AttentionTrace, Output

BLUR = 1 / 20  # standard deviation of the blur that stands for "no longer there", as a share of the input's height
PART_PRIORS = ("part_prior", "part_prior_exact")
SWEEPS = 50
SWEPT_AT_ONCE = 10  # questions between two signs of life: on a CPU ten take seconds


@dataclass
class TableScores:
    """What was measured, with the per-question values behind every mean."""

    queries: tuple[str, ...]
    multi_label: bool
    words: tuple[str, ...] = ()
    """What can be answered."""
    answers: Values = field(default_factory=Values)
    maps: MapScorer = field(default_factory=MapScorer)
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``query`` and ``label`` of every question, and what was said: ``logits``, ``swapped``, ``prior…``; of one answer
    ``answer``, ``confidence`` and ``of_true``, the probability of the label."""
    rests_on: EvidenceReliance = field(default_factory=EvidenceReliance)
    """What became of answers without the evidence, and without the rest."""
    name_of: Callable[[int], Part] | None = None
    """Number of a question → its picture and what is asked."""

    def summary(self) -> Summary:
        """Plain numbers, see :mod:`saccade.metrics.result`."""
        metrics: Scores = {**only_defined(self.answers.means())}
        counts: dict[str, CountValue] = {}
        if self.multi_label:
            metrics = {**self._mean_precisions(), **metrics}
        else:
            metrics["accuracy_by_query"] = self._by_query(self.answers["accuracy"])
            counts["accuracy_by_query"] = self._asked()
        habits = self._habits()
        right = self.answers["top1" if self.multi_label else "accuracy"]
        found: Summary = {
            **summarise(
                metrics=metrics,
                maps=self.maps,
                measured=[(self.answers, self.maps.groups)],
                baselines=self._prior_baselines(),
                counts=counts | self._how_many(),
            ),
            **verdict(right, habits, self.maps.groups, maps=self.maps, rests_on=self.rests_on),
        }
        if not self.multi_label:
            found = {**found, **self._details()}
            self._add_pointing(found)
        return found

    def _add_pointing(self, found: Summary) -> None:
        """Add ``pointing_at`` of each query, the model's and those of the baselines that know where parts lie."""
        if "pointing_at" not in self.maps.total:
            return
        rivals = {name: self.maps.baselines[name] for name in PART_PRIORS if name in self.maps.baselines}
        places = [(found["attention"], self.maps.total)]
        places += [(found["baselines"][name], held) for name, held in rivals.items() if name in found["baselines"]]
        for place, held in places:
            if "pointing_at" in held and (each := self._by_query(held["pointing_at"])):
                place["pointing_at_by_query"] = each
        if "pointing_at_by_query" not in found["attention"]:
            return
        query, clicked = self.columns["query"], ~self.maps.total["pointing_at"].isnan()  # (N,), (N,)
        chosen = {word: clicked & (query == number) for number, word in enumerate(self.queries)}
        counts = {word: int(among.sum()) for word, among in chosen.items() if bool(among.any())}
        found["counts"]["pointing_at_by_query"] = counts
        if "maps" in found.get("against", {}):
            compared = {word: against_chance(self.maps, chosen[word]) for word in counts}
            found["against"]["maps"]["by_query"] = {
                word: {"n": counts[word], **each} for word, each in compared.items() if each
            }

    def _details(self) -> Part:
        """What was taken for what, answer by answer, and the worst mistakes."""
        said, label, confidence, of_true = (self.columns[name] for name in ("answer", "label", "confidence", "of_true"))
        return details_of(said, label, confidence, of_true, self.words).to_json(self._place)

    def _place(self, number: int) -> Part:
        """The picture and the words of question ``number``."""
        return {} if self.name_of is None else self.name_of(int(self.columns["question"][number]))

    def _habits(self) -> dict[str, Tensor]:
        """Baseline of answers → 1 where it is right, (N,)."""
        label = self.columns["label"]
        found = {
            name: right_answers(self.columns[name], label).double()
            for name in ("training_prior", "training_prior_by_query")
            if name in self.columns
        }
        if not found and not self.multi_label:
            found = {"commonest_label": (label == torch.bincount(label).argmax()).double()}
        return found

    def _how_many(self) -> dict[str, int]:
        """Questions that were scored, the pictures they are about, and the pictures whose pixels were swept."""
        groups, values = self.maps.groups, self.maps.total.values()
        found = {"questions": len(groups), "pictures": len(torch.unique(groups))}
        if "deletion" in values:
            found["swept_pictures"] = len(torch.unique(groups[~values["deletion"].isnan()]))
        return found

    def _mean_precisions(self) -> dict[str, float]:
        """Weighted mAP by both interpolations; asked for something else in the picture, it should be far lower."""
        logits, label = self.columns["logits"], self.columns["label"]
        found = {
            "weighted_map": weighted_map(logits, label),
            "weighted_map_all_point": weighted_map(logits, label, "all-point"),
        }
        swapped = self.columns["swapped"]  # (N,K), NaN where nothing else is asked about the picture
        told = ~swapped.isnan().any(1)  # (N,)
        return found | only_defined({"swapped_query": weighted_map(swapped[told], label[told])})

    def _by_query(self, values: Tensor) -> dict[str, float]:
        """The mean of ``values`` (N,) for each query of which some are defined."""
        query = self.columns["query"]
        return only_defined(
            {word: mean_defined(values[query == number]).mean for number, word in enumerate(self.queries)}
        )

    def _asked(self) -> dict[str, int]:
        """How often each query was asked, of those that were."""
        counts = torch.bincount(self.columns["query"], minlength=len(self.queries)).tolist()
        return {word: count for word, count in zip(self.queries, counts) if count}

    def _prior_baselines(self) -> dict[str, dict[str, float]]:
        """What answering by habit scores; nothing without training rows to learn habits from."""
        found: dict[str, dict[str, float]] = {}
        for name, right in self._habits().items():
            if name in self.columns:
                share = float(right.mean())
                found[name] = (
                    {"weighted_map": weighted_map(self.columns[name], self.columns["label"]), "top1": share}
                    if self.multi_label
                    else {"accuracy": share}
                )
        return found


@torch.no_grad()
def score_table(
    model: QueryModel,
    data: TableData,
    prior: TrainingPrior | None = None,
    *,
    limit: int | None = None,
    sweeps: int = SWEEPS,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TableScores:
    """Score ``model`` on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        prior: what the training rows know, for the baselines; None: without them.
        limit: at most this many questions: those about a sample of the pictures, see
            :mod:`saccade.data.tables.splits`.
        sweeps: questions for deletion and insertion, which cost dozens of forward passes each. Each is about another
            picture of such a sample, as far as there are so many.
        batch_size: questions at once; among them maps are exchanged for the shuffled baseline, and other questions
            about the same picture are looked for.
        progress: called with questions done and questions in all; while some are swept, with those swept.
    """
    scores = TableScores(data.queries, data.multi_label, data.answers, name_of=partial(_named, data))
    images, words = [row.image for row in data.rows], [row.query for row in data.rows]
    chosen = sample_rows(images, table_folder(data.table.name), limit, words)  # (N,)
    is_swept = torch.zeros(data.size, dtype=torch.bool)  # by number of question
    is_swept[_sampled_for_sweeps(data, chosen, sweeps)] = True
    total, done = len(chosen), 0
    for places in numbers_in_batches(total, batch_size):
        numbers = chosen[places]  # (B,)
        batch = data.take(numbers)
        size = (batch.images.shape[-2], batch.images.shape[-1])
        first, picture = distinct(batch.picture)  # (P,), (B,): several questions share a picture
        seen = EncodedPictures(model, batch.images[first])
        output = model.wrap(seen.ask(batch.query, picture), size)
        other, has_other = _other_query(batch)  # (B,), (B,)
        swapped = torch.where(has_other[:, None], seen.ask(other, picture)["logits"], torch.nan)  # (B,K)
        _add_answers(scores, model, output, swapped, batch)
        scores.columns.append(question=numbers)
        _add_maps(scores, output.trace, batch, prior)
        if prior is not None:
            habit = prior.answers(batch.query)  # (B,K)
            scores.columns.append(training_prior=prior.overall.expand(habit.shape), training_prior_by_query=habit)
        if sweeps:
            swept = is_swept[numbers].nonzero().squeeze(1).to(batch.query.device)  # (S,) places in the batch
            _add_sweeps(scores, model, output.trace, batch, swept, partial(_report_progress, progress, done, total))
        done += len(batch)
        progress(done, total)
    _add_swaps(scores, model, data, prior, chosen[sampled(total)], batch_size)
    return scores


def _named(data: TableData, number: int) -> Part:
    """The picture of question ``number``, and what is asked."""
    row = data.rows[number]
    return {"picture": str(row.image), "asked": row.query}


def _add_swaps(
    scores: TableScores,
    model: QueryModel,
    data: TableData,
    prior: TrainingPrior | None,
    chosen: Tensor,
    batch_size: int,
) -> None:
    """Ask the questions ``chosen`` (n,) again without their evidence, and without the rest of the picture."""
    for places in numbers_in_batches(len(chosen), batch_size):
        batch = data.take(chosen[places])
        region = batch.marks.region()  # (B,H,W)
        if not bool(region.any()):
            continue
        habit = None if prior is None else right_answers(prior.answers(batch.query), batch.label)
        guessed = torch.zeros(len(batch)) if habit is None else habit.double().cpu()  # (B,)

        def right(images: Tensor, rows: Tensor, batch: TableBatch = batch) -> Tensor:
            return right_answers(in_parts(model, images, batch.query[rows])["logits"], batch.label[rows])

        scores.rests_on.add(
            batch.images,
            region,
            right,
            labels=batch.label,
            pictures=batch.picture,
            guessed=guessed,
            kinds=batch.query,
        )


def _report_progress(progress: Callable[[int, int], None], before: int, total: int, row: int) -> None:
    """Report ``row`` questions of a batch that has ``before`` questions before it."""
    progress(before + row, total)


def _sampled_for_sweeps(data: TableData, chosen: Tensor, sweeps: int) -> Tensor:
    """Numbers of the questions among ``chosen`` (N,) whose pixels are swept."""
    rows = [data.rows[number] for number in chosen.tolist()]
    images, words = [row.image for row in rows], [row.query for row in rows]
    return chosen[sample_pictures(images, table_folder(data.table.name), words, sweeps)]


def _add_answers(scores: TableScores, model: QueryModel, output: Output, swapped: Tensor, batch: TableBatch) -> None:
    """The answer, the answer when something else in the picture is asked for, and that of the likeliest location.

    ``swapped`` (B,K) holds the logits of the something else, NaN where there is nothing else to ask.
    """
    scores.columns.append(query=batch.query, label=batch.label)
    kind = "top1" if scores.multi_label else "accuracy"
    found = {kind: right_answers(output.logits, batch.label).double()}
    if scores.multi_label:
        scores.columns.append(logits=output.logits, swapped=swapped)
    else:
        shares, answer = model.probabilities(output.logits.float()), answers_of(output.trace)  # (B,K), (B,)
        sure, of_true = (shares.gather(1, each[:, None])[:, 0] for each in (answer, batch.label))  # (B,) each
        scores.columns.append(answer=answer, confidence=sure, of_true=of_true)
        told = ~swapped.isnan().any(1)  # (B,)
        found["swapped_query"] = torch.where(told, right_answers(swapped, batch.label).double(), torch.nan)
    if "argmax_logits" in output.aux:
        right = right_answers(output.aux["argmax_logits"], batch.label)
        found[f"{kind}_argmax_location"] = right.double()
    scores.answers.add_values(found)


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


def _add_maps(scores: TableScores, trace: AttentionTrace, batch: TableBatch, prior: TrainingPrior | None) -> None:
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
    scores.maps.add_trace(trace, batch.evidence(), groups=batch.picture, also=[clicks], beside=beside)


def _cell_at(points: Tensor, size: Size, frame: Tensor, cells: Size) -> Tensor:
    """The map (B,H,W) of the cell at each point (B,2)."""
    return at_points(points, frame, cells, size)


def _add_sweeps(
    scores: TableScores,
    model: QueryModel,
    trace: AttentionTrace,
    batch: TableBatch,
    swept: Tensor,
    on_progress: Callable[[int], None],
) -> None:
    """Deletion and insertion by blurring, for the model's map and for pixels in random order (a uniform map).

    ``swept`` (S,) are the questions of the batch that are swept; the others have no such score.
    ``on_progress`` is called with the number of questions of the batch up to the last one that was swept.
    """
    nothing = torch.full((len(batch),), torch.nan, dtype=torch.float64)
    found = {who: {name: nothing.clone() for name in ("deletion", "insertion")} for who in ("model", "uniform")}
    maps = trace.image_map("total") if len(swept) else None  # (B,H,W)
    for part in torch.split(swept, SWEPT_AT_ONCE):
        if maps is None:
            break
        asked, total = (batch.query[part], answers_of(trace)[part]), maps[part]
        first, picture = distinct(batch.picture[part])  # (P,), (b,): the random order is the same for all its questions
        images = batch.images[part][first]  # (P,3,H,W)
        fill, even = blurred(images, BLUR * images.shape[-2]), torch.ones_like(total[first])  # (P,3,H,W), (P,H,W)
        alone = torch.arange(len(part), device=picture.device)  # (b,)
        areas = {
            "model": sweep_areas(model, images[picture], total, *asked, alone, fill=fill[picture]),
            "uniform": sweep_areas(model, images, even, *asked, picture, fill=fill),
        }
        for who, each in areas.items():
            for name, area in each.items():
                found[who][name][part.cpu()] = area.double().cpu()
        on_progress(int(part[-1]) + 1)
    scores.maps.total.add_values(found["model"])
    scores.maps.baselines["uniform"].add_values(found["uniform"])
