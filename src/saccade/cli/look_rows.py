"""``saccade look --engine``: one row for each picture, in Parquet, from one machine or from a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.cli.terminal import bar, print_json, print_table, remark, warn


def look_rows(
    paths: list[str], model: str, out: str | None, settings: Mapping[str, Any], *, json: bool, quiet: bool
) -> None:
    """Look at all pictures and print what became of them."""
    from saccade.adapters.folder import look_folder
    from saccade.errors import ConfigError, DataError

    if out is None:
        raise ConfigError("`engine` writes rows: say where with `out=DIR`")
    with bar("looking, parts", None, shown=not quiet and not json) as update:
        looked = look_folder(paths, model=model, out=out, on_progress=update, **settings)
    for text in looked.first_errors if not json else ():
        warn(text)
    if looked.errors == looked.rows:
        raise DataError(f"none of the {looked.rows} pictures could be read; the rows in {out} say why")
    if json:
        print_json(looked.to_json())
        return
    rate = looked.rows / looked.seconds if looked.seconds and not looked.resumed else None
    row = (looked.rows, looked.errors, looked.parts, looked.seconds, None if rate is None else f"{rate:.1f}")
    print_table(f"{model}, rows in {looked.out}", ("rows", "with an error", "files", "seconds", "rows a second"), [row])
    if quiet:
        return
    if looked.resumed:
        remark(f"{looked.resumed} of {looked.parts} files were there already")
    for text in looked.remarks:
        remark(text)
    remark(f"'saccade report {looked.out}' draws some, 'saccade score {looked.out} --truth …' scores the maps")
