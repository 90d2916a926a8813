"""``saccade list``: what there is, without importing torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from saccade.cli.options import Json
from saccade.cli.terminal import print_json, print_table

_IN_JSON_ALONE = ("architecture", "parameters")  # of shipped models, whose names are long and nearly say it
Kind = Literal["models", "backbones", "recipes", "data", "zoo"]


def list_(
    what: Annotated[Kind | None, typer.Argument(help="One of the catalogs; all of them if not given.")] = None,
    json: Json = False,
) -> None:
    """Models, backbones, recipes, data and shipped weights by name."""
    makers = {"models": models, "backbones": backbones, "recipes": recipes, "data": data, "zoo": zoo}
    catalogs = {kind: maker() for kind, maker in makers.items() if what in (None, kind)}
    if json:
        print_json(catalogs)
        return
    for kind, entries in catalogs.items():
        if not entries:
            typer.echo(f"{kind}: none yet")
            continue
        columns = [column for column in next(iter(entries.values())) if column not in _IN_JSON_ALONE]
        rows = [(name, *(entry[column] for column in columns)) for name, entry in entries.items()]
        print_table(kind, ("name", *columns), rows)


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
