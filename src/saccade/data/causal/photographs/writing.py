"""Causal sets of photographs put on disk, one photograph after the other; a run that was stopped can be continued.

Until it is whole, the folder has ``making.json``, the settings, in place of ``causal.json``; a line of ``truth.jsonl``
is written once its pictures are. Pictures are JPEG of quality 95 without subsampling of colours: blocks of 8 × 8 in
which nothing changed stay equal.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from saccade.config import from_dict
from saccade.data.causal.photographs.format import CHANGES, PhotographFacts, photograph_digest
from saccade.data.causal.photographs.marking import Marked, UnusablePictureError
from saccade.data.causal.photographs.twins import Twin, Twins, box_of
from saccade.data.causal.row_folder import CARD, FACTS, ROWS, Pixels, TruthLine, picture_name
from saccade.data.pictures.labelled import check_new
from saccade.data.tables.doubts import first_few
from saccade.errors import DataError, OutputError
from saccade.files import locked, make_folder, read_json, write_json, write_text, writing
from saccade.progress import OnProgress, no_progress

_MAKING = "making.json"
_RESULTS = ("count", "twins", "left_out", "labels", "digest")  # Facts that are known in the end


class PhotographSource(Protocol):
    """Where photographs and their twins come from."""

    names: Sequence[str]  # in the order in which they are made

    def make(self, name: str) -> tuple[Marked, Twins]:
        """A photograph with its twins, the same for a name whatever was made before; or UnusablePictureError."""


def write_photographs(
    source: PhotographSource,
    facts: PhotographFacts,
    out: Path,
    count: int | None = None,
    *,
    resume: bool = False,
    on_progress: OnProgress = no_progress,
    on_left_out: Callable[[str, str], None] = lambda reason, name: None,
) -> PhotographFacts:
    """Write photographs with their twins; returns the facts of the whole set.

    Args:
        source: where they come from.
        facts: the settings.
        out: a new or empty folder; with ``resume`` one in which a run with the same settings was stopped.
        count: photographs at most; None: all that can be used.
        resume: go on with what is there.
        on_progress: called with photographs written, and in all if every one can be used.
        on_left_out: called with the reason and the name of each photograph that is left out.
    """
    names = hashlib.sha256("\n".join(sorted(source.names)).encode(errors="surrogateescape")).hexdigest()[:16]
    settings = {key: value for key, value in asdict(facts).items() if key not in _RESULTS} | {"names": names}
    if resume and (out / FACTS).is_file():
        whole = from_dict(PhotographFacts, read_json(out / FACTS), where=str(out / FACTS))
        if count not in (None, whole.count):
            raise OutputError(f"{out}: finished, with {whole.count:,} photographs; name another folder for another set")
        return whole
    if not resume or not (out / _MAKING).is_file():
        check_new(out)
    elif differing := [key for key, value in read_json(out / _MAKING).items() if settings.get(key) != value]:
        raise OutputError(f"{out}: begun with other settings ({', '.join(differing)}); name another folder")
    total = min(count or len(source.names), len(source.names))
    left_out = Counter[str]()
    with locked(make_folder(out) / "saccade.lock", f"writes into {out}"), writing(out):
        write_json(out / _MAKING, settings)
        done = {row["name"] for row in _rows_of(out / ROWS)}
        passed = 0  # photographs that are there; those between that were left out are tried again, to be counted
        for name in source.names:
            if passed >= total:
                break
            if name in done:
                passed += 1
                continue
            try:
                photograph, twins = source.make(name)
            except UnusablePictureError as error:
                left_out[reason := f"picture: {error}"] += 1
                on_left_out(reason, name)
                continue
            row = _written(out, f"{len(done):08d}", photograph, twins)
            with (out / ROWS).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            done.add(name)
            passed += 1
            on_progress("photographs", len(done), total)
        if done:
            whole = _whole(facts, _rows_of(out / ROWS), left_out)
            write_text(out / CARD, card(whole))
            write_json(out / FACTS, asdict(whole))
        else:
            (out / ROWS).unlink()
        (out / _MAKING).unlink()
    if not done:
        out.rmdir()
        reasons = first_few([f"{reason} ({number:,})" for reason, number in left_out.most_common()], 4)
        raise DataError(f"none of {total:,} photographs could be used: {reasons}")
    return whole


def _rows_of(path: Path) -> Iterator[TruthLine]:
    """The lines that are there; one that was cut short is taken away."""
    whole = 0
    with path.open("ab+") as lines:
        lines.seek(0)
        for line in lines:
            if line.endswith(b"\n"):
                whole += len(line)
                yield json.loads(line)
        lines.truncate(whole)


def _written(out: Path, name: str, photograph: Marked, twins: Twins) -> TruthLine:
    labels, count = photograph.labels, len(photograph.names)
    row: TruthLine = {
        "id": name,
        "name": photograph.name,
        "sources": photograph.sources,
        "image": _saved(out, f"images/{name}.jpg", photograph.pixels),
        "mask": _saved(out, f"masks/{name}.png", labels),
        "size": list(labels.shape),
        "label": photograph.label,
        "objects": [
            {"name": called, "box": box_of(labels == at + 1), "share": round(float((labels == at + 1).mean()), 6)}
            for at, called in enumerate(photograph.names)
        ],
        "target": photograph.target,
        "rest": round(float((labels > count).mean()), 6),
        "twins": {},
        "left_out": [*photograph.left_out, *twins.left_out],
    }
    for key, twin in twins.by_name.items():
        file = picture_name(name, key)
        has_mask = twin.change in ("removed", "moved")
        row["twins"][key] = {
            "image": _saved(out, f"images/{file}.jpg", twin.pixels),
            "mask": _saved(out, f"masks/{file}.png", twin.labels) if has_mask else row["mask"],
            "changed": _saved(out, f"changed/{file}.png", twin.changed.astype(np.uint8) * np.uint8(255)),
            "change": twin.change,
            "object": twin.object,
            "label": _label_of(photograph, twin),
            "box": twin.box,
            **({"ground": twin.ground} if twin.ground else {}),
            **({"scale": twin.scale} if twin.scale else {}),
        }
    row = json.loads(json.dumps(row))  # tuples as lists, as they are read back
    return {**row, "digest": photograph_digest(out, row)}


def _label_of(photograph: Marked, twin: Twin) -> str | None:
    """The label of a twin: None where the target is gone, and nothing else has its name."""
    target = photograph.target
    others = {*photograph.names[:target], *photograph.names[target + 1 :], *photograph.others}
    is_gone = twin.change == "removed" and twin.object == target and photograph.label not in others
    return None if is_gone else photograph.label


def _saved(out: Path, file: str, values: Pixels) -> str:
    path = out / file
    make_folder(path.parent)
    Image.fromarray(values).save(path, quality=95, subsampling=0)  # of a JPEG; PNG has neither
    return file


def _whole(facts: PhotographFacts, rows: Iterable[TruthLine], left_out: Counter[str]) -> PhotographFacts:
    """The facts with what is known in the end."""
    digest, twins, labels, count = hashlib.blake2b(digest_size=32), Counter[str](), set[str](), 0
    for row in rows:
        count += 1
        digest.update(bytes.fromhex(row["digest"]))
        left_out.update(row["left_out"])
        twins.update(twin["change"] for twin in row["twins"].values())
        labels.update([row["label"]] if row["label"] is not None else [])
    return replace(
        facts,
        count=count,
        twins={change: twins[change] for change in CHANGES},
        left_out=dict(left_out.most_common()),
        labels=tuple(sorted(labels)),
        digest=digest.hexdigest(),
    )


_CHANGES = {
    "removed": "an object is gone",
    "moved": "the target lies elsewhere in the same picture",
    "background": "all objects lie on the ground of another photograph",
    "empty": "a patch of the target's shape was filled in where nothing lies: the control of the filling",
}
_FILLS = {
    "migan": "by MI-GAN (Sargsyan et al., ICCV 2023)",
    "smooth": "smoothly, by Laplace's equation: a blur stands where an object was",
    "exact": "not at all: scenes are composed, and composed again without the object",
}


def card(facts: PhotographFacts) -> str:
    """The text of the card ``README.md``."""
    twins = "\n".join(f"| {name} | {_CHANGES[name]} | {count:,} |" for name, count in facts.twins.items())
    left_out = "\n".join(f"| {reason} | {count:,} |" for reason, count in facts.left_out.items()) or "| nothing | 0 |"
    return f"""# A causal set of {facts.count:,} photographs

Each photograph comes with twins, in which one thing is changed. They show what the answer of a model rests on.

| | |
|---|---|
| photographs | {facts.count:,}, of {facts.pictures}, longest side at most {facts.size} px |
| labels | {len(facts.labels):,} |
| objects | {facts.masks}, at most {facts.max_share:.0%} of a picture each |
| holes are filled | {_FILLS[facts.fill]} |
| seed | {facts.seed} |
| digest (blake2b over files and rows) | `{facts.digest}` |
| licence | that of the photographs, which belong to their owners |

| twin | what is changed | how many |
|---|---|---|
{twins}

| left out | how many |
|---|---|
{left_out}

A filled hole is a guess. Look at the twins before you trust a score (`saccade data show causal:THIS FOLDER`), and
compare removed with empty: that is what the filling alone does to a model.

`truth.jsonl` has one JSON object a line, `images`, `masks` and `changed` the pictures it names. Masks are grey: 0 is
ground, k + 1 is object k, 255 is a thing that no twin changes. In Python, `saccade.data.read_causal_set("THIS FOLDER")`
yields the photographs; `.verify()` checks every digest.
"""
