"""A stop of the tour at a model that says captions: some scenes word by word, one of them recoloured, and the scores.

Generated scenes are made and scored on the spot, from glyphs that ship; of a model of photographs, whose pictures do
not, the recorded scores stand alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from saccade.data.captions import SCENES, CaptionBatch, CaptionData, CaptionDataConfig
from saccade.errors import CheckpointError
from saccade.models.facts import ModelFacts, Score, read_facts
from saccade.predict import Predictor, load
from saccade.show.marks import Box, Mark
from saccade.show.report import Block, Cell, Code, Gallery, KeyFigures, Picture, Section, Table, percent
from saccade.sighting import Sighting
from saccade.tasks.caption import CaptionTask
from saccade.tasks.published import PUBLISHED
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.tour import Stop
from saccade.zoo import shipped

QUICK, FULL = 200, 2000  # scenes
LOOKED_AT = 24  # scenes among which those to show are found
SHOWN = {
    "exact_match": "exact match",
    "bleu_4": "BLEU-4",
    "bleu_4_nobp": "BLEU-4 without brevity penalty",
    "meteor_lite": "METEOR-lite",
    "true_positive_strength": "attention on what the word names",
    "selectivity": "… of that on any digit",
    "causal_follow": "follows a recoloured digit",
}
"""Scores of the table, where the evaluation has them."""
WHO = {"uniform": "looking evenly", "all_objects": "looking at all digits", "grid_oracle": "the best single cell"}


def caption_stop(name: str, *, quick: bool, device: str, progress: Callable[[str, int, int], None]) -> Stop:
    """Say how the shipped model ``name`` puts pictures into words."""
    facts = read_facts(shipped()[name])
    recorded = facts.scores[0] if facts.scores else None
    lead = (
        f"A model of {facts.parameters:,} parameters says what is on a picture, word by word. Before each word it "
        "looks at the picture again, and a gate β says how much of what it sees goes into the word."
    )
    command = Code(f"saccade look scene.png --model {name} --beam 5 --captions 3 --out out")
    title = f"{name}: what is there to say?"
    if facts.data.get("name") != SCENES:
        if recorded is None:
            raise CheckpointError(f"{name}: shipped without a recorded score; record one with tools/record.py")
        progress(name, recorded.n, recorded.n)
        where = f"{recorded.data}, {recorded.split} split, recorded when the model was made"
        held = _held(recorded.metrics, recorded.attention, recorded.baselines)
        said = f"{lead} Its test pictures do not come with the package."
        section = Section(title, said, [_table(held, recorded.n, where), command])
        return Stop(section, _headline(name, facts, None, recorded), [_terminal_table(name, held)])
    predictor = load(name, device)
    told = CaptionTask.evaluate(
        predictor.model,
        facts.data,
        "test",
        words=facts.answers,
        limit=QUICK if quick else FULL,
        allow_pack=True,
        progress=lambda done, total: progress(name, done, total),
    )
    held = _held(told["metrics"], told["attention"], told["baselines"])
    where = f"scenes of {told['glyphs']}, test split, seed {told['seed']}, computed just now"
    blocks: list[Block] = [
        _figures(held, told["n"], where),
        _strips(predictor),
        _table(held, told["n"], where),
        command,
    ]
    return Stop(Section(title, lead, blocks), _headline(name, facts, told, recorded), [_terminal_table(name, held)])


# ---------------------------------------------------------------- pictures


def _strips(predictor: Predictor) -> Gallery:
    """A scene of two digits, the same with one of them recoloured, one of one digit, and one that was misread."""
    config = CaptionDataConfig(glyphs=predictor.facts.data.get("glyphs", "disjoint"))
    data = CaptionData(config, "test", predictor.device, allow_pack=True)
    batch = data.pictures(torch.arange(LOOKED_AT))
    seen, truths = _look(predictor, batch), _truths(data, batch)
    right = [each.answer == truth for each, truth in zip(seen, truths)]
    counts = batch.lengths.tolist()
    longest = max((row for row in range(LOOKED_AT) if right[row]), key=lambda row: counts[row], default=None)
    strips = []
    if longest is not None:
        strips.append(_strip(seen[longest], truths[longest], batch, longest))
        again = batch.recolour(0)
        after = _look(predictor, again)[longest]
        strips.append(_strip(after, _truths(data, again)[longest], again, longest, what="The first digit recoloured: "))
    short = next((row for row in range(LOOKED_AT) if right[row] and counts[row] == min(counts)), None)
    wrong = next((row for row in range(LOOKED_AT) if not right[row]), None)
    strips += [_strip(seen[row], truths[row], batch, row) for row in (short, wrong) if row is not None]
    return Gallery(
        strips, "Word by word: where it looked, and how far the gate was open; boxed, what is meant", wide=True
    )


def _look(predictor: Predictor, batch: CaptionBatch) -> list[Sighting]:
    return list(predictor.look_many(list(batch.images.cpu())))


def _truths(data: CaptionData, batch: CaptionBatch) -> list[str]:
    return [data.vocabulary.decode(words) for words in batch.words.tolist()]


def _strip(seen: Sighting, truth: str, batch: CaptionBatch, row: int, *, what: str = "") -> Picture:
    """The filmstrip of one scene, each word with a box around what it is about if the sentence is right."""
    verdict = "right" if seen.answer == truth else f"wrong, it is “{truth}”"
    marks = _evidence(batch, row) if seen.answer == truth else ()
    return Picture(
        seen.filmstrip(evidence=marks, panel=130),
        f"{what}“{seen.answer}”, {seen.confidence:.0%} sure of a word: {verdict}.",
        alt=f"Where it looked for each word of “{seen.answer}”, which is {verdict}",
    )


def _evidence(batch: CaptionBatch, row: int) -> list[Mark | None]:
    """For each word the box of the digit that it names: on a small panel the outline of its strokes would hide it."""
    masks = batch.word_masks()
    return [] if masks is None else [_box(mask) for mask in masks[row].cpu()]


def _box(mask: Tensor) -> Box | None:
    """Around the true pixels of a mask (H,W); None where there are none."""
    y, x = mask.nonzero(as_tuple=True)
    return Box([int(x.min()), int(y.min()), int(x.max()) + 1, int(y.max()) + 1]) if len(x) else None


# ---------------------------------------------------------------- numbers

Held = dict[str, dict[str, float | None]]


def _held(metrics: dict[str, Any], attention: dict[str, Any], baselines: dict[str, Any]) -> Held:
    """The model and those who look otherwise, each with the shown scores that the model has."""
    own = {**metrics, **attention}
    scores = [score for score in SHOWN if isinstance(own.get(score), (int, float))]
    everyone = {"this model": own} | {label: baselines[who] for who, label in WHO.items() if who in baselines}
    return {who: {score: values.get(score) for score in scores} for who, values in everyone.items()}


def _table(held: Held, n: int, where: str) -> Table:
    rows: list[list[Cell | str]] = [
        [who, *(percent(value, note=f"n = {n} {where}") for value in values.values())] for who, values in held.items()
    ]
    columns = ["", *(SHOWN[score] for score in held["this model"])]
    return Table(columns, rows, caption="What was said, and where it looked", source=where, best_row=0)


def _figures(held: Held, n: int, where: str) -> KeyFigures:
    shown = ("exact_match", "true_positive_strength", "causal_follow")
    own = held["this model"]
    return KeyFigures([(SHOWN[score], percent(own.get(score), note=f"n = {n} {where}")) for score in shown])


def _headline(name: str, facts: ModelFacts, found: dict[str, Any] | None, recorded: Score | None) -> list[str]:
    metric = "exact_match" if found is not None else "bleu_4_nobp"
    here = ["–", "–"]
    if found is not None:
        low, high = found["intervals"][metric]
        here = [f"{100 * found['metrics'][metric]:.1f} [{100 * low:.1f}, {100 * high:.1f}]", f"{found['n']}"]
    full = "–" if recorded is None else f"{100 * recorded.metrics[metric]:.2f} ({recorded.n:,})"
    row = PUBLISHED.get((facts.architecture, str(facts.data.get("name"))))
    return [name, metric, *here, full, "–" if row is None else f"{100 * row.metrics[metric]:.2f}"]


def _terminal_table(name: str, held: Held) -> PlainTable:
    rows = [
        [who, *("–" if value is None else f"{100 * value:.1f}" for value in values.values())]
        for who, values in held.items()
    ]
    columns = ("", *(SHOWN[score] for score in held["this model"]))
    return PlainTable(f"{name}: %, beside other ways to look", columns, rows)
