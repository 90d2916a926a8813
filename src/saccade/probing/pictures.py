"""The pictures of a probe: from the name of data, or pictures in memory with their labels, to those it can use.

Pictures in memory are written into a folder first, without loss. What cannot be used is left out, counted and named:
files that cannot be read, and classes and questions with too few pictures.

Axes: N examples, P pictures, B pictures of a batch, H and W pixels.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.backbones.feature_folder import FeatureFolder
from saccade.data.pictures.files import content_digests, copy_groups
from saccade.data.pictures.image_split import Evidence, PreparedPictures
from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import check_usable, contradictions, first_few, pluralise, spellings, summarised
from saccade.data.tables.table import Columns, Row, Table
from saccade.errors import ConfigError, DataError, nearest
from saccade.families.registry import OWN_DATA, Family, Probing, data_entries, families, family_of_data, read_table
from saccade.geometry import Size
from saccade.metrics.result import Part
from saccade.probing.examples import ProbedExamples, Questions
from saccade.progress import OnProgress

IN_MEMORY = "pictures"  # What stands for the name of data that has none
MAX_CLASSES = 2_000
"""Classes that a probe compares at most: each rival has a row of weights for each of them, many times over."""
MAX_QUESTIONS = 500  # Questions that a probe asks at most: some rivals have weights for each of them
MIN_GROUPS = 3
"""Groups of pictures that a class needs: one to learn from, one to choose with, one to be tested on."""
DECODED = 2 << 30  # Bytes of decoded pictures that are kept in memory
_NAMED = 5
_UNSEEN = ("label never seen in train", "query never seen in train")
"""Rows that the reader leaves out by its own splits; a probe makes others and can use them."""


def prober(reference: str, *, asks: bool) -> tuple[Family, Probing]:
    """The family that probes such data; with ``asks``, one that knows its questions.

    Of data with both labels and questions, labels are probed unless questions are named.
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
    """What identifies pictures in memory: the contents of the files, the labels and the groups, in order."""
    rows = table.as_found or table.rows
    contents = content_digests([row.image for row in rows], unreadable="")
    known = [[content, row.label, row.group] for content, row in zip(contents, rows)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class ProbedPictures(ProbedExamples):
    """Examples of a table, with their files."""

    paths: Sequence[Path]  # (P,) the files
    store: PreparedPictures
    places: Tensor  # (P,) where each picture is in the store
    rows: Tensor  # (N,) the row of each example's evidence
    evidence: Evidence | None  # Where labels can be seen, by row; None where the data does not say
    remarks: Sequence[str]  # What was left out, and what else is to be known, in words
    copies: Sequence[tuple[str, str]]  # A picture and the first one with the same bytes
    folder: FeatureFolder | None = None  # Whose maps stand in for a network, if any

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: what is known of the pictures, but no pixels."""
        return {**vars(self), "store": None, "evidence": None, "folder": None}

    def place(self, example: int) -> Part:
        """The file of an example, and what is asked about it."""
        path = self.paths[int(self.questions.picture[example])]
        asked = {"asked": self.questions.words[int(self.questions.query[example])]} if self.questions.are_asked else {}
        return {"picture": str(path), **asked}

    def inputs(self, pictures: Tensor) -> Tensor:
        """Pictures by number, as the network sees them: (B,3,H,W)."""
        return self.store.take(self.places[pictures])

    def canvas(self, examples: Tensor) -> tuple[Tensor, Tensor]:
        """For each picture: the frame from the network input to it (B,2,3), and its height and width (B,2)."""
        place = self.places[self.questions.picture[examples]]
        size = self.store.image_size[place]
        return self.store.canvas[place] if self.folder is None else self.folder.canvas(size), size


def usable_pictures(
    table: Table, size: Size, on_progress: OnProgress, folder: FeatureFolder | None = None
) -> ProbedPictures:
    """The pictures and questions of ``table`` that a probe can use; its own splits are put together.

    With a ``folder`` of maps, only pictures that have one can be used.
    """
    rows, lost = table.as_found or table.rows, ""
    if folder is not None:
        rows, lost = _with_maps(table, rows, folder)
    _check_count(table.name, "classes", {row.label for row in rows}, MAX_CLASSES)
    remarks = [lost, *_doubts(table, rows)] if lost else _doubts(table, rows)
    files = [*dict.fromkeys(row.image for row in rows)]
    own = _numbers([row.image for row in rows], files)  # the picture of each row
    cpu = torch.device("cpu")
    store = PreparedPictures(files, size, cpu, limit=DECODED, on_progress=on_progress)
    if store.unreadable:
        broken = [files[number].name for number in sorted(store.unreadable)]
        remarks.append(f"{pluralise(len(broken), 'picture')} cannot be read: {first_few(broken, _NAMED)}")
    readable = [number for number in range(len(files)) if number not in store.unreadable]
    evidence = Evidence(rows, store, cpu, limit=DECODED, picture_of=own)
    if evidence.wrong:
        remarks.append(f"evidence that cannot be used: {summarised([*evidence.wrong.values()])}")
    copied = copy_groups([files[number] for number in readable])
    original = {number: readable[first] for number, first in zip(readable, copied)}  # picture → first with its bytes
    usable = [place for place in range(len(rows)) if own[place] in original]  # rows
    groups = together([[original[own[place]], *filter(None, [rows[place].group])] for place in usable])
    named = {rows[place].group for place in usable} - {""}
    if named:
        remarks.append(
            f"{pluralise(len(named), 'group')} of pictures that belong together, by the column 'group': each stays on "
            "one side of every split"
        )
    kept = _frequent([rows[place] for place in usable], groups, "groups" if named else "pictures", remarks)
    places = [usable[at] for at in kept]  # rows
    classes = sorted({rows[place].label for place in places})
    if len(classes) < 2:
        raise DataError(
            f"{table.name}: {pluralise(len(classes), 'class', 'classes')} with {MIN_GROUPS} different pictures or "
            f"more; a probe needs two of them: add pictures{''.join(f'; {remark}' for remark in remarks)}"
        )
    words = sorted({rows[place].query for place in places})
    _check_count(table.name, "questions", words, MAX_QUESTIONS)
    pictures = [*dict.fromkeys(own[place] for place in places)]  # of the store
    return ProbedPictures(
        labels=torch.tensor(_numbers([rows[place].label for place in places], classes)),
        classes=tuple(classes),
        groups=tuple(groups[at] for at in kept),
        questions=Questions(
            tuple(words),
            torch.tensor(_numbers([rows[place].query for place in places], words)),
            torch.tensor(_numbers([own[place] for place in places], pictures)),
        ),
        paths=tuple(files[number] for number in pictures),
        store=store,
        places=torch.tensor(pictures),
        rows=torch.tensor(places),
        evidence=evidence if evidence.is_there else None,
        remarks=remarks,
        copies=[(files[n].name, files[original[n]].name) for n in pictures if original[n] != n],
        folder=folder,
    )


def _with_maps(table: Table, rows: Sequence[Row], folder: FeatureFolder) -> tuple[tuple[Row, ...], str]:
    """The ``rows`` whose pictures have a map in ``folder``, and a remark on the others."""
    kept = tuple(row for row in rows if folder.file_of(row.image) is not None)
    if not kept:
        raise DataError(
            f"{folder.folder}: no map has the name of a picture of {table.name}, such as {rows[0].image.stem}"
        )
    folder.check_apart([row.image for row in kept])
    lost = [row.image.name for row in rows if folder.file_of(row.image) is None]
    return kept, f"{pluralise(len(lost), 'picture')} left out without a map: {first_few(lost, _NAMED)}" if lost else ""


def _numbers(values: Sequence[Any], known: Sequence[Any]) -> list[int]:
    number = {value: place for place, value in enumerate(known)}
    return [number[value] for value in values]


def _doubts(table: Table, rows: Sequence[Row]) -> list[str]:
    """What is wrong with a table before a picture is opened, in words."""
    skipped = [entry for entry in table.skipped if not entry.startswith(_UNSEEN)]
    asked = sorted({row.query for row in rows} - {""})
    doubts = (
        f"left out when {table.name} was read: {summarised(skipped)}" if skipped else "",
        spellings(sorted({row.label for row in rows}), "labels"),
        spellings(asked, "questions"),
        contradictions(((row.image, row.query, (row.label,)) for row in rows), "question") if asked else "",
    )
    return [doubt for doubt in doubts if doubt]


def _frequent(rows: Sequence[Row], groups: Sequence[int], what: str, remarks: list[str]) -> list[int]:
    """The ``rows`` whose question and label come in enough groups; the others are said in ``remarks``."""
    kept = [*range(len(rows))]
    for thing, several, column in (("question", "questions", "query"), ("class", "classes", "label")):
        words = [getattr(rows[at], column) for at in kept]
        count = Counter(word for word, _ in {(word, groups[at]) for word, at in zip(words, kept)})
        few = sorted(word for word in count if count[word] < MIN_GROUPS)
        if few and (column == "label" or {*words} != {""}):
            remarks.append(
                f"{pluralise(len(few), thing, several)} left out with fewer than {MIN_GROUPS} different {what}: "
                f"{first_few(few, _NAMED)}"
            )
            kept = [at for word, at in zip(words, kept) if word not in few]
    return kept


def _check_count(name: str, several: str, words: Collection[str], most: int) -> None:
    if len(words) > most:
        raise DataError(f"{name}: {len(words):,} {several}; a probe compares {most:,} at most: name a part of the data")


def together(keys: Sequence[Sequence[Hashable]]) -> list[int]:
    """The group of each thing by its ``keys``, one or more: those that share one are in one group, (N,) numbers.

    >>> together([["a"], ["b"], ["c", "a"], ["d", "b", "c"]])
    [0, 0, 0, 0]
    """
    parent: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, *others in keys:
        for other in others:
            parent[root(other)] = root(first)
    number_of: dict[Hashable, int] = {}
    return [number_of.setdefault(root(first), number) for number, (first, *_) in enumerate(keys)]
