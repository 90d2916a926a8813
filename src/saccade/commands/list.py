"""``saccade list``: models, backbones, recipes and data that saccade knows, printed without importing torch."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, get_args

from saccade.commands.verb import Command, Remark, checked, print_table, say
from saccade.errors import CheckpointError, ConfigError, nearest

if TYPE_CHECKING:
    from saccade.models.facts import ModelFacts

_IN_JSON_ALONE = ("architecture", "parameters", "path")  # a terminal has no room for them
_OF_DATA = {
    "generator": "generated while training, by name",
    "collection": "made or downloaded by 'saccade data', by name or NAME:PATH",
    "reader": "files on your disk, as NAME:PATH",
}
RESEARCH = "†"  # Stands before what is for research only.
Kind = Literal["models", "backbones", "recipes", "data", "examples", "zoo"]
Entries = dict[str, dict[str, Any]]
Line = tuple[str, str, str]  # Heading, name and text of a line; lines of one heading stand together.


@checked
def catalogs(what: Kind | None = None, pattern: str | None = None, *, everything: bool = False) -> dict[str, Entries]:
    """List the shipped models, or models, backbones, recipes, data, examples.

    Args:
        what: the catalog to print. None: the shipped models.
        pattern: print these names in full; * stands for anything. None: a line each.
        everything: print every catalog in full.
    """
    makers = dict(zip(get_args(Kind), (models, backbones, recipes, data, examples, zoo)))
    if what is None:
        return {kind: maker() for kind, maker in makers.items()}
    entries = makers[what]()
    matching = {name: entry for name, entry in entries.items() if fnmatchcase(name, pattern or "*")}
    if pattern is not None and not matching:
        raise ConfigError(
            f"{what}: no name fits '{pattern}'; {nearest(pattern, entries, listed_by=f'saccade list {what}')}"
        )
    return {what: matching}


def show(result: Mapping[str, Entries], arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print one catalog, or the shipped models and what other catalogs there are."""
    in_full = arguments["everything"] or arguments["pattern"] is not None
    if arguments["what"] is None and not in_full:
        _show_shipped(result)
        return
    for kind, entries in result.items():
        if kind in ("zoo", "examples") and entries:
            columns = [column for column in next(iter(entries.values())) if column not in _IN_JSON_ALONE]
            rows = [(name, *(entry[column] for column in columns)) for name, entry in entries.items()]
            print_table(kind, ("name", *columns), rows)
            continue
        say((kind if in_full else f"{kind} ({len(entries)})") if entries else f"{kind}: none yet")
        if in_full:
            _say_in_full(entries)
        elif entries:
            _say_lines(_lines(kind, entries))
            say(f"\nIn full: saccade list {kind} NAME, or a pattern such as '{next(iter(entries))[:3]}*'")


def _show_shipped(result: Mapping[str, Entries]) -> None:
    """The shipped models by what goes in and what comes out; those that a family features come first."""
    from saccade.families.registry import families
    from saccade.zoo.folders import left_out

    facts_of = _shipped_facts()
    featured = [name for family in families().values() for name in family.featured if name in facts_of]
    lines: list[Line] = []
    for name in dict.fromkeys([*featured, *facts_of]):
        facts, entry = facts_of[name], result["zoo"][name]
        if isinstance(facts, CheckpointError):
            lines.append(("damaged", name, str(facts)))
            continue
        family, data_name = families()[facts.family], str(facts.data.get("name", ""))
        learned_from = family.data.get(data_name)
        shows = (learned_from and learned_from.shows) or data_name
        score = entry["score"]
        text = "" if score is None else f"{entry['metric'].replace('_', ' ')} {100 * score:.1f} %, "
        lines.append((family.title, name, f"{f'{RESEARCH} ' if facts.research_only else ''}{text}{shows}"))
    _say_lines(lines)
    if any(entry["licence"] == "research only" for entry in result["zoo"].values()):
        say(f"\n{RESEARCH} for research only, as is its training data")
    if names := ", ".join(left_out()):
        say(f"\nNot in this open copy, as their training data is for research only: {names}")
    others = ", ".join(f"{kind} ({len(entries)})" for kind, entries in result.items() if kind != "zoo")
    say(f"\nAsk one:   saccade look PICTURE --model NAME\nList more: saccade list KIND\n           {others}")


def _width() -> int:
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), 100)


def _say_lines(lines: Sequence[Line]) -> None:
    room = max((len(name) for _, name, _ in lines), default=0) + 1
    for heading in dict.fromkeys(heading for heading, _, _ in lines):
        say(f"\n{heading}" if heading else "")
        for of, name, text in lines:
            if of == heading:
                say(f"  {name:{room}} {textwrap.shorten(text, _width() - room - 3, placeholder=' …')}")


def _lines(kind: str, entries: Entries) -> list[Line]:
    """A line for each entry; recipes whose names begin with the same word share one."""
    from saccade.families.registry import families

    titles = {family.name: family.title for family in families().values()}
    stems = Counter(name.partition("-")[0] for name in entries)
    lines: list[Line] = []
    for name, entry in entries.items():
        heading = _OF_DATA[entry["kind"]] if "kind" in entry else titles.get(entry.get("family", ""), "")
        text = entry.get("description") or entry.get("summary") or entry["title"]
        stem = name.partition("-")[0]
        if kind == "recipes" and stems[stem] > 1:
            name, text = f"{stem}*", f"{stems[stem]:3}  {text}"
        if not any(line[:2] == (heading, name) for line in lines):
            lines.append((heading, name, text))
    return lines


