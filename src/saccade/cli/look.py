"""``saccade look``: ask a model about pictures or stories and see where it looked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import bar, places, print_json, print_slots, print_table, remark, warn
from saccade.data.files import plural, skipped_files
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from saccade.sighting import Sighting

ROWS_SHOWN = 40
TABLES_SHOWN = 3
KINDS_NAMED = 6
PHOTOGRAPHS = ("HEIC", "HEIF", "AVIF", "JXL", "DNG", "CR2", "NEF", "ARW")
"""Photographs that Pillow does not read, or not everywhere."""
WARNED = 20
"""Different remarks about inputs that are printed; --json has all."""
OF_ROWS = ("engine", "address", "actors", "part", "maps", "side", "resume")
"""Arguments of ``saccade.look_folder``, which writes rows."""


@command_of(
    "saccade.verbs.look:look",
    {
        "sources": Typed("PATH", many=True, unset="none"),
        "model": Typed("-m", shows="MODEL"),
        "out": Typed("-o", shows="PATH"),
        "filmstrip": Typed("--filmstrip/--overlay"),
        "layers": Typed(shows="LAYERS", rare=True),
        "batch_size": Typed("--batch-size --batch"),
        "engine": Typed(unset="pictures and records"),
        "address": RARE,
        "actors": RARE,
        "part": RARE,
        "maps": RARE,
        "side": Typed("--map-side", rare=True),
        "resume": RARE,
        "cells": RARE,
        "parquet": RARE,
        "captions": RARE,
        "length_penalty": RARE,
        "rollout": RARE,
        "offline": RARE,
    },
    also="saccade.adapters.folder:look_folder",
    example="""
        saccade look --example digits --ask 7
        saccade look photos/ --model crown-cub --ask wing --out looks
    """,
)
def look(
    given: Given,
    example: Annotated[
        str | None,
        typer.Option("--example", metavar="NAME", help="A shipped picture; 'list' names them.", show_default="none"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at each picture as it comes, print what was seen, and say what could not be read."""
    import saccade
    from saccade.devices import wake_cuda
    from saccade.errors import DataError

    if example == "list":
        _list_examples(json)
        return
    paths = _wanted(given.pop("sources") or [], example)
    of_rows = {name: given.pop(name) for name in OF_ROWS}
    model, place = given.pop("model"), given.pop("out")
    given["layers"] = None if given["layers"] is None else layers_of(given["layers"])
    if of_rows["engine"] is not None:
        _look_rows(paths, model, place, given, of_rows, json=json, quiet=quiet)
        return
    if any(of_rows[name] for name in ("address", "actors", "resume")):
        raise ConfigError("`address`, `actors` and `resume` go with `engine`; add `engine=local` or ray")
    if given.pop("offline"):
        from saccade.backbones.hub import work_offline

        work_offline()
    device, ask, out = given.pop("device"), given.pop("ask"), None if place is None else Path(place)
    wake_cuda(device)  # before torch is imported, which takes a second
    predictor = saccade.load(model, device)
    from saccade.checks import check_numbers
    from saccade.verbs.looking.stream import stream_looks

    check_numbers(least=1, batch_size=given["batch_size"], beam=given["beam"], captions=given["captions"])
    passed_over = skipped_files(paths, predictor.reads.suffixes)
    if passed_over and any(kind in PHOTOGRAPHS for kind in passed_over):
        warn(_left_out(passed_over, predictor.reads.thing))
    elif passed_over and not quiet and not json:
        remark(_left_out(passed_over, predictor.reads.thing))
    files = predictor.reads.find(paths)
    rows: list[tuple[object, ...]] = []
    tables: list[Sighting] = []
    ways: list[Sighting] = []
    answered, told, skipped, only_error = 0, 0, 0, ""
    unlike = 0
    remarks: dict[str, list[str]] = {}

    def skip(source: object, error: DataError) -> None:
        nonlocal skipped, only_error
        skipped, only_error = skipped + 1, str(error)
        if len(files) > 1:  # one picture alone ends in the error line
            warn(f"skipped: {error}")
        if json:
            key = "source" if predictor.facts.preprocessing is None else "picture"  # as in an answer
            print_json({key: str(source), "error": str(error)}, indent=None)

    sightings = stream_looks(predictor, files, ask, out=out, on_bad=skip, **given)
    with bar("looking", len(files), shown=not quiet and not json and len(files) > 1) as update:
        for seen in sightings:
            if json:
                print_json(seen.to_json(), indent=None)
            for text in seen.remarks:
                remarks.setdefault(text, []).append(seen.source.name)
            tables += [seen] if not seen.is_spatial and len(tables) < TABLES_SHOWN else []
            ways += [seen] if seen.on_the_way and len(ways) < ROWS_SHOWN else []
            made = _rows(seen)
            rows += made[: max(0, ROWS_SHOWN - len(rows))]  # of a hundred thousand, those that are shown
            answered, told = answered + 1, told + len(made)
            unlike += bool(seen.unlike)
            update(answered + skipped, len(files))
    if not rows:
        none = f"none of the {skipped} {plural(predictor.reads.thing)} could be read; see the lines above"
        raise DataError(only_error if skipped == 1 else none)
    if not json:
        looked_at = "looked at x, y" if predictor.facts.preprocessing is not None else "looked at"
        columns = (predictor.reads.thing, "asked", "answer", "confidence", "next best", looked_at, "fit (p)")
        used = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
        short = _short_names([*(str(row[0]) for row in rows), *(seen.source.name for seen in (*ways, *tables)),
                              *(name for names in remarks.values() for name in names[:1])])  # fmt: skip
        shown = [[short[str(row[0])] if place == 0 else row[place] for place in used] for row in rows]
        print_table(f"{predictor.name} ({predictor.facts.architecture})", [columns[place] for place in used], shown)
        if ways:
            _print_ways(predictor.reads.thing, ways, short)
        for seen in tables:
            print_slots(f"{short[seen.source.name]}: {seen.question or ''} → {seen.answer}", seen.slot_grid)
        _warn_of(remarks, answered, predictor.reads.thing, short)
        if unlike:
            warn(predictor.of_unlike(unlike, answered))
    if not quiet and not json:
        _remarks(told, answered, skipped, out)
        for text in predictor.caveats:
            remark(text)


