"""Shared by the tour's sections on models that take no question: multisets and captions.

Generated scenes are made and scored on the spot, from glyphs that ship; of a model of photographs, whose pictures do
not, the recorded scores stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from saccade.families import family
from saccade.families.contract import load_target
from saccade.models.io.facts import ModelFacts, Score, read_facts
from saccade.predict import Predictor, load
from saccade.show.report import Block, Code, Gallery, KeyFigures, Section
from saccade.tasks.eval_request import EvalRequest
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scores import StopScores, as_score, headline, recorded_score
from saccade.zoo import shipped


@dataclass(frozen=True)
class SceneGuide:
    """What is said of one kind of model, and how."""

    title: str
    """After the name of the model."""
    lead: str
    """After "A model of 1,000 parameters"."""
    look: str
    """Options of ``saccade look``."""
    scenes: Collection[str]
    """Names of the data that can be generated."""
    metric: str
    """The score that stands in the summary: of generated scenes …"""
    recorded_metric: str
    """… and of photographs."""
    headings: Mapping[str, str]
    """Scores of the table, where the evaluation has them."""
    others: Mapping[str, str]
    """Baselines of the table."""
    caption: str
    """Caption of the table on the page."""
    beside: str
    """What the table in the terminal sets the model beside."""
    figures: Callable[[StopScores, ModelFacts], KeyFigures]
    strips: Callable[[Predictor], Gallery]
    """Looks at generated scenes."""
    examples: Callable[[Predictor], Gallery] | None = None
    """Looks at pictures that ship, of a model whose test pictures do not."""


def scene_stop(name: str, guide: SceneGuide, *, limit: int, device: str, progress: Progress) -> Stop:
    """What ``guide`` has to say of the shipped model ``name``, scored on ``limit`` scenes."""
    facts = read_facts(shipped()[name])
    title, lead = f"{name}: {guide.title}", f"A model of {facts.parameters:,} parameters {guide.lead}"
    command = Code(f"saccade look scene.png --model {name} {guide.look} --out out")
    terminal = f"{name}: %, beside {guide.beside}"
    if facts.data.get("name") not in guide.scenes:
        recorded = recorded_score(name, facts)
        progress(name, recorded.n, recorded.n)
        where = f"{recorded.data}, {recorded.split} split, recorded when the model was trained"
        scores = StopScores.of(recorded, where, guide.headings, guide.others)
        said = f"{lead} Its test pictures do not come with the package."
        shown = [] if guide.examples is None else [guide.examples(load(name, device))]
        section = Section(title, said, [*shown, scores.table(guide.caption), command])
        row = headline(name, facts, guide.recorded_metric, None)
        return Stop(section, row, [scores.plain_table(terminal)])
    predictor = load(name, device)
    here = _scored_here(predictor, limit, lambda done, total: progress(name, done, total))
    drawn = f"scenes of {here.glyphs}" if here.glyphs else f"pictures of {here.data}"
    seed = facts.data.get("seed") if here.seed is None else here.seed
    where = f"{drawn}, test split, seed {seed}, computed just now"
    scores = StopScores.of(here, where, guide.headings, guide.others)
    blocks: list[Block] = [
        guide.figures(scores, facts),
        guide.strips(predictor),
        scores.table(guide.caption),
        command,
    ]
    row = headline(name, facts, guide.metric, here)
    return Stop(Section(title, lead, blocks), row, [scores.plain_table(terminal)])


def _scored_here(predictor: Predictor, limit: int, progress: Callable[[int, int], None]) -> Score:
    """The evaluation of a model on ``limit`` test scenes."""
    facts = predictor.facts
    task = load_target(family(facts.family).task).for_data(str(facts.data.get("name", "")))
    found = task.evaluate(
        predictor.model, split="test", limit=limit, progress=progress, **task.eval_kwargs(facts, EvalRequest())
    )
    return as_score(found)
