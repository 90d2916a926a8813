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

from saccade import geometry
from saccade.show import acts as drawing
from saccade.show.colours import (
    FAINT_INK,
    INK,
    Values,
    by_own_peak,
    by_shared_peak,
    legend_bar,
    smooth,
)
from saccade.show.overlay import (
    OPACITY,
    Mark,
    PictureLike,
    Scanpath,
    as_marks,
    as_picture,
    draw_marks,
    fit_panel,
    paint,
)
from saccade.show.sheet import AFTER_BAR, BAR_HEIGHT, MARGIN, SHARE, Layout, Line, Panel, draw_sheet, elide, font, wrap
from saccade.trace import AttentionTrace, Look

WORD = "word"
"""What the look of a captioner is called."""
COLUMNS = 7
NOTHING_MORE = "nothing more"
HEADINGS = ("saliency before", "covert attention", "priority", "glimpses", "saliency after", "said")
_NAMES = ("saliency", "covert", "priority", "glimpse", "inhibited")
WORDS = Layout(gutter=14, between=15, below=12, above_legend=22, small=13)
LABELS = Layout(gutter=14, between=14, below=0, above_legend=28, small=13, legend_lower=1)
_LEAST_WIDTH = 480
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
    evidence: Sequence[Mark | None] = (),
    scale: drawing.Scale = "own",
    cells: bool = False,
    opacity: float = OPACITY,
    columns: int = COLUMNS,
    panel: int = 200,
) -> Image.Image:
    """The words of one caption, side by side.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), with a look called "word" that has a step for every word.
        words: what was said and how sure that was, in order; steps beyond them, such as the end, are not drawn.
        answer: the whole sentence.
        evidence: for each word where it is to be seen, drawn on its panel in pixels of ``picture``; None for nowhere.
        scale: each map by its "own" peak, or all by a "shared" one.
        cells: paint the model's cells flat instead of smooth.
        opacity: how much of the picture the peak hides.
        columns: panels in a row at most; rows are made equally long.
        panel: longest side of a panel in pixels.
    """
    original = as_picture(picture)
    shown = fit_panel(original, panel)
    trace = drawing.one_example(trace, (original.height, original.width))
    look = trace.look(WORD)
    acts = [drawing.Act(look.step(step), step) for step in range(len(words))]
    maps = [_map(trace, act, shown, cells=cells) for act in acts]
    scaled = by_shared_peak(maps) if drawing.is_shared(scale) else [by_own_peak(each) for each in maps]
    column = _column_width([word for word, _ in words], shown.width)
    panels = [Panel([shown], _under("", [f"{original.width} × {original.height} px"], column))]
    for number, (act, each, (word, share)) in enumerate(zip(acts, scaled, words)):
        image = paint(shown, each.values, opacity)
        mark = evidence[number] if number < len(evidence) else None
        image = draw_marks(image, [] if mark is None else [mark], original.size)
        image = draw_marks(image, drawing.act_marks(trace, act, (shown.height, shown.width)), shown.size)
        gate = None if act.look.gain is None else float(act.look.gain.float().mean())
        peak = float(act.look.weights.max()) if act.look.weights is not None else 0.0
        sure = f"p {share:.0%}" if gate is None else f"p {share:.0%} · β {gate:.2f}"
        panels.append(Panel([image], _under(word, [sure, f"peak {peak:.3f}"], column), share=gate))
    rows = -(-len(panels) // columns)
    per_row = -(-len(panels) // rows)
    top = "the peak of all panels" if drawing.is_shared(scale) else "each panel's own peak"
    legend = [(legend_bar(120, 10), f"weight: 0 … {top}")]
    if any(panel.share is not None for panel in panels):
        bar = Image.new("RGB", (120, BAR_HEIGHT), SHARE)
        legend.append((bar, "gate β: how much of what is seen goes into the word"))
    legend_width = max(bar.width + AFTER_BAR + font(WORDS.small).getlength(text) for bar, text in legend)
    across = max(per_row * (column + WORDS.gutter) - WORDS.gutter, round(legend_width + 0.5), _LEAST_WIDTH - 2 * MARGIN)
    bold = font(_SENTENCE, bold=True)
    head = [(line, bold, INK) for line in wrap(answer, bold, across, 3)]
    width = across + 2 * MARGIN  # a single word is narrower than its legend
    return draw_sheet(panels, shown.size, per_row, WORDS, room=column, head=head, legend=legend, least_width=width)


def _column_width(words: Sequence[str], picture: int) -> int:
    """Under a narrow picture words and notes need room; a word that is very long is cut."""
    widest = max((font(_BOLD, bold=True).getlength(word) for word in words), default=0.0)
    return max(picture, 110, min(round(widest + 0.5), 180))


def _under(word: str, notes: Sequence[str], room: int) -> list[Line]:
    """A word and notes in small print."""
    bold, small = font(_BOLD, bold=True), font(WORDS.small)
    said = [(elide(word, bold, room), bold, INK)] if word else []
    return [*said, *((elide(note, small, room), small, FAINT_INK) for note in notes)]


def _map(trace: AttentionTrace, act: drawing.Act, shown: Image.Image, *, cells: bool) -> Values:
    size = (shown.height, shown.width)
    values = drawing.act_map(trace, act, size, cells=cells)  # (H,W)
    if cells:
        return values
    frame = trace.frame_on(act.look, size).reshape(2, 3)
    return smooth(values, (float(frame[0, 0]), float(frame[1, 1])))


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
    opacity: float = OPACITY,
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
        opacity: how much of the picture the peak of a map hides.
        panel: longest side of a panel in pixels.
    """
    original = as_picture(picture)
    shown = fit_panel(original, panel)
    trace = drawing.one_example(trace, (original.height, original.width))
    looks = {name: trace.look(name) for name in _NAMES}
    steps = _shown_steps(looks["covert"])
    saliency = _maps(trace, [looks["saliency"], looks["inhibited"]], steps, shown, cells=cells)
    befores, afters = saliency[: len(steps)], saliency[len(steps) :]
    coverts, priorities = (_maps(trace, [looks[name]], steps, shown, cells=cells) for name in ("covert", "priority"))
    evidence = draw_marks(shown, as_marks(outline), original.size)
    room = max(shown.width, 132)  # headings need room above a narrow picture
    spoken = [(word, f"{share:.0%} sure") for word, share in labels[: len(steps)]]
    title, bold = font(_TITLE), font(_LABEL, bold=True)
    lengths = [title.getlength(NOTHING_MORE), *(bold.getlength(word[:12]) for word, _ in spoken)]
    last_room = round(max(lengths))
    panels = []
    for place, step in enumerate(steps):
        maps = (befores[place], coverts[place], priorities[place], afters[place])
        before, covert, priority, after = (paint(shown, each, opacity) for each in maps)
        path = _scanpath(trace, looks["glimpse"], step, looks["covert"].steps, (shown.height, shown.width))
        glimpsed = draw_marks(evidence, [path], shown.size)
        panels += [Panel([image]) for image in (before, covert, priority, glimpsed, after)]
        panels.append(_spoken(*spoken[place], last_room) if place < len(spoken) else _nothing_more(last_room))
    heading = font(_TITLE, bold=True)
    width = len(_NAMES) * (room + LABELS.gutter) + last_room
    head = [("read as", heading, FAINT_INK), (elide(answer, bold, width), bold, INK)] if answer.strip() else []
    return draw_sheet(
        panels,
        shown.size,
        len(HEADINGS),
        LABELS,
        room=room,
        last_room=last_room,
        head=head,
        headings=[(name, heading, FAINT_INK) for name in HEADINGS],
        legend=[(legend_bar(120, 10), "weight: 0 … the peak of all maps of the same kind")],
    )


def _spoken(word: str, note: str, room: int) -> Panel:
    """What was said in a row, large, with how sure that was."""
    face = font(_LABEL, bold=True)
    said = [(line, face, INK) for line in wrap(word, face, room, 2)]
    return Panel([], said, [[(note, font(LABELS.small), FAINT_INK)]])


def _nothing_more(room: int) -> Panel:
    face = font(_TITLE)
    return Panel([], [(line, face, FAINT_INK) for line in wrap(NOTHING_MORE, face, room, 2)])


def _shown_steps(look: Look) -> list[int]:
    """The steps in which a label was said, and the one after them, in which nothing more was found."""
    if look.active is None:
        return list(range(look.steps))
    active = look.active.reshape(-1).bool().tolist()
    labelled = [step for step in range(look.steps) if active[step]]
    return labelled if all(active) else [*labelled, active.index(False)]


def _maps(
    trace: AttentionTrace, looks: Sequence[Look], steps: Sequence[int], shown: Image.Image, *, cells: bool
) -> list[Values]:
    """The maps of all looks and steps over the picture, look by look, by the peak that they have in common."""
    size = (shown.height, shown.width)
    acts = [drawing.Act(look.step(step), step) for look in looks for step in steps]
    return [each.values for each in by_shared_peak([drawing.act_map(trace, act, size, cells=cells) for act in acts])]


def _scanpath(trace: AttentionTrace, look: Look, step: int, steps: int, size: geometry.Size) -> Scanpath:
    """Where the glimpses of one step fell on the picture shown at ``size``; they follow each other step by step."""
    points = trace.chosen_on(look, size).reshape(steps, -1, 2)[step]  # (k,2)
    return Scanpath([(float(x), float(y)) for x, y in points])
