"""``compare``: several models on one picture, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from PIL import Image

    from saccade.families.responder import Question
    from saccade.sighting import Sighting


def compare(
    models: Sequence[str | Path],
    picture: str | Any,
    *,
    ask: Question | None = None,
    device: str | torch.device = "auto",
) -> list[Sighting]:
    """Ask several models the same about one picture.

    Args:
        models: zoo names, model folders or run folders.
        picture: the picture. In Python also bytes, a PIL image, an array or a tensor.
        ask: the question. Of a story, any; otherwise one that all the models know. None: none.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.

    Returns:
        What each model answered and where it looked, in order.

    Raises:
        CheckpointError: there is no such model.
        DataError: the picture cannot be read, or a model does not know the question.

    Example:
        >>> soft, hard = saccade.compare(["soft-mref", "hard-mref"], "scene.png", ask=7)  # doctest: +SKIP
        >>> soft.answer, hard.answer                                                      # doctest: +SKIP
    """
    from saccade.predict import load

    predictors = [load(model, device) for model in models]
    return [predictor.look(predictor.reads.item(picture), ask=ask) for predictor in predictors]


def side_by_side(sightings: Sequence[Sighting]) -> Image.Image:
    """One row: each model's overlay, its name, what it was asked and its answer."""
    from saccade.show.sheets import contact_sheet

    captions = [f"{seen.model}{_asked(seen)}: {seen.answer} {seen.confidence:.0%}" for seen in sightings]
    return contact_sheet([_drawn(seen) for seen in sightings], captions, columns=len(sightings), panel=400)


def write_comparison(sightings: Sequence[Sighting], folder: Path, *, html: bool = False) -> list[Path]:
    """Write ``STEM-compare.png``, the models side by side, and with ``html`` a page of every look of theirs."""
    from saccade.atomic import write_bytes
    from saccade.show.overlay import png_bytes
    from saccade.show.report_sources import report_from_records

    name = f"{sightings[0].stem}-compare"
    written = [write_bytes(folder / f"{name}.png", png_bytes(side_by_side(sightings), "small"))]
    if html:
        written.append(report_from_records([seen.record() for seen in sightings]).save(folder / f"{name}.html"))
    return written


def _asked(seen: Sighting) -> str:
    return "" if seen.question is None else f", asked {seen.question}"


def _drawn(seen: Sighting) -> Image.Image:
    return seen.overlay() if seen.is_spatial else seen.filmstrip()
