"""The looks of one example as one picture: side by side, word by word, or label by label; and contact sheets.

A filmstrip has a column for each look, the total last: the overlay, the attended image (for a crop: what was cut out),
the name of the act and its raw peak weight.

A caption is the picture, then a panel for every word, with a bar for the gate β, the word, its confidence and the peak
weight.

A multiset has a row for each label: the saliency before, the covert mask, the priority map, the glimpses in order, the
saliency after, and the label. The row in which the model found nothing more comes last. Maps of one kind share one
scale, so that rows can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from PIL import Image

from saccade.data.causal.photographs.format import CHANGES, Photograph
from saccade.errors import DataError
from saccade.show.acts import Drawing, DrawnAct
from saccade.show.colours import (
    FAINT_INK,
    INK,
    SPAN,
    Scaled,
    Values,
    by_own_ends,
    by_own_peak,
    by_shared_peak,
    legend_bar,
    smooth,
)
from saccade.show.overlay import (
    Mark,
    Mask,
    PictureLike,
    Scanpath,
    as_picture,
    draw_marks,
    fit_panel,
    let_through,
    paint,
)
from saccade.show.sheet import BAR_HEIGHT, SHARE, Layout, Line, Panel, draw_sheet, elide, font, line_height, wrap
from saccade.trace import AttentionTrace, Look

Scale = Literal["own", "shared"]  # Each map by its own peak, or all by the one that they share.
Captions = Mapping[str, str | Sequence[str]]

LAYOUT = Layout(gutter=18, between=36, below=8, above_legend=line_height(font(14)), small=14)
CONTACTS = Layout(gutter=18, between=18, below=6, above_legend=0, small=14)
WORDS = Layout(gutter=14, between=15, below=12, above_legend=22, small=13)
LABELS = Layout(gutter=14, between=14, below=0, above_legend=28, small=13, legend_lower=1)
WORD = "word"  # What the look of a captioner is called.
NOTHING_MORE = "nothing more"
HEADINGS = ("saliency before", "covert attention", "priority", "glimpses", "saliency after", "said")
_NAMES = ("saliency", "covert", "priority", "glimpse", "inhibited")


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
        trace: of one example (``trace[i]``); looks on slots are drawn by :func:`slot_table` instead.
        question: shown with the answer under the picture.
        answer: in words.
        whole: title of the first panel, the whole picture.
        captions: titles by look name, one text or one per step.
        outline: evidence, in pixels of ``picture``.
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
    totals = [drawing.trace.image_map("total", drawing.size)] if has_total else []
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
    label, bold = font(LAYOUT.small), font(16, bold=True)

    def caption(title: str, note: str) -> list[Line]:
        notes = [(line.removesuffix(" ·"), label, FAINT_INK) for line in wrap(note, label, room)]
        return [*((line, bold, INK) for line in wrap(title, bold, room)), *notes]

    cards = [
        [(name, label, FAINT_INK), *((line, bold, INK) for line in wrap(text, bold, room, 4))]
        for name, text in (("asked", question), ("answered", answer))
        if text.strip()
    ]
    strip = [Panel([first], caption(whole, f"{drawing.original.width} × {drawing.original.height} px"), cards)]
    for act, weights, colours in zip(acts, maps, scaled):
        images, note = _act_images(drawing, act, colours.values)
        note = f"least {float(weights.min()):.3f} · {note}" if colours.least else note
        strip.append(Panel(images, caption(_title(act, captions or {}), note)))
    for colours in scaled[len(acts) :]:
        images = [drawing.paint(colours.values), let_through(shown, colours.values)]
        strip.append(Panel(images, caption("total", _total_in_words(trace))))
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


def _act_images(drawing: Drawing, act: DrawnAct, values: Values) -> tuple[list[Image.Image], str]:
    if act.look.kind == "crop":  # its map is its box: dim what lies outside rather than tint what lies inside
        upper, lower = drawing.outlined(let_through(drawing.shown, 0.35 + 0.65 * values)), drawing.crop(act)
        note = f"crop, {values.mean():.0%} of the picture"
    else:
        upper, lower = drawing.paint(values), let_through(drawing.shown, values)
        note = act.note
    return [draw_marks(upper, drawing.marks(act), drawing.shown.size), lower], note


def _title(act: DrawnAct, captions: Captions) -> str:
    text = captions.get(act.look.name)
    if text is None:
        return act.title
    if isinstance(text, str):
        return text if act.step is None else f"{text} {act.step + 1}"
    return text[act.step or 0]


def _legend(acts: Sequence[DrawnAct], scaled: Sequence[Scaled], scale: Scale) -> str:
    if all(act.look.kind == "crop" for act in acts):
        return ""  # nothing is painted
    if scale == "shared":
        return scaled[0].legend
    rule = "each panel's least … its own peak" if any(panel.least for panel in scaled) else "0 … each panel's own peak"
    if any(panel.is_fixed for panel in scaled):
        rule = f"masks are nearly even: all colours together are {SPAN:.0%} of what they multiply by"
    return f"{rule}; weights below 0 shown as 0" if any("below 0" in panel.rule for panel in scaled) else rule


def word_strip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    words: Sequence[tuple[str, float]],
    answer: str = "",
    scale: Scale = "own",
    cells: bool = False,
    columns: int = 7,
    panel: int = 200,
) -> Image.Image:
    """The words of one caption, side by side; other arguments as in :func:`filmstrip`.

    ``trace`` has a look called "word" with a step for every word. ``words`` are the words with their confidences, in
    order; steps beyond them, such as the end, are not drawn.
    """
    drawing = Drawing(picture, trace, lambda original: fit_panel(original, panel))
    original, shown = drawing.original, drawing.shown
    look = drawing.trace.look(WORD)
    acts = [DrawnAct(look.step(step), step) for step in range(len(words))]
    maps = [drawing.map(act, cells=cells) for act in acts]
    if not cells:
        frames = map(drawing.frame, acts)
        maps = [smooth(weights, (float(frame[0, 0]), float(frame[1, 1]))) for weights, frame in zip(maps, frames)]
    scaled = by_shared_peak(maps) if scale == "shared" else [by_own_peak(values) for values in maps]
    bold, small = font(18, bold=True), font(WORDS.small)
    widest = max((bold.getlength(word) for word, _ in words), default=0.0)
    room = max(shown.width, 110, min(round(widest + 0.5), 180))  # a word that is very long is cut
    panels = [Panel([shown], [(elide(f"{original.width} × {original.height} px", small, room), small, FAINT_INK)])]
    for act, colours, (word, share) in zip(acts, scaled, words):
        image = draw_marks(drawing.paint(colours.values), drawing.marks(act), shown.size)
        gate = None if act.look.gain is None else float(act.look.gain.float().mean())
        peak = float(act.look.weights.max()) if act.look.weights is not None else 0.0
        sure = f"p {share:.0%}" if gate is None else f"p {share:.0%} · β {gate:.2f}"
        notes = [(elide(note, small, room), small, FAINT_INK) for note in (sure, f"peak {peak:.3f}")]
        panels.append(Panel([image], [*([(elide(word, bold, room), bold, INK)] if word else []), *notes], share=gate))
    rows = -(-len(panels) // columns)
    top = "the peak of all panels" if scale == "shared" else "each panel's own peak"
    legend = [(legend_bar(120, 10), f"weight: 0 … {top}")]
    if any(panel.share is not None for panel in panels):
        bar = Image.new("RGB", (120, BAR_HEIGHT), SHARE)
        legend.append((bar, "gate β: how much of what is seen goes into the word"))
    head = [(answer, font(26, bold=True), INK)]
    per_row = -(-len(panels) // rows)
    return draw_sheet(panels, shown.size, per_row, WORDS, room=room, head=head, legend=legend, least_width=480)


def has_words(trace: AttentionTrace) -> bool:
    """Whether the trace is one of a model that says a sentence word by word, as :func:`word_strip` draws it."""
    return any(look.name == WORD and look.has_steps and look.is_spatial for look in trace.looks)


def has_glimpses(trace: AttentionTrace) -> bool:
    """Whether the trace is one of a model that reads a picture label by label, as :func:`glimpse_strip` draws it."""
    return set(_NAMES) <= {look.name for look in trace.looks}


def glimpse_strip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    labels: Sequence[tuple[str, float]] = (),
    answer: str = "",
    outline: Mark | Sequence[Mark] = (),
    cells: bool = False,
    panel: int = 200,
) -> Image.Image:
    """The steps of one example, one below the other; other arguments as in :func:`filmstrip`.

    ``labels`` are the labels of the steps with their confidences; a step beyond them found nothing more. Evidence is
    drawn with the glimpses.
    """
    drawing = Drawing(picture, trace, lambda original: fit_panel(original, panel), outline)
    trace, shown = drawing.trace, drawing.shown
    looks = {name: trace.look(name) for name in _NAMES}
    steps = _shown_steps(looks["covert"])

    def painted(*names: str) -> list[Image.Image]:
        acts = [DrawnAct(looks[name].step(step), step) for name in names for step in steps]
        scaled = by_shared_peak([drawing.map(act, cells=cells) for act in acts])
        return [paint(shown, colours.values) for colours in scaled]

    saliency = painted("saliency", "inhibited")
    points = trace.chosen_on(looks["glimpse"], drawing.size).reshape(looks["covert"].steps, -1, 2)  # (T,k,2)
    paths = [Scanpath([(x, y) for x, y in points[step].tolist()]) for step in steps]
    glimpses = [draw_marks(drawing.outlined(shown), [path], shown.size) for path in paths]
    columns = saliency[: len(steps)], painted("covert"), painted("priority"), glimpses, saliency[len(steps) :]

    readings = [(word, f"{share:.0%} sure") for word, share in labels[: len(steps)]]
    title, bold, small, heading = font(15), font(34, bold=True), font(LABELS.small), font(15, bold=True)
    last_room = round(max(title.getlength(NOTHING_MORE), *(bold.getlength(word[:12]) for word, _ in readings), 0))
    panels = []
    for step, images in enumerate(zip(*columns)):
        panels += [Panel([image]) for image in images]
        if step < len(readings):
            word, sure = readings[step]
            lines = [(line, bold, INK) for line in wrap(word, bold, last_room, 2)]
            panels.append(Panel([], lines, [[(sure, small, FAINT_INK)]]))
        else:
            panels.append(Panel([], [(line, title, FAINT_INK) for line in wrap(NOTHING_MORE, title, last_room, 2)]))
    return draw_sheet(
        panels,
        shown.size,
        len(HEADINGS),
        LABELS,
        room=max(shown.width, 132),  # headings need room above a narrow picture
        last_room=last_room,
        head=[("read as", heading, FAINT_INK), (answer, bold, INK)] if answer.strip() else [],
        headings=[(name, heading, FAINT_INK) for name in HEADINGS],
        legend=[(legend_bar(120, 10), "weight: 0 … the peak of all maps of the same kind")],
    )


def _shown_steps(look: Look) -> list[int]:
    """The steps that name a label, and the one after them, which found nothing more."""
    if look.active is None:
        return list(range(look.steps))
    active = look.active.reshape(-1).bool().tolist()
    labelled = [step for step in range(look.steps) if active[step]]
    return labelled if all(active) else [*labelled, active.index(False)]


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


def twin_sheet(photographs: Iterable[Photograph], *, panel: int = 200) -> Image.Image:
    """A row for each photograph, its target outlined; a twin that could not be made leaves its place empty."""
    rows = list(photographs)
    changes = {name: CHANGES.index(twin.change) for row in rows for name, twin in row.twins.items()}
    names = sorted(changes, key=lambda name: (changes[name], name))
    pictures, captions, marks = [], [], list[list[Mark]]()
    for photograph in rows:
        target = photograph.objects[photograph.target]
        pictures.append(Image.fromarray(photograph.image))
        captions.append(f"{photograph.id} {photograph.label or ''} {target.share:.0%} {photograph.name}")
        marks.append([Mask(photograph.masks[photograph.target])])
        for name in names:
            twin = photograph.twins.get(name)
            called = photograph.objects[twin.object].name if twin is not None and twin.object is not None else None
            pictures.append(Image.new("RGB", (1, 1), "white") if twin is None else Image.fromarray(twin.image))
            captions.append(f"no {name}" if twin is None else f"{name} {called or ''}")
            marks.append([])
    return contact_sheet(pictures, captions, marks=marks, columns=len(names) + 1, panel=panel)
