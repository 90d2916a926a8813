"""``look``: ask a model about pictures or stories and see where it looked; several models, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from glob import has_magic
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from saccade.commands.verb import (
    Command,
    Remark,
    Stream,
    arguments_of,
    check_call,
    checked,
    plain,
    print_table,
    wake_cuda,
    warn,
)
from saccade.config import Within
from saccade.data.pictures.files import plural, skipped_files
from saccade.errors import ConfigError, DataError
from saccade.progress import OnProgress, no_progress

if TYPE_CHECKING:
    from saccade.adapters.folder import FolderLooks
    from saccade.predict import Predictor
    from saccade.show.slot_table import SlotGrid
    from saccade.sighting import Sighting

ROWS_SHOWN = 40
TABLES_SHOWN = 3
WARNED = 20  # Different remarks about inputs that are printed; --json has all.
_OF_ROWS = ("address", "actors", "part", "maps", "side", "resume")
_NOT_OF_ROWS = ("filmstrip", "cells", "parquet", "layers", "rollout", "offline", "on_bad")


@overload
def look(
    sources: list[Any] | tuple[Any, ...], ask: str | int | None = None, *, model: str | Path = ..., **options: Any
) -> list[Sighting]: ...


@overload
def look(
    sources: str | Path | Any, ask: str | int | None = None, *, model: str | Path = ..., **options: Any
) -> Sighting: ...


@overload
def look(
    sources: str | Path | Any, ask: str | int | None = None, *, model: Sequence[str | Path], **options: Any
) -> list[Any]: ...


@checked  # type: ignore[misc]  # the others name only what decides about the result
def look(
    sources: str | Path | Any,
    ask: str | int | None = None,
    *,
    model: Sequence[str | Path] | str | Path = "soft-mref",
    out: Path | str | None = None,
    filmstrip: bool | None = None,
    cells: bool = False,
    parquet: bool = False,
    beam: Annotated[int | None, Within(1)] = None,
    captions: Annotated[int | None, Within(1)] = None,
    length_penalty: float | None = None,
    layers: str | Sequence[int] | None = None,
    rollout: bool = False,
    batch_size: Annotated[int, Within(1)] = 32,
    engine: Literal["local", "ray"] | None = None,
    address: str | None = None,
    actors: Annotated[int | None, Within(1)] = None,
    part: Annotated[int, Within(1)] = 1024,
    maps: Literal["total", "all", "none"] = "total",
    side: Annotated[int, Within(1, 1024)] = 64,
    resume: bool = False,
    offline: bool = False,
    device: str = "auto",
    on_bad: Callable[[Any, DataError], None] | None = None,
    on_progress: OnProgress = no_progress,
) -> Any:
    """Ask a model about pictures or stories, and see where it looked.

    A model that takes no question needs no ``ask``. timm:NAME and hf:NAME are published vision transformers of other
    libraries: the heads of their last layer show what the class token, or the pooling head, looked at. For more
    pictures than fit into memory use ``look_many`` of ``saccade.load(model)``, or ``engine``, which writes a row for
    each picture to Parquet.

    Args:
        sources: pictures or stories (.txt), folders of them, or globs. In Python one picture or a list: paths, bytes,
            PIL images, arrays, tensors. Folders and globs stand in a list.
        ask: the question. One that the model knows; about a story, any. None: none.
        model: zoo name, folder, hf://…, timm:NAME or hf:NAME; several are put side by side. hf://USER/NAME is a model
            folder on the hub.
        out: folder to write to. Each picture gets its looks (PNG) and a record (JSON + safetensors); several pictures
            get a table, looks.csv; several models get one picture and a page of all. None: nothing is written.
        filmstrip: save every look side by side, or one overlay. None: by the kind of answer. Captions, multisets, masks
            that add and nested crops are saved as filmstrips.
        cells: in a filmstrip, the model's cells as they are.
        parquet: with ``out``, the table as looks.parquet too.
        beam: captions followed side by side. 1 is greedy. None: 5.
        captions: captions for each picture. None: 1.
        length_penalty: captions are ranked by log p / length^this. None: 0.
        layers: for timm:NAME and hf:NAME, last, all, or numbers such as 1,6,12. None: last.
        rollout: for timm:NAME and hf:NAME, add attention rollout. It is derived; the model does not use it.
        batch_size: pictures in a batch.
        engine: write rows to Parquet, on this machine or on a Ray cluster. None: pictures and records.
        address: address of the Ray cluster, HOST:PORT or auto. None: the connected one, else this machine.
        actors: processes of Ray. None: one for each GPU, or else for each CPU.
        part: with ``engine``, picture files in an output file. A part is what is done again when a machine is lost.
        maps: with ``engine``, keep the total map, all maps or none. All includes those of every look and step.
        side: with ``engine``, longer side of a kept map, in cells.
        resume: with ``engine``, go on with what is in ``out``.
        offline: fetch no weights from the hubs of timm and transformers.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_bad: called with a source that cannot be read and its error, and the rest goes on. None: the error is raised.
        on_progress: called with the number done and the number in all.

    Returns:
        A sighting of one picture, a list for a list; with several models a list of theirs for each picture. With
        ``engine``, counts of rows, errors and parts.

    Example:
        >>> saccade.look("scene.png", ask=7).answer  # doctest: +SKIP
    """
    arguments = dict(locals())
    _check_together(arguments)
    if engine is not None:
        return _rows(arguments)
    is_list, is_one_model = isinstance(sources, (list, tuple)), isinstance(model, (str, Path))
    if not is_list:
        arguments |= {"sources": [sources], "on_bad": None}
    _, files, groups = _begin(arguments)
    if not is_list and len(files) > 1:
        raise DataError(f"{sources}: stands for several; put it into a list, as in look(['{sources}'])")
    answers = []
    for sightings in groups:
        answers.append(sightings[0] if is_one_model else sightings)
        on_progress("look", len(answers), len(files))
    return answers if is_list else answers[0]


def _check_together(arguments: Mapping[str, Any]) -> None:
    unfit: tuple[str, ...]
    is_one_model = isinstance(arguments["model"], (str, Path))
    if arguments["engine"] is not None:
        if not is_one_model:
            raise ConfigError("model: `engine` writes the rows of one model; name one, or leave `engine` out")
        unfit, why = _NOT_OF_ROWS, "is not for `engine`, which writes rows; leave it out"
    elif is_one_model:
        unfit, why = _OF_ROWS, "goes with `engine`"
    else:
        unfit, why = (*_OF_ROWS, "filmstrip", "cells", "parquet"), "is for one model; leave it out"
    for name in unfit:
        if arguments[name] != arguments_of(look)[name].default:
            raise ConfigError(f"{name}: it {why}")
    for name in ("engine", "parquet", "cells"):
        if arguments[name] and arguments["out"] is None:
            raise ConfigError(f"`{name}` is about files; say with `out` where they go")


def _begin(
    arguments: Mapping[str, Any], *, are_paths: bool = False
) -> tuple[list[Predictor], Sequence[Any], Iterator[list[Sighting]]]:
    """The models, what they look at, and their answers to each of it as they come; of paths all must be there."""
    from saccade.predict import load

    options, sources, ask = _options(arguments), arguments["sources"], arguments["ask"]
    model = arguments["model"]
    is_one = isinstance(model, (str, Path))
    predictors = [load(name, arguments["device"]) for name in ([model] if is_one else model)]
    first, out = predictors[0], None if arguments["out"] is None else Path(arguments["out"])
    files = first.reads.find(sources) if are_paths else _expanded(first, sources)
    on_bad = arguments["on_bad"]
    for predictor in predictors:
        predictor.check_kind(files)  # before the question, which is of the model's kind too
        predictor.question(ask)
        predictor.responder.options(options)
    if not is_one:
        from saccade.commands.look_files import side_by_side

        return predictors, files, side_by_side(predictors, files, ask, out, on_bad, **options)
    seen = first.look_many(files, ask, batch_size=arguments["batch_size"], on_bad=on_bad, **options)
    if arguments["parquet"]:
        from saccade.adapters.rows import parquet_modules

        parquet_modules()
    if out is not None:
        from saccade.commands.look_files import kept_looks

        seen = kept_looks(seen, out, **{name: arguments[name] for name in ("filmstrip", "cells", "parquet")})
    return predictors, files, ([sighting] for sighting in seen)


def _expanded(predictor: Predictor, sources: Sequence[Any]) -> list[Any]:
    """``sources`` with the files of folders and globs in their place; anything else as it is."""
    files: list[Any] = []
    for source in sources:
        is_path = isinstance(source, (str, Path)) and "\n" not in str(source)  # a story has lines
        stands_for_several = is_path and (os.path.isdir(source) or has_magic(str(source)))
        files += predictor.reads.find([str(source)]) if stands_for_several else [source]
    return files


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    layers = arguments["layers"]
    if isinstance(layers, str) and layers not in ("last", "all"):
        try:
            layers = [int(number) for number in layers.split(",")]
        except ValueError as error:
            raise ConfigError(f"layers: expected last, all, or numbers as 1,6,12, found '{layers}'") from error
    search = {name: arguments[name] for name in ("beam", "captions", "length_penalty")}
    return {**search, "layers": layers, "rollout": arguments["rollout"] or None}


def _rows(arguments: Mapping[str, Any]) -> FolderLooks:
    from saccade.adapters.folder import look_folder

    return look_folder(**{name: value for name, value in arguments.items() if name not in _NOT_OF_ROWS})


def typed(
    sources: Sequence[str] = (),
    *,
    example: str | None = None,
    engine: Literal["local", "ray"] | None = None,
    model: Sequence[str] = ("soft-mref",),
    on_progress: OnProgress = no_progress,
    **options: Any,
) -> Looks | FolderLooks:
    """:func:`look` of the command line: answers as they come, so that a folder of any size goes through.

    Args:
        sources: pictures or stories (.txt), folders of them, or globs.
        example: a shipped picture; 'saccade list examples' names them. None: none.
        engine: write rows to Parquet, on this machine or on a Ray cluster. None: pictures and records.
        model: zoo name, folder, hf://…, timm:NAME or hf:NAME; several are put side by side.
        on_progress: called with the number done and the number in all.
        options: the others of :func:`look`.
    """
    from saccade.zoo.folders import EXAMPLES
    from saccade.zoo.folders import example as shipped

    paths = [*sources, *([] if example is None else [str(shipped(example))])]
    if not paths:
        raise DataError(f"nothing to look at: name pictures or stories, or --example with one of {', '.join(EXAMPLES)}")
    one = model[0] if len(model) == 1 else model
    arguments = {**options, "sources": paths, "engine": engine, "model": one}
    arguments |= {"on_bad": None, "on_progress": on_progress}
    check_call(look, arguments)
    _check_together(arguments)
    if engine is not None:
        rows = _rows(arguments)
        if rows.errors == rows.rows:
            raise DataError(f"none of the {rows.rows} pictures could be read; the rows in {rows.out} say why")
        return rows
    wake_cuda(arguments["device"])  # before torch is imported, which takes a second
    if arguments["offline"]:
        from saccade.backbones.hub import work_offline

        work_offline()  # until the process ends, as answers come one by one
    return Looks(arguments)


class Looks(Stream):
    """The answers of one or several models as they come, and what is printed of them at the end."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._on_progress, self._bad = arguments["on_progress"], list[tuple[object, DataError]]()
        self.predictors, self.files, self._groups = _begin({**arguments, "on_bad": self._skip}, are_paths=True)
        self.predictor, self.several = self.predictors[0], len(self.predictors) > 1
        self.rows: list[tuple[object, ...]] = []
        self.tables: list[Sighting] = []
        self.ways: list[Sighting] = []
        self.remarks: dict[str, list[str]] = {}
        self.answered = self.n_rows = self.skipped = self.unlike = 0
        self.stem = ""  # what the files of the first answer are called, where they are kept
        self.left_out = skipped_files(arguments["sources"], self.predictor.reads.suffixes)

    def __iter__(self) -> Iterator[Sighting | dict[str, str]]:
        kind = "picture" if self.predictor.facts.preprocessing is not None else "source"
        error = ""
        for sightings in chain(self._groups, [[]]):
            for source, why in self._bad:
                error = error or str(why)
                yield {kind: str(source), "error": str(why)}
            self._bad.clear()
            for sighting in sightings:
                self._note(sighting)
                yield sighting
            self.answered += bool(sightings)
            if len(self.files) > 1:
                self._on_progress("look", self.answered + self.skipped, len(self.files))
        if not self.answered:
            none = f"none of the {self.skipped} {plural(self.predictor.reads.thing)} could be read; see the lines above"
            raise DataError(error if self.skipped == 1 else none)

    def _skip(self, source: object, error: DataError) -> None:
        self.skipped += 1
        self._bad.append((source, error))
        if len(self.files) > 1:  # one picture alone ends in the error line
            warn(f"skipped: {error}")

    def _note(self, sighting: Sighting) -> None:
        """Keep of an answer what is printed: of a hundred thousand, those that are shown."""
        for text in sighting.remarks:
            self.remarks.setdefault(text, []).append(sighting.source.name)
        if not sighting.is_spatial and len(self.tables) < TABLES_SHOWN:
            self.tables.append(sighting)
        if sighting.on_the_way and len(self.ways) < ROWS_SHOWN:
            self.ways.append(sighting)
        self.stem = self.stem or sighting.stem
        rows = _cells(sighting, sighting.model if self.several else None)
        self.rows += rows[: max(0, ROWS_SHOWN - len(self.rows))]
        self.n_rows += len(rows)
        self.unlike += bool(sighting.unlike)


