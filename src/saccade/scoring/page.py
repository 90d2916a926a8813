"""The page of a scoring: the scores beside baselines, what was left out, and the best, median and worst maps drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from saccade.data.causal.row_folder import SCENE
from saccade.data.maps import picture_of, truth_for
from saccade.data.pictures.files import SUFFIXES, find_files
from saccade.data.pictures.reading import read_picture
from saccade.errors import SaccadeError
from saccade.scoring.photographs.results import Drawn, PhotographScores
from saccade.scoring.results import TITLES, WORDS, ScoreResult
from saccade.scoring.sources import Maps, Truths
from saccade.show import overlay as marks
from saccade.show.overlay import overlay
from saccade.show.report import Figure, Gallery, Report, Section
from saccade.show.sheet import font
from saccade.show.tables import ShownTable

_EACH = 4  # maps of a kind that are drawn
_PANEL = 320  # pixels of a drawing's longer side
_LISTED = 50
_GREY = (96, 96, 96)
_HIGH, _LINE = 180, 16  # pixels of a strip of photographs, and of the line above it
_WIDE = 130  # of a photograph in it at least, for what stands above it


def score_page(scored: ScoreResult, maps: Maps, truths: Truths, *, pictures: Path | None = None) -> Report:
    """The page; ``pictures`` is a folder of the pictures themselves, to draw maps on."""
    files = {} if pictures is None else {file.stem: file for file in find_files([pictures], SUFFIXES, "picture")}
    about = WORDS["about"]
    columns, rows = scored.table()
    table = ShownTable(columns, rows, best_row=0, dash="not defined, or no bound known")
    explained = f"{about['points' if scored.kind == 'points' else 'masks']}\n\n{about['rows']}"
    sections = [Section("Scores", explained, [table])]
    if scored.scene is not None:
        facts = scored.scene.facts
        version = f"{facts.get('version') or 'a causal set'} of {facts['count']:,} scenes, digest `{facts['digest']}`"
        table = ShownTable(*scored.scene.table(), dash="not defined, or no such map")
        sections.append(Section("About the scene", f"{about['scenes']}\n\nSet: {version}.", [table]))
    sections += _drawn(scored, maps, truths, files)
    sections.append(Section("What was done", "\n\n".join(f"`{line}`" for line in scored.policies.lines())))
    lost = [
        (name, scored.notes.get(name, WORDS["reasons"][reason]))
        for reason, names in scored.left_out.items()
        for name in names
    ]
    if lost:
        more = f" The first {_LISTED} of {len(lost):,}; all are in maps.csv." if len(lost) > _LISTED else ""
        text = f"What was not scored, and why.{more}"
        sections.append(Section("Left out", text, [ShownTable(("name", "why"), lost[:_LISTED])]))
    return Report(f"Scores of {Path(scored.maps).name or 'maps'}", f"{scored.counted()}.", sections)


def _drawn(scored: ScoreResult, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> list[Section]:
    values = scored.values[scored.main]  # (N,)
    order = [at for at in torch.argsort(values, stable=True).tolist() if not bool(values[at].isnan())]
    middle = max(0, len(order) // 2 - _EACH // 2)
    chosen = {"Best": order[::-1][:_EACH], "Median": order[middle : middle + _EACH], "Worst": order[:_EACH]}
    sections = []
    for title, numbers in chosen.items():
        drawn = [picture for at in numbers if (picture := _picture(scored, at, maps, truths, files)) is not None]
        text = "These maps came from a stream and cannot be read again; give a path or an array to draw them."
        if drawn:
            text = f"By {TITLES[scored.main]}. The truth is outlined. Each map is shown by its own peak."
        sections.append(Section(f"{title} maps", text, [Gallery(drawn)] if drawn else []))
    return sections


def _picture(scored: ScoreResult, at: int, maps: Maps, truths: Truths, files: Mapping[str, Path]) -> Figure | None:
    """A map on its picture, or on grey; None where it cannot be read again."""
    name, separator = scored.names[at], scored.policies.separator
    try:
        map = maps.read(name)
    except SaccadeError:  # it was there a moment ago
        return None
    truth = truth_for(name, truths.names, separator)
    if map is None or truth is None:
        return None
    values = scored.policies.with_sign(map.detach().cpu().float().nan_to_num(0.0, 0.0, 0.0))
    values = values - values.min().clamp(max=0)  # one with a sign is drawn from its lowest value up
    mask = truths.evidence(truth, (values.shape[0], values.shape[1])).mask.cpu()
    outline: marks.Mark = marks.Mask(mask.numpy())
    if truths.kind == "points":
        outline = marks.Points(truths.points(truth).at.tolist())
    file, size = files.get(picture_of(name, separator).rpartition("/")[2]), (mask.shape[1], mask.shape[0])
    below = Image.new("RGB", size, _GREY) if file is None else read_picture(file).image.resize(size)
    drawn = overlay(below, values.numpy(), outline=outline)
    drawn.thumbnail((_PANEL, _PANEL))
    text = f"{name}: {TITLES[scored.main]} {float(scored.values[scored.main][at]):.3f}"
    return Figure(drawn, text, f"the map {name} with its truth outlined")


def photographs_page(scored: PhotographScores) -> Report:
    """The page of a method that was scored on photographs: verdict, tables, and its best and worst maps."""
    sections = [
        Section(title.capitalize(), text, [ShownTable(*rows, dash="not defined, or not made")])
        for title, text, rows in scored.tables()
    ]
    if scored.refused:
        sections.append(Section("About the model", scored.refused))
    for title, drawn in (("Best", scored.best), ("Worst", scored.worst)):
        text = (
            "By strength. The photograph, and its twins under what was changed. The object is outlined. Each map is of "
            "the class that the model gives to the photograph, and shown by its own peak; p is the share of that class."
        )
        sections.append(Section(f"{title} maps", text, list(map(_strip, drawn))))
    return Report(f"{scored.method} of {scored.model}", f"{scored.verdict}\n\n{scored.counted()}.", sections)


def _strip(drawn: Drawn) -> Figure:
    """A photograph and its twins side by side, each with its map."""
    photograph, names, cells, canvas, share, strength = drawn
    panels = []
    for name, map, p in zip(names, cells.over(canvas, photograph.size), share.tolist()):
        picture = photograph if name == SCENE else photograph.twins[name]
        inside = picture.label_map == photograph.target + 1
        panel = overlay(picture.image, map.numpy(), outline=marks.Mask(inside), least_side=1)
        panels.append((f"{name}: p {p:.2f}", panel.resize((round(panel.width * _HIGH / panel.height), _HIGH))))
    strip = Image.new("RGB", (sum(max(panel.width, _WIDE) for _, panel in panels), _HIGH + _LINE), "white")
    left, pen = 0, ImageDraw.Draw(strip)
    for text, panel in panels:
        strip.paste(panel, (left, _LINE))
        pen.text((left + 2, 1), text, "black", font=font(12))
        left += max(panel.width, _WIDE)
    caption = f"{photograph.name}: strength {strength:.3f}"
    return Figure(strip, caption, f"the map of {photograph.name} and of its twins")
