"""The page of a scoring: the scores beside baselines, what was left out, and the best, median and worst maps drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from PIL import Image

from saccade.data.files import find_files
from saccade.data.maps.arrays import picture_of, truth_for
from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.pictures.reading import read_picture
from saccade.errors import SaccadeError
from saccade.scoring.results import TITLES, SceneScores, ScoreResult
from saccade.scoring.sources import Maps, Truths
from saccade.show import overlay as marks
from saccade.show.overlay import overlay
from saccade.show.report import Block, Gallery, Picture, Report, Section, Table

_EACH = 4  # maps of a kind that are drawn
_PANEL = 320  # pixels of a drawing's longer side
_LISTED = 50
_GREY = (96, 96, 96)
_ABOUT_MASKS = (
    "Strength: the share of the map that lies on the target. Selectivity: of what lies on objects, the share on the "
    "target. Pointing: whether the maximum lies on it. IoU: of the pixels above half the maximum. PR-AUC: all pixels "
    "of all pictures in one ranking."
)
_ABOUT_POINTS = (
    "NSS: how many standard deviations above its mean a map is at the points. AUC: how often a point has a higher "
    "value than a pixel of the picture (Judd), or than a point of another picture (shuffled)."
)
_ABOUT_ROWS = (
    "Intervals have the picture as the unit. The rows below are maps that ignore the picture (uniform, centre), these "
    "maps exchanged between pictures (shuffled), and bounds."
)
_ABOUT_SCENES = (
    "Does the map lie on what was asked for, when one thing in the scene is changed? A segmenter that knows the "
    "question passes these, whatever the model's answer depends on.\n\nmap_follow: the target is moved, how much of "
    "the map goes with it, minus the same for another object. map_turn: two questions about one scene, how much of the "
    "map turns. map_specific: how often the map changes more when the target is moved or removed than when another "
    "object is; chance is 0.5. map_hold: how much of the map stays when something else changes; a map that never moves "
    "has 1, so read it beside the others."
)
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
    files = {} if pictures is None else {file.stem: file for file in find_files([pictures], SUFFIXES, "picture")}
    explained = f"{_ABOUT_POINTS if scored.kind == 'points' else _ABOUT_MASKS}\n\n{_ABOUT_ROWS}"
    table = Table(columns, rows, best_row=0, dash="not defined, or no bound known")
    return Report(
        title=f"Scores of {Path(scored.maps).name or 'maps'}",
        lead=f"{scored.counted()}.",
        sections=[
            Section("Scores", explained, [table]),
            *([] if scored.scene is None else [_about_scenes(scored.scene)]),
            *_drawn(scored, maps, truths, files),
            Section("What was done", "\n\n".join(f"`{line}`" for line in scored.policies.lines())),
            *_left_out(scored),
        ],
    )


def _about_scenes(scene: SceneScores) -> Section:
    facts = scene.facts
    version = f"{facts.get('version') or 'a causal set'} of {facts['count']:,} scenes, digest `{facts['digest']}`"
    table = Table(*scene.table(), dash="not defined, or no such map")
    return Section("About the scene", f"{_ABOUT_SCENES}\n\nSet: {version}.", [table])


def _drawn(scored: ScoreResult, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> list[Section]:
    """The best, median and worst of the maps that have a score."""
    values = scored.values[scored.main]  # (N,)
    order = [at for at in torch.argsort(values, stable=True).tolist() if not bool(values[at].isnan())]
    middle = max(0, len(order) // 2 - _EACH // 2)
    chosen = {"Best": order[::-1][:_EACH], "Median": order[middle : middle + _EACH], "Worst": order[:_EACH]}
    sections = []
    for title, numbers in chosen.items():
        drawn = [picture for at in numbers if (picture := _picture(scored, at, maps, truths, files)) is not None]
        blocks: list[Block] = [Gallery(drawn)] if drawn else []
        text = "These maps came from a stream and cannot be read again; give a path or an array to draw them."
        if drawn:
            text = f"By {TITLES[scored.main]}. The truth is outlined. Each map is shown by its own peak."
        sections.append(Section(f"{title} maps", text, blocks))
    return sections


def _picture(scored: ScoreResult, at: int, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> Picture | None:
    """A map on its picture, or on grey; None where it cannot be read again."""
    name, policies = scored.names[at], scored.policies
    try:
        map = maps.read(name)
    except SaccadeError:  # it was there a moment ago
        return None
    truth = truth_for(name, truths.names, policies.separator)
    if map is None or truth is None:
        return None
    values = map.detach().cpu().float().nan_to_num(0.0, 0.0, 0.0)
    values = (
        values.abs() if policies.signed == "abs" else values.clamp(min=0) if policies.signed == "positive" else values
    )
    values = values - values.min().clamp(max=0)  # one with a sign is drawn from its lowest value up
    outline: marks.Mark
    if truths.kind == "points":
        points = truths.points(truth)
        height, width = points.size or values.shape
        outline = marks.Points([(float(x), float(y)) for x, y in points.at.tolist()])
    else:
        mask = truths.evidence(truth, (values.shape[0], values.shape[1])).mask.cpu()
        (height, width), outline = mask.shape, marks.Mask(mask.numpy())
    file = files.get(picture_of(name, policies.separator).rpartition("/")[2])
    below = Image.new("RGB", (width, height), _GREY)
    if file is not None:
        below = read_picture(file).image.resize((width, height))
    drawn = overlay(below, values.numpy(), outline=outline)
    drawn.thumbnail((_PANEL, _PANEL))
    score = float(scored.values[scored.main][at])
    return Picture(drawn, f"{name}: {TITLES[scored.main]} {score:.3f}", f"the map {name} with its truth outlined")


def _left_out(scored: ScoreResult) -> list[Section]:
    rows = [
        (name, scored.notes.get(name, REASONS[reason])) for reason, names in scored.left_out.items() for name in names
    ]
    if not rows:
        return []
    more = f" The first {_LISTED} of {len(rows):,}; all are in maps.csv." if len(rows) > _LISTED else ""
    return [Section("Left out", f"What was not scored, and why.{more}", [Table(("name", "why"), rows[:_LISTED])])]