def _look_rows(
    paths: list[str], model: str, out: str | None, given: Given, of_rows: Given, *, json: bool, quiet: bool
) -> None:
    """Write rows in place of pictures and records."""
    from saccade.cli.look_rows import look_rows

    for_pictures = {name: given.pop(name) for name in ("offline", "cells", "filmstrip", "parquet")}
    if any(value not in (None, False) for value in for_pictures.values()) or for_pictures["filmstrip"] is not None:
        raise ConfigError(
            "`offline`, `cells`, `parquet`, `filmstrip=True` and `filmstrip=False` are not for `engine`; leave them out"
        )
    look_rows(paths, model, out, given | of_rows, json=json, quiet=quiet)


def _wanted(paths: list[str], example: str | None) -> list[str]:
    """What is to be looked at: the paths, and the picture that ships."""
    from saccade.data.gallery import EXAMPLES
    from saccade.data.gallery import example as shipped
    from saccade.errors import DataError

    wanted = [*paths, *([] if example is None else [str(shipped(example))])]
    if not wanted:
        raise DataError(f"nothing to look at: name pictures or stories, or --example with one of {', '.join(EXAMPLES)}")
    return wanted


def _list_examples(json: bool) -> None:
    """The pictures that ship with saccade."""
    from saccade.data.gallery import EXAMPLES

    if json:
        print_json({name: {**asdict(each), "path": str(each.path)} for name, each in EXAMPLES.items()})
        return
    rows = [(name, each.shows, each.ask or None, each.credit) for name, each in EXAMPLES.items()]
    print_table("examples", ("name", "what", "--ask", "author and licence"), rows)


