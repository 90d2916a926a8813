"""The tour's section on a captioning model: scenes word by word, one of them recoloured, and its scores."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from saccade.families.caption.data import SCENES, CaptionBatch, CaptionData, CaptionDataConfig
from saccade.predict import Predictor
from saccade.show.marks import Box, Mark
from saccade.show.report import Gallery, KeyFigures, Picture
from saccade.sighting import Sighting
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scenes import SceneGuide, scene_stop

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
FIGURES = ("exact_match", "true_positive_strength", "causal_follow")
"""Those that stand large above it."""
WHO = {"uniform": "looking evenly", "all_objects": "looking at all digits", "grid_oracle": "the best single cell"}


def stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """Say how the shipped model ``name`` puts pictures into words."""
    return scene_stop(name, _guide(), limit=QUICK if quick else FULL, device=device, progress=progress)


def _guide() -> SceneGuide:
    return SceneGuide(
        title="what is there to say?",
        lead="describes a picture word by word. Before each word it looks at the picture again, and a gate β "
        "says how much of what it sees goes into the word.",
        look="--beam 5 --captions 3",
        scenes=(SCENES,),
        metric="exact_match",
        recorded_metric="bleu_4_nobp",
        headings=SHOWN,
        others=WHO,
        caption="What was said, and where it looked",
        beside="other ways to look",
        figures=lambda scores, facts: KeyFigures(scores.figures(FIGURES)),
        strips=_strips,
    )


def _strips(predictor: Predictor) -> Gallery:
    """A scene of two digits, the same with one of them recoloured, one of one digit, and one that was misread.

    Then an empty one, if the model has seen such.
    """
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
        again = batch[longest : longest + 1].recolour(0)
        strips += _strips_of(predictor, data, again, what="The first digit recoloured: ")
    short = next((row for row in range(LOOKED_AT) if right[row] and counts[row] == min(counts)), None)
    wrong = next((row for row in range(LOOKED_AT) if not right[row]), None)
    strips += [_strip(seen[row], truths[row], batch, row) for row in (short, wrong) if row is not None]
    if predictor.facts.data.get("empty"):
        bare = CaptionData(replace(config, empty=1.0), "test", predictor.device, allow_pack=True)
        strips += _strips_of(predictor, bare, bare.pictures(torch.arange(1)), what="An empty scene: ")
    return Gallery(
        strips,
        "Word by word: where it looked, and how far the gate was open; a box marks what the word names",
        wide=True,
    )


def _strips_of(predictor: Predictor, data: CaptionData, batch: CaptionBatch, *, what: str) -> list[Picture]:
    seen, truths = _look(predictor, batch), _truths(data, batch)
    return [_strip(each, truth, batch, row, what=what) for row, (each, truth) in enumerate(zip(seen, truths))]


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
