"""``saccade data``: list, make, show and get data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import bar, print_json, print_table, remark

if TYPE_CHECKING:
    from saccade.data.examples import Data
    from saccade.families.caption.data import CaptionDataConfig
    from saccade.families.multiset.data import MultisetDataConfig
    from saccade.families.question.scene_data import SceneDataConfig

app = typer.Typer(
    help="Generators and readers: write to disk, contact sheet, download with checksum.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="A name of 'saccade data list'.")]
Split = Annotated[str, typer.Option("--split", help="train, val or test.")]
Glyphs = Annotated[str, typer.Option("--glyphs", help="disjoint, merged, or pack (shipped, no download).")]
Protocol = Annotated[str, typer.Option("--protocol", help="unlimited or authors.")]
Update = Callable[[int, "int | None"], None]
"""Called with what is done and what there is in all."""
Empty = Annotated[float, typer.Option("--empty", help="Share of empty ones, of 'scenes' alone.", min=0, max=1)]
SeedOrZero = Annotated[int, typer.Option("--seed", help="Of the scenes.", min=0)]


@app.command("list")
def list_(json: Json = False) -> None:
    """What data there is."""
    from saccade.data.catalog import DATA

    entries = {
        name: {
            "kind": entry.kind,
            "task": entry.task,
            "splits": list(entry.splits),
            "description": entry.description,
            "licence": entry.licence,
            "get": entry.get,
        }
        for name, entry in DATA.items()
    }
    if json:
        print_json(entries)
        return
    rows = [(name, each["kind"], each["description"], each["licence"], each["get"]) for name, each in entries.items()]
    print_table("data", ("name", "kind", "what", "licence", "how to get it"), rows)


@app.command()
def make(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="An empty or new folder.")],
    split: Split = "test",
    count: Annotated[int, typer.Option("--count", "-n", help="How many scenes.", min=1)] = 100,
    start: Annotated[int, typer.Option("--start", help="Number of the first scene.", min=0)] = 0,
    glyphs: Glyphs = "disjoint",
    protocol: Protocol = "unlimited",
    seed: SeedOrZero = 0,
    empty: Empty = 0.0,
    quiet: Quiet = False,
) -> None:
    """Write scenes as PNGs, with one JSON line of truth for each."""
    from saccade.data.scenes.export import write_captions, write_multisets, write_scenes
    from saccade.data.tables.splits import checked_split
    from saccade.data.tables.wording import counted

    part = checked_split(split)
    _only_captions(name, empty)
    with bar("writing", count, shown=not quiet) as update:
        wanted: Any = {"start": start, "allow_pack": True, "progress": update}
        if _task(name) == "multiset":
            scenes = _multiset_config(name, glyphs, protocol, seed, {})
            folder = write_multisets(scenes, part, count, out, **wanted)
        elif _task(name) == "caption":
            captioned = _caption_config(name, glyphs, protocol, seed, {}, empty)
            folder = write_captions(captioned, part, count, out, **wanted)
        else:
            folder = write_scenes(_config(name, glyphs, protocol, seed), part, count, out, **wanted)
    if not quiet:
        remark(f"{counted(count, 'scene')} in {folder}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A name of 'saccade data list', or READER:PATH.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The PNG file to write.")] = Path("contact-sheet.png"),
    split: Split = "test",
    count: Annotated[int, typer.Option("--count", "-n", help="How many pictures.", min=1, max=1000)] = 24,
    glyphs: Glyphs = "disjoint",
    protocol: Protocol = "unlimited",
    seed: SeedOrZero = 0,
    empty: Empty = 0.0,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Of a reader, key=value, as in splits=species or kind=set.", metavar="KEY=VALUE"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """A contact sheet: pictures, questions, answers, and the evidence outlined."""
    from saccade.atomic import write_bytes
    from saccade.data.examples import examples_of
    from saccade.data.tables.splits import checked_split
    from saccade.show.contact_sheet import contact_sheet
    from saccade.show.marks import Mask
    from saccade.show.png import png_bytes

    part, options = checked_split(split), _options(option or [])
    _only_captions(name, empty)
    if ":" in name:
        with bar("decoding", None, shown=not quiet) as update:
            data, described = _files(name, part, count, options, update)
    else:
        data, described = _scenes(name, part, glyphs, protocol, seed, options, empty), ""
    if described and not quiet:
        remark(described)
    examples = examples_of(data, count)
    marks = [[Mask(mask.numpy()) for mask in example.masks] for example in examples]
    sheet = contact_sheet([each.image for each in examples], [each.caption for each in examples], marks=marks)
    write_bytes(out, png_bytes(sheet))
    if not quiet:
        remark(f"wrote {out}")


@app.command()
def get(name: Name, quiet: Quiet = False) -> None:
    """Download what cannot be shipped, checked by its digest; what is there already is kept."""
    from saccade.data.catalog import DATA
    from saccade.data.fetch import fetch

    entry = DATA.get(name)
    wanted = entry.download if entry is not None and entry.download else name
    with bar(f"fetching {wanted}", None, shown=not quiet, unit="bytes") as update:
        folder = fetch(wanted, progress=lambda _, done, total: update(done, total))
    if not quiet:
        remark(f"{wanted} is in {folder}")


def _task(name: str) -> str:
    """What the generated set ``name`` is for."""
    from saccade.data.catalog import DATA
    from saccade.errors import DataError, nearest

    generated = {key: entry.task for key, entry in DATA.items() if entry.kind == "generator"}
    if name not in generated:
        raise DataError(f"no generated data '{name}': {nearest(name, generated)}")
    return generated[name]


def _multiset_config(name: str, glyphs: str, protocol: str, seed: int, options: dict[str, Any]) -> MultisetDataConfig:
    from saccade.config import from_dict
    from saccade.families.multiset.data import MultisetDataConfig

    _only_unlimited(protocol, f"{name} knows unlimited only: 5,000 val and 10,000 test scenes")
    return from_dict(MultisetDataConfig, {"name": name, "glyphs": glyphs, "seed": seed, "options": options})


def _caption_config(
    name: str, glyphs: str, protocol: str, seed: int, options: dict[str, Any], empty: float
) -> CaptionDataConfig:
    from saccade.config import from_dict
    from saccade.families.caption.data import CaptionDataConfig

    _only_unlimited(protocol, f"{name} knows unlimited only: 2,000 val and 5,000 test scenes")
    settings = {"name": name, "glyphs": glyphs, "seed": seed, "options": options, "empty": empty}
    return from_dict(CaptionDataConfig, settings)


def _only_captions(name: str, empty: float) -> None:
    from saccade.errors import ConfigError

    if empty and (":" in name or _task(name) != "caption"):
        raise ConfigError(f"--empty: is for 'scenes' alone, found {empty:g} for '{name}'; leave it out")


def _only_unlimited(protocol: str, why: str) -> None:
    from saccade.errors import ConfigError

    if protocol != "unlimited":
        raise ConfigError(f"protocol: found '{protocol}'; {why}")


def _config(name: str, glyphs: str, protocol: str, seed: int) -> SceneDataConfig:
    from saccade.config import from_dict
    from saccade.families.question.scene_data import SceneDataConfig

    return from_dict(SceneDataConfig, {"name": name, "glyphs": glyphs, "protocol": protocol, "seed": seed})


def _scenes(
    name: str, split: Any, glyphs: str, protocol: str, seed: int, options: dict[str, Any], empty: float
) -> Data:
    """A split of the generated set ``name``."""
    from saccade.families.caption.data import CaptionData
    from saccade.families.multiset.data import MultisetData
    from saccade.families.question.scene_data import SceneData

    task = _task(name)
    if task == "multiset":
        return MultisetData(_multiset_config(name, glyphs, protocol, seed, options), split, allow_pack=True)
    if task == "caption":
        return CaptionData(_caption_config(name, glyphs, protocol, seed, options, empty), split, allow_pack=True)
    return SceneData(_config(name, glyphs, protocol, seed), split, allow_pack=True)


def _files(reference: str, split: Any, count: int, options: dict[str, Any], update: Update) -> tuple[Data, str]:
    """The first ``count`` pictures of a split of READER:PATH, whichever kind of data its columns say it is.

    Beside them, in one line, what there is in all.
    """
    from saccade.families.caption.data import CaptionData, CaptionDataConfig, vocabulary_of
    from saccade.families.caption.readers import holds_captions, read_captions
    from saccade.families.multiset.data import MultisetData, MultisetDataConfig
    from saccade.families.multiset.readers import holds_multisets, read_multisets
    from saccade.families.question.readers import read_questions
    from saccade.families.question.table_data import TableData, TableDataConfig

    if holds_captions(reference):
        captions = CaptionDataConfig(reference, options=options, at_least=1)  # a short table has no frequent words
        captioned = read_captions(reference, options)
        words = vocabulary_of(captioned, captions)
        shown = CaptionData(captions, split, vocabulary=words, table=captioned.some(split, count), progress=update)
        return shown, captioned.described(len(words.words))
    if holds_multisets(reference):
        labels = MultisetDataConfig(reference, options=options)
        labelled = read_multisets(reference, options)
        return MultisetData(labels, split, table=labelled.some(split, count), progress=update), labelled.described()
    questions = TableDataConfig(reference, options=options)
    asked = read_questions(reference, options)
    return TableData(questions, split, table=asked.some(split, count), progress=update), asked.described()


def _options(given: list[str]) -> dict[str, Any]:
    """``key=value`` as settings of a reader; values are read as YAML."""
    from saccade.engine.recipe import parse_yaml
    from saccade.errors import ConfigError

    options = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--option {text}: expected key=value, e.g. --option splits=species")
        options[key.strip()] = parse_yaml(value, f"--option {text}")
    return options
