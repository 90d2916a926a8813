"""What was said step by step, as one picture: a caption word by word, a multiset label by label.

A caption is the sentence, the picture, then a panel for every word. A panel shows where the model looked when it said
the word, smooth as in the paper (:mod:`saccade.show.colours`) or cell by cell. Below it stand a bar for the gate β, the
share of what was seen that went into the word, the word itself, how sure the model was of it, and the peak weight as
the model computed it, never the rescaled one.

A multiset is a row for each label: the saliency before, the covert mask, the priority map, the glimpses in order on the
picture, and the saliency after, darkened where attention has been (inhibition of return), then the label that was said.
The row in which the model said that nothing more is there comes last. Maps of one kind share one scale, so that rows
can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from saccade.show.acts import Act, Drawing, Scale
from saccade.show.colours import FAINT_INK, INK, by_own_peak, by_shared_peak, legend_bar, smooth
from saccade.show.overlay import Mark, PictureLike, Scanpath, draw_marks, fit_panel, paint
from saccade.show.sheet import BAR_HEIGHT, SHARE, Layout, Line, Panel, draw_sheet, elide, font, wrap
from saccade.trace import AttentionTrace, Look

WORD = "word"
"""What the look of a captioner is called."""
NOTHING_MORE = "nothing more"
HEADINGS = ("saliency before", "covert attention", "priority", "glimpses", "saliency after", "said")
_NAMES = ("saliency", "covert", "priority", "glimpse", "inhibited")
WORDS = Layout(gutter=14, between=15, below=12, above_legend=22, small=13)
LABELS = Layout(gutter=14, between=14, below=0, above_legend=28, small=13, legend_lower=1)
_TITLE, _BOLD, _SENTENCE, _LABEL = 15, 18, 26, 34


def has_words(trace: AttentionTrace) -> bool:
    """Whether the trace is one of a model that says a sentence word by word, as :func:`word_strip` draws it."""
    return any(look.name == WORD and look.has_steps and look.is_spatial for look in trace.looks)


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
    """The words of one caption, side by side.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), with a look called "word" that has a step for every word.
        words: what was said and how sure that was, in order; steps beyond them, such as the end, are not drawn.
        answer: the whole sentence.
        scale: each map by its "own" peak, or all by a "shared" one.
        cells: paint the model's cells flat instead of smooth.
        columns: panels in a row at most; rows are made equally long.
        panel: longest side of a panel in pixels.
    """
    drawing = Drawing(picture, trace, lambda original: fit_panel(original, panel))
    original, shown = drawing.original, drawing.shown
    look = drawing.trace.look(WORD)
    acts = [Act(look.step(step), step) for step in range(len(words))]
    maps = [drawing.map(act, cells=cells) for act in acts]
    if not cells:
        frames = map(drawing.frame, acts)
        maps = [smooth(own, (float(frame[0, 0]), float(frame[1, 1]))) for own, frame in zip(maps, frames)]
    scaled = by_shared_peak(maps) if scale == "shared" else [by_own_peak(values) for values in maps]
    widest = max((font(_BOLD, bold=True).getlength(word) for word, _ in words), default=0.0)
    column = max(shown.width, 110, min(round(widest + 0.5), 180))  # a word that is very long is cut
    panels = [Panel([shown], _under("", [f"{original.width} × {original.height} px"], column))]
    for act, colours, (word, share) in zip(acts, scaled, words):
        image = draw_marks(drawing.paint(colours.values), drawing.marks(act), shown.size)
        gate = None if act.look.gain is None else float(act.look.gain.float().mean())
        peak = float(act.look.weights.max()) if act.look.weights is not None else 0.0
        sure = f"p {share:.0%}" if gate is None else f"p {share:.0%} · β {gate:.2f}"
        panels.append(Panel([image], _under(word, [sure, f"peak {peak:.3f}"], column), share=gate))
    rows = -(-len(panels) // columns)
    top = "the peak of all panels" if scale == "shared" else "each panel's own peak"
    legend = [(legend_bar(120, 10), f"weight: 0 … {top}")]
    if any(panel.share is not None for panel in panels):
        bar = Image.new("RGB", (120, BAR_HEIGHT), SHARE)
        legend.append((bar, "gate β: how much of what is seen goes into the word"))
    head = [(answer, font(_SENTENCE, bold=True), INK)]
    per_row = -(-len(panels) // rows)
    return draw_sheet(panels, shown.size, per_row, WORDS, room=column, head=head, legend=legend, least_width=480)


def _under(word: str, notes: Sequence[str], room: int) -> list[Line]:
    """A word and notes in small print."""
    bold, small = font(_BOLD, bold=True), font(WORDS.small)
    title = [(elide(word, bold, room), bold, INK)] if word else []
    return [*title, *((elide(note, small, room), small, FAINT_INK) for note in notes)]


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
    """The steps of one example, one below the other.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), with the looks that :func:`has_glimpses` looks for.
        labels: what was said at each step and how sure that was; a step beyond them said that nothing more is there.
        answer: all of it in words.
        outline: evidence, drawn on the picture with the glimpses, in pixels of ``picture``.
        cells: paint the cells flat instead of smooth.
        panel: longest side of a panel in pixels.
    """
    drawing = Drawing(picture, trace, lambda original: fit_panel(original, panel), outline)
    trace, shown = drawing.trace, drawing.shown
    looks = {name: trace.look(name) for name in _NAMES}
    steps = _shown_steps(looks["covert"])

    def painted(*names: str) -> list[Image.Image]:
        """All steps of each look, by the peak that they have in common."""
        acts = [Act(looks[name].step(step), step) for name in names for step in steps]
        scaled = by_shared_peak([drawing.map(act, cells=cells) for act in acts])
        return [paint(shown, colours.values) for colours in scaled]

    saliency = painted("saliency", "inhibited")
    befores, afters, coverts, priorities = (
        saliency[: len(steps)], saliency[len(steps) :], painted("covert"), painted("priority"),
    )  # fmt: skip
    points = trace.chosen_on(looks["glimpse"], drawing.size).reshape(looks["covert"].steps, -1, 2)  # (T,k,2)
    paths = [Scanpath([(float(x), float(y)) for x, y in points[step]]) for step in steps]
    glimpses = [draw_marks(drawing.outlined(shown), [path], shown.size) for path in paths]

    said = [(word, f"{share:.0%} sure") for word, share in labels[: len(steps)]]
    title, bold, small = font(_TITLE), font(_LABEL, bold=True), font(LABELS.small)
    room = max(shown.width, 132)  # headings need room above a narrow picture
    last_room = round(max(title.getlength(NOTHING_MORE), *(bold.getlength(word[:12]) for word, _ in said), 0))
    panels = []
    for step, images in enumerate(zip(befores, coverts, priorities, glimpses, afters)):
        panels += [Panel([image]) for image in images]
        if step < len(said):
            word, sure = said[step]
            lines = [(line, bold, INK) for line in wrap(word, bold, last_room, 2)]
            panels.append(Panel([], lines, [[(sure, small, FAINT_INK)]]))
        else:
            panels.append(Panel([], [(line, title, FAINT_INK) for line in wrap(NOTHING_MORE, title, last_room, 2)]))
    heading = font(_TITLE, bold=True)
    return draw_sheet(
        panels,
        shown.size,
        len(HEADINGS),
        LABELS,
        room=room,
        last_room=last_room,
        head=[("read as", heading, FAINT_INK), (answer, bold, INK)] if answer.strip() else [],
        headings=[(name, heading, FAINT_INK) for name in HEADINGS],
        legend=[(legend_bar(120, 10), "weight: 0 … the peak of all maps of the same kind")],
    )


def _shown_steps(look: Look) -> list[int]:
    """The steps in which a label was said, and the one after them, in which nothing more was found."""
    if look.active is None:
        return list(range(look.steps))
    active = look.active.reshape(-1).bool().tolist()
    labelled = [step for step in range(look.steps) if active[step]]
    return labelled if all(active) else [*labelled, active.index(False)]
