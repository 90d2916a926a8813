"""The page of a scoring: the scores beside baselines, what was left out, and the best, median and worst maps drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.files import find_files
from saccade.data.maps.arrays import picture_of, truth_for
from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.pictures.reading import read_picture
from saccade.errors import SaccadeError
from saccade.scoring.results import TITLES, ScoreResult
from saccade.scoring.sources import Maps, Truths
from saccade.show import overlay as marks
from saccade.show.overlay import overlay
from saccade.show.report import Block, Gallery, Picture, Report, Section, Table

_EACH = 4  # maps of a kind that are drawn
_PANEL = 320  # pixels of a drawing's longer side
_LISTED = 50
_GREY = (96, 96, 96)

REASONS = {
    "missing": "no map",
    "missing_twins": "no map",
    "extra": "no truth",
    "nan": "holds NaN or infinity",
    "broken": "cannot be read",
}


def score_page(scored: ScoreResult, maps: Maps, truths: Truths, *, pictures: Path | None = None) -> Report:
    """The page; ``pictures`` is a folder of the pictures themselves, to draw maps on."""
    columns, rows = scored.table()
    shown = {} if pictures is None else {file.stem: file for file in find_files([pictures], SUFFIXES, "picture")}
    return Report(
        title=f"Scores of {Path(scored.maps).name or 'maps'}",
        lead=f"{scored.counted()}.",
        sections=[
            Section(
                "Scores", _explained(scored), [Table(columns, rows, best_row=0, dash="not defined, or no bound known")]
            ),
            *_about_scenes(scored),
            *_drawn(scored, maps, truths, shown),
            Section("What was done", "\n\n".join(f"`{line}`" for line in scored.policies.lines())),
            *_left_out(scored),
        ],
    )


def ordered(scored: ScoreResult) -> list[int]:
    """The numbers of the maps that have a score, the worst first."""
    values = scored.values[scored.main]  # (N,)
    order = torch.argsort(values, stable=True)
    return [at for at in order.tolist() if not bool(values[at].isnan())]


def _explained(scored: ScoreResult) -> str:
    if scored.kind == "points":
        text = (
            "NSS: how many standard deviations above its mean a map is at the points. AUC: how often a point has a "
            "higher value than a pixel of the picture (Judd), or than a point of another picture (shuffled)."
        )
    else:
        text = (
            "Strength: the share of the map that lies on the target. Selectivity: of what lies on objects, the "
            "share on the target. Pointing: whether the maximum lies on it. IoU: of the pixels above half the maximum. "
            "PR-AUC: all pixels of all pictures in one ranking."
        )
    return (
        f"{text}\n\nIntervals have the picture as the unit. The rows below are maps that ignore the picture (uniform, "
        "centre), these maps exchanged between pictures (shuffled), and bounds."
    )


def _about_scenes(scored: ScoreResult) -> list[Section]:
    if scored.scene is None:
        return []
    facts = scored.scene.facts
    text = (
        "Does the map lie on what was asked for, when one thing in the scene is changed? A segmenter that knows "
        "the question passes these, whatever the model's answer depends on.\n\nmap_follow: the target is moved, "
        "how much of "
        "the map goes with it, minus the same for another object. map_turn: two questions about one scene, how much of "
        "the map turns. map_specific: how often the map changes more when the target is moved or removed than when "
        "another object is; chance is 0.5. map_hold: how much of the map stays when something else changes; a map that "
        "never moves has 1, so read it beside the others.\n\n"
        f"Set: {facts.get('version') or 'a causal set'} of {facts['count']:,} scenes, digest `{facts['digest']}`."
    )
    return [Section("About the scene", text, [Table(*scored.scene.table(), dash="not defined, or no such map")])]


def _drawn(scored: ScoreResult, maps: Maps, truths: Truths, pictures: Mapping[str, Path]) -> list[Section]:
    order = ordered(scored)
    middle = max(0, len(order) // 2 - _EACH // 2)
    chosen = {
        "Best maps": order[::-1][:_EACH],
        "Median maps": order[middle : middle + _EACH],
        "Worst maps": order[:_EACH],
    }
    sections = []
    for title, numbers in chosen.items():
        found = [each for at in numbers if (each := _picture(scored, at, maps, truths, pictures)) is not None]
        blocks: list[Block] = [Gallery(found)] if found else []
        text = (
            f"By {TITLES[scored.main]}. The truth is outlined. Each map is shown by its own peak."
            if found
            else "These maps came from a stream and cannot be read again; give a path or an array to draw them."
        )
        sections.append(Section(title, text, blocks))
    return sections


def _picture(scored: ScoreResult, at: int, maps: Maps, truths: Truths, pictures: Mapping[str, Path]) -> Picture | None:
    name = scored.names[at]
    try:
        found = maps.read(name)
    except SaccadeError:  # it was there a moment ago
        return None
    truth = truth_for(name, truths.names, scored.policies.separator)
    if found is None or truth is None:
        return None
    values = _positive(found, scored.policies.signed)
    size = (values.shape[0], values.shape[1])
    outline: marks.Mark
    if truths.kind == "points":
        points = truths.points(truth)
        size = points.size or size
        outline = marks.Points([(float(x), float(y)) for x, y in points.at.tolist()])
    else:
        mask = truths.evidence(truth, size).mask.cpu()
        size = (mask.shape[0], mask.shape[1])
        outline = marks.Mask(mask.numpy())
    drawn = overlay(_background(picture_of(name, scored.policies.separator), size, pictures), values, outline=outline)
    drawn.thumbnail((_PANEL, _PANEL))
    score = float(scored.values[scored.main][at])
    return Picture(drawn, f"{name}: {TITLES[scored.main]} {score:.3f}", f"the map {name} with its truth outlined")


def _positive(found: Tensor, signed: str) -> np.ndarray:
    """The map as it is drawn; a signed one from its lowest value up."""
    values = found.detach().cpu().float().nan_to_num(0.0, 0.0, 0.0)
    values = values.abs() if signed == "abs" else values.clamp(min=0) if signed == "positive" else values
    low = float(values.min())
    return (values - low if low < 0 else values).numpy()


def _background(picture: str, size: tuple[int, int], pictures: Mapping[str, Path]) -> Image.Image:
    path = pictures.get(picture.rpartition("/")[2])
    if path is None:
        return Image.new("RGB", (size[1], size[0]), _GREY)
    return read_picture(path).image.resize((size[1], size[0]))


def _left_out(scored: ScoreResult) -> list[Section]:
    rows: list[Sequence[str]] = []
    for reason, names in scored.left_out.items():
        rows += [(name, scored.notes.get(name, REASONS[reason])) for name in names]
    if not rows:
        return []
    more = f" The first {_LISTED} of {len(rows):,}; all are in maps.csv." if len(rows) > _LISTED else ""
    return [Section("Left out", f"What was not scored, and why.{more}", [Table(("name", "why"), rows[:_LISTED])])]
