"""``saccade evaluate``: task metrics, attention metrics and baselines of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from saccade.cli.options import Beam, Device, Json, LengthPenalty, Quiet
from saccade.cli.terminal import bar, print_json, print_table

_OF_MODEL = "the model's own"
COLUMNS = 5
"""Scores side by side in one table: more do not fit a terminal of 80 characters."""


def evaluate(
    model: Annotated[str, typer.Argument(help="Zoo name, model folder or run folder.", metavar="MODEL|RUN")],
    data: Annotated[
        str | None, typer.Option("--data", help="A name or READER:PATH.", show_default="what the model was trained on")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="val or test.")] = "test",
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="unlimited or authors.", show_default=_OF_MODEL)
    ] = None,
    glyphs: Annotated[
        str | None, typer.Option("--glyphs", help="disjoint, merged or pack.", show_default=_OF_MODEL)
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", help="Only the first N examples.", min=1, show_default="all")
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    json: Json = False,
    device: Device = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Of the scenes it is scored on.", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Score a model; metrics are fractions in JSON and percent in the table.

    CIDEr-D goes from 0 to 10, times 100 in the table as papers print it; what is called _raw has units of its own.
    """
    import saccade

    with bar("scoring", limit, shown=not quiet and not json) as update:
        result = saccade.evaluate(
            model,
            data=data,
            split=split,
            protocol=protocol,
            glyphs=glyphs,
            limit=limit,
            beam=beam,
            length_penalty=length_penalty,
            device=device,
            seed=seed,
            progress=update,
        )
    if json:
        print_json(result)
    else:
        show(result)


def show(result: Mapping[str, Any]) -> None:
    """The result of an evaluation as tables: answers, attention, and both beside their baselines."""
    protocol = f" ({result['protocol']})" if result["protocol"] else ""
    title = f"{result['model']} on {result['data']} {result['split']}{protocol}, n {result['n']:,}"
    title += f", seed {result['seed']}" if result.get("seed") is not None else ""
    intervals = result.get("intervals", {})
    for heading, group in ((title, "metrics"), ("attention", "attention")):
        values = flat(result.get(group, {}))
        rows = [
            (name, plain(value), "–".join(map(plain, intervals.get(name) or ())))
            if _is_raw(name)
            else (name, percent(value), interval(intervals.get(name)))
            for name, value in values.items()
        ]
        if rows:
            print_table(heading, ("metric", "value", "95 % interval"), rows)
    for heading, group in (("answers", "metrics"), ("attention", "attention")):
        _show_beside(f"{heading} beside baselines and bounds", result.get(group, {}), result.get("baselines", {}))


def _show_beside(heading: str, model: Mapping[str, Any], baselines: Mapping[str, Mapping[str, Any]]) -> None:
    """The model's scores and those of the baselines, in tables of few columns for scores that the same ones have."""
    together: dict[tuple[str, ...], list[str]] = {}
    for score in model:
        holders = tuple(name for name, held in baselines.items() if _is_fraction(held.get(score)))
        if holders and _is_fraction(model[score]):
            together.setdefault(holders, []).append(score)
    for holders, scores in together.items():
        contenders = {"model": model, **{name: baselines[name] for name in holders}}
        for start in range(0, len(scores), COLUMNS):
            shown = scores[start : start + COLUMNS]
            rows = [
                (spaced(who), *(plain(held[score]) if _is_raw(score) else percent(held[score]) for score in shown))
                for who, held in contenders.items()
            ]
            print_table(heading, ("who", *map(spaced, shown)), rows)


def _is_raw(score: str) -> bool:
    """Whether a score is in units of its own, not a fraction."""
    return score.endswith("_raw")


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (int, float))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested groups as one level of dotted names.

    >>> flat({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        result |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return result


def spaced(name: str) -> str:
    """A name that can be wrapped in a narrow column."""
    return name.replace("_", " ")


def plain(value: float | None) -> str:
    """A number in units of its own.

    >>> plain(58.7412), plain(None)
    ('58.7', '–')
    """
    return "–" if value is None or value != value else f"{value:.3g}"


def percent(value: float | None) -> str:
    """A fraction as percent; nothing, or not-a-number, is a dash.

    >>> percent(0.5), percent(None)
    ('50.0%', '–')
    """
    return "–" if value is None or value != value else f"{value:.1%}"


def interval(bounds: Sequence[float | None] | None) -> str:
    """A pair of fractions in percent.

    >>> interval([0.25, 0.75])
    '25.0–75.0'
    """
    return (
        ""
        if bounds is None or None in bounds
        else "–".join(f"{100 * bound:.1f}" for bound in bounds if bound is not None)
    )
