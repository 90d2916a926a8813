"""``tour``: the shipped models on embedded data, in one page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from saccade.commands.evaluate import evaluate
from saccade.commands.report import look_blocks
from saccade.commands.verb import Command, Remark, say
from saccade.config import from_dict
from saccade.data.examples import Example
from saccade.errors import CheckpointError
from saccade.families.registry import families, headline, model_spec
from saccade.files import make_folder
from saccade.models.facts import ModelFacts, Score, read_facts
from saccade.predict import Predictor, load
from saccade.progress import OnProgress, no_progress
from saccade.show.report import Block, Code, Report, Section
from saccade.show.tables import Cell, ShownTable, percent
from saccade.web.page import live_part
from saccade.zoo.folders import EXAMPLES, example, shipped

COLUMNS = ("model", "metric", "here %", "n here", "full test % (n)", "(published) %")
BRACKETS = "In brackets: published under other conditions, given for context."
STAND_INS = {"babi": "stories"}  # Data that does not ship, and the generated data that is like it.
QUICK, FULL = 100, 2000  # Examples that each model is scored on …
FEWER = {"classify": 8}  # … and, for families that draw each of them again many times, by what these are divided.
SHOWN = 3  # Examples of each model that are shown look by look.


LEAD = (
    "Each model below answers a question about a picture or a story and shows which part of it the answer was computed "
    "from. Some of them run in this page: drag a digit, ask for another one, change a colour, edit a story. Everything "
    "below was computed on this machine just now, from weights and digits that come with the package; numbers that "
    "were measured elsewhere say so."
)
NEXT_STEPS = Section(
    "Next steps",
    "Ask about your own picture, score a model in full, or train one.",
    [
        Code("saccade look scene.png --ask 7 --model hattnet-ctx-sparse-mref --out out"),
        Code("saccade evaluate hattnet-ctx-sparse-mref --limit 2000"),
        Code("saccade data get mnist\nsaccade train hattnet-ctx-sparse-mref --out runs/ctx"),
    ],
)


@dataclass(frozen=True)
class TourResult:
    """Where the page is, and what it says in short."""

    report: Path
    table: ShownTable
    seconds: float


def tour(
    out: Path | str = "tour",
    quick: bool = False,
    device: str = "auto",
    on_progress: OnProgress = no_progress,
) -> TourResult:
    """Score the shipped models beside published numbers, in one page.

    Everything is computed on this machine, from weights and digits that come with the package.

    Args:
        out: folder for report.html. A page that is there already is replaced.
        quick: fewer models, at most 100 examples of each in place of 2,000, and no sweeps over pixels.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_progress: called before each model with what is done, models done and models in all.

    Returns:
        Where the page is (``report``), its table of scores and how many seconds it took.

    Example:
        >>> saccade.tour(quick=True).report  # doctest: +SKIP
    """
    started, models = time.monotonic(), shipped()
    if not models:
        raise CheckpointError("no models are shipped with this copy of saccade: there is nothing to tour")
    folder = make_folder(Path(out))  # before the scoring, so that a wrong place is found at once
    featured = [name for family in families().values() for name in family.featured if name in models]
    visited = featured if quick else [*featured, *(name for name in models if name not in featured)]
    sections, rows = [], []
    for step, name in enumerate(visited):
        facts = read_facts(models[name])
        plan = "shown on a picture" if _generated(facts) is None else f"scored on {_limit(facts, quick):,} examples"
        title = families()[facts.family].title
        on_progress(f"{step + 1} of {len(visited)}  {name}: {title}; {plan}", step, len(visited))
        section, row = _visit(name, quick, device)
        sections.append(section)
        rows.append(row)
    if others := [_row(read_facts(models[name]), None) for name in models if name not in visited]:
        columns = [column for column in COLUMNS if "here" not in column]
        cells: list[list[Cell | str]] = [[row[0], row[1], *row[4:]] for row in others]
        table = ShownTable(columns, cells, caption=f"Full test, and published. {BRACKETS}")
        text = "These scores were recorded when the models were trained. The full tour computes all of them."
        sections.append(Section("The other models that ship", text, [table, Code("saccade tour --out tour")]))
    live = [name for family in families().values() for name in family.live if name in models]
    page = Report(
        title="Where the models looked",
        lead=LEAD,
        sections=[*sections, NEXT_STEPS],
        live=live_part([load(name, "cpu") for name in live]) if live else None,
    )
    report = page.save(folder / "report.html")
    return TourResult(report, ShownTable(COLUMNS, rows, "scores"), time.monotonic() - started)


def _visit(name: str, quick: bool, device: str) -> tuple[Section, list[str]]:
    """The section of one model: how it looked, and how well it did; and its row of the summary."""
    predictor = load(name, device)
    facts = predictor.facts
    data = _generated(facts)
    here = None
    if data is not None:
        less: dict[str, Any] = {name: 0 for name in ("sweeps", "twins") if quick and name in predictor.family.options}
        result = evaluate(name, data=data, limit=_limit(facts, quick), device=str(predictor.device), **less)
        known = {field.name for field in fields(Score)}
        here = from_dict(Score, {key: value for key, value in result.items() if key in known})
    lead = f"{facts.parameters:,} parameters: {model_spec(facts.architecture).summary}."
    ask = f" --ask {facts.queries[0]}" if facts.queries else ""
    command = Code(f"saccade look FILE --model {name}{ask} --filmstrip")
    blocks = [*_looks(predictor, data), *_scores(facts, here), command]
    return Section(f"{name}: {predictor.family.title}", lead, blocks), _row(facts, here)


def _generated(facts: ModelFacts) -> str | None:
    entries, name = families()[facts.family].data, str(facts.data.get("name"))
    name = STAND_INS.get(name, name)
    return name if name in entries and entries[name].kind == "generator" else None


def _limit(facts: ModelFacts, quick: bool) -> int:
    return (QUICK if quick else FULL) // FEWER.get(facts.family, 1)


def _looks(predictor: Predictor, data: str | None) -> list[Block]:
    """Examples of generated data look by look; of a model of photographs, a photograph that ships."""
    facts = predictor.facts
    if data is None:
        fitting = next((name for name, photo in EXAMPLES.items() if photo.ask in facts.queries), "cat")
        shown = [Example(example(fitting), "", (), EXAMPLES[fitting].ask or None)]
        title = "A photograph that is not among its test pictures"
    else:
        shown, _ = predictor.family.task().show_split({**facts.data, "name": data}, "test", SHOWN, facts=facts)
        title = "The first of the test split"
    return look_blocks([(predictor.look(one.source, ask=one.question), one) for one in shown], title)


def _scores(facts: ModelFacts, here: Score | None) -> list[Block]:
    full = facts.scores[0] if facts.scores else here
    score = here or full
    if score is None or full is None:
        return []
    own = {name: value for name, value in {**score.metrics, **score.attention}.items() if isinstance(value, float)}
    rivals = {name: values for name, values in score.baselines.items() if isinstance(values, dict)}
    best = headline(facts.family, score.metrics)
    shown = [name for name in own if (best and name == best[0]) or any(name in values for values in rivals.values())]
    shown = [name for name in shown if not name.endswith("_raw")]  # those are in units of their own
    shown += [name for name in ("causal_follow", "causal_hold") if name in own and name not in shown]
    note = f"n = {score.n:,}, {score.data}, {score.split} split, {'computed just now' if here else 'recorded'}"
    whole = {**full.metrics, **full.attention} if full.data == score.data else {}
    rows: list[list[Cell | str]] = []
    for name in shown:
        beside = [percent(values.get(name)) for values in rivals.values()]
        paper = _in_brackets(full.published.get(name))
        rows.append([name.replace("_", " "), percent(own[name], note=note), percent(whole.get(name)), paper, *beside])
    columns = ["score", "this model", f"full test, n = {full.n:,}{_drawn(full, here)}", "(published)"]
    heads = [*columns, *(rival.replace("_", " ") for rival in rivals)]
    return [ShownTable(heads, rows, caption=f"Scores, %. {BRACKETS}", note=full.note, source=note)]


def _in_brackets(published: float | None) -> str:
    """A published number: the models that ship were trained and scored otherwise than in their papers."""
    return "–" if published is None else f"({100 * published:.2f})"


def _row(facts: ModelFacts, here: Score | None) -> list[str]:
    full = facts.scores[0] if facts.scores else here
    best = None if full is None else headline(facts.family, full.metrics)
    if full is None or best is None:
        return [facts.name, *"–––––"]
    metric, value = best
    score = None if here is None else here.metrics.get(metric)
    measured = ["–", "–"] if here is None or score is None else [f"{100 * score:.2f}", f"{here.n:,}"]
    paper = _in_brackets(full.published.get(metric))
    elsewhere = "" if here is None or here.data == full.data else f" on {full.data}"
    return [facts.name, metric, *measured, f"{100 * value:.2f} ({full.n:,}){elsewhere}{_drawn(full, here)}", paper]


def _drawn(full: Score, here: Score | None) -> str:
    """How the scenes of the full test were drawn, where it is not how they are drawn here."""
    return f", drawn by {full.drawing}" if here is not None and full.drawing not in ("", here.drawing) else ""


def show(result: TourResult, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the scores in a line for each model, and where the page is."""
    scored = [row for row in result.table.rows if row[2] != "–"]
    if scored:
        say("scores here, %; recorded on the full test, %")
    for name, metric, here, n, full, _ in scored:
        say(f"  {name:24} {str(metric).replace('_', ' '):12} {here:>6} of {n:>5}; {full}")
    if others := [str(row[0]) for row in result.table.rows if row[2] == "–"]:
        say(f"  shown and not scored, as their data does not ship: {', '.join(others)}")
    say(f"report: {result.report} ({result.seconds:.0f} s); open it in a browser")


COMMAND = Command(tour, show, names={"out": "-o"}, json=False, example="saccade tour --quick --out tour")
