"""Several models on one picture, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from saccade.atomic import write_bytes
from saccade.families.responder import Question
from saccade.predict import load
from saccade.show.contact_sheet import contact_sheet
from saccade.show.png import png_bytes
from saccade.show.report_sources import report_from_records
from saccade.sighting import Sighting


def compare(
    models: Sequence[str | Path], picture: Any, *, ask: Question | None = None, device: str | torch.device = "auto"
) -> list[Sighting]:
    """Several models on one picture: one sighting each, in order."""
    predictors = [load(model, device) for model in models]
    return [predictor.look(predictor.reads.item(picture), ask=ask) for predictor in predictors]


def side_by_side(sightings: Sequence[Sighting]) -> Image.Image:
    """One row: each model's overlay, its name, what it was asked and its answer."""
    captions = [f"{seen.model}{_asked(seen)}: {seen.answer} {seen.confidence:.0%}" for seen in sightings]
    return contact_sheet([_drawn(seen) for seen in sightings], captions, columns=len(sightings), panel=400)


def write_comparison(sightings: Sequence[Sighting], folder: Path, *, html: bool = False) -> list[Path]:
    """Write ``STEM-compare.png``, the models side by side, and with ``html`` a page of every look of theirs."""
    name = f"{sightings[0].stem}-compare"
    written = [write_bytes(folder / f"{name}.png", png_bytes(side_by_side(sightings), "small"))]
    if html:
        written.append(report_from_records([seen.record() for seen in sightings]).save(folder / f"{name}.html"))
    return written


def _asked(seen: Sighting) -> str:
    return "" if seen.question is None else f", asked {seen.question}"


def _drawn(seen: Sighting) -> Image.Image:
    return seen.overlay() if seen.is_spatial else seen.filmstrip()
