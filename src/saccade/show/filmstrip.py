"""Pictures side by side: every look of one example, the total last; nested crops on one picture; contact sheets.

Each column of a filmstrip has the overlay above, below it the attended image (for a crop: what was cut out), and under
both the name of the act with the raw peak weight. Strips longer than a row wrap, and so does what stands under a narrow
panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw

from saccade.errors import DataError
from saccade.show.acts import Act, Drawing, Scale
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    SPAN,
    Scaled,
    Values,
    by_own_ends,
    by_own_peak,
    by_shared_peak,
    legend_bar,
)
from saccade.show.overlay import (
    Mark,
    PictureLike,
    Polygon,
    as_picture,
    draw_marks,
    enlarge,
    fit_panel,
    let_through,
)
from saccade.show.sheet import Layout, Line, Panel, draw_sheet, font, line_height, wrap
from saccade.trace import AttentionTrace

Captions = Mapping[str, str | Sequence[str]]

LAYOUT = Layout(gutter=18, between=36, below=8, above_legend=line_height(font(14)), small=14)
CONTACTS = Layout(gutter=18, between=18, below=6, above_legend=0, small=14)
_TITLE = 16


def filmstrip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    question: str = "",
    answer: str = "",
    whole: str = "picture",
    captions: Captions | None = None,
    outline: Mark | Sequence[Mark] = (),
    scale: Scale = "own",
    cells: bool = False,
    columns: int = 6,
    panel: int = 300,
) -> Image.Image:
    """The looks of one example, side by side.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``); its looks on slots are drawn by :func:`slot_table` instead.
        question: what was asked; shown with the answer under the picture.
        answer: in words, with its confidence if there is one.
        whole: title of the first panel, the whole picture; nested crops are framed in it.
        captions: titles by look name, one text or one per step (the words of a caption).
        outline: evidence, drawn on the picture itself and on every overlay, in pixels of ``picture``.
        scale: each map by its "own" peak, or all by a "shared" one.
        cells: paint the cells flat instead of smooth.
        columns: panels in a row.
        panel: longest side of a panel in pixels.
    """
    drawing = Drawing(picture, trace, lambda original: fit_panel(original, panel), outline)
    trace, acts, shown = drawing.trace, drawing.acts, drawing.shown
    if not acts:
        raise DataError("this trace has no look on a picture; a memory's looks are drawn by slot_table")
    maps = [drawing.map(act, cells=cells) for act in acts]
    parts = {look.name for look in trace.looks_of_total}
    has_total = trace.total != "last" and sum(act.look.name in parts for act in acts) > 1  # else it is shown already
    totals = [drawing.total()] if has_total else []
    if scale == "shared":
        scaled = by_shared_peak([*maps, *totals])
    else:
        scaled = [by_own_ends(m, base=a.look.base) if a.look.base else by_own_peak(m) for m, a in zip(maps, acts)]
        adds = all(look.base for look in trace.looks_of_total)  # masks that only add
        scaled += [by_own_ends(total) if adds else by_own_peak(total) for total in totals]

    first = drawing.outlined(shown)
    if trace.is_nested:  # the whole picture has a frame round each crop
        first = draw_marks(first, [mark for act in acts for mark in drawing.marks(act)], shown.size)
    room = max(shown.width, 120)  # captions need room under a narrow picture
    size = f"{drawing.original.width} × {drawing.original.height} px"
    strip = [Panel([first], _caption(whole, size, room), _card(question, answer, room))]
    for act, own, colours in zip(acts, maps, scaled):
        images, note = _act_images(drawing, act, colours.values)
        note = f"least {float(own.min()):.3f} · {note}" if colours.least else note
        strip.append(Panel(images, _caption(_title(act, captions or {}), note, room)))
    for colours in scaled[len(acts) :]:
        images = [drawing.paint(colours.values), let_through(shown, colours.values)]
        strip.append(Panel(images, _caption("total", _total_in_words(trace), room)))
    meaning = _legend(acts, scaled, scale)
    legend = [(legend_bar(120, 10), f"weight: {meaning}")] if meaning else []
    return draw_sheet(strip, shown.size, min(columns, len(strip)), LAYOUT, room=room, legend=legend)


def _total_in_words(trace: AttentionTrace) -> str:
    """How the looks were combined: ``product of all looks``, of masks that only add ``product of 1 + mask``."""
    parts = trace.looks_of_total
    base = {look.base for look in parts}
    if base != {0.0} and len(base) == 1:
        return f"{trace.total} of {next(iter(base)):g} + mask"
    has_derived = len(parts) < len(trace.looks) and any(look.role == "derived" for look in trace.looks)
    return f"{trace.total} of the other looks" if has_derived else f"{trace.total} of all looks"


def _act_images(drawing: Drawing, act: Act, values: Values) -> tuple[list[Image.Image], str]:
    """The overlay and what it lets through, or what a crop cut out; and a note."""
    marks = drawing.marks(act)
    if act.look.kind == "crop":  # its map is its box: dim what lies outside rather than tint what lies inside
        upper, lower = drawing.outlined(let_through(drawing.shown, 0.35 + 0.65 * values)), drawing.crop(act)
        note = f"crop, {values.mean():.0%} of the picture"
    else:
        upper, lower = drawing.paint(values), let_through(drawing.shown, values)
        note = act.note
    return [draw_marks(upper, marks, drawing.shown.size), lower], note


def _title(act: Act, captions: Captions) -> str:
    text = captions.get(act.look.name)
    if text is None:
        return act.title
    if isinstance(text, str):
        return text if act.step is None else f"{text} {act.step + 1}"
    return text[act.step or 0]


def _legend(acts: Sequence[Act], scaled: Sequence[Scaled], scale: Scale) -> str:
    if all(act.look.kind == "crop" for act in acts):
        return ""  # nothing is painted
    if scale == "shared":
        return scaled[0].legend
    rule = "each panel's least … its own peak" if any(each.least for each in scaled) else "0 … each panel's own peak"
    if any(each.is_fixed for each in scaled):
        rule = f"masks are nearly even: all colours together are {SPAN:.0%} of what they multiply by"
    return f"{rule}; weights below 0 shown as 0" if any("below 0" in each.rule for each in scaled) else rule


def _caption(title: str, note: str, width: int) -> list[Line]:
    """Name and note of a panel, wrapped: under a narrow picture they need more than a line each."""
    bold, small = font(_TITLE, bold=True), font(LAYOUT.small)
    notes = [(line.removesuffix(" ·"), small, FAINT_INK) for line in wrap(note, small, width)]
    return [*((line, bold, INK) for line in wrap(title, bold, width)), *notes]


def _card(question: str, answer: str, width: int) -> list[list[Line]]:
    """Question and answer, each under its label, as tall as they need."""
    label, bold = font(LAYOUT.small), font(_TITLE, bold=True)
    return [
        [(name, label, FAINT_INK), *((line, bold, INK) for line in wrap(text, bold, width, 4))]
        for name, text in (("asked", question), ("answered", answer))
        if text.strip()
    ]


_PAD = 3
_Plate = tuple[float, float, float, float]


def nested_crops(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    said: Mapping[str, str] | None = None,
    opacity: float = 0.55,
    outline: Mark | Sequence[Mark] = (),
) -> Image.Image:
    """``picture`` with a frame round each crop of ``trace``; what lies in fewer crops is darker.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), see :attr:`saccade.trace.AttentionTrace.is_nested`.
        said: what stands at a frame, by the name of its look.
        opacity: how much is hidden of what no crop shows, 0 to 1.
        outline: evidence to draw on top, in pixels of ``picture``.
    """
    drawing = Drawing(picture, trace, enlarge, outline)
    inside = np.stack([drawing.map(act) for act in drawing.acts]).mean(0).astype(np.float32)  # (H,W)
    frames = [mark for act in drawing.acts for mark in drawing.marks(act)]
    image = drawing.outlined(let_through(drawing.shown, 1 - opacity * (1 - inside)))
    image = draw_marks(image, frames, image.size)
    plates: list[_Plate] = []
    for act, frame in zip(drawing.acts, frames):
        if isinstance(frame, Polygon):
            text = " ".join(filter(None, (act.title, (said or {}).get(act.look.name))))
            plates += _tag(image, frame, text, plates)
    return image


def _tag(image: Image.Image, frame: Polygon, text: str, taken: Sequence[_Plate]) -> list[_Plate]:
    """``text`` on a plate above the frame, else below it, else inside it; none where a picture has no room for it."""
    face = font(max(11, round(0.032 * max(image.size))))
    width, height = face.getlength(text) + 2 * _PAD, line_height(face) + _PAD
    (x, y), bottom = (min(axis) for axis in zip(*frame.points)), max(point[1] for point in frame.points)
    left = min(max(0.0, x), image.width - width)
    for top in (y - height, bottom, y):
        plate = (left, top, left + width, top + height)
        fits = left >= 0 and 0 <= top <= image.height - height
        if fits and all(x1 <= left or plate[2] <= x0 or y1 <= top or plate[3] <= y0 for x0, y0, x1, y1 in taken):
            pen = ImageDraw.Draw(image)
            pen.rectangle(plate, fill=PAPER)
            pen.text((left + _PAD, top + 1), text, INK, font=face)
            return [plate]
    return []


def contact_sheet(
    pictures: Sequence[PictureLike],
    captions: Sequence[str] = (),
    *,
    marks: Sequence[Sequence[Mark]] = (),
    columns: int = 6,
    panel: int = 200,
) -> Image.Image:
    """The ``pictures`` in rows, left to right.

    Args:
        pictures: at least one, of any sizes.
        captions: one per picture, or none at all; two lines each, then an ellipsis.
        marks: outlines per picture in its own pixels (evidence, boxes), or none at all.
        columns: pictures in a row.
        panel: longest side of a thumbnail in pixels; small pictures are enlarged by whole factors.
    """
    if not pictures:
        raise DataError("contact sheet: no pictures came; there is nothing to show")
    face = font(CONTACTS.small)
    panels = []
    for number, original in enumerate(map(as_picture, pictures)):
        thumb = draw_marks(fit_panel(original, panel), marks[number] if marks else (), original.size)
        lines = wrap(captions[number], face, panel, 2) if captions else []
        panels.append(Panel([thumb], [(line, face, INK) for line in lines]))
    return draw_sheet(panels, (panel, panel), min(columns, len(panels)), CONTACTS, room=panel, least_width=0)
