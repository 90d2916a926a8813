"""What a probe is given, as a table: data by its name, or pictures in memory with their labels.

Everything behind a table reads files, so pictures that are in memory are written into a folder first, without loss.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.data.pictures.files import content_digests
from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import check_usable
from saccade.data.tables.table import Columns, Row, Table
from saccade.errors import ConfigError, DataError, nearest
from saccade.families import OWN_DATA, Family, Probing, data_entries, families, family_of_data, read_table

IN_MEMORY = "pictures"  # What stands for the name of data that has none


def labelled_pictures(
    pictures: Iterable[Any], labels: Iterable[Any], groups: Iterable[Any] | None, folder: Path
) -> tuple[Family, Probing, Table]:
    """The family that probes labels, and the table of ``pictures``; those that are no files are written to ``folder``.

    ``groups`` says which pictures belong together. A DataError where the lengths differ, or a file comes twice.
    """
    sources, words = list(pictures), [str(label) for label in labels]
    owners = [""] * len(sources) if groups is None else [str(group) for group in groups]
    for name, column in (("labels", words), ("groups", owners)):
        if len(column) != len(sources):
            raise DataError(f"{name}: found {len(column)} {name} for {len(sources)} pictures; give one for each")
    first_of: dict[str, int] = {}  # file → its number
    rows = []
    for number, (source, label, group) in enumerate(zip(sources, words, owners)):
        path = Path(source) if isinstance(source, (str, Path)) else folder / f"{number:06}.png"
        if not isinstance(source, (str, Path)):
            read_picture(source).image.save(path)
        first = first_of.setdefault(os.path.abspath(path), number)
        if words[first] != label:
            raise DataError(f"labels: {path} has two labels, '{words[first]}' and '{label}'; give it one")
        if first != number:
            raise DataError(f"pictures: {path} comes twice, as number {first} and number {number}; give it once")
        rows.append((str(path), Row(path, (label,), "train", group=group)))
    able = [(family, family.probing) for family in families().values() if family.probing and not family.probing.asks]
    return *able[0], Table.of(IN_MEMORY, rows, Columns())


def digest_of(table: Table) -> str:
    """What tells pictures in memory from others: the contents of the files, the labels and the groups, in order."""
    rows = table.as_found or table.rows
    contents = content_digests([row.image for row in rows], unreadable="")
    known = [[content, row.label, row.group] for content, row in zip(contents, rows)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def prober(reference: str, *, asks: bool) -> tuple[Family, Probing]:
    """The family that probes such data; with ``asks``, one that knows its questions.

    A table tells by its columns. Of other data that has both labels and questions, labels are probed unless questions
    are named.
    """
    name = reference.partition(":")[0]
    readers = [family for family, entry in data_entries().get(name, ()) if entry.kind == "reader"]
    if not readers or name in OWN_DATA:
        readers = [family_of_data(reference)]  # which says what is wrong with a name that nobody knows
    able = [(family, family.probing) for family in readers if family.probing is not None]
    if not able:
        raise DataError(
            f"'{reference}' is data of the family '{readers[0].name}'; a probe takes pictures with one label each, or "
            "questions about pictures with one answer each"
        )
    able = [pair for pair in able if pair[1].asks or not asks]
    if not able:
        raise ConfigError(f"ask: '{reference}' has labels and no questions; leave it out")
    return min(able, key=lambda pair: pair[1].asks)  # labels first


def asked_table(reference: str, family: Family, ask: Sequence[str] | None) -> Table:
    """The table without questions that have several answers; with ``ask`` these questions alone, without case."""
    with warnings.catch_warnings():  # of labels and copies by the reader's own splits, which a probe does not use
        warnings.simplefilter("ignore", UserWarning)
        table = read_table(reference, family.name)
    rows = table.as_found or table.rows
    kept = tuple(row for row in rows if len(row.labels) == 1)
    several = [f"several answers: {row.image.name}, {row.query}" for row in rows if len(row.labels) > 1]
    skipped = (*table.skipped, *several)
    check_usable(table.name, kept, skipped, strict=False, thing=table.columns.thing)
    if ask is not None:
        spelt = {row.query.casefold(): row.query for row in kept}
        for word in ask:
            if word.strip().casefold() not in spelt:
                raise ConfigError(f"ask: nothing asks '{word}': {nearest(word, sorted(spelt.values()))}")
        wanted = {spelt[word.strip().casefold()] for word in ask}
        kept = tuple(row for row in kept if row.query in wanted)
        others = tuple(f", {word}" for word in {*spelt.values()} - wanted)  # how an entry that is left out ends
        skipped = tuple(entry for entry in skipped if not entry.endswith(others))
    return replace(table, rows=kept, as_found=kept, skipped=skipped)
