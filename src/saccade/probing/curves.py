"""What a probe learns from less: from a part of the pictures, and from a few of each class, as tables and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from saccade.models.probe_heads import LINEAR
from saccade.probing.heads import ALL_TITLES
from saccade.probing.plan import SHOTS
from saccade.probing.rivals import ProbeResult
from saccade.show.report import Picture, Section
from saccade.show.tables import Row, Table, percent

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 240, 48, 150, 12, 44
_LIGHT, _DARK = ("#16191f", "#c2410c", "#0b5cd5"), ("#e7eaef", "#fb923c", "#6ea1f5")  # ink, linear, attention


def learning_section(result: ProbeResult) -> Section:
    """How much more pictures would help."""
    rows: list[Row] = [[name, *map(percent, curve)] for name, curve in _curves(result, "shares").items()]
    text = (
        "Test accuracy after learning from a part of the training pictures (first seed, mean over splits). Where it "
        "still rises between the last two columns, more pictures are likely to help."
    )
    columns = ["", *(f"{share:.0%}" for share in (*result.plan.shares, 1.0))]
    return Section("Would more pictures help?", text, [Table(columns, rows)])


def _curves(result: ProbeResult, parts: str) -> dict[str, list[float]]:
    """Title of the linear and of the kept head → accuracies after learning from each of the parts, then from all."""
    curves = {}
    for name in dict.fromkeys((LINEAR, result.kept)):
        trial = result.trials[name]
        by_part = [*getattr(trial, parts).values(), [seeds[0] for seeds in trial.test]]
        curves[ALL_TITLES[name]] = [sum(scores) / len(scores) for scores in by_part]
    return curves


def low_shot_section(result: ProbeResult) -> Section | None:
    """The curves of the linear head and the kept one; None where they were not asked for."""
    if not result.plan.shots:
        return None
    curves = _curves(result, "shots")
    columns = [*map(str, SHOTS), "all"]
    text = (
        "Test accuracy after learning from so many training pictures of each class (first seed, mean over splits), "
        "with the setting that is best for all of them. Features are standardised by all training pictures of a split."
    )
    alt = "a line for each row of the table below"
    drawn = Picture(_drawn(curves, columns, _LIGHT), alt=alt, dark=_drawn(curves, columns, _DARK))
    rows: list[Row] = [[name, *map(percent, curve)] for name, curve in curves.items()]
    return Section("How few pictures are enough?", text, [drawn, Table(["", *columns], rows)])


def _drawn(curves: Mapping[str, Sequence[float]], columns: Sequence[str], colours: Sequence[str]) -> str:
    """The curves as SVG, from 0 to 100 %."""
    ink, *lines = colours
    apart = (_WIDTH - _LEFT - _RIGHT) / (len(columns) - 1)
    across = [round(_LEFT + 8 + apart * place, 1) for place in range(len(columns))]

    def down(share: float) -> float:
        return round(_TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM), 1)

    def words(x: float, y: float, text: str, anchor: str, fill: str = ink) -> str:
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'

    parts = []
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<path d="M{_LEFT} {down(share)}H{across[-1]}" stroke="{ink}" stroke-opacity="0.25"/>')
        parts.append(words(_LEFT - 6, down(share) + 4, f"{share:.0%}", "end"))
    parts += [words(x, _HEIGHT - _BOTTOM + 18, word, "middle") for x, word in zip(across, columns)]
    parts.append(words(across[len(across) // 2], _HEIGHT - 6, "training pictures of each class", "middle"))
    last, lowest = sorted(curves.items(), key=lambda pair: -pair[1][-1]), 0.0
    for name, curve in last:  # from above, so that no name stands on another
        colour = lines[[*curves].index(name)]
        points = " ".join(f"{x},{down(share)}" for x, share in zip(across, curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lowest = max(down(curve[-1]) + 4, lowest + 16)
        parts.append(words(across[-1] + 8, lowest, name, "start", colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif"'
    return f'{head} font-size="12" viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(parts)}</svg>'
