"""``look``: ask a model about pictures or stories and see where it looked; several models, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from saccade.commands.look_show import Compared, Looks, show
from saccade.commands.signature import Command, Number, arguments_of, check_call
from saccade.data.files import plural, skipped_files
from saccade.errors import ConfigError, DataError

if TYPE_CHECKING:
    from saccade.adapters.folder import FolderLooks
    from saccade.predict import Predictor
    from saccade.sighting import Sighting

_OF_ROWS = ("address", "actors", "part", "maps", "side", "resume")


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


def look(  # type: ignore[misc]  # the others name only what decides about the result
    sources: str | Path | Any,
    ask: str | int | None = None,
    *,
    model: Sequence[str | Path] | str | Path = "soft-mref",
    out: Path | str | None = None,
    filmstrip: bool | None = None,
    cells: bool = False,
    parquet: bool = False,
    beam: Annotated[int | None, Number(1)] = None,
    captions: Annotated[int | None, Number(1)] = None,
    length_penalty: float | None = None,
    layers: str | Sequence[int] | None = None,
    rollout: bool = False,
    batch_size: Annotated[int, Number(1)] = 32,
    engine: Literal["local", "ray"] | None = None,
    address: str | None = None,
    actors: Annotated[int | None, Number(1)] = None,
    part: Annotated[int, Number(1)] = 1024,
    maps: Literal["total", "all", "none"] = "total",
    side: Annotated[int, Number(1, 1024)] = 64,
    resume: bool = False,
    offline: bool = False,
    device: str = "auto",
    on_bad: Callable[[Any, DataError], None] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Any:
    """Ask a model about pictures or stories, and see where it looked.

    A model that takes no question needs no ``ask``. timm:NAME and hf:NAME are vision transformers of other libraries
    with their published weights: the heads of the last layer show what its class token, or its pooling head, looked at.
    One without a classifier gives no answer. Several models are asked the same, side by side. For more pictures than
    fit into memory there are ``look_many`` of ``saccade.load(model)``, and ``engine``, which writes a row for each
    picture to Parquet in place of pictures and records.

    Args:
        sources: pictures or stories (.txt), folders of them, or globs. In Python one picture or a list: paths, bytes,
            PIL images, arrays, tensors. Folders and globs stand in a list.
        ask: the question. One that the model knows; of a story, any. None: none.
        model: zoo name, folder, hf://…, timm:NAME or hf:NAME; of several, side by side. hf://USER/NAME is a model
            folder that somebody shares on the hub.
        out: folder to write to. Each picture gets its looks (PNG) and a record (JSON + safetensors), and several get a
            table, looks.csv. Of several models, one picture of all and a page. None: nothing is written.
        filmstrip: save every look side by side, or one overlay. None: by the kind of answer. Captions, multisets, masks
            that add and nested crops are saved as filmstrips.
        cells: in a filmstrip, the model's cells as they are.
        parquet: with ``out``, the table as looks.parquet too.
        beam: captions followed side by side. 1 is greedy. None: 5.
        captions: captions of each picture. None: 1.
        length_penalty: captions are ranked by log p / length^this. None: 0.
        layers: of timm:NAME and hf:NAME: last, all, or numbers such as 1,6,12. None: last.
        rollout: of these, attention rollout too. It is derived from the attention; the model does not use it.
        batch_size: how many go through the model together.
        engine: write rows to Parquet, on this machine or on a Ray cluster. None: pictures and records.
        address: of the Ray cluster: HOST:PORT or auto. None: the connected one, else this machine.
        actors: processes of Ray. None: one a GPU, or else a CPU.
        part: with ``engine``, picture files in an output file. A part is what is done again when a machine is lost.
        maps: with ``engine``, keep the total map, all maps or none. All are those of every look and step too.
        side: with ``engine``, longer side of a kept map, in cells.
        resume: with ``engine``, go on with what is in ``out``.
        offline: fetch no weights from the hubs of timm and transformers.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_bad: called with a source that cannot be read and its error, and the rest goes on. None: the error is raised.
        on_progress: called with how many are done, and how many there are.

    Returns:
        Of one picture what was seen; of a list a list, in order. Of several models, in the place of each sighting a
        list of theirs. With ``engine``, counts of rows, errors and parts.

    Raises:
        CheckpointError: there is no such model.
        DataError: a source cannot be read, or the model does not know the question.
        ConfigError: an option is not for this model.
        OutputError: ``out`` cannot be written.

    Example:
        >>> seen = saccade.look("scene.png", ask=7)                               # doctest: +SKIP
        >>> seen.answer, seen.confidence, seen.looked_at                          # doctest: +SKIP
        >>> saccade.look(["photos/"], model="crown-cub")                          # doctest: +SKIP
        >>> soft, hard = saccade.look("scene.png", 7, model=["soft-mref", "hard-mref"])  # doctest: +SKIP
    """
    given = dict(locals())
    check_call(look, given)
    if engine is not None:
        return _rows(given)
    is_list = isinstance(sources, (list, tuple))
    if not isinstance(model, (str, Path)):
        several = _side_by_side(given)
        return list(several) if is_list else next(several)
    if not is_list:
        given |= {"sources": [sources], "on_bad": None}
    _, files, sightings = _begin(given)
    if not is_list and len(files) > 1:
        raise DataError(f"{sources}: stands for several; put it into a list, as in look(['{sources}'])")
    answers = []
    for seen in sightings:
        answers.append(seen)
        on_progress(len(answers), len(files))
    return answers if is_list else answers[0]


def _begin(given: Mapping[str, Any], *, are_paths: bool = False) -> tuple[Predictor, Sequence[Any], Iterator[Sighting]]:
    """The model, what it looks at, and its answers as they come; of paths all must be there."""
    _check_unasked(given, _OF_ROWS, "goes with `engine`")
    if given["parquet"] and given["out"] is None:
        raise ConfigError("parquet: it writes a table beside the pictures that are kept; give `out` too")
    options = _options(given)
    predictor = _opened(given["model"], given)
    sources = given["sources"]
    files = predictor.reads.find(sources) if are_paths else expanded(predictor, sources)
    kept = {name: given[name] for name in ("filmstrip", "cells", "parquet", "batch_size", "on_bad")}
    out = None if given["out"] is None else Path(given["out"])
    return predictor, files, stream_looks(predictor, files, given["ask"], out=out, **kept, **options)


def stream_looks(
    predictor: Predictor,
    sources: Sequence[Any],
    ask: int | str | None = None,
    *,
    out: Path | None = None,
    filmstrip: bool | None = None,
    cells: bool = False,
    parquet: bool = False,
    batch_size: int = 32,
    on_bad: Callable[[Any, DataError], None] | None = None,
    **options: Any,
) -> Iterator[Sighting]:
    """A sighting of each source, in order; what was asked for wrongly is said before one is read.

    With ``out`` the files of each sighting are written before it is handed on. Arguments as in :func:`look`.
    """
    _check_kind(predictor, sources)  # before the question, which is of the model's kind too
    predictor.question(ask)
    predictor.responder.options(options)
    if (cells or filmstrip is False) and predictor.facts.preprocessing is None:
        option = "cells" if cells else "overlay"
        raise ConfigError(f"{option}: '{predictor.name}' does not read pictures, so nothing can be drawn on them")
    strips = not predictor.facts.queries if filmstrip is None else filmstrip
    if cells and (out is None or not strips):
        raise ConfigError("cells: it paints the cells of filmstrips that are saved; give `filmstrip` and `out` too")
    if out is None:
        return predictor.look_many(sources, ask, batch_size=batch_size, on_bad=on_bad, **options)
    from saccade.commands.look_files import kept, parquet_modules

    if parquet:
        parquet_modules()
    sightings = predictor.look_many(sources, ask, batch_size=batch_size, on_bad=on_bad, **options)
    return kept(sightings, out, filmstrip=filmstrip, cells=cells, parquet=parquet)


def expanded(predictor: Predictor, sources: Sequence[Any]) -> list[Any]:
    """``sources`` with the files of folders and globs in their place; anything else as it is."""
    found: list[Any] = []
    for source in sources:
        found += predictor.reads.find([str(source)]) if _stands_for_several(source) else [source]
    return found


def _stands_for_several(source: object) -> bool:
    """Whether it is a folder or a glob."""
    if not isinstance(source, (str, Path)) or "\n" in str(source):  # a story
        return False
    try:
        return Path(source).is_dir() or any(sign in str(source) for sign in "*?[")
    except (OSError, ValueError):  # a story may be longer than a name of a file can be
        return False


def _check_kind(predictor: Predictor, files: Sequence[object]) -> None:
    """Refuse files that are all of one kind which other models read, by their endings; a mixed list goes on."""
    endings = {Path(file).suffix.lower() if isinstance(file, (str, Path)) else "" for file in files}
    if not endings or not endings.isdisjoint(predictor.reads.suffixes):
        return
    from saccade.families import families
    from saccade.zoo import shipped

    for family in families().values():
        reads = family.reads()
        if endings <= reads.suffixes:
            models = " or ".join(name for name in family.featured if name in shipped()) or f"{reads.thing} models"
            raise DataError(
                f"{files[0]}: a {reads.thing}, but the model '{predictor.name}' reads {plural(predictor.reads.thing)}; "
                f"{plural(reads.thing)} are for {models}"
            )


def _opened(model: str | Path, given: Mapping[str, Any]) -> Predictor:
    """A model; without a word to the hubs where that is wanted."""
    from saccade.predict import load

    if given["offline"]:
        from saccade.backbones.hub import work_offline

        work_offline()
    return load(model, given["device"])


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is for the model's family, as it takes it."""
    layers = given["layers"]
    if isinstance(layers, str) and layers not in ("last", "all"):
        try:
            layers = [int(number) for number in layers.split(",")]
        except ValueError as error:
            raise ConfigError(f"layers: expected last, all, or numbers as 1,6,12, found '{layers}'") from error
    search = {name: given[name] for name in ("beam", "captions", "length_penalty")}
    return {**search, "layers": layers, "rollout": given["rollout"] or None}