def _rows(seen: Sighting) -> list[tuple[object, ...]]:
    """A row for the answer; of captions one for each, as each has words of its own."""
    if seen.is_caption:
        return [
            (seen.source.name, None, each.answer, f"{each.confidence:.1%}", None, None, _fit(seen))
            for each in (seen, *seen.others)
        ]
    second = f"{seen.alternatives[0][0]} {seen.alternatives[0][1]:.1%}" if seen.alternatives else None
    looked_at = places(seen.looked_at) if seen.looked_at else seen.top_slot
    said = (seen.answer, f"{seen.confidence:.1%}") if seen.is_answered else (None, None)
    return [(seen.source.name, seen.question, *said, second, looked_at, _fit(seen))]


def _fit(seen: Sighting) -> str:
    """Whether the input is like those that the model learned from, and its p-value."""
    return seen.fit.verdict if seen.fit.p is None else f"{seen.fit.verdict} ({seen.fit.p:.2g})"


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Each file, named from the folder that all of them are in: a terminal has no room for more."""
    files = {name: Path(name) for name in names}
    try:
        shared = os.path.commonpath([file.parent for file in files.values()])
    except ValueError:  # on several drives, or some absolute and some not
        return {name: name for name in files}
    return {name: str(file.relative_to(shared)) for name, file in files.items()}


def _print_ways(thing: str, ways: Sequence[Sighting], short: Mapping[str, str]) -> None:
    """What was said before all was seen, beside the answer: a row for each input."""
    names = [name for name, _, _ in ways[0].on_the_way]
    rows = [
        [short[seen.source.name], *(f"{answer} {share:.0%}" for _, answer, share in seen.on_the_way), seen.answer]
        for seen in ways
    ]
    print_table("what each step says", (thing, *names, "all together"), rows)


def layers_of(text: str) -> str | list[int]:
    """Layers as ``trace_of`` takes them, of what the user wrote.

    >>> layers_of("last"), layers_of("1,6,-1")
    ('last', [1, 6, -1])
    """
    if text in ("last", "all"):
        return text
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"layers: expected last, all, or numbers as 1,6,12, found '{text}'") from error


def _warn_of(remarks: dict[str, list[str]], answered: int, thing: str, short: Mapping[str, str]) -> None:
    """What to know about some inputs: each remark once, with the name of its input or with a count."""
    for text, names in list(remarks.items())[:WARNED]:
        who = short[names[0]] if len(names) == 1 else f"{len(names):,} of {answered:,} {plural(thing)}"
        warn(f"{who}: {text}")
    if len(remarks) > WARNED:
        warn(f"… and {len(remarks) - WARNED:,} other remarks; --json prints them all")


def _left_out(kinds: Counter[str], thing: str) -> str:
    """What of the folders is not looked at, counted by kind, and what to do about photographs among it."""
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(KINDS_NAMED))
    rest = sum(kinds.values()) - sum(count for _, count in kinds.most_common(KINDS_NAMED))
    cure = [kind for kind in PHOTOGRAPHS if kind in kinds]
    many = sum(kinds.values())
    told = f"left out {many} file{'s' * (many != 1)} of other kinds: {named}" + (f" and {rest} others" if rest else "")
    return told + (f"; save {' and '.join(cure)} as JPEG or PNG to look at them" if cure and thing == "picture" else "")


def _remarks(rows: int, answered: int, skipped: int, out: Path | None) -> None:
    if rows > ROWS_SHOWN:
        remark(f"… and {rows - ROWS_SHOWN} more; --json prints them all")
    if skipped:
        remark(f"{answered} answered, {skipped} skipped because they could not be read")
    kept = "pictures, records and one table of all (looks.csv)" if answered > 1 else "pictures and records"
    remark(f"{kept} are in {out}" if out is not None else "--out DIR keeps pictures and records")
