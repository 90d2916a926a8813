"""The tour: every shipped model on embedded data, scored beside the published number, in one self-contained page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.atomic import make_folder
from saccade.errors import CheckpointError
from saccade.models.facts import read_facts
from saccade.show.report import Code, Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.zoo import shipped

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Stop:
    """What one model adds to the tour."""

    section: Section
    headline: Sequence[str]
    """Its row of the score table."""
    tables: Sequence[PlainTable]


@dataclass(frozen=True)
class TourResult:
    """Where the page is, and what it says in short."""

    report: Path
    tables: Sequence[PlainTable]
    seconds: float


HEADLINE = ("model", "metric", "here %", "n here", "full test % (n)", "published %")


def tour(
    out: Path | str = "tour",
    quick: bool = False,
    device: str = "auto",
    progress: Progress = lambda what, done, total: None,
) -> TourResult:
    """Score every shipped model on scenes made from shipped glyphs, and write ``out/report.html``.

    Args:
        out: folder for the page; an old page there is replaced.
        quick: fewer scenes (hundreds instead of thousands).
        device: auto, cpu, cuda, cuda:N or mps.
        progress: called with the model's name, scenes done and scenes in all.
    """
    started = time.monotonic()
    models = shipped()
    if not models:
        raise CheckpointError("no models are shipped with this copy of saccade: there is nothing to tour")
    folder_of_page = make_folder(Path(out))  # before the scoring, so that a wrong place is found at once
    stops = []
    for name, folder in models.items():
        guide = _GUIDES[read_facts(folder).task]()
        stops.append(guide(name, quick=quick, device=device, progress=progress))
    page = Report(
        title="Where the models looked",
        lead="Each model below answers a question about a picture and shows which part of the picture its answer was "
        "computed from. Everything on this page was computed on this machine just now, from weights and digits that "
        "come with the package; numbers that were measured elsewhere say so.",
        sections=[stop.section for stop in stops] + [_next_steps()],
    )
    report = page.save(folder_of_page / "report.html")
    headline = PlainTable("score, and the published one", HEADLINE, [stop.headline for stop in stops])
    tables = [headline, *(table for stop in stops for table in stop.tables)]
    return TourResult(report, tables, time.monotonic() - started)


def _attribute_guide() -> Callable[..., Stop]:
    from saccade.verbs.tour_attributes import attribute_stop

    return attribute_stop


def _question_guide() -> Callable[..., Stop]:
    from saccade.verbs.tour_questions import question_stop

    return question_stop


_GUIDES: dict[str, Callable[[], Callable[..., Stop]]] = {"attribute": _attribute_guide, "question": _question_guide}


def _next_steps() -> Section:
    return Section(
        "Go on from here",
        "Ask about a picture of your own, score a model in full, or train one yourself.",
        [
            Code("saccade look scene.png --ask 7 --out out"),
            Code("saccade evaluate soft-mref --limit 2000"),
            Code("saccade data get mnist\nsaccade train soft-mref --out runs/soft"),
        ],
    )
