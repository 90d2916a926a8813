"""``saccade reproduce``: prints a published table with the measured numbers beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from saccade.verbs.reproduction.result import Reproduction


@command_of(
    "saccade.verbs.reproduce:reproduce",
    {
        "data": Typed(shows="NAME[:PATH]"),
        "out": Typed("-o"),
    },
    leave_out={"table", "overrides"},
    example="saccade reproduce hattnet-table1 --out table1",
)
def reproduce(
    given: Given,
    named: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE…", help="Which tables; without one they are listed.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Test whether every recorded command still gives its record.", show_default=False),
    ] = False,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="List every table and figure of the papers, done or not.", show_default=False),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the tables one after the other, and print them."""
    if check or coverage:
        if (check and coverage) or named:
            raise ConfigError("--check and --coverage take no table: they are about all tables")
        _all_records(json) if check else _all_items(json)
        return
    if not named:
        from saccade.families import tables

        known = {name: each.description for name, each in tables().items()}
        if json:
            print_json(known)
        else:
            print_table("tables", ("name", "what it is"), list(known.items()))
        return
    from saccade.verbs import reproduce as verb

    several, out = len(named) > 1, given.pop("out")
    verb.check_tables_exist(named)
    results: dict[str, Reproduction] = {}
    for table in named:
        with stages(shown=not quiet) as update:
            folder = out / table if out is not None and several else out
            results[table] = verb.reproduce(table, **given, out=folder, on_progress=update)
        if not json:
            _print_result(results[table], quiet)
    if json:
        whole = {table: result.to_json() for table, result in results.items()}
        print_json(whole if several else whole[named[0]])


def _print_result(result: Reproduction, quiet: bool) -> None:
    """The tables of one result, what they mean, and where its page lies."""
    for each in result.tables:
        print_table(each.title, each.columns, each.rows)
        if each.note:
            typer.echo(f"  {each.note}\n")
    typer.echo(result.legend)
    if result.report is not None:
        typer.echo(f"open {result.report} in a browser ({len(result.figures)} figures beside it)")
    elif not quiet:
        remark("name a folder with --out to get the figures and a page")


def _all_records(json: bool) -> None:
    """Every record against the recipes of today; exit code 1 where one neither resolves nor is marked."""
    from saccade.verbs.reproduction.check import check_records, check_tables

    found = check_records()
    if json:
        print_json([each.to_json() for each in found])
    else:
        for each in check_tables(found):
            print_table(each.title, each.columns, each.rows)
    if any(each.state == "differs" for each in found):
        raise typer.Exit(1)


def _all_items(json: bool) -> None:
    """Every table and figure of the papers, family by family."""
    from saccade.families import coverage

    found = coverage()
    if json:
        print_json([{"family": family, **item.to_json()} for family, items in found.items() for item in items])
        return
    for family, items in found.items():
        rows = [(item.paper, item.item, item.state, item.note) for item in items]
        print_table(family, ("paper", "table or figure", "state", "by what, or why not"), rows)
