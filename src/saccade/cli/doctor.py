"""``saccade doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

from typing import Any

import typer

from saccade.cli.help import with_example
from saccade.cli.options import Json
from saccade.cli.terminal import print_json, print_table


@with_example("saccade doctor")
def doctor(json: Json = False) -> None:
    """Check the installation: packages, devices, shipped models."""
    from saccade.verbs.doctor import doctor as examine

    found = examine()
    if json:
        print_json(found)
    else:
        _show(found)
    if found["problems"]:
        raise typer.Exit(2)


def _show(found: dict[str, Any]) -> None:
    typer.echo(f"saccade {found['saccade']}, Python {found['python']}, {found['platform']}\n")
    versions = [(name, version or "missing") for name, version in found["packages"].items()]
    print_table("packages", ("package", "version"), versions)
    print_table("devices", ("device",), [(device,) for device in found["devices"]])
    print_table("generated scenes", ("device", "made by"), list(found["scene_makers"].items()))
    extras = [(n, ", ".join(e["missing"]) or "complete", e["get"] or "") for n, e in found["extras"].items()]
    if extras:
        print_table("extras", ("extra", "missing", "get it with"), extras)
    print_table("programs", ("program", "state"), list(found["programs"].items()))
    held = found["cache"]["holds"]
    if held:
        print_table(f"cache {found['cache']['folder']}", ("name", "bytes"), list(held.items()))
    else:
        typer.echo(f"cache {found['cache']['folder']}: empty; 'saccade data get mnist' fills it for training\n")
    if found["zoo"]:
        print_table("shipped models", ("model", "weights"), list(found["zoo"].items()))
    else:
        typer.echo("shipped models: none in this copy; 'saccade train' makes one\n")
    for problem in found["problems"]:
        typer.secho(f"problem: {problem}", fg="red", err=True)
    if not found["problems"]:
        typer.secho("all is well", fg="green")
