"""The tour: every shipped model on embedded data, scored beside the published number, in one self-contained page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.atomic import make_folder
from saccade.errors import CheckpointError
from saccade.families import families, family, headline
from saccade.families.contract import load_target
from saccade.models.io.facts import ModelFacts, read_facts
from saccade.show.report import Cell, Code, Report, Section, Table
from saccade.show.report_live import Live
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


def make_tour(out: Path | str, quick: bool, device: str, progress: Progress) -> TourResult:
    """Score the shipped models and write the page; see :func:`saccade.tour`."""
    started = time.monotonic()
    models = shipped()
    if not models:
        raise CheckpointError("no models are shipped with this copy of saccade: there is nothing to tour")
    folder_of_page = make_folder(Path(out))  # before the scoring, so that a wrong place is found at once
    facts = {name: read_facts(folder) for name, folder in models.items()}
    guided = [name for name in models if family(facts[name].family).tour is not None]
    visited = [name for name in featured() if name in guided] if quick else guided
    visited = visited or guided
    stops = [_guide(facts[name])(name, quick=quick, device=device, progress=progress) for name in visited]
    others = [_recorded_row(name, facts[name]) for name in models if name not in visited]
    page = Report(
        title="Where the models looked",
        lead="Each model below answers a question about a picture or a story and shows which part of it the answer was "
        "computed from. Some of them run in this page: drag a digit, ask for another one, change a colour, edit a "
        "story. Everything below was computed on this machine just now, from weights and digits that come with the "
        "package; numbers that were measured elsewhere say so.",
        sections=[stop.section for stop in stops] + ([_others(others)] if others else []) + [_next_steps()],
        live=_live([name for each in families().values() for name in each.live if name in models]),
    )
    report = page.save(folder_of_page / "report.html")
    rows = [*(stop.headline for stop in stops), *others]
    headline = PlainTable("score, and the published one", HEADLINE, rows)
    tables = [headline, *(table for stop in stops for table in stop.tables)]
    return TourResult(report, tables, time.monotonic() - started)


def _live(names: Sequence[str]) -> Live | None:
    """The models called ``names``, to be asked inside the page itself; None where there are none."""
    from saccade.predict import load
    from saccade.web.page import live_part

    return live_part([load(name, "cpu") for name in names]) if names else None


def featured() -> list[str]:
    """Shipped models at which a quick tour stops, a few of each family; of the others it tells the records."""
    return [name for each in families().values() for name in each.featured]


def _guide(facts: ModelFacts) -> Callable[..., Stop]:
    """How the tour stops at a model: its family says."""
    guide: Callable[..., Stop] = load_target(str(family(facts.family).tour))
    return guide


def _recorded_row(name: str, facts: ModelFacts) -> list[str]:
    """The row of a model at which the tour does not stop: what was recorded when it was made."""
    for score in facts.scores[:1]:
        if (found := headline(facts.family, score.metrics)) is not None:
            metric, value = found
            published = score.published.get(metric)
            full = f"{100 * value:.2f} ({score.n:,})"
            return [name, metric, "–", "–", full, "–" if published is None else f"{100 * published:.2f}"]
    return [name, "–", "–", "–", "–", "–"]


def _others(rows: Sequence[Sequence[str]]) -> Section:
    columns = [HEADLINE[0], HEADLINE[1], *HEADLINE[4:]]
    cells: list[list[Cell | str]] = [[row[0], row[1], *row[4:]] for row in rows]
    return Section(
        "The other models that ship",
        "These scores were recorded when the models were trained. The full tour computes all of them.",
        [Table(columns, cells, caption="Full test, and published"), Code("saccade tour --out tour")],
    )


def _next_steps() -> Section:
    return Section(
        "Next steps",
        "Ask about your own picture, score a model in full, or train one.",
        [
            Code("saccade look scene.png --ask 7 --model hattnet-ctx-sparse-mref --out out"),
            Code("saccade evaluate hattnet-ctx-sparse-mref --limit 2000"),
            Code("saccade data get mnist\nsaccade train hattnet-ctx-sparse-mref --out runs/ctx"),
        ],
    )
