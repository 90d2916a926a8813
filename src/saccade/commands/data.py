"""List, make, show and get data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from saccade.commands.list import data
from saccade.commands.verb import Command, Remark, checked, print_table
from saccade.config import Within
from saccade.errors import ConfigError

Split = Literal["train", "val", "test"]
Glyphs = Literal["disjoint", "merged", "pack"]
Drawing = Literal["blend", "authors", "both", "mostly-authors"]


@checked
def make(
    name: str,
    out: Path,
    *,
    split: Split = "test",
    count: Annotated[int, Within(1)] = 100,
    start: Annotated[int, Within(0)] = 0,
    glyphs: Glyphs | None = None,
    drawing: Drawing | None = None,
    protocol: str | None = None,
    seed: Annotated[int, Within(0)] = 0,
    empty: Annotated[float | None, Within(0, 1)] = None,
    scenes: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Write scenes as PNGs, with one JSON line of truth for each.

    causal: scenes with seven twins each, in which one thing is changed; masks, questions, answers and a data card. With
    --count 10000 and nothing else this is the frozen test set causal-v1.

    Args:
        name: a name of 'saccade data list'.
        out: an empty or new folder.
        split: train, val or test.
        count: how many scenes.
        start: number of the first scene.
        glyphs: digits of the scenes; pack is shipped and needs no download. None: by the data.
        drawing: of mref, mdist and mbg. None: by the data.
        protocol: unlimited or authors. None: by the data.
        seed: of the scenes.
        empty: share of empty scenes. None: by the data.
        scenes: of causal: mref, mdist or mbg. None: mref.
        on_progress: called with how many are written, and how many there will be.
    """
    given = dict(locals())
    from saccade.families import family_of_data

    family = family_of_data(name)
    own = ("name", "glyphs", "drawing", "protocol", "seed", "empty", "scenes")
    settings = {each: given[each] for each in own if given[each] is not None}
    return {
        "folder": family.task().write_split(settings, split, count, out, start=start, progress=on_progress),
        "count": count,
    }


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
    on_progress: Callable[[int, int | None], None] = lambda done, total: None,
) -> dict[str, Any]:
    """A contact sheet: pictures, questions, answers, and the evidence outlined; other inputs are listed.

    Args:
        name: a name of 'saccade data list', READER:PATH, or a path.
        out: the PNG file to write.
        split: train, val or test.
        count: how many pictures.
        glyphs: digits of the scenes; pack is shipped and needs no download. None: by the data.
        drawing: of mref, mdist and mbg. None: by the data.
        protocol: unlimited or authors. None: by the data.
        seed: of the scenes.
        empty: share of empty scenes. None: by the data.
        option: of a reader, key=value, as in splits=species or kind=set.
        on_progress: called with how many pictures are decoded, and how many there are.
    """
    given = dict(locals())
    from saccade.data.tables.readers import with_reader
    from saccade.families import data_entries, family_of_data
    from saccade.files import write_bytes
    from saccade.show.filmstrip import contact_sheet
    from saccade.show.overlay import Mask, png_bytes

    given |= {"name": with_reader(name, data_entries()), "options": _options(option) or None}
    is_read = ":" in given["name"]
    own = ("name", "glyphs", "drawing", "protocol", "empty", "options", *(() if is_read else ("seed",)))
    settings = {each: given[each] for each in own if given[each] is not None}
    family = family_of_data(given["name"])
    reader = family.reads()
    progress = on_progress if is_read else None
    examples, summary = family.task().show_split(settings, split, count, progress=progress)
    result = {"data": given["name"], "summary": summary, "thing": reader.thing}
    if any(reader.read(example.source).image is None for example in examples[:1]):
        return {**result, "examples": [(_line(each.source), each.question, each.truth) for each in examples]}
    marks = [[Mask(mask.numpy()) for mask in example.masks] for example in examples]
    drawn = contact_sheet([each.source for each in examples], [each.caption for each in examples], marks=marks)
    write_bytes(out, png_bytes(drawn))
    return {**result, "out": out}


def get(
    name: str, *, on_progress: Callable[[str, int, int | None], None] = lambda name, done, total: None
) -> dict[str, Any]:
    """Download what cannot be shipped, checked by its digest; what is there already is kept.

    Args:
        name: a name of 'saccade data list'.
        on_progress: called with the file, bytes done and bytes in all.
    """
    from saccade.data.fetch import fetch
    from saccade.families import data_entries

    known = data_entries().get(name)
    wanted = known[0][1].download if known and known[0][1].download else name
    return {"name": wanted, "folder": fetch(wanted, progress=on_progress)}


def _line(source: Any) -> str:
    """An input that is no picture, in one line: a text as it is, a list line by line."""
    return " ".join(map(str, source)) if isinstance(source, (list, tuple)) else str(source)


def _options(given: Sequence[str]) -> dict[str, Any]:
    """``key=value`` as settings of a reader; values are read as YAML."""
    from saccade.engine.recipe import parse_yaml

    options = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"option {text}: expected key=value, as in splits=species")
        options[key.strip()] = parse_yaml(value, f"option {text}")
    return options


def _show_catalog(entries: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], remark: Remark) -> None:
    rows = [(name, each["kind"], each["description"], each["licence"], each["get"]) for name, each in entries.items()]
    print_table("data", ("name", "kind", "what", "licence", "how to get it"), rows)


def _show_sheet(result: Mapping[str, Any], given: Mapping[str, Any], remark: Remark) -> None:
    if result["data"] != given["name"]:
        remark(f"{given['name']} is read as {result['data']}")
    if result["summary"]:
        remark(result["summary"])
    if "examples" in result:
        print_table(f"{result['data']} {given['split']}", (result["thing"], "asked", "true"), result["examples"])
    else:
        remark(f"wrote {result['out']}")


COMMANDS = {
    "list": Command(data, _show_catalog, example="saccade data list"),
    "make": Command(
        make,
        lambda made, given, remark: remark(f"scenes: {made['count']:,}, in {made['folder']}"),
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
        lambda got, given, remark: remark(f"{got['name']} is in {got['folder']}"),
        place={"name": "NAME"},
        example="saccade data get mnist",
    ),
}
