"""The tour's section on a question model: on generated scenes, or on photographs.

Photographs do not ship with the model, so their section shows the recorded scores.
"""

from __future__ import annotations

from saccade.families.question.scene_tour import scene_stop
from saccade.families.question.scenes.data import SPECS
from saccade.models.io.facts import read_facts
from saccade.show.report import Code, Section
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scores import StopScores, headline, recorded_score
from saccade.zoo import shipped

SHOWN = {
    "accuracy": "right answers",
    "weighted_map": "weighted mAP",
    "swapped_query": "same answer when asked for another part",
    "pointing_at": "maximum near the click",
    "attention_near": "attention near the click",
    "true_positive_strength": "attention on the evidence",
}
"""Scores of the table, where the record has them."""


def stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """What the shipped model called ``name`` adds to the tour."""
    guide = scene_stop if read_facts(shipped()[name]).data.get("name") in SPECS else table_stop
    return guide(name, quick=quick, device=device, progress=progress)


def table_stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """Say what is recorded of the shipped model ``name``; nothing is computed, on whatever ``device``."""
    facts = read_facts(shipped()[name])
    record = recorded_score(name, facts)
    progress(name, record.n, record.n)
    where = f"{record.data}, {record.split} split, {record.protocol or 'its own splits'}, seed {record.seed}"
    scores = StopScores.of(record, where, SHOWN, {who: who.replace("_", " ") for who in record.baselines})
    asked, answers = ", ".join(facts.queries[:8]), ", ".join(facts.answers[:8])
    section = Section(
        f"{name}: what colour is the {facts.queries[0]}?",
        f"A model of photographs, {facts.parameters:,} parameters. Asked about {asked}, it answers {answers}. "
        "Its test pictures do not come with the package, so this table was recorded when the model was trained.",
        [
            scores.table("Recorded scores beside baselines"),
            Code(f"saccade look bird.jpg --model {name} --ask {facts.queries[0]} --out out"),
        ],
    )
    metric = "weighted_map" if "weighted_map" in record.metrics else "accuracy"
    terminal = scores.plain_table(f"{name}: recorded %, beside baselines")
    return Stop(section, headline(name, facts, metric, None), [terminal])
