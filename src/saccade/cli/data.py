"""``saccade data``: list, make, show and get data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saccade.cli.help import VerbCommand, with_example
from saccade.cli.named_data import named_data
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import bar, print_json, print_table, remark

app = typer.Typer(rich_markup_mode=None, help="List, make, show and get data.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name of 'saccade data list'.")]
Split = Annotated[str, typer.Option("--split", help="train, val or test.")]
Glyphs = Annotated[str | None, typer.Option("--glyphs", help="disjoint, merged, or pack (shipped, no download).")]
Drawing = Annotated[
    str | None, typer.Option("--drawing", help="Of mref, mdist and mbg: blend, authors, both or mostly-authors.")
]
Protocol = Annotated[str | None, typer.Option("--protocol", help="unlimited or authors.")]
Scenes = Annotated[str | None, typer.Option("--scenes", help="Of causal: mref (default), mdist or mbg.")]
Format = Annotated[str | None, typer.Option("--format", help="Of causal: png (default), parquet or both.")]
Empty = Annotated[float | None, typer.Option("--empty", metavar="X", help="Share of empty scenes.", min=0, max=1)]
SeedOrZero = Annotated[int, typer.Option("--seed", metavar="N", help="Of the scenes.", min=0)]


@app.command("list", cls=VerbCommand)
@with_example("saccade data list")
def list_(json: Json = False) -> None:
    """What data there is."""
    from saccade.families import data_entries

    entries = {
        name: {
            "kind": held[0][1].kind,
            "family": ", ".join(family.name for family, _ in held),
            "splits": list(held[0][1].splits),
            "description": "; or ".join(dict.fromkeys(entry.description for _, entry in held)),
            "licence": held[0][1].licence,
            "get": held[0][1].get,
        }
        for name, held in data_entries().items()
    }
    if json:
        print_json(entries)
        return
    rows = [(name, each["kind"], each["description"], each["licence"], each["get"]) for name, each in entries.items()]
    print_table("data", ("name", "kind", "what", "licence", "how to get it"), rows)


@app.command(cls=VerbCommand)
@with_example("saccade data make mref --count 8 --out scenes")
def make(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="An empty or new folder.")],
    split: Split = "test",
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", help="How many scenes.", min=1)] = 100,
    start: Annotated[int, typer.Option("--start", metavar="N", help="Number of the first scene.", min=0)] = 0,
    glyphs: Glyphs = None,
    drawing: Drawing = None,
    protocol: Protocol = None,
    seed: SeedOrZero = 0,
    empty: Empty = None,
    scenes: Scenes = None,
    form: Format = None,
    quiet: Quiet = False,
) -> None:
    """Write scenes as PNGs, with one JSON line of truth for each.

    causal: scenes with seven twins each, in which one thing is changed; masks, questions, answers and a data card. With
    --count 10000 and nothing else this is the frozen test set causal-v1.
    """
    from saccade.data.tables.splits import checked_split
    from saccade.data.tables.wording import pluralise
    from saccade.errors import DataError
    from saccade.families import family_of_data

    part = checked_split(split)
    family = family_of_data(name)
    write = getattr(family.load_splits(), "write_split", None)
    if write is None:
        why = "is read, not generated" if ":" in name else "can be trained on, but its family writes nothing to disk"
        raise DataError(f"'{name}' {why}; it cannot be made")
    settings = _settings(
        name,
        glyphs=glyphs,
        drawing=drawing,
        protocol=protocol,
        seed=seed,
        empty=empty,
        scenes=scenes,
        format=form,
    )
    with bar("writing", count, shown=not quiet) as update:
        folder = write(settings, part, count, out, start=start, progress=update)
    if not quiet:
        remark(f"{pluralise(count, 'scene')} in {folder}")


@app.command(cls=VerbCommand)
@with_example("saccade data show folder:photos --out sheet.png")
def show(
    name: Annotated[str, typer.Argument(help="A name of 'saccade data list', READER:PATH, or a path.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="The PNG file to write.")] = Path(
        "contact-sheet.png"
    ),
    split: Split = "test",
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", help="How many pictures.", min=1, max=1000)] = 24,
    glyphs: Glyphs = None,
    drawing: Drawing = None,
    protocol: Protocol = None,
    seed: SeedOrZero = 0,
    empty: Empty = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Of a reader, key=value, as in splits=species or kind=set.", metavar="KEY=VALUE"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """A contact sheet: pictures, questions, answers, and the evidence outlined; other inputs are listed."""
    from saccade.atomic import write_bytes
    from saccade.data.tables.splits import checked_split
    from saccade.families import family_of_data
    from saccade.families.contract import load_target
    from saccade.show.overlay import Mask, png_bytes
    from saccade.show.sheets import contact_sheet

    part, options = checked_split(split), _options(option or [])
    name = named_data(name, quiet=quiet)
    family = family_of_data(name)
    is_read = ":" in name
    seeded = None if is_read else seed
    settings = _settings(
        name, glyphs=glyphs, drawing=drawing, protocol=protocol, seed=seeded, empty=empty, options=options or None
    )
    with bar("decoding", None, shown=is_read and not quiet) as update:
        opened = family.load_splits().open_split(settings, part, count=count, progress=update)
    if opened.summary and not quiet:
        remark(opened.summary)
    examples = opened.examples(count)
    items = [load_target(family.reads).read(example.source) for example in examples[:1]]
    if any(item.image is None for item in items):
        rows = [(_told(each.source), each.question, each.truth) for each in examples]
        print_table(f"{name} {split}", (load_target(family.reads).thing, "asked", "true"), rows)
        return
    marks = [[Mask(mask.numpy()) for mask in example.masks] for example in examples]
    sheet = contact_sheet([each.source for each in examples], [each.caption for each in examples], marks=marks)
    write_bytes(out, png_bytes(sheet))
    if not quiet:
        remark(f"wrote {out}")


@app.command(cls=VerbCommand)
@with_example("saccade data get mnist")
def get(name: Name, quiet: Quiet = False) -> None:
    """Download what cannot be shipped, checked by its digest; what is there already is kept."""
    from saccade.data.fetch import fetch
    from saccade.families import data_entries

    known = data_entries().get(name)
    wanted = known[0][1].download if known and known[0][1].download else name
    with bar(f"fetching {wanted}", None, shown=not quiet, unit="bytes") as update:
        folder = fetch(wanted, progress=lambda _, done, total: update(done, total))
    if not quiet:
        remark(f"{wanted} is in {folder}")


def _told(source: Any) -> str:
    """An input that is no picture, in one line: a text as it is, a list line by line."""
    return " ".join(map(str, source)) if isinstance(source, (list, tuple)) else str(source)


def _settings(name: str, **given: Any) -> dict[str, Any]:
    """Settings of the data called ``name``: what was given, and nothing else."""
    return {"name": name} | {key: value for key, value in given.items() if value is not None}


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
