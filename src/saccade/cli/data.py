"""``saccade data``: list, make, show and get data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import bar, print_json, print_table, remark

if TYPE_CHECKING:
    from PIL import Image

    from saccade.data.attributes import AttributeDataConfig
    from saccade.data.captions import CaptionData, CaptionDataConfig
    from saccade.data.multisets import MultisetData, MultisetDataConfig

app = typer.Typer(
    help="Generators and readers: write to disk, contact sheet, download with checksum.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="A name of 'saccade data list'.")]
Split = Annotated[str, typer.Option("--split", help="train, val or test.")]
Glyphs = Annotated[str, typer.Option("--glyphs", help="disjoint, merged, or pack (shipped, no download).")]
Protocol = Annotated[str, typer.Option("--protocol", help="unlimited or authors.")]
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
    quiet: Quiet = False,
) -> None:
    """Write scenes as PNGs, with one JSON line of truth for each."""
    from saccade.data.export import write_captions, write_multisets, write_scenes

    with bar("writing", count, shown=not quiet) as update:
        wanted: Any = {"start": start, "allow_pack": True, "progress": update}
        if _task(name) == "multiset":
            scenes = _multiset_config(name, glyphs, protocol, seed, {})
            folder = write_multisets(scenes, _split(split), count, out, **wanted)
        elif _task(name) == "caption":
            captioned = _caption_config(name, glyphs, protocol, seed, {})
            folder = write_captions(captioned, _split(split), count, out, **wanted)
        else:
            folder = write_scenes(_config(name, glyphs, protocol, seed), _split(split), count, out, **wanted)
    if not quiet:
        remark(f"{count} scenes are in {folder}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A name of 'saccade data list', or READER:PATH.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The PNG file to write.")] = Path("contact-sheet.png"),
    split: Split = "test",
    count: Annotated[int, typer.Option("--count", "-n", help="How many pictures.", min=1, max=1000)] = 24,
    glyphs: Glyphs = "disjoint",
    protocol: Protocol = "unlimited",
    seed: SeedOrZero = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Of a reader, key=value, as in splits=species or kind=set.", metavar="KEY=VALUE"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """A contact sheet: pictures, questions, answers, and the evidence outlined."""
    from saccade.atomic import write_bytes
    from saccade.data.caption_readers import holds_captions
    from saccade.data.multiset_readers import holds_multisets

    options = _options(option or [])
    if ":" in name and holds_captions(name):
        sheet = _caption_file_sheet(name, split, count, options, quiet)
    elif ":" in name and holds_multisets(name):
        sheet = _multiset_file_sheet(name, split, count, options, quiet)
    elif ":" in name:
        sheet = _question_sheet(name, split, count, options, quiet)
    elif _task(name) == "multiset":
        sheet = _multiset_scene_sheet(_multiset_config(name, glyphs, protocol, seed, options), _split(split), count)
    elif _task(name) == "caption":
        sheet = _caption_scene_sheet(_caption_config(name, glyphs, protocol, seed, options), _split(split), count)
    else:
        sheet = _scene_sheet(_config(name, glyphs, protocol, seed), _split(split), count)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    write_bytes(out, buffer.getvalue())
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
    from saccade.data.multisets import MultisetDataConfig

    _only_unlimited(protocol, f"{name} knows unlimited only: 5,000 val and 10,000 test scenes")
    return from_dict(MultisetDataConfig, {"name": name, "glyphs": glyphs, "seed": seed, "options": options})


def _caption_config(name: str, glyphs: str, protocol: str, seed: int, options: dict[str, Any]) -> CaptionDataConfig:
    from saccade.config import from_dict
    from saccade.data.captions import CaptionDataConfig

    _only_unlimited(protocol, f"{name} knows unlimited only: 2,000 val and 5,000 test scenes")
    return from_dict(CaptionDataConfig, {"name": name, "glyphs": glyphs, "seed": seed, "options": options})


def _only_unlimited(protocol: str, why: str) -> None:
    from saccade.errors import ConfigError

    if protocol != "unlimited":
        raise ConfigError(f"protocol: found '{protocol}'; {why}")


def _config(name: str, glyphs: str, protocol: str, seed: int) -> AttributeDataConfig:
    from saccade.config import from_dict
    from saccade.data.attributes import AttributeDataConfig

    return from_dict(AttributeDataConfig, {"name": name, "glyphs": glyphs, "protocol": protocol, "seed": seed})


def _split(split: str) -> Any:
    from saccade.errors import DataError, nearest

    splits = ("train", "val", "test")
    if split not in splits:
        raise DataError(f"no split '{split}': {nearest(split, splits)}")
    return split


def _scene_sheet(config: AttributeDataConfig, split: Any, count: int) -> Image.Image:
    from saccade.data.attributes import AttributeData
    from saccade.show.contact_sheet import contact_sheet
    from saccade.show.marks import Mask

    data = AttributeData(config, split, allow_pack=True)
    batch = data.take(data.one_per_scene(count))
    captions = [f"{data.queries[q]} → {data.answers[a]}" for q, a in zip(batch.query.tolist(), batch.label.tolist())]
    return contact_sheet(list(batch.images), captions, marks=[[Mask(mask.numpy())] for mask in batch.evidence()])


def _multiset_scene_sheet(config: MultisetDataConfig, split: Any, count: int) -> Image.Image:
    from saccade.data.multisets import MultisetData

    return _multiset_sheet(MultisetData(config, split, allow_pack=True), count)


def _multiset_file_sheet(reference: str, split: str, count: int, options: dict[str, Any], quiet: bool) -> Image.Image:
    from saccade.data.multiset_readers import read_multisets
    from saccade.data.multisets import MultisetData, MultisetDataConfig

    config = MultisetDataConfig(reference, options=options)
    table = read_multisets(reference, options).some(_split(split), count)
    with bar("decoding", None, shown=not quiet) as update:
        return _multiset_sheet(MultisetData(config, _split(split), table=table, progress=update), count)


def _multiset_sheet(data: MultisetData, count: int) -> Image.Image:
    import torch

    from saccade.show.contact_sheet import contact_sheet
    from saccade.show.marks import Mask

    batch = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    words = [[data.classes[label] for label in row if label >= 0] for row in batch.labels.tolist()]
    captions = [", ".join(said) if data.kind == "list" else f"{{{', '.join(sorted(said))}}}" for said in words]
    marks = [[Mask(mask.numpy()) for mask in masks if mask.any()] for masks in batch.masks()]
    return contact_sheet(list(batch.images), captions, marks=marks)


def _caption_scene_sheet(config: CaptionDataConfig, split: Any, count: int) -> Image.Image:
    from saccade.data.captions import CaptionData

    return _caption_sheet(CaptionData(config, split, allow_pack=True), count)


def _caption_file_sheet(reference: str, split: str, count: int, options: dict[str, Any], quiet: bool) -> Image.Image:
    from saccade.data.caption_readers import read_captions
    from saccade.data.captions import CaptionData, CaptionDataConfig

    config = CaptionDataConfig(reference, options=options, at_least=1)  # a short table has no frequent words
    table = read_captions(reference, options).some(_split(split), count)
    with bar("decoding", None, shown=not quiet) as update:
        return _caption_sheet(CaptionData(config, _split(split), table=table, progress=update), count)


def _caption_sheet(data: CaptionData, count: int) -> Image.Image:
    import torch

    from saccade.show.contact_sheet import contact_sheet
    from saccade.show.marks import Mask

    numbers = torch.arange(count if data.picture_count is None else min(count, data.picture_count))
    batch = data.pictures(numbers)
    captions = [data.references(number)[0] for number in numbers.tolist()]
    objects = () if batch.layout is None else batch.layout.masks()
    marks = [[Mask(mask.numpy()) for mask in masks if mask.any()] for masks in objects]
    return contact_sheet(list(batch.images), captions, marks=marks)


def _question_sheet(reference: str, split: str, count: int, options: dict[str, Any], quiet: bool) -> Image.Image:
    from saccade.data.questions import QuestionData, QuestionDataConfig
    from saccade.data.readers import read_questions
    from saccade.show.contact_sheet import contact_sheet
    from saccade.show.marks import Mask

    table = read_questions(reference, options).some(split, count)
    with bar("decoding", None, shown=not quiet) as update:
        data = QuestionData(QuestionDataConfig(reference, options=options), split, table=table, progress=update)
    rows = data.one_per_picture(count)
    batch = data.take(rows)
    captions = [f"{row.query} → {', '.join(row.labels)}" for row in (data.rows[number] for number in rows.tolist())]
    return contact_sheet(list(batch.images), captions, marks=[[Mask(mask.numpy())] for mask in batch.evidence()])


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
