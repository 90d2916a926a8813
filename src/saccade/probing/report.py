"""What a probe found: the verdict in words, and the page.

The result of the trials, in numbers and in one sentence.

Every rival is compared with the linear head on the same splits: differences of the test accuracies, split by split,
with the corrected interval of :mod:`saccade.metrics.intervals`. The head that is kept, and that the sentence is about,
is the attention head with the best validation accuracy. So the sentence rests on one comparison, not on the best of
many.

The page of a probe: the verdict, the rivals, and what the kept head gets wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import pluralise
from saccade.metrics.intervals import Resplit, resplit_interval
from saccade.metrics.verdict import BLIND
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR, TITLES
from saccade.probing.data import Split
from saccade.probing.features import Features
from saccade.probing.trials import CLASS_TOKEN, Trial
from saccade.show.overlay import fit_panel, overlay
from saccade.show.report import Block, Cell, Picture, Report, Section, Table, percent
from saccade.show.score_tables import caption, classes_section, confusion_section, mistakes_section, rests_on_section
from saccade.show.tables import Value

if TYPE_CHECKING:
    from saccade.probing.probe import ProbeResult

SIMPLE = {
    "majority": "commonest class",
    "prior": "commonest answer to the question",
    "knn": "nearest neighbours",
    CLASS_TOKEN: "linear on the class token",
}
"""Rivals that are not heads of a model, in words."""
BASE = LINEAR
GUESSES = ("prior", "majority")
"""What answers without looking; the first that there is."""


@dataclass(frozen=True)
class Compared:
    """One rival beside the linear head."""

    name: str
    title: str
    val: float
    """Mean validation accuracy of what was chosen."""
    test: Resplit
    difference: Resplit | None
    """Test accuracy less that of the linear head; None for the linear head itself."""
    seed_spread: float
    """Standard deviation over seeds of the same split, the mean over splits; NaN for one seed."""


def compare(trials: Mapping[str, Trial], splits: Sequence[Split]) -> list[Compared]:
    """Every rival beside the linear head."""
    trained, tested = (_mean_size(splits, part) for part in ("train", "test"))

    def interval(scores: Tensor) -> Resplit:
        return resplit_interval(scores, trained=trained, tested=tested)

    base = trials[BASE].by_split
    rows = []
    for name, trial in trials.items():
        by_seed = torch.tensor(trial.test, dtype=torch.float64)  # (J,S)
        rows.append(
            Compared(
                name=name,
                title=title_of(name),
                val=sum(trial.val) / len(trial.val),
                test=interval(trial.by_split),
                difference=None if name == BASE else interval(trial.by_split - base),
                seed_spread=float(by_seed.std(1).mean()) if by_seed.shape[1] > 1 else float("nan"),
            )
        )
    return rows


def title_of(name: str) -> str:
    """What a rival is called in a sentence."""
    return SIMPLE.get(name) or TITLES[name]


def choose(rows: Sequence[Compared]) -> str:
    """The attention head with the best validation accuracy."""
    heads = [row for row in rows if row.name in TITLES and row.name != BASE]
    return max(heads, key=lambda row: row.val).name


def sentence(rows: Sequence[Compared], chosen: str) -> str:
    """The verdict.

    It tells the chosen head, the linear head and whether they differ; and it says so where the features tell nothing
    that guessing would not.
    """
    of = {row.name: row for row in rows}
    base, guess = of[BASE], next(of[name] for name in GUESSES if name in of)
    head = of[chosen]
    parts = [f"{head.title} {_percent(head.test)}"]
    if chosen != BASE and head.difference is not None:
        parts = [f"{parts[0]}, {base.title} {100 * base.test.mean:.1f} %: {_told(head.difference)}"]
    against = guess.difference
    gains = head.difference is not None and head.difference.low > 0  # then the features do tell something
    if against is not None and not against.high < 0 and not gains:
        parts.append(
            f"{base.title} is not detectably better than always giving the {guess.title} "
            f"({100 * guess.test.mean:.1f} %): "
            "these features do not tell the classes apart, or there are too few pictures"
        )
    else:
        parts.append(f"the {guess.title} alone is {100 * guess.test.mean:.1f} %")
    return "; ".join(parts)


def _told(difference: Resplit) -> str:
    points, half = 100 * difference.mean, 100 * difference.half
    if not difference.is_beyond_zero:
        return f"no difference detected (± {half:.1f})"
    return f"{'better' if points > 0 else 'worse'} by {abs(points):.1f} ± {half:.1f} points"


def _percent(found: Resplit) -> str:
    return f"{100 * found.mean:.1f} ± {100 * found.half:.1f} %"


def _mean_size(splits: Sequence[Split], part: str) -> float:
    return sum(len(getattr(split, part)) for split in splits) / len(splits)


_PANEL = 320  # pixels of a mistake's longer side
_COPIES = 20
_QUESTIONS = 200

Row = Sequence[Cell | Value]
HeadModel = Callable[[int], AnyProbe]
"""Number of a split → a model with the head of that split."""


def probe_page(probed: ProbeResult, features: Features, model_of: HeadModel, *, title: str) -> Report:
    """The page; ``model_of`` gives the model that tested a split."""
    told = probed.details.to_json()
    sections = [
        _rivals(probed),
        _by_question(probed),
        _maps_beside(probed),
        rests_on_section(probed.rests_on),
        _curve(probed),
        confusion_section(told["confusion"], len(probed.pictures.classes)),
        classes_section(told["per_class"], "results.json"),
        _mistakes(probed, features, model_of),
        _calibration(probed),
        _data(probed),
    ]
    lead = f"{probed.verdict}.".replace("± ", "±\u00a0").replace(" %", "\u00a0%")
    return Report(title=title, lead=lead, sections=[section for section in sections if section is not None])


def _rivals(probed: ProbeResult) -> Section:
    rows: list[Row] = []
    for row in probed.rows:
        difference = row.difference
        against = Cell(None) if difference is None else _points(difference.mean, difference.half)
        differs = "" if difference is None else "yes" if difference.is_beyond_zero else "no"
        rows.append([row.title, _interval(row.test.mean, row.test.half), against, differs, percent(row.val)])
    plan, splits = probed.plan, probed.splits
    text = (
        f"{pluralise(len(splits), 'split')}, {pluralise(plan.seeds, 'seed')}. In each split three parts are kept "
        "apart: one to learn from, one to choose settings with, one to be tested on. Pictures that look the same "
        "are in the same part. Test pictures choose nothing.\n\n"
        f"Each head was trained over {len(plan.rates)} learning rates × {len(plan.decays)} weight decays "
        f"({title_of(BASE)}: {len(plan.linear_rates)} × {len(plan.decays)}), {probed.steps} steps of "
        f"{plan.batch_size} pictures. ± is the 95 % interval with the correction of Nadeau and Bengio (2003) for "
        "splits that share pictures. Differences are paired. The verdict is about the attention head that validation "
        "chose; the other rows are not corrected for their number."
    )
    if probed.pictures.questions.are_asked:
        text += (
            "\n\nEvery rival is told the question: the linear one has a linear layer for each question, nearest "
            "neighbours vote among pictures that are asked the same, and of the attention heads it is the query."
        )
    if plan.evidence_weight:
        text += (
            f"\n\nThe attention heads were taught where to look: boxes and masks are an extra loss, with weight "
            f"{plan.evidence_weight:g}. So it is no surprise that their maps lie there."
        )
    best = next(number for number, row in enumerate(probed.rows) if row.name == probed.kept.name)
    columns = ("rival", "test accuracy", f"less {title_of(BASE)}, points", "differs", "validation")
    return Section("Rivals", text, [Table(columns, rows, best_row=best, dash="compared with itself")])


def _by_question(probed: ProbeResult) -> Section | None:
    """Scores of each question, the worst of the kept head first."""
    found = probed.by_question()
    if len(found) < 2:
        return None
    names = [*dict.fromkeys((probed.kept.name, BASE))]
    order = sorted(found, key=lambda word: (found[word][names[0]], word))
    rows: list[Row] = [
        [word, int(found[word]["n"]), *(percent(found[word][name]) for name in (*names, "commonest_answer"))]
        for word in order[:_QUESTIONS]
    ]
    left = len(found) - len(rows)
    text = "Test accuracy of each question (first seed), the worst first." + (
        f" {left} better ones are in results.json." if left else ""
    )
    columns = ("question", "asked", *map(title_of, names), title_of("prior"))
    return Section("Scores of questions", text, [Table(columns, rows)])


def _maps_beside(probed: ProbeResult) -> Section | None:
    """The maps of the kept head beside those that do not look; None where no evidence is known."""
    maps = probed.maps
    if not maps.get("blind_maps"):
        return None
    rows: list[Row] = [[title_of(probed.kept.name), percent(maps["value"]), Cell(None)]]
    for name, each in sorted(maps["blind_maps"].items(), key=lambda pair: -(pair[1]["value"] or 0)):
        low, high = each["interval"]
        told = Cell(each["difference"], f"{100 * each['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
        title = BLIND[name] + (", to the pixel" if name.endswith("_exact") else "")
        rows.append([title, percent(each["value"]), told])
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


def _curve(probed: ProbeResult) -> Section:
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
    return Section("Would more pictures help?", text, [Table(["", *(f"{share:.0%}" for share in shares)], rows)])


def _mistakes(probed: ProbeResult, features: Features, model_of: HeadModel) -> Section:
    split_of = {int(number): at for at, split in enumerate(probed.splits) for number in split.test}
    pictures = []
    for each in probed.details.mistakes:
        path, asked = probed.pictures.path(each.picture), probed.pictures.asked(each.picture)
        shown = fit_panel(read_picture(path).image, _PANEL)
        attention = _map(probed, features, model_of(split_of[each.picture]), each.picture, (shown.height, shown.width))
        alt = f"{path.name} with the map of the head over it"
        said = caption({**each._asdict(), "asked": asked})
        pictures.append(Picture(overlay(shown, attention), f"{said}. {path.parent.name}/{path.name}", alt))
    return mistakes_section(pictures, "test pictures")


def _map(probed: ProbeResult, features: Features, model: AnyProbe, example: int, size: tuple[int, int]) -> Tensor:
    """Where the head looked, on the picture shown at ``size``: (h,w)."""
    pictures, number = probed.pictures, torch.tensor([example])
    encoded = features.encoded(probed.kept.name, pictures.questions.picture[number])  # (1,C,H,W)
    with torch.no_grad():
        output = model.wrap(model.respond(encoded, pictures.query(number)), pictures.store.size)
    placed = output.trace.placed(*pictures.canvas(number))
    return placed.image_map("total", size)[0]


def _calibration(probed: ProbeResult) -> Section:
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


def _data(probed: ProbeResult) -> Section:
    pictures = probed.pictures
    lines = [f"{pluralise(len(pictures.paths), 'picture')} in {pluralise(len(pictures.classes), 'class', 'classes')}."]
    if pictures.questions.are_asked:
        asked, answers = (
            pluralise(len(pictures.questions.words), "question"),
            pluralise(len(pictures.classes), "answer"),
        )
        lines = [
            f"{asked}, asked {len(pictures):,} times about {pluralise(len(pictures.paths), 'picture')}; {answers}."
        ]
    lines += [f"{remark}." for remark in probed.remarks]
    copies = pictures.copies
    if copies:
        lines.append(
            f"{pluralise(len(copies), 'picture')} has the bytes of another one. Both stay in the same part of every "
            "split, so no test picture leaks into training."
        )
    else:
        lines.append("No two pictures are the same file.")
    blocks: list[Block] = [Table(("picture", "same as"), copies[:_COPIES])] if copies else []
    return Section("The pictures", "\n\n".join(lines), blocks)


def _interval(mean: float, half: float) -> Cell:
    return Cell(mean, f"{100 * mean:.1f} ± {100 * half:.1f}\u202f%")


def _points(mean: float, half: float) -> Cell:
    return Cell(mean, f"{100 * mean:+.1f} ± {100 * half:.1f}")