def _say_in_full(entries: Entries) -> None:
    for name, entry in entries.items():
        fields = {key: str(value) for key, value in entry.items() if key != "family" and value not in (None, "", "–")}
        room = max(map(len, fields), default=0)
        say(f"\n{name}")
        for key, value in fields.items():
            lead = f"  {key:{room}}  "
            say(textwrap.fill(value, _width(), initial_indent=lead, subsequent_indent=" " * len(lead)))


def models() -> Entries:
    """The models that can be built and trained."""
    from saccade.families.registry import families

    return {
        name: {"family": family.name, "summary": spec.summary, "paper": spec.paper}
        for family in families().values()
        for name, spec in family.models.items()
    }


def backbones() -> Entries:
    """The networks that models can stand on, and the stages that attention can follow."""
    from saccade.backbones.catalog import BACKBONES, HF, TIMM, has_imagenet_weights
    from saccade.files import WEIGHTS

    def entry(summary: str, stages: str, weights: str, paper: str = "–") -> dict[str, str]:
        return {"summary": summary, "stages": stages, "weights": weights, "paper": paper}

    entries = {}
    for name, spec in BACKBONES.items():
        fetched = f"saccade data get {name}-imagenet" if f"{name}-imagenet" in WEIGHTS else "a file of yours"
        weights = fetched if has_imagenet_weights(name) else "none"
        entries[name] = entry(spec.summary, f"{spec.stages[0]} … {spec.stages[-1]}", weights, spec.paper)
    entries[f"{TIMM}NAME"] = entry("a model of the timm library (extra timm)", "its feature maps", "timm's hub")
    vision = "a vision model of the transformers library (extra transformers)"
    return {**entries, f"{HF}NAME": entry(vision, "features", "the hub")}


def recipes() -> Entries:
    """The packaged recipes."""
    from saccade.engine.recipe import recipe_titles
    from saccade.families.registry import families

    family_of = {name: family.name for family in families().values() for name in family.recipes()}
    return {
        name: {"title": title, "paper": paper, "family": family_of[name]}
        for name, (title, paper) in recipe_titles().items()
    }


def data() -> Entries:
    """The data sets and generators."""
    from saccade.families.registry import data_entries

    entries: Entries = {}
    for name, of_families in data_entries().items():
        first = of_families[0][1]
        entries[name] = {
            "kind": first.kind,
            "family": ", ".join(family.name for family, _ in of_families),
            "splits": list(first.splits),
            "licence": first.licence,
            "description": "; or ".join(dict.fromkeys(entry.description for _, entry in of_families)),
            "get": first.get,
        }
    return entries


def examples() -> Entries:
    """The pictures that ship with saccade, to try things with."""
    from saccade.zoo.folders import EXAMPLES

    return {name: {**asdict(picture), "path": str(picture.path)} for name, picture in EXAMPLES.items()}


def _shipped_facts() -> dict[str, ModelFacts | CheckpointError]:
    """The facts of every shipped model; the error of a damaged one, as one bad folder does not hide the others."""
    from saccade.models.facts import read_facts
    from saccade.zoo.folders import shipped

    facts_of: dict[str, ModelFacts | CheckpointError] = {}
    for name, folder in shipped().items():
        try:
            facts_of[name] = read_facts(folder)
        except CheckpointError as error:
            facts_of[name] = error
    return facts_of


def zoo() -> Entries:
    """The shipped models, with their first score."""
    from saccade.families.registry import headline

    entries: Entries = {}
    for name, facts in _shipped_facts().items():
        row: tuple[object, ...] = ("damaged", None, None, None, str(facts), None)
        if not isinstance(facts, CheckpointError):
            first = facts.scores[0] if facts.scores else None
            best = (first and headline(facts.family, first.metrics)) or (None, None)
            of = f"{first.data} {first.scored_part or first.split}, n {first.n:,}" if first else "not scored yet"
            licence = "research only" if facts.research_only else "open"
            row = (facts.architecture, facts.parameters, *best, of, licence)
        entries[name] = dict(zip(("architecture", "parameters", "metric", "score", "scored on", "licence"), row))
    return entries


def list_models(pattern: str = "*") -> list[str]:
    """List the models that ship with saccade, for ``saccade.load``.

    Args:
        pattern: only names like this one. ``*`` stands for anything.

    Returns:
        The names, sorted. It is empty where no name fits.

    Example:
        >>> import saccade
        >>> saccade.list_models("hattnet-ctx-m*")
        ['hattnet-ctx-mbg', 'hattnet-ctx-mdist', 'hattnet-ctx-mref']
    """
    from saccade.zoo.folders import shipped

    return [name for name in sorted(shipped()) if fnmatchcase(name, pattern)]


COMMAND = Command(
    catalogs,
    show,
    place={"what": "KIND", "pattern": "PATTERN"},
    names={"everything": "--all"},
    example="saccade list\nsaccade list recipes 'soft*'",
)
