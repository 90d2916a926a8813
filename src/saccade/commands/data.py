"""List, make, show and get data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from saccade.commands.list import data
from saccade.commands.verb import Command, Remark, checked, print_table
from saccade.config import Within
from saccade.errors import ConfigError
from saccade.progress import OnProgress, no_progress

Split = Literal["train", "val", "test"]
Glyphs = Literal["disjoint", "merged", "pack"]
Drawing = Literal["blend", "authors", "both", "mostly-authors"]
FillName = Literal["auto", "migan", "smooth"]
_COUNT = 100  # scenes
_NAMED = 3  # photographs that are named for each reason to leave them out
# Options of ``make`` that are for one kind of set.
_OF_SCENES = ("start", "glyphs", "drawing", "protocol", "empty", "scenes")
_OF_PHOTOGRAPHS = ("masks", "labels", "backgrounds", "fill", "size", "max_share", "resume")


@checked
def make(
    name: str,
    out: Path,
    *,
    split: Split = "test",
    count: Annotated[int | None, Within(1)] = None,
    start: Annotated[int, Within(0)] = 0,
    glyphs: Glyphs | None = None,
    drawing: Drawing | None = None,
    protocol: str | None = None,
    seed: Annotated[int, Within(0)] = 0,
    empty: Annotated[float | None, Within(0, 1)] = None,
    scenes: str | None = None,
    pictures: Path | None = None,
    masks: str | None = None,
    labels: Path | None = None,
    cutouts: Path | None = None,
    backgrounds: Path | None = None,
    fill: FillName | None = None,
    size: Annotated[int | None, Within(32, 4096)] = None,
    max_share: Annotated[float | None, Within(0.01, 0.9)] = None,
    resume: bool = False,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """Write scenes as PNGs, with one JSON line of truth for each.

    causal: scenes, each with seven twins in which one thing is changed, masks, questions and answers. With --count
    10000 and nothing else this is the frozen test set causal-v1. With --pictures and --masks the twins are of your
    photographs. With --cutouts and --backgrounds scenes are composed of real objects.

    Args:
        name: a name of 'saccade data list'.
        out: an empty or new folder.
        split: train, val or test.
        count: how many scenes. None: 100, or all photographs.
        start: number of the first scene.
        glyphs: digits of the scenes; pack is shipped and needs no download. None: by the data.
        drawing: how mref, mdist and mbg are drawn. None: by the data.
        protocol: unlimited or authors. None: by the data.
        seed: seed of the scenes.
        empty: share of empty scenes. None: by the data.
        scenes: with causal, mref, mdist or mbg. None: mref.
        pictures: with causal, a folder of photographs.
        masks: where their objects are: a folder of masks, coco:FILE, or auto (U²-Net-p).
        labels: a CSV with the columns image and label. None: the names of the folders that pictures lie in.
        cutouts: with causal, a folder of objects on a transparent ground, or of pictures with --masks.
        backgrounds: a folder of photographs to lay cut-outs on.
        fill: how removed objects are filled in. None: migan if 'saccade data get migan' was done and the extra photo is
            there, else smooth.
        size: longest side of a photograph, in pixels. None: 512.
        max_share: largest share of the picture that an object may take; larger ones are left out. None: 0.25.
        resume: continue a set of photographs that was stopped.
        on_progress: called with the number written and the number in all.
    """
    arguments = dict(locals())
    if pictures or cutouts:
        return _make_photographs(**arguments)
    if unused := [key for key in _OF_PHOTOGRAPHS if arguments[key]]:
        raise ConfigError(f"{unused[0]}: goes with pictures or cutouts, and neither is given")
    from saccade.families.registry import family_of_data

    count = count or _COUNT
    family = family_of_data(name)
    own = ("name", "glyphs", "drawing", "protocol", "seed", "empty", "scenes")
    settings = {key: arguments[key] for key in own if arguments[key] is not None}
    return {
        "folder": family.task().write_split(settings, split, count, out, start=start, on_progress=on_progress),
        "count": count,
    }


def _make_photographs(name: str, out: Path, **arguments: Any) -> dict[str, Any]:
    from saccade.data.causal.photographs.making import make_photographs

    if name != "causal":
        raise ConfigError(f"pictures and cutouts go with causal, found {name}")
    own, other = ("pictures", "cutouts") if arguments["pictures"] else ("cutouts", "pictures")
    foreign = (other, *(("backgrounds",) if own == "pictures" else ("fill",)), *_OF_SCENES)
    if unused := [key for key in foreign if arguments[key]]:
        raise ConfigError(f"{unused[0]}: does not go with {own}; leave it out")
    keys = ("pictures", "cutouts", "count", "seed", *_OF_PHOTOGRAPHS)
    settings = {key: arguments[key] for key in keys if arguments[key] is not None}
    names: dict[str, list[str]] = {}

    def note(reason: str, name: str) -> None:
        names.setdefault(reason, []).append(name)

    facts = make_photographs(out, on_progress=arguments["on_progress"], on_left_out=note, **settings)
    return {"folder": out, **asdict(facts), "left_out_names": names}


@checked
def sheet(
    name: str,
    *,
    out: Path = Path("contact-sheet.png"),
    split: Split = "test",
    count: Annotated[int, Within(1, 1000)] = 24,
    glyphs: Glyphs | None = None,
    drawing: Drawing | None = None,
    protocol: str | None = None,
    seed: Annotated[int, Within(0)] = 0,
    empty: Annotated[float | None, Within(0, 1)] = None,
    option: Sequence[str] = (),
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:
    """A contact sheet: pictures, questions, answers, and the evidence outlined; other inputs are listed.

    Args:
        name: a name of 'saccade data list', READER:PATH, or a path.
        out: the PNG file to write.
        split: train, val or test.
        count: how many pictures.
        glyphs: digits of the scenes; pack is shipped and needs no download. None: by the data.
        drawing: how mref, mdist and mbg are drawn. None: by the data.
        protocol: unlimited or authors. None: by the data.
        seed: seed of the scenes.
        empty: share of empty scenes. None: by the data.
        option: setting of a reader, key=value, as in splits=species or kind=set.
        on_progress: called with the number of pictures decoded and in all.
    """
    arguments = dict(locals())
    from saccade.data.tables.readers import with_reader
    from saccade.families.registry import data_entries, family_of_data
    from saccade.files import write_bytes
    from saccade.show.filmstrip import contact_sheet
    from saccade.show.overlay import Mask, png_bytes

    arguments |= {"name": with_reader(name, data_entries()), "options": _options(option) or None}
    if (twins := _twins_shown(arguments["name"], out, count)) is not None:
        return twins
    is_read = ":" in arguments["name"]
    own = ("name", "glyphs", "drawing", "protocol", "empty", "options", *(() if is_read else ("seed",)))
    settings = {key: arguments[key] for key in own if arguments[key] is not None}
    family = family_of_data(arguments["name"])
    reader = family.reads()
    on_progress = on_progress if is_read else no_progress
    examples, summary = family.task().show_split(settings, split, count, on_progress=on_progress, check=True)
    result = {"data": arguments["name"], "summary": summary, "thing": reader.thing}
    if any(reader.read(example.source).image is None for example in examples[:1]):
        rows = []
        for example in examples:
            lines = example.source if isinstance(example.source, (list, tuple)) else [example.source]
            rows.append((" ".join(map(str, lines)), example.question, example.truth))
        return {**result, "examples": rows}
    marks = [[Mask(mask.numpy()) for mask in example.masks] for example in examples]
    drawn = contact_sheet([one.source for one in examples], [one.caption for one in examples], marks=marks)
    write_bytes(out, png_bytes(drawn))
    return {**result, "out": out}


def _twins_shown(name: str, out: Path, count: int) -> dict[str, Any] | None:
    """The sheet of a causal set of photographs with their twins; None for any other data."""
    from saccade.data.causal.photographs.format import PhotographSet
    from saccade.data.causal.scenes import read_causal_set
    from saccade.files import write_bytes
    from saccade.show.filmstrip import twin_sheet
    from saccade.show.overlay import png_bytes

    reader, _, path = name.partition(":")
    causal = read_causal_set(path) if reader == "causal" and path else None
    if not isinstance(causal, PhotographSet):
        return None
    write_bytes(out, png_bytes(twin_sheet(islice(causal, count))))
    facts = causal.facts
    left_out = "; ".join(f"{reason} ({number:,})" for reason, number in facts.left_out.items()) or "nothing"
    summary = f"{name}: {facts.count:,} photographs with twins, fill {facts.fill}; left out: {left_out}"
    return {"data": name, "summary": summary, "thing": "photograph", "out": out}


def get(name: str, *, on_progress: OnProgress = no_progress) -> dict[str, Any]:
    """Download what cannot be shipped, checked by its digest; what is there already is kept.

    Args:
        name: a name of 'saccade data list'.
        on_progress: called with the file, bytes done and bytes in all.
    """
    from saccade.data.fetch import fetch
    from saccade.families.registry import data_entries
    from saccade.files import FILES, REGISTERED

    known = data_entries().get(name)
    wanted = known[0][1].download if known and known[0][1].download else name
    folder = fetch(wanted, on_progress=on_progress)
    size = sum(file.size for file in FILES[wanted])
    return {"name": wanted, "folder": folder, "bytes": size, "licence": REGISTERED[wanted].get("licence")}


def _options(texts: Sequence[str]) -> dict[str, Any]:
    """``key=value`` as settings of a reader; values are read as YAML."""
    from saccade.engine.recipe import parse_yaml

    options = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"option {text}: expected key=value, as in splits=species")
        options[key.strip()] = parse_yaml(value, f"option {text}")
    return options


def _show_catalog(entries: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any], remark: Remark) -> None:
    shown = ("kind", "description", "licence", "get")
    rows = [(name, *(entry[key] for key in shown)) for name, entry in entries.items()]
    print_table("data", ("name", "kind", "what", "licence", "how to get it"), rows)


def _show_sheet(result: Mapping[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    if result["data"] != arguments["name"]:
        remark(f"{arguments['name']} is read as {result['data']}")
    if result["summary"]:
        remark(result["summary"])
    if "examples" in result:
        print_table(f"{result['data']} {arguments['split']}", (result["thing"], "asked", "true"), result["examples"])
    else:
        remark(f"wrote {result['out']}")


def _show_made(result: Mapping[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    if result.get("kind") != "photographs":
        remark(f"scenes: {result['count']:,}, in {result['folder']}")
        return
    from saccade.data.tables.doubts import first_few

    names = result["left_out_names"]
    rows = [
        *(("twins", *item, "") for item in result["twins"].items()),
        *(("left out", *item, first_few(names.get(item[0], ()), _NAMED)) for item in result["left_out"].items()),
    ]
    remark(f"photographs: {result['count']:,}, in {result['folder']}; masks {result['masks']}, fill {result['fill']}")
    print_table("causal set of photographs", ("", "what", "how many", "such as"), rows)


def _show_got(result: Mapping[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    licence = f"; licence: {result['licence']}" if result["licence"] else ""
    remark(f"{result['name']} is in {result['folder']}, {result['bytes'] / 1e6:.1f} MB{licence}")


COMMANDS = {
    "list": Command(data, _show_catalog, example="saccade data list"),
    "make": Command(
        make,
        _show_made,
        place={"name": "NAME"},
        names={"out": "-o", "count": "-n"},
        example="saccade data make mref --count 8 --out scenes",
    ),
    "show": Command(
        sheet,
        _show_sheet,
        place={"name": "DATA"},
        names={"out": "-o", "count": "-n"},
        words={"option": "KEY=VALUE"},
        example="saccade data show folder:photos --out sheet.png",
    ),
    "get": Command(
        get,
        _show_got,
        place={"name": "NAME"},
        example="saccade data get mnist",
    ),
}
