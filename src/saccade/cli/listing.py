"""``saccade list``: what there is, without importing torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from saccade.cli.options import Json
from saccade.cli.terminal import print_json, print_table

_IN_JSON_ALONE = ("architecture", "parameters")  # of shipped models, whose names are long and nearly say it
Kind = Literal["models", "backbones", "recipes", "data", "zoo"]


def list_(
    what: Annotated[Kind | None, typer.Argument(help="One of the catalogs.", show_default="shipped models")] = None,
    json: Json = False,
    everything: Annotated[bool, typer.Option("--all", help="Every catalog in full.", show_default="off")] = False,
) -> None:
    """Shipped models by what they are for; models, backbones, recipes, data and shipped weights by name."""
    makers = {"models": models, "backbones": backbones, "recipes": recipes, "data": data, "zoo": zoo}
    catalogs = {kind: maker() for kind, maker in makers.items() if what in (None, kind)}
    if json:
        print_json(catalogs)
        return
    if what is None and not everything:
        for line in overview():
            typer.echo(line)
        others = ", ".join(f"{len(catalogs[kind])} {kind}" for kind in makers if kind != "zoo")
        typer.echo(f"\nAlso: {others}; 'saccade list KIND' or 'saccade list --all' prints them.")
        return
    for kind, entries in catalogs.items():
        if not entries:
            typer.echo(f"{kind}: none yet")
            continue
        columns = [column for column in next(iter(entries.values())) if column not in _IN_JSON_ALONE]
        rows = [(name, *(entry[column] for column in columns)) for name, entry in entries.items()]
        print_table(kind, ("name", *columns), rows)


def overview() -> list[str]:
    """The shipped models, one line each, under what goes in and what comes out."""
    from saccade.families import families
    from saccade.models.io.facts import read_facts
    from saccade.zoo import shipped

    scored, lines = zoo(), []
    held: dict[str, list[str]] = {}
    for name in shipped():
        if scored[name]["parameters"] is None:
            lines.append(f"  {name:30} damaged: {scored[name]['scored on']}")
            continue
        facts = read_facts(shipped()[name])
        entry = families()[facts.family].data.get(str(facts.data.get("name", "")))
        shown = (entry.shows if entry is not None else "") or facts.data.get("name", "")
        metric, score = scored[name]["metric"], scored[name]["score"]
        told = "" if score is None else f", {str(metric).replace('_', ' ')} {100 * score:.1f} %"
        held.setdefault(facts.family, []).append(f"  {name:30} {shown}{told}")
    for family, entries in held.items():
        first = [line for name in families()[family].featured for line in entries if line.split()[0] == name]
        lines += ["", families()[family].title, *dict.fromkeys([*first, *entries])]
    return lines


def models() -> dict[str, dict[str, Any]]:
    """The models that can be built and trained."""
    from saccade.families import families

    return {
        name: {"family": family.name, "summary": spec.summary, "paper": spec.paper}
        for family in families().values()
        for name, spec in family.models.items()
    }


def backbones() -> dict[str, dict[str, Any]]:
    """The networks that models can stand on, and the stages that attention can follow."""
    from saccade.backbones.catalog import BACKBONES, HF, TIMM
    from saccade.cache import WEIGHTS

    entries = {}
    for name, spec in BACKBONES.items():
        fetched = f"saccade data get {name}-imagenet" if f"{name}-imagenet" in WEIGHTS else "a file of yours"
        entries[name] = {
            "summary": spec.summary,
            "stages": f"{spec.stages[0]} … {spec.stages[-1]}",
            "weights": fetched if spec.published else "none",
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


def recipes() -> dict[str, dict[str, Any]]:
    """The packaged recipes."""
    from saccade.engine.recipe import recipe_titles

    return {name: {"title": title, "paper": paper} for name, (title, paper) in recipe_titles().items()}


def data() -> dict[str, dict[str, Any]]:
    """The data sets and generators."""
    from saccade.families import data_entries

    return {
        name: {
            "kind": held[0][1].kind,
            "description": "; or ".join(dict.fromkeys(entry.description for _, entry in held)),
            "get": held[0][1].get,
        }
        for name, held in data_entries().items()
    }


def zoo() -> dict[str, dict[str, Any]]:
    """The shipped models, with their first score."""
    from saccade.errors import CheckpointError
    from saccade.families import headline
    from saccade.models.io.facts import read_facts
    from saccade.zoo import shipped

    entries: dict[str, dict[str, Any]] = {}
    for name, folder in shipped().items():
        try:
            facts = read_facts(folder)
        except CheckpointError as error:  # one bad folder does not hide the others
            entries[name] = {
                "architecture": "damaged", "parameters": None, "metric": None, "score": None, "scored on": str(error)
            }  # fmt: skip
            continue
        first = facts.scores[0] if facts.scores else None
        metric, value = (first and headline(facts.family, first.metrics)) or (None, None)
        entries[name] = {
            "architecture": facts.architecture,
            "parameters": facts.parameters,
            "metric": metric,
            "score": value,
            "scored on": f"{first.data} {first.split}, n {first.n:,}" if first else "not scored yet",
        }
    return entries
