"""``saccade probe``: compares heads on the features of a frozen backbone, with your own labelled pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages


def probe(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model, the page and results.json.")],
    folder: Annotated[
        str | None, typer.Argument(help="The same as --data.", metavar="DATA", show_default=False)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", help="Folder of class folders, a table, or READER:PATH.", metavar="DATA", show_default=False
        ),
    ] = None,
    backbone: Annotated[
        str, typer.Option("--backbone", help="mobilenetv2, compact …, timm:NAME, hf:NAME, features:FOLDER.")
    ] = "mobilenetv2",
    through: Annotated[
        str | None, typer.Option("--through", help="Last stage of the backbone.", show_default="all stages")
    ] = None,
    size: Annotated[int, typer.Option("--size", help="Side of the network input in pixels.", min=16, max=1024)] = 224,
    heads: Annotated[
        str | None,
        typer.Option("--heads", help="Heads to compare with linear, by commas.", show_default="all of them"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="Head of the model.", show_default="the attention head best on validation"),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option("--ask", help="Questions to probe, by commas, of data that has some.", show_default="all of them"),
    ] = None,
    splits: Annotated[int, typer.Option("--splits", help="Splits of the pictures.", min=3, max=20)] = 5,
    seeds: Annotated[int, typer.Option("--seeds", help="Trainings in each split.", min=1, max=20)] = 3,
    steps: Annotated[
        int | None,
        typer.Option("--steps", help="Batches to learn from.", min=1, show_default="10 epochs, at least 150"),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", help="Or how often to see all pictures.", min=1, show_default="see --steps"),
    ] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Pictures of one step.", min=1)] = 64,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Random weights, as a control.", show_default="off")
    ] = False,
    evidence_weight: Annotated[
        float,
        typer.Option("--evidence-weight", help="Teach attention heads to look at boxes and masks.", min=0),
    ] = 0.0,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch no weights of timm and the like.", show_default="off")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Is attention worth it on your pictures? Train small heads on a frozen backbone and compare them with linear.

    Writes a model folder for look, serve and export, a page with the verdict, and results.json. Of features:FOLDER,
    which has no network, it writes the head in place of a model.
    """
    from saccade.errors import ConfigError
    from saccade.probing.trials import Plan
    from saccade.verbs.probe import HEAD, PAGE, as_reference, probe_pictures

    if (data is None) == (folder is None):
        raise ConfigError(
            "data: name a folder of class folders or a table, as in 'saccade probe --data photos/ --out runs/probe'"
            + (f"; found both '{folder}' and '{data}'" if data else "")
        )
    data = data or folder or ""
    reference = as_reference(data)
    if reference != data and not quiet:
        remark(f"{data} is read as {reference}")
    with stages(shown=not quiet and not json) as on_progress:
        written = probe_pictures(
            backbone,
            data,
            out,
            size=size,
            through=through,
            heads=_words(heads),
            ask=_words(ask),
            keep=keep,
            plan=Plan(
                splits=splits,
                seeds=seeds,
                steps=steps,
                epochs=epochs,
                batch_size=batch_size,
                evidence_weight=evidence_weight,
            ),
            untrained=untrained,
            offline=offline,
            on_progress=on_progress,
        )
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
    print_table(f"{backbone} on {data}, test accuracy in %", ("rival", "accuracy", "less linear"), rows)
    typer.echo(written.probed.verdict)
    if not quiet:
        for said in written.probed.remarks:
            remark(said)
        made = f"the head {out / HEAD}" if (out / HEAD).is_file() else f"the model {out}"
        remark(f"wrote {out / PAGE} and {made}")


def _words(given: str | None) -> list[str] | None:
    """Words by commas; None where nothing is given."""
    return None if given is None else [word.strip() for word in given.split(",") if word.strip()]
