"""``saccade probe``: compares heads on the features of a frozen backbone, with your own labelled pictures."""

from __future__ import annotations

from typing import Annotated

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages
from saccade.errors import ConfigError


@command_of(
    "saccade.verbs.probe:probe",
    {
        "data": Typed("DATA", unset="what --data names"),
        "out": Typed("-o"),
        "heads": Typed(commas=True),
        "ask": Typed(commas=True),
        "through": RARE,
        "untrained": RARE,
        "evidence_weight": RARE,
        "offline": RARE,
    },
    example="saccade probe photos/ --out runs/probe",
)
def probe(
    given: Given,
    named: Annotated[
        str | None, typer.Option("--data", help="Another way to give DATA.", metavar="DATA", show_default=False)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Probe, and print the verdict."""
    import saccade
    from saccade.verbs.probe_run import HEAD, PAGE, as_reference

    data = given["data"] or named
    if data is None or (given["data"] and named):
        raise ConfigError(
            "data: name a folder of class folders or a table, as in 'saccade probe photos/ --out runs/probe'"
            + (f"; found both '{given['data']}' and '{named}'" if data else "")
        )
    given["data"], out = data, given["out"]
    reference = as_reference(data)
    if reference != data and not quiet:
        remark(f"{data} is read as {reference}")
    with stages(shown=not quiet and not json) as on_progress:
        written = saccade.probe(**given, on_progress=on_progress)
    if json:
        print_json(written.results)
        return
    rows = [
        (
            row.title,
            f"{100 * row.test.mean:.1f} ± {100 * row.test.half:.1f}",
            "" if row.difference is None else f"{100 * row.difference.mean:+.1f} ± {100 * row.difference.half:.1f}",
        )
        for row in written.probed.rows
    ]
    print_table(
        f"{given['backbone']} on {given['data']}, test accuracy in %", ("rival", "accuracy", "less linear"), rows
    )
    typer.echo(written.probed.verdict)
    if not quiet:
        for said in written.probed.remarks:
            remark(said)
        made = f"the head {out / HEAD}" if (out / HEAD).is_file() else f"the model {out}"
        remark(f"wrote {out / PAGE} and {made}")