def _cells(seen: Sighting, model: str | None) -> list[tuple[object, ...]]:
    """A row for the answer, or one for each caption."""
    if seen.is_caption:
        every = (seen, *seen.others)
        return [(seen.source.name, model, None, one.answer, f"{one.confidence:.1%}", None, None, None) for one in every]
    fit = None if seen.fit.p is None else f"{seen.fit.verdict} ({seen.fit.p:.2g})"
    second = f"{seen.alternatives[0][0]} {seen.alternatives[0][1]:.1%}" if seen.alternatives else None
    looked_at = " · ".join(f"{x}, {y}" for x, y in seen.looked_at) if seen.looked_at else seen.top_slot
    if seen.is_even and not seen.glimpses():
        looked_at = "everywhere alike"
    answer = (seen.answer, f"{seen.confidence:.1%}") if seen.is_answered else (None, None)
    from saccade.data.tables.table import ONE_QUESTION

    asked = None if seen.question == ONE_QUESTION else seen.question
    return [(seen.source.name, model, asked, *answer, second, looked_at, fit)]


def show(result: Looks | FolderLooks, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print what was seen."""
    if isinstance(result, Looks):
        _show_looks(result, arguments["out"], remark)
        return
    for text in result.first_errors:
        warn(text)
    rate = f"{result.rows / result.seconds:.1f}" if result.seconds and not result.resumed else None
    row = (result.rows, result.errors, result.parts, result.seconds, rate)
    print_table(f"rows in {result.out}", ("rows", "with an error", "files", "seconds", "rows a second"), [row])
    if result.resumed:
        remark(f"{result.resumed} of {result.parts} files were there already")
    for text in result.remarks:
        remark(text)
    remark(f"'saccade report {result.out}' draws some, 'saccade score {result.out} --truth …' scores the maps")


def _show_looks(looks: Looks, out: Path | None, remark: Remark) -> None:
    predictor, thing = looks.predictor, looks.predictor.reads.thing
    short = _short_names([str(file) for file in looks.files])
    looked_at = "looked at" if predictor.facts.preprocessing is None else "looked at x, y"
    columns = (thing, "model", "asked", "answer", "confidence", "next best", looked_at, "fit (p)")
    used = [place for place in range(len(columns)) if any(row[place] is not None for row in looks.rows)]
    cells = [[short[str(row[0])] if place == 0 else row[place] for place in used] for row in looks.rows]
    several = looks.several
    title = "side by side" if several else f"{predictor.name} ({predictor.facts.architecture})"
    print_table(title, [columns[place] for place in used], cells)
    if looks.ways:
        steps = [name for name, _, _ in looks.ways[0].on_the_way]
        rows = []
        for seen in looks.ways:
            answers = [f"{answer} {share:.0%}" for _, answer, share in seen.on_the_way]
            rows.append((short[seen.source.name], *answers, seen.answer))
        print_table("what each step says", (thing, *steps, "all together"), rows)
    for seen in looks.tables:
        _print_slots(f"{short[seen.source.name]}: {seen.question or ''} → {seen.answer}", seen.slot_grid)
    for text, names in list(looks.remarks.items())[:WARNED]:
        who = short[names[0]] if len(names) == 1 else f"{len(names):,} of {looks.answered:,} {plural(thing)}"
        warn(f"{who}: {text}")
    if len(looks.remarks) > WARNED:
        warn(f"… and {len(looks.remarks) - WARNED:,} other remarks; --json prints them all")
    if looks.unlike and not several:
        warn(predictor.of_unlike(looks.unlike, looks.answered))
    if looks.left_out:
        kinds = ", ".join(f"{count} {kind}" for kind, count in looks.left_out.most_common())
        remark(f"left out {looks.left_out.total()} files of other kinds: {kinds}")
    if looks.n_rows > ROWS_SHOWN:
        remark(f"… and {looks.n_rows - ROWS_SHOWN} more; --json prints them all")
    if looks.skipped:
        remark(f"{looks.answered} answered, {looks.skipped} skipped because they could not be read")
    kept = "pictures, records and one table of all (looks.csv)" if looks.answered > 1 else "pictures and records"
    if several:
        kept = "one picture and one page for each input"
    where = "" if several or not looks.stem else f", the overlay as DIR/{looks.stem}.png"
    remark(f"{kept} are in {out}" if out is not None else f"--out DIR keeps pictures and records{where}")
    for text in [] if several else predictor.caveats:
        remark(text)


def _print_slots(title: str, grid: SlotGrid) -> None:
    """Looks over slots: a line for each sentence, a column for each look, cells coloured by weight."""
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    from saccade.show.colours import ink_on
    from saccade.show.slot_table import NEEDED

    def cell(row: int, column: int) -> Text:
        colour = grid.fills[row][column]
        style = Style(color=Color.from_rgb(*ink_on(colour)), bgcolor=Color.from_rgb(*colour))
        return Text(f" {grid.weights[row, column]:.2f} ", style)

    columns = range(len(grid.headings))
    rows = [
        ("*" if row in grid.supporting else "", text, *(cell(row, column) for column in columns))
        for row, text in enumerate(grid.texts)
    ]
    note = grid.legend + (f"; *: {NEEDED}" if grid.supporting else "")
    print_table(title, ("", "sentence", *map(plain, grid.headings)), rows, note=note)


def _short_names(names: Sequence[str]) -> dict[str, str]:
    files = {name: Path(name) for name in names}
    try:
        shared = os.path.commonpath([file.parent for file in files.values()])
    except ValueError:  # on several drives, or some absolute and some not
        return {name: name for name in files}
    return {name: str(file.relative_to(shared)) for name, file in files.items()}


COMMAND = Command(
    look,
    show,
    run=typed,
    place={"sources": "PATH"},
    names={
        "model": "-m",
        "out": "-o",
        "filmstrip": "--filmstrip/--overlay",
        "batch_size": "--batch",
        "side": "--map-side",
    },
    words={"model": "MODEL", "layers": "LAYERS"},
    example="saccade look --example digits --ask 7\nsaccade look photos/ --model crown-cub --ask wing --out looks",
)
