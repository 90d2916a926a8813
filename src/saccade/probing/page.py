"""The page of a probe: the verdict, the rivals, and what the kept head gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import pluralise
from saccade.metrics.verdict import BLIND
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.probing.curves import learning_section, low_shot_section
from saccade.probing.data import ProbedPictures
from saccade.probing.heads import ALL_TITLES
from saccade.probing.rivals import ProbeResult
from saccade.show.overlay import fit_panel, overlay
from saccade.show.report import Picture, Report, Section
from saccade.show.score_tables import caption, classes_section, confusion_section, mistakes_section, rests_on_section
from saccade.show.tables import Cell, Row, Table, percent
from saccade.tasks.describing import MIN_ANSWERS

if TYPE_CHECKING:
    from saccade.probing.probe import Probe

_PANEL = 320  # pixels of a mistake's longer side
_BINS = 10  # of confidence
_COPIES = 20
_QUESTIONS = 200


def probe_page(probe: Probe, *, title: str) -> Report:
    """The page of a probe that was fitted."""
    result, pictures = probe.result, probe.pictures
    sections = [
        _rivals(result),
        _by_question(result),
        _maps_beside(result),
        rests_on_section(result.rests_on),
        learning_section(result),
        low_shot_section(result),
        confusion_section(result.details["confusion"], len(pictures.classes)),
        classes_section(result.details["per_class"], "results.json"),
        _mistakes(probe),
        _calibration(result),
        _data(pictures),
    ]
    lead = f"{result.verdict}.".replace(" %", "\u00a0%")
    return Report(title=title, lead=lead, sections=[section for section in sections if section is not None])


def _rivals(result: ProbeResult) -> Section:
    rows: list[Row] = []
    for row in result.trials.values():
        difference = row.difference
        test = Cell(row.score.mean, row.score.percent())
        against, differs = Cell(None), ""
        if difference is not None:
            against = Cell(difference.mean, difference.percent(signed=True))
            differs = "yes" if difference.is_beyond_zero else "no"
        rows.append([row.title, test, against, differs, percent(row.mean_val)])
    plan, splits = result.plan, result.splits
    text = (
        f"{pluralise(len(splits), 'split')}, {pluralise(plan.seeds, 'seed')}. In each split three parts are kept "
        "apart: one to learn from, one to choose settings with, one to be tested on. Pictures that look the same "
        "are in the same part. Test pictures choose nothing.\n\n"
        f"Each head was trained with {len(plan.settings(PYRAMID))} settings ({ALL_TITLES[LINEAR]}: "
        f"{len(plan.settings(LINEAR))}), {result.steps} steps of {plan.batch_size} pictures. In brackets is the 95 % "
        "interval, with the correction of Nadeau and Bengio (2003) for splits that share pictures; it ends where "
        "accuracies do. Differences are paired. The verdict is about the attention head that validation chose; the "
        "other rows are not corrected for their number."
    )
    if not plan.grid:
        text += "\n\nThis was a quick probe. With `--grid`, all heads are compared, over more settings."
    if result.examples.questions.are_asked:
        text += (
            "\n\nEvery rival is told the question: the linear one has a linear layer for each question, nearest "
            "neighbours vote among pictures that are asked the same, and of the attention heads it is the query."
        )
    if plan.evidence_weight:
        text += (
            f"\n\nThe attention heads were taught where to look: boxes and masks are an extra loss, with weight "
            f"{plan.evidence_weight:g}. So it is no surprise that their maps lie there."
        )
    best = [*result.trials].index(result.kept)
    columns = ("rival", "test accuracy, %", f"less {ALL_TITLES[LINEAR]}, points", "differs", "validation")
    return Section("Rivals", text, [Table(columns, rows, best_row=best, dash="compared with itself")])


def _by_question(result: ProbeResult) -> Section | None:
    """Scores of each question, the worst of the kept head first."""
    scores, kept = result.by_question(), result.kept
    if len(scores) < 2:
        return None
    names = [*dict.fromkeys((kept, LINEAR))]
    order = sorted(scores, key=lambda word: (scores[word][kept], word))
    rows: list[Row] = [
        [word, int(scores[word]["n"]), *(percent(scores[word][name]) for name in (*names, "commonest_answer"))]
        for word in order[:_QUESTIONS]
    ]
    text = "Test accuracy of each question (first seed), the worst first."
    if len(scores) > len(rows):
        text += f" {len(scores) - len(rows)} better ones are in results.json."
    columns = ("question", "asked", *(ALL_TITLES[name] for name in names), ALL_TITLES["prior"])
    return Section("Scores of questions", text, [Table(columns, rows)])


def _maps_beside(result: ProbeResult) -> Section | None:
    """The maps of the kept head beside those that do not look; None where no evidence is known."""
    maps = result.maps
    if not maps.get("blind_maps"):
        return None
    rows: list[Row] = [[ALL_TITLES[result.kept], percent(maps["value"]), Cell(None)]]
    for name, blind in sorted(maps["blind_maps"].items(), key=lambda pair: -(pair[1]["value"] or 0)):
        low, high = blind["interval"]
        less = Cell(blind["difference"], f"{100 * blind['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
        rows.append(
            [BLIND[name] + (", to the pixel" if name.endswith("_exact") else ""), percent(blind["value"]), less]
        )
    where = (
        "within a tenth of the object's diagonal of the click"
        if maps["score"] == "pointing_at"
        else "on the evidence (box, mask or a disc round the point)"
    )
    text = (
        f"How often the peak of a map lies {where}, on test pictures. The other maps do not look at the picture; "
        "chance is the best of them. Differences are paired, with a 95 % interval."
    )
    columns = ("map", "peak there", "head less this map, points")
    return Section("Where it looked", text, [Table(columns, rows, best_row=0, dash="compared with itself")])


def _mistakes(probe: Probe) -> Section:
    result, pictures = probe.result, probe.pictures
    split_of = {int(number): at for at, split in enumerate(result.splits) for number in split.test}
    drawn = []
    for mistake in result.details["mistakes"]:
        example, place = mistake["example"], pictures.place(mistake["example"])
        path = Path(place["picture"])
        shown = fit_panel(read_picture(path).image, _PANEL)
        number = torch.tensor([example])
        trace = probe.trace(split_of[example], number).placed(*pictures.canvas(number))
        text = caption({**mistake, **place})
        drawn.append(
            Picture(
                overlay(shown, trace.image_map("total", (shown.height, shown.width))[0]),
                f"{text}. {path.parent.name}/{path.name}",
                f"{path.name} with the map of the head over it",
            )
        )
    return mistakes_section(drawn, "test pictures")


def _calibration(result: ProbeResult) -> Section:
    if len(result.probabilities) < MIN_ANSWERS:
        few = pluralise(len(result.probabilities), "test answer")
        return Section(
            "Calibration", f"{few}: too few to tell how true the confidences are. It takes {MIN_ANSWERS}.", []
        )
    confidence, answers = result.probabilities.max(1)  # (N,) each
    right, rows = answers == result.examples.labels, list[Row]()
    for number in range(_BINS):
        inside = (confidence * _BINS).long().clamp(max=_BINS - 1) == number  # (N,)
        if bool(inside.any()):
            means = (percent(float(values[inside].double().mean())) for values in (confidence, right))
            rows.append([f"{number / _BINS:.0%} – {(number + 1) / _BINS:.0%}", int(inside.sum()), *means])
    text = (
        f"How sure the kept head was, and how often it was right, on test pictures. Expected calibration error "
        f"{100 * result.calibration:.1f} points: 0 means that of answers given with 80 % confidence, 80 % are "
        "right."
    )
    return Section("Calibration", text, [Table(("confidence", "answers", "mean confidence", "accuracy"), rows)])


def _data(pictures: ProbedPictures) -> Section:
    count, copies = pluralise(len(pictures.paths), "picture"), pictures.copies
    line = f"{count} in {pluralise(len(pictures.classes), 'class', 'classes')}."
    if pictures.questions.are_asked:
        asked, answers = (
            pluralise(len(pictures.questions.words), "question"),
            pluralise(len(pictures.classes), "answer"),
        )
        line = f"{asked}, asked {len(pictures):,} times about {count}; {answers}."
    lines = [line, *(f"{remark}." for remark in pictures.remarks), "No two pictures are the same file."]
    if copies:
        lines[-1] = (
            f"{pluralise(len(copies), 'picture')} has the bytes of another one. Both stay in the same part of every "
            "split, so no test picture leaks into training."
        )
    blocks = [Table(("picture", "same as"), copies[:_COPIES])] if copies else []
    return Section("The pictures", "\n\n".join(lines), blocks)
