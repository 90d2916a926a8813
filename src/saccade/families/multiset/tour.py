"""The tour's section on a multiset model: its answers on some scenes, step by step, and its scores."""

from __future__ import annotations

import torch

from saccade.families.multiset.data import SCENES, MultisetData, MultisetDataConfig
from saccade.models.io.facts import ModelFacts
from saccade.predict import Predictor
from saccade.show.marks import Box
from saccade.show.report import Gallery, KeyFigures, Picture, percent
from saccade.tasks.published import published_for
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scenes import SceneGuide, scene_stop
from saccade.verbs.touring.scores import StopScores

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


def stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """Say how the shipped model ``name`` reads multisets."""
    return scene_stop(name, _guide(), limit=QUICK if quick else FULL, device=device, progress=progress)


def _guide() -> SceneGuide:
    return SceneGuide(
        title="what is in the picture?",
        lead="reads a picture label by label: it attends to a region that stands out, glimpses at a few cells, says "
        "what is there, and turns to what is left, until nothing is.",
        look="--filmstrip",
        scenes=SCENES,
        metric="macro_f1",
        recorded_metric="macro_f1",
        headings=SHOWN,
        others=WHO,
        caption="What was said, and where it glimpsed",
        beside="other ways to glimpse",
        figures=_figures,
        strips=_strips,
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
    return Gallery(strips, "Label by label: saliency, attention, glimpses, and the remaining saliency", wide=True)


def _figures(scores: StopScores, facts: ModelFacts) -> KeyFigures:
    figures = scores.figures(("macro_f1", "exact_match"))
    published = published_for(facts)
    if published is not None:
        note = f"{published.source}; {published.note}"
        figures += [
            (f"published {SHOWN[score]}", percent(each, note=note)) for score, each in published.metrics.items()
        ]
    return KeyFigures(figures)
