"""The page of a probe: the verdict, the rivals, and what the kept head gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.data.pictures.reading import read_picture
from saccade.data.tables.wording import counted
from saccade.models.base import PictureModel
from saccade.probing.details import frequent_confusions
from saccade.probing.pictures import Features
from saccade.probing.probe import Probed
from saccade.probing.verdict import BASE, title_of
from saccade.show.overlay import overlay
from saccade.show.picture import fit_panel
from saccade.show.report import Block, Cell, Gallery, Picture, Report, Section, Table, percent
from saccade.show.report_tables import Value

MATRIX_CLASSES = 20
"""Classes of a confusion matrix that fits a page; of more, the most frequent mistakes are listed."""
CLASSES = 200
"""Rows of the table of classes at most: the worst come first."""
_CONFUSIONS = 30
_PANEL = 320  # pixels of a mistake's longer side
_COPIES = 20

Row = Sequence[Cell | Value]
HeadModel = Callable[[int], PictureModel]
"""Number of a split → a model with the head of that split."""


def probe_page(probed: Probed, features: Features, model_of: HeadModel, *, title: str) -> Report:
    """The page; ``model_of`` gives the model that tested a split."""
    return Report(
        title=title,
        lead=f"{probed.verdict}.",
        sections=[
            _rivals(probed),
            _curve(probed),
            _confusions(probed),
            _classes(probed),
            _mistakes(probed, features, model_of),
            _calibration(probed),
            _data(probed),
        ],
    )


def _rivals(probed: Probed) -> Section:
    rows: list[Row] = []
    for row in probed.rows:
        difference = row.difference
        against = Cell(None) if difference is None else _points(difference.mean, difference.half)
        differs = "" if difference is None else "yes" if difference.is_beyond_zero else "no"
        rows.append([row.title, _interval(row.test.mean, row.test.half), against, differs, percent(row.val)])
    plan, splits = probed.plan, probed.splits
    steps = plan.steps_for(max(len(split.train) for split in splits))
    text = (
        f"{counted(len(splits), 'split')}, {counted(plan.seeds, 'seed')}. In each split three parts are kept apart: "
        "one to learn from, one to choose settings with, one to be tested on. Pictures that look the same are in the "
        "same part. Test pictures choose nothing.\n\n"
        f"Each head was trained over {len(plan.rates)} learning rates × {len(plan.decays)} weight decays "
        f"({title_of(BASE)}: {len(plan.linear_rates)} × {len(plan.decays)}), {steps} steps of "
        f"{plan.batch_size} pictures. ± is the 95 % interval with the correction of Nadeau and Bengio (2003) for "
        "splits that share pictures. Differences are paired. The verdict is about the attention head that validation "
        "chose; the other rows are not corrected for their number."
    )
    best = next(number for number, row in enumerate(probed.rows) if row.name == probed.kept.name)
    columns = ("rival", "test accuracy", f"less {title_of(BASE)}, points", "differs", "validation")
    return Section("Rivals", text, [Table(columns, rows, best_row=best, dash="compared with itself")])


def _curve(probed: Probed) -> Section:
    names = [probed.kept.name] if probed.kept.name == BASE else [BASE, probed.kept.name]
    shares = [*probed.plan.shares, 1.0]
    rows: list[Row] = []
    for name in names:
        trial = probed.trials[name]
        scores = [sum(trial.shares[share]) / len(trial.shares[share]) for share in probed.plan.shares]
        last = sum(seeds[0] for seeds in trial.test) / len(trial.test)
        rows.append([title_of(name), *map(percent, [*scores, last])])
    text = (
        "Test accuracy after learning from a part of the training pictures (first seed, mean over splits). Where it "
        "still rises between the last two columns, more pictures are likely to help."
    )
    return Section("What more pictures would bring", text, [Table(["", *(f"{share:.0%}" for share in shares)], rows)])


def _confusions(probed: Probed) -> Section:
    classes, matrix = probed.pictures.classes, probed.details.matrix
    if len(classes) <= MATRIX_CLASSES:
        rows: list[Row] = [[name, *map(int, row)] for name, row in zip(classes, matrix)]
        table = Table(["true \\ said", *classes], rows)
        return Section("Confusion matrix", "A row for each true class, a column for each answer.", [table])
    found = frequent_confusions(matrix, classes, _CONFUSIONS)
    text = f"The most frequent mistakes; a matrix of {len(classes)} classes would not fit the page."
    return Section("Confusions", text, [Table(("true", "said", "times"), found)])


def _classes(probed: Probed) -> Section:
    scores = sorted(probed.details.classes, key=lambda score: (score.recall, score.name))[:CLASSES]
    rows: list[Row] = [
        [score.name, score.pictures, percent(score.recall), percent(score.precision)] for score in scores
    ]
    left = len(probed.details.classes) - len(rows)
    text = "The worst come first." + (f" {left} better ones are in results.json." if left else "")
    table = Table(("class", "pictures", "found (recall)", "right when said (precision)"), rows, dash="never said")
    return Section("Scores of classes", text, [table])


def _mistakes(probed: Probed, features: Features, model_of: HeadModel) -> Section:
    split_of = {int(number): at for at, split in enumerate(probed.splits) for number in split.test}
    pictures = []
    for each in probed.details.mistakes:
        path = probed.pictures.paths[each.picture]
        shown = fit_panel(read_picture(path).image, _PANEL)
        attention = _map(probed, features, model_of(split_of[each.picture]), each.picture, (shown.height, shown.width))
        caption = f"{each.true}, said {each.said} ({each.confidence:.0%}; {each.true} {each.of_true:.0%}). {path.name}"
        alt = f"{path.name} with the map of the head over it"
        pictures.append(Picture(overlay(shown, attention), caption, alt))
    blocks: list[Block] = [Gallery(pictures)] if pictures else []
    text = (
        "Test pictures on which the kept head is surest of a wrong answer, with where it looked."
        if pictures
        else "The kept head made no mistake on test pictures."
    )
    return Section("Worst mistakes", text, blocks)


def _map(probed: Probed, features: Features, model: PictureModel, picture: int, size: tuple[int, int]) -> Tensor:
    """Where the head looked, on the picture shown at ``size``: (h,w)."""
    encoded = features.whole(probed.kept.name, picture)  # (1,C,H,W)
    with torch.no_grad():
        output = model.wrap(model.respond(encoded), probed.pictures.store.size)
    placed = output.trace.placed(*probed.pictures.canvas(torch.tensor([picture])))
    return placed.image_map("total", size)[0]


def _calibration(probed: Probed) -> Section:
    rows: list[Row] = [
        [f"{each.low:.0%} – {each.high:.0%}", each.answers, percent(each.confidence), percent(each.accuracy)]
        for each in probed.details.bins
    ]
    error = probed.details.calibration
    text = (
        f"How sure the kept head was, and how often it was right, on test pictures. Expected calibration error "
        f"{100 * error:.1f} points: 0 means that of answers given with 80 % confidence, 80 % are right."
    )
    return Section("Calibration", text, [Table(("confidence", "answers", "mean confidence", "accuracy"), rows)])


def _data(probed: Probed) -> Section:
    pictures = probed.pictures
    lines = [f"{counted(len(pictures), 'picture')} in {counted(len(pictures.classes), 'class', 'classes')}."]
    lines += [f"{remark}." for remark in probed.remarks]
    copies = pictures.copies
    if copies:
        lines.append(
            f"{counted(len(copies), 'picture')} looked like another one. They stay on the same side of every split, so "
            "they leak nothing."
        )
    else:
        lines.append("No two pictures look the same.")
    blocks: list[Block] = [Table(("picture", "looks like"), copies[:_COPIES])] if copies else []
    return Section("The pictures", "\n\n".join(lines), blocks)


def _interval(mean: float, half: float) -> Cell:
    return Cell(mean, f"{100 * mean:.1f} ± {100 * half:.1f}\u202f%")


def _points(mean: float, half: float) -> Cell:
    return Cell(mean, f"{100 * mean:+.1f} ± {100 * half:.1f}")
