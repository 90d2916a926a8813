"""``saccade look``: ask a model about pictures or stories and see where it looked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saccade.cli.options import Ask, Beam, Device, Json, LengthPenalty, OutFolder, Quiet
from saccade.cli.terminal import bar, places, print_json, print_slots, print_table, remark, warn
from saccade.data.files import several

if TYPE_CHECKING:
    from saccade.sighting import Sighting

ROWS_SHOWN = 40
TABLES_SHOWN = 3


def look(
    paths: Annotated[
        list[str],
        typer.Argument(help="Pictures or stories (.txt), folders of them, or globs.", metavar="PATH…"),
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", help="Zoo name, model folder, run or hf://USER/NAME.")
    ] = "soft-mref",
    ask: Ask = None,
    out: OutFolder = None,
    filmstrip: Annotated[
        bool | None,
        typer.Option(
            "--filmstrip/--overlay",
            help="Save every look side by side, or the total over the picture.",
            show_default="overlay; of captions and multisets the filmstrip",
        ),
    ] = None,
    cells: Annotated[
        bool, typer.Option("--cells", help="In a filmstrip, the model's cells as they are.", show_default="off")
    ] = False,
    beam: Beam = None,
    captions: Annotated[
        int | None, typer.Option("--captions", help="Captions of each picture.", min=1, show_default="1")
    ] = None,
    length_penalty: LengthPenalty = None,
    batch: Annotated[int, typer.Option("--batch", help="How many go through the model together.", min=1)] = 32,
    json: Json = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Answer, confidence, and where the model looked; a model that takes no question needs no --ask.

    Of a story, a table says how much weight each look laid on each sentence.
    With --out, each picture gets its looks (PNG) and a record (JSON + safetensors). --json prints one object a line.
    Pictures that cannot be read, or take longer than a minute to decode, are reported on stderr and skipped; the exit
    code is 2 only if none could be read.
    """
    import saccade
    from saccade.data.pictures.decoder_pool import start_ahead
    from saccade.devices import wake_cuda
    from saccade.errors import DataError

    wake_cuda(device)  # both before torch is imported, which takes a second
    if not all(path.endswith(".txt") for path in paths):
        start_ahead()
    predictor = saccade.load(model, device)
    from saccade.verbs.look import look as look_at

    files = predictor.reads.find(paths)
    rows: list[tuple[object, ...]] = []
    tables: list[Sighting] = []
    answered, told, skipped, only_error = 0, 0, 0, ""

    def skip(source: object, error: DataError) -> None:
        nonlocal skipped, only_error
        skipped, only_error = skipped + 1, str(error)
        if len(files) > 1:  # one picture alone ends in the error line
            warn(f"skipped: {error}")
        if json:
            key = "source" if predictor.facts.preprocessing is None else "picture"  # as in an answer
            print_json({key: str(source), "error": str(error)}, indent=None)

    sightings = look_at(
        predictor,
        files,
        ask,
        out=out,
        filmstrip=filmstrip,
        cells=cells,
        batch_size=batch,
        on_bad=skip,
        beam=beam,
        captions=captions,
        length_penalty=length_penalty,
    )
    with bar("looking", len(files), shown=not quiet and not json and len(files) > 1) as update:
        for seen in sightings:
            if json:
                print_json(seen.to_json(), indent=None)
            else:
                _warn_of(seen)
            tables += [seen] if not seen.is_spatial and len(tables) < TABLES_SHOWN else []
            made = _rows(seen)
            rows += made[: max(0, ROWS_SHOWN - len(rows))]  # of a hundred thousand, those that are shown
            answered, told = answered + 1, told + len(made)
            update(answered + skipped, len(files))
    if not rows:
        none = f"none of the {skipped} {several(predictor.reads.thing)} could be read; see the lines above"
        raise DataError(only_error if skipped == 1 else none)
    if not json:
        looked_at = "looked at x, y" if predictor.facts.preprocessing is not None else "looked at"
        columns = (predictor.reads.thing, "asked", "answer", "confidence", "next best", looked_at, "on the way")
        used = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
        shown = [[row[place] for place in used] for row in rows]
        print_table(f"{predictor.name} ({predictor.facts.architecture})", [columns[place] for place in used], shown)
        for seen in tables:
            print_slots(f"{seen.source.name}: {seen.question or ''} → {seen.answer}", seen.slot_grid)
    if not quiet and not json:
        _remarks(told, answered, skipped, out)


def _rows(seen: Sighting) -> list[tuple[object, ...]]:
    """A row for the answer; of captions one for each, as each has words of its own."""
    if seen.is_caption:
        return [
            (seen.source.name, None, each.answer, f"{each.confidence:.1%}", None, None, None)
            for each in (seen, *seen.others)
        ]
    second = f"{seen.alternatives[0][0]} {seen.alternatives[0][1]:.1%}" if seen.alternatives else None
    looked_at = places(seen.looked_at) if seen.looked_at else seen.top_slot
    way = " → ".join(f"{name} {answer} {share:.0%}" for name, answer, share in seen.on_the_way) or None
    return [(seen.source.name, seen.question, seen.answer, f"{seen.confidence:.1%}", second, looked_at, way)]


def _warn_of(seen: Sighting) -> None:
    """What of the input and the question the model could not use."""
    for text in seen.remarks:
        warn(f"{seen.source.name}: {text}")


def _remarks(rows: int, answered: int, skipped: int, out: Path | None) -> None:
    if rows > ROWS_SHOWN:
        remark(f"… and {rows - ROWS_SHOWN} more; --json prints them all")
    if skipped:
        remark(f"{answered} answered, {skipped} skipped because they could not be read")
    kept = "pictures, records and one table of all (looks.csv)" if answered > 1 else "pictures and records"
    remark(f"{kept} are in {out}" if out is not None else "--out DIR keeps pictures and records")
