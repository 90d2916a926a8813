"""``saccade list``: models, backbones, recipes and data that saccade knows, printed without importing torch."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from saccade.commands.signature import Command, check_call
from saccade.commands.terminal import print_table, say

if TYPE_CHECKING:
    from saccade.errors import CheckpointError
    from saccade.families.contract import ModelSpec
    from saccade.models.io.facts import ModelFacts, Score

_IN_JSON_ALONE = ("architecture", "parameters", "path")  # a terminal has no room for them
_NARROWEST, _WIDEST = 60, 100
_OF_DATA = {
    "generator": "generated while training, by name",
    "collection": "made or downloaded by 'saccade data', by name or NAME:PATH",
    "reader": "files on your disk, as NAME:PATH",
}
RESEARCH = "†"
"""Stands before what is for research only."""
Kind = Literal["models", "backbones", "recipes", "data", "examples", "zoo"]
Entries = dict[str, dict[str, Any]]
ShippedFacts = dict[str, "ModelFacts | CheckpointError"]


def catalogs(what: Kind | None = None, pattern: str | None = None, *, everything: bool = False) -> Catalogs:
    """List the shipped models, or models, backbones, recipes, data, examples.

    Args:
        what: the catalog to print. None: the shipped models.
        pattern: print these names in full; * stands for anything. None: a line each.
        everything: print every catalog in full.
    """
    check_call(catalogs, locals())
    facts = _shipped_facts() if what in (None, "zoo") else {}
    makers: dict[str, Callable[[], Entries]] = {
        "models": models,
        "backbones": backbones,
        "recipes": recipes,
        "data": data,
        "examples": examples,
        "zoo": lambda: zoo(facts),
    }
    held = {kind: maker() for kind, maker in makers.items() if what in (None, kind)}
    if what is not None and pattern is not None:
        held = {what: _matching(what, held[what], pattern)}
    return Catalogs(held, facts)


@dataclass(frozen=True)
class Catalogs:
    """What was asked for, by kind."""

    entries: dict[str, Entries]
    shipped: ShippedFacts

    def to_json(self) -> dict[str, Entries]:
        """By kind and name."""
        return self.entries


def show(found: Catalogs, given: Mapping[str, Any], quiet: bool) -> None:
    """Print one catalog, or the shipped models and what other catalogs there are."""
    everything = given["everything"]
    if given["what"] is None and not everything:
        for line in overview(found.shipped, found.entries["zoo"]):
            say(line)
        say("\nAsk one:   saccade look PICTURE --model NAME")
        others = ", ".join(f"{kind} ({len(each)})" for kind, each in found.entries.items() if kind != "zoo")
        say(f"List more: saccade list KIND\n           {others}")
        return
    for kind, entries in found.entries.items():
        if not entries:
            say(f"{kind}: none yet")
        elif kind in ("zoo", "examples"):
            columns = [column for column in next(iter(entries.values())) if column not in _IN_JSON_ALONE]
            rows = [(name, *(entry[column] for column in columns)) for name, entry in entries.items()]
            print_table(kind, ("name", *columns), rows)
        else:
            is_full = given["pattern"] is not None or everything
            for line in [kind, *_in_full(entries)] if is_full else _in_short(kind, entries):
                say(line)


def _matching(kind: str, entries: Entries, pattern: str) -> Entries:
    from saccade.errors import ConfigError, nearest

    found = {name: entry for name, entry in entries.items() if fnmatchcase(name, pattern)}
    if not found:
        raise ConfigError(
            f"{kind}: no name fits '{pattern}'; {nearest(pattern, entries, listed_by=f'saccade list {kind}')}"
        )
    return found


def _width() -> int:
    return min(max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)


def _line(name: str, text: str, room: int) -> str:
    """``name`` in ``room`` columns and as much of ``text`` as fits behind it."""
    return f"  {name:{room}} {textwrap.shorten(text, _width() - room - 3, placeholder=' …')}"


def _in_short(kind: str, entries: Entries) -> list[str]:
    """A line for each entry, in groups; of recipes a line for each group of names that begin alike."""
    if kind == "recipes":
        return _folded(entries)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, entry in entries.items():
        text = entry["description"] if kind == "data" else entry["summary"]
        groups.setdefault(_heading(entry), []).append((name, text))
    room = max(map(len, entries)) + 1
    lines = [f"{kind} ({len(entries)})"]
    for heading, held in groups.items():
        lines += ["", *filter(None, [heading]), *(_line(name, text, room) for name, text in held)]
    return [*lines, "", f"In full: saccade list {kind} NAME, or a pattern such as '{next(iter(entries))[:3]}*'"]


def _heading(entry: Mapping[str, Any]) -> str:
    from saccade.families import families

    if "kind" in entry:
        return _OF_DATA[entry["kind"]]
    return families()[entry["family"]].title if "family" in entry else ""


def _folded(entries: Entries) -> list[str]:
    """The recipes, by family; those whose names begin with the same word share a line."""
    from saccade.families import families

    held: dict[str, dict[str, list[str]]] = {}
    for name, entry in entries.items():
        held.setdefault(entry["family"], {}).setdefault(name.partition("-")[0], []).append(name)
    stems = [stem for groups in held.values() for stem in groups]
    room, lines = max(map(len, stems)) + 1, [f"recipes ({len(entries)})"]
    for family, groups in held.items():
        lines += ["", families()[family].title]
        for stem, names in groups.items():
            text = _purpose(families()[family].models, stem) or entries[min(names, key=len)]["title"]
            called = names[0] if len(names) == 1 else f"{stem}*"
            lines.append(_line(f"{called:{room}} {len(names):3} ", text, room + 5))
    most = max(stems, key=lambda stem: sum(name.startswith(f"{stem}-") for name in entries))
    return [*lines, "", f"Every recipe of a group: saccade list recipes '{most}*'"]


def _purpose(models: Mapping[str, ModelSpec], stem: str) -> str:
    """What the model called ``stem``, or the first whose name begins with it, is for; nothing where there is none."""
    return next((spec.summary for name, spec in models.items() if name == stem or name.startswith(f"{stem}-")), "")


def _in_full(entries: Entries) -> list[str]:
    """Each entry with everything that is known of it."""
    lines: list[str] = []
    for name, entry in entries.items():
        told = {key: str(value) for key, value in entry.items() if key != "family" and value not in (None, "", "–")}
        room = max(map(len, told), default=0)
        lines += ["", name]
        for key, value in told.items():
            lead = f"  {key:{room}}  "
            lines += textwrap.wrap(
                value, _width(), initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False
            )
    return lines


def overview(shipped_facts: ShippedFacts, scored: Entries) -> list[str]:
    """The shipped models, one line each, under what goes in and what comes out."""
    from saccade.errors import CheckpointError
    from saccade.families import families

    lines: list[str] = []
    room = max(map(len, scored), default=0) + 1
    held: dict[str, list[str]] = {}
    for name, facts in shipped_facts.items():
        if isinstance(facts, CheckpointError):
            lines.append(_line(name, f"damaged: {facts}", room))
            continue
        entry = families()[facts.family].data.get(str(facts.data.get("name", "")))
        shown = (entry.shows if entry is not None else "") or facts.data.get("name", "")
        metric, score = scored[name]["metric"], scored[name]["score"]
        told = "" if score is None else f"{str(metric).replace('_', ' ')} {100 * score:.1f} %, "
        mark = f"{RESEARCH} " if facts.research_only else ""
        held.setdefault(facts.family, []).append(_line(name, f"{mark}{told}{shown}", room))
    for family, entries in held.items():
        first = [line for name in families()[family].featured for line in entries if line.split()[0] == name]
        lines += ["", families()[family].title, *dict.fromkeys([*first, *entries])]
    marked = any(entry["licence"] == "research only" for entry in scored.values())
    return lines + (["", f"{RESEARCH} for research only, as is its training data"] if marked else []) + _left_out()


def _left_out() -> list[str]:
    """What the open copy was built without, in one line; nothing in a full one."""
    from saccade.zoo import left_out

    names = ", ".join(left_out())
    return ["", f"Not in this open copy, as their training data is for research only: {names}"] if names else []


def models() -> Entries:
    """The models that can be built and trained."""
    from saccade.families import families

    return {
        name: {"family": family.name, "summary": spec.summary, "paper": spec.paper}
        for family in families().values()
        for name, spec in family.models.items()
    }


def backbones() -> Entries:
    """The networks that models can stand on, and the stages that attention can follow."""
    from saccade.backbones.catalog import BACKBONES, HF, TIMM, has_imagenet_weights
    from saccade.cache import WEIGHTS

    entries = {}
    for name, spec in BACKBONES.items():
        fetched = f"saccade data get {name}-imagenet" if f"{name}-imagenet" in WEIGHTS else "a file of yours"
        entries[name] = {
            "summary": spec.summary,
            "stages": f"{spec.stages[0]} … {spec.stages[-1]}",
            "weights": fetched if has_imagenet_weights(name) else "none",
            "paper": spec.paper,
        }
    entries[f"{TIMM}NAME"] = {
        "summary": "a model of the timm library (extra timm)",
        "stages": "its feature maps",
        "weights": "timm's hub",
        "paper": "–",
    }
    entries[f"{HF}NAME"] = {
        "summary": "a vision model of the transformers library (extra transformers)",
        "stages": "features",
        "weights": "the hub",
        "paper": "–",
    }
    return entries


def recipes() -> Entries:
    """The packaged recipes."""
    from saccade.engine.recipe import recipe_titles
    from saccade.families import families

    family_of = {name: family.name for family in families().values() for name in family.recipes()}
    return {
        name: {"title": title, "paper": paper, "family": family_of[name]}
        for name, (title, paper) in recipe_titles().items()
    }


def data() -> Entries:
    """The data sets and generators."""
    from saccade.families import data_entries

    return {
        name: {
            "kind": held[0][1].kind,
            "family": ", ".join(family.name for family, _ in held),
            "splits": list(held[0][1].splits),
            "licence": held[0][1].licence,
            "description": "; or ".join(dict.fromkeys(entry.description for _, entry in held)),
            "get": held[0][1].get,
        }
        for name, held in data_entries().items()
    }


def examples() -> Entries:
    """The pictures that ship with saccade, to try things with."""
    from saccade.data.gallery import EXAMPLES

    return {name: {**asdict(each), "path": str(each.path)} for name, each in EXAMPLES.items()}


def _shipped_facts() -> ShippedFacts:
    """The facts of every shipped model; the error of a damaged one, as one bad folder does not hide the others."""
    from saccade.errors import CheckpointError
    from saccade.models.io.facts import read_facts
    from saccade.zoo import shipped

    found: ShippedFacts = {}
    for name, folder in shipped().items():
        try:
            found[name] = read_facts(folder)
        except CheckpointError as error:
            found[name] = error
    return found


def zoo(shipped_facts: ShippedFacts) -> Entries:
    """The shipped models, with their first score."""
    from saccade.errors import CheckpointError
    from saccade.families import headline

    entries: Entries = {}
    for name, facts in shipped_facts.items():
        if isinstance(facts, CheckpointError):
            entries[name] = {
                "architecture": "damaged", "parameters": None, "metric": None, "score": None, "scored on": str(facts),
                "licence": None,
            }  # fmt: skip
            continue
        first = facts.scores[0] if facts.scores else None
        metric, value = (first and headline(facts.family, first.metrics)) or (None, None)
        entries[name] = {
            "architecture": facts.architecture,
            "parameters": facts.parameters,
            "metric": metric,
            "score": value,
            "scored on": _scored_on(first),
            "licence": "research only" if facts.research_only else "open",
        }
    return entries


def _scored_on(score: Score | None) -> str:
    """What a score is of: the data, and the part of it that was scored."""
    if score is None:
        return "not scored yet"
    return f"{score.data} {score.scored_part or score.split}, n {score.n:,}"


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
    from saccade.zoo import shipped

    return [name for name in sorted(shipped()) if fnmatchcase(name, pattern)]


COMMAND = Command(
    catalogs,
    show,
    place={"what": "KIND", "pattern": "PATTERN"},
    names={"everything": "--all"},
    example="saccade list\nsaccade list recipes 'soft*'",
)
