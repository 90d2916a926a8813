"""A stop of the tour at a model that reads multisets: what it said of some scenes, step by step, and its scores.

Generated scenes are made and scored on the spot, from glyphs that ship; of a model of photographs, whose pictures do
not, the recorded scores stand alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from saccade.data.multisets import SCENES, MultisetData, MultisetDataConfig
from saccade.errors import CheckpointError
from saccade.models.base import PictureModel
from saccade.models.facts import ModelFacts, Score, read_facts
from saccade.predict import Predictor, load
from saccade.show.marks import Box
from saccade.show.report import Block, Cell, Code, Gallery, KeyFigures, Picture, Section, Table, percent
from saccade.tasks.multiset import MultisetTask
from saccade.tasks.published import PUBLISHED
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.tour import Stop
from saccade.zoo import shipped

QUICK, FULL = 500, 2000  # scenes
LOOKED_AT = 48  # scenes among which those to show are found
SHOWN = {
    "macro_f1": "macro-F1",
    "exact_match": "exact match",
    "glimpse_in_evidence": "glimpses on an object",
    "glimpse_on_label": "glimpses on what was said",
    "attn_saliency": "saliency at glimpses",
}
"""Scores of the table, where the evaluation has them."""
WHO = {"random_glimpse": "glimpses at random", "most_salient_glimpse": "glimpses at the most salient cell"}


def multiset_stop(name: str, *, quick: bool, device: str, progress: Callable[[str, int, int], None]) -> Stop:
    """Say how the shipped model ``name`` reads multisets."""
    facts = read_facts(shipped()[name])
    recorded = facts.scores[0] if facts.scores else None
    lead = (
        f"A model of {facts.parameters:,} parameters reads a picture label by label: it attends to a region that "
        "stands out, glimpses at a few cells, says what is there, and turns to what is left, until nothing is."
    )
    command = Code(f"saccade look scene.png --model {name} --out out --filmstrip")
    if facts.data.get("name") not in SCENES:
        if recorded is None:
            raise CheckpointError(f"{name}: shipped without a recorded score; record one with tools/record.py")
        progress(name, recorded.n, recorded.n)
        where = f"{recorded.data}, {recorded.split} split, recorded when the model was made"
        held = _held(recorded.metrics, recorded.attention, recorded.baselines)
        said = f"{lead} Its test pictures do not come with the package."
        section = Section(f"{name}: what is in the picture?", said, [_table(held, recorded.n, where), command])
        return Stop(section, _headline(name, facts, None, recorded), [_terminal_table(name, held)])
    predictor = load(name, device)
    found = _evaluated(predictor, QUICK if quick else FULL, lambda done, total: progress(name, done, total))
    held = _held(found["metrics"], found["attention"], found["baselines"])
    where = f"scenes of {found['glyphs']}, test split, seed {found['seed']}, computed just now"
    blocks: list[Block] = [
        _figures(held, found["n"], where, facts),
        _strips(predictor),
        _table(held, found["n"], where),
        command,
    ]
    section = Section(f"{name}: what is in the picture?", lead, blocks)
    return Stop(section, _headline(name, facts, found, recorded), [_terminal_table(name, held)])


def _evaluated(predictor: Predictor, limit: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    facts = predictor.facts
    if not isinstance(predictor.model, PictureModel):
        raise CheckpointError(f"{predictor.name}: '{facts.architecture}' does not read multisets")
    return MultisetTask.evaluate(
        predictor.model, facts.data, "test", classes=facts.answers, limit=limit, allow_pack=True, progress=progress
    )


def _strips(predictor: Predictor) -> Gallery:
    """The fullest picture that was read rightly, a small one, and one that was misread, if there is one."""
    config = MultisetDataConfig(name=predictor.facts.data["name"])
    batch = MultisetData(config, "test", predictor.device, allow_pack=True).take(torch.arange(LOOKED_AT))
    words = predictor.facts.answers
    truths = [sorted(words[each] for each in row if each >= 0) for row in batch.labels.tolist()]
    seen = list(predictor.look_many(list(batch.images.cpu())))
    right = [sorted(word for word, _ in each.labels or ()) == truth for each, truth in zip(seen, truths)]
    by_count = sorted((row for row in range(len(batch)) if right[row]), key=lambda row: len(truths[row]))
    chosen = [by_count[-1], by_count[len(by_count) // 3]] if len(by_count) > 1 else by_count
    chosen += [row for row in range(len(batch)) if not right[row]][:1]
    strips = []
    for row in chosen:
        boxes = [Box(box) for box in batch.boxes[row].tolist() if box[0] == box[0]]
        verdict = "right" if right[row] else f"wrong, it is {{{', '.join(truths[row])}}}"
        strips.append(
            Picture(
                seen[row].filmstrip(outline=boxes, panel=150),
                f"Read as {seen[row].answer}, {seen[row].confidence:.0%} sure: {verdict}.",
                alt=f"Saliency, attention, priority and glimpses of each label; the answer is {verdict}",
            )
        )
    return Gallery(strips, "Label by label: what stood out, where it attended and glimpsed, what was left", wide=True)


Held = dict[str, dict[str, float | None]]


def _held(metrics: dict[str, Any], attention: dict[str, Any], baselines: dict[str, Any]) -> Held:
    """The model and those who glimpse otherwise, each with the shown scores that the model has."""
    own = {**metrics, **attention}
    scores = [score for score in SHOWN if isinstance(own.get(score), (int, float))]
    everyone = {"this model": own} | {label: baselines[who] for who, label in WHO.items() if who in baselines}
    return {who: {score: values.get(score) for score in scores} for who, values in everyone.items()}


def _table(held: Held, n: int, where: str) -> Table:
    rows: list[list[Cell | str]] = [
        [who, *(percent(value, note=f"n = {n} {where}") for value in values.values())] for who, values in held.items()
    ]
    columns = ["", *(SHOWN[score] for score in held["this model"])]
    return Table(columns, rows, caption="What was said, and where it glimpsed", source=where, best_row=0)


def _figures(held: Held, n: int, where: str, facts: ModelFacts) -> KeyFigures:
    own = held["this model"]
    figures = [(SHOWN[score], percent(own[score], note=f"n = {n} {where}")) for score in ("macro_f1", "exact_match")]
    published = PUBLISHED.get((facts.architecture, facts.data["name"]))
    if published is not None:
        note = f"{published.source}; {published.note}"
        figures += [
            (f"published {SHOWN[score]}", percent(each, note=note)) for score, each in published.metrics.items()
        ]
    return KeyFigures(figures)


def _headline(name: str, facts: ModelFacts, found: dict[str, Any] | None, recorded: Score | None) -> list[str]:
    published = PUBLISHED.get((facts.architecture, str(facts.data.get("name"))))
    here = ["–", "–"]
    if found is not None:
        low, high = found["intervals"]["macro_f1"]
        here = [f"{100 * found['metrics']['macro_f1']:.1f} [{100 * low:.1f}, {100 * high:.1f}]", f"{found['n']}"]
    full = "–" if recorded is None else f"{100 * recorded.metrics['macro_f1']:.2f} ({recorded.n:,})"
    return [name, "macro_f1", *here, full, "–" if published is None else f"{100 * published.metrics['macro_f1']:.2f}"]


def _terminal_table(name: str, held: Held) -> PlainTable:
    rows = [
        [who, *("–" if value is None else f"{100 * value:.1f}" for value in values.values())]
        for who, values in held.items()
    ]
    columns = ("", *(SHOWN[score] for score in held["this model"]))
    return PlainTable(f"{name}: %, beside other ways to glimpse", columns, rows)