def _check_unasked(given: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    """Refuse those of ``names`` that were given another value than their own."""
    for name in names:
        if given[name] != arguments_of(look)[name].default:
            raise ConfigError(f"{name}: it {why}")


def _rows(given: Mapping[str, Any]) -> FolderLooks:
    """Write rows in place of pictures and records."""
    from saccade.adapters.folder import look_folder

    of_pictures = ("filmstrip", "cells", "parquet", "layers", "rollout", "offline", "on_bad")
    _check_unasked(given, of_pictures, "is not for `engine`, which writes rows; leave it out")
    if given["out"] is None:
        raise ConfigError("`engine` writes rows; say where with `out`")
    left = {*of_pictures, "sources"}
    return look_folder(given["sources"], **{name: value for name, value in given.items() if name not in left})


def _side_by_side(given: Mapping[str, Any]) -> Iterator[list[Sighting]]:
    """What several models say of each source; with ``out``, a picture of all of them and a page."""
    saved = ("filmstrip", "cells", "parquet", "on_bad")
    _check_unasked(given, (*_OF_ROWS, *saved), "is for one model; leave it out")
    predictors = [_opened(model, given) for model in given["model"]]
    sources = given["sources"] if isinstance(given["sources"], (list, tuple)) else [given["sources"]]
    for source in expanded(predictors[0], sources):
        each = [
            predictor.look(predictor.reads.item(source), given["ask"], **_options(given)) for predictor in predictors
        ]
        if given["out"] is not None:
            from saccade.commands.look_files import write_comparison

            write_comparison(each, Path(given["out"]))
        yield each


def seen(
    sources: Sequence[str] = (),
    *,
    example: str | None = None,
    engine: Literal["local", "ray"] | None = None,
    model: Sequence[str] = ("soft-mref",),
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> Looks | Compared | FolderLooks:
    """:func:`look` of the command line: answers as they come, so that a folder of any size goes through.

    Args:
        sources: pictures or stories (.txt), folders of them, or globs.
        example: a shipped picture; 'saccade list examples' names them. None: none.
        engine: write rows to Parquet, on this machine or on a Ray cluster. None: pictures and records.
        model: zoo name, folder, hf://…, timm:NAME or hf:NAME; several are put side by side.
        on_progress: called with how many are done, and how many there are.
        options: the others of :func:`look`.
    """
    from saccade.data.gallery import EXAMPLES
    from saccade.data.gallery import example as shipped

    paths = [*sources, *([] if example is None else [str(shipped(example))])]
    if not paths:
        raise DataError(f"nothing to look at: name pictures or stories, or --example with one of {', '.join(EXAMPLES)}")
    one = model[0] if len(model) == 1 else model
    given = {**options, "sources": paths, "engine": engine, "model": one, "on_bad": None, "on_progress": on_progress}
    check_call(look, given)
    if engine is not None:
        rows = _rows(given)
        if rows.errors == rows.rows:
            raise DataError(f"none of the {rows.rows} pictures could be read; the rows in {rows.out} say why")
        return rows
    from saccade.devices import wake_cuda

    wake_cuda(given["device"])  # before torch is imported, which takes a second
    if len(model) > 1:
        return Compared(_side_by_side(given))
    looks = Looks(on_progress)
    predictor, files, sightings = _begin({**given, "on_bad": looks.skip}, are_paths=True)
    return looks.over(predictor, files, sightings, skipped_files(paths, predictor.reads.suffixes))


COMMAND = Command(
    look,
    show,
    run=seen,
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
