"""The tour's section on a classifier: generated details are scored on the spot, CIFAR-10 shows recorded scores."""

from __future__ import annotations

import torch

from saccade.data.gallery import example
from saccade.families.classify.data import GENERATORS, LabelData, LabelDataConfig
from saccade.predict import Predictor
from saccade.show.marks import Mask
from saccade.show.report import Gallery, KeyFigures, Picture
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scenes import SceneGuide, scene_stop

QUICK, FULL = 48, 480  # pictures; each is drawn and answered four times
EXAMPLE = "cat"
LOOKED_AT = 12  # pictures among which those to show are found
SHOWN = {
    "accuracy": "right",
    "top5": "right among five",
    "calibration_error": "calibration error",
    "scale1_accuracy": "scale 1 alone",
    "scale2_accuracy": "scale 2 alone",
    "scale3_accuracy": "scale 3 alone",
    "scale2_covers_evidence": "scale 2 covers the detail",
    "moved_follow": "follows a moved detail",
}
"""Scores of the table, where the evaluation has them."""
FIGURES = ("accuracy", "scale1_accuracy", "scale2_accuracy", "scale2_covers_evidence")
"""Those that stand large above it."""
WHO = {
    "centred_crop": "a crop in the middle",
    "crop_anywhere": "a crop anywhere",
    "commonest_label": "one label always",
}


def stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """Say how the shipped model ``name`` tells classes apart."""
    return scene_stop(name, _guide(), limit=QUICK if quick else FULL, device=device, progress=progress)


def _guide() -> SceneGuide:
    return SceneGuide(
        title="which class is it?",
        lead="gives a picture one label, and shows its masks or the regions that it looked at again closer.",
        look="--filmstrip",
        scenes=tuple(GENERATORS),
        metric="accuracy",
        recorded_metric="accuracy",
        headings=SHOWN,
        others=WHO,
        caption="How often it is right, and where it looked",
        beside="other ways to look",
        figures=lambda scores, facts: KeyFigures(scores.figures(FIGURES)),
        strips=_strips,
        examples=_example,
    )


def _strips(predictor: Predictor) -> Gallery:
    """Two pictures that were answered rightly, and one that was not, if there is one; the detail is outlined."""
    config = LabelDataConfig(name=str(predictor.facts.data["name"]), size=predictor.facts.data["size"])
    batch = LabelData(config, "test", predictor.device).take(torch.arange(LOOKED_AT))
    truths = [predictor.facts.answers[label] for label in batch.label.tolist()]
    seen = list(predictor.look_many(list(batch.images.cpu())))
    right = [row for row in range(LOOKED_AT) if seen[row].answer == truths[row]]
    wrong = [row for row in range(LOOKED_AT) if row not in right]
    pictures = []
    for row in [*right[:2], *wrong[:1]]:
        verdict = "right" if row in right else f"wrong, it is {truths[row]}"
        outline = () if batch.evidence is None else (Mask(batch.evidence[row].cpu()),)
        told = f"“{seen[row].answer}”, {seen[row].confidence:.0%} sure: {verdict}."
        pictures.append(Picture(seen[row].filmstrip(outline=outline, panel=200), told, alt=f"Every look; {told}"))
    return Gallery(pictures, "What each scale saw and said; the detail that decides the class is outlined", wide=True)


def _example(predictor: Predictor) -> Gallery:
    """A photograph that ships, as a model of photographs sees it."""
    seen = predictor.look(example(EXAMPLE))
    told = f"“{seen.answer}”, {seen.confidence:.0%} sure."
    shown = Picture(seen.filmstrip(panel=200), told, alt=f"Every look; {told}")
    about = "A photograph that is not among its test pictures; the range of each mask is below it"
    return Gallery([shown], about, wide=True)
